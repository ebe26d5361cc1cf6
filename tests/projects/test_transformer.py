import numpy as np
import pytest

from projects.models import Transformer, rotary_tables, transformer_block
from tests.projects.compiled import run
from week01_uops.dtypes import float32, float64

torch = pytest.importorskip("torch", reason="PyTorch is the reference of the block")
functional = torch.nn.functional


def inputs_of(sizes, dtype):
    """Weights of a size that keeps activations near 1."""
    random = np.random.default_rng(0)
    arrays = {}
    for name, shape in sizes.shapes().items():
        array = random.standard_normal(shape)
        if name.endswith("norm.weight"):
            array = 1 + 0.1 * array
        elif name.endswith("weight"):
            array /= np.sqrt(shape[1])
        arrays[name] = array
    arrays["cosine"], arrays["sine"] = rotary_tables(sizes.length, sizes.head)
    return {name: array.astype(dtype.numpy) for name, array in arrays.items()}


def rmsnorm(x, weight, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight


def reference(p, sizes):
    """The block as one writes it in PyTorch, with complex numbers for the rotation."""
    p = {name: torch.from_numpy(array) for name, array in p.items()}
    x, epsilon = p["x"], sizes.epsilon
    batch, length, width = x.shape
    turn = torch.complex(p["cosine"], p["sine"])

    def heads(weight):
        return (normal @ weight.T).view(batch, length, -1, sizes.head).transpose(1, 2)

    def rotate(y):
        first, second = y.chunk(2, -1)
        turned = torch.complex(first, second) * turn
        return torch.cat([turned.real, turned.imag], -1)

    normal = rmsnorm(x, p["attention_norm.weight"], epsilon)
    query, key = rotate(heads(p["query.weight"])), rotate(heads(p["key.weight"]))
    mixed = functional.scaled_dot_product_attention(
        query, key, heads(p["value.weight"]), is_causal=True, enable_gqa=True
    )
    x = x + mixed.transpose(1, 2).reshape(batch, length, width) @ p["output.weight"].T
    normal = rmsnorm(x, p["feed_forward_norm.weight"], epsilon)
    gated = functional.silu(normal @ p["gate.weight"].T) * (normal @ p["up.weight"].T)
    return (x + gated @ p["down.weight"].T).numpy()


@pytest.mark.parametrize(("dtype", "tolerance"), [(float32, 2e-5), (float64, 1e-11)])
@pytest.mark.parametrize(
    "sizes",
    [Transformer(), Transformer(1, 17, 48, heads=6, groups=2, hidden=40)],
    ids=["full size", "grouped heads, odd length"],
)
def test_block_is_pytorchs(sizes, dtype, tolerance):
    p = inputs_of(sizes, dtype)
    result = run(transformer_block(sizes, dtype), list(p.values()))
    np.testing.assert_allclose(result, reference(p, sizes), rtol=tolerance, atol=tolerance)


def test_no_position_sees_a_later_one():
    sizes = Transformer(1, 12, 32, heads=4, groups=4, hidden=24)
    p = inputs_of(sizes, float32)
    block = transformer_block(sizes)
    before = run(block, list(p.values()))
    p["x"][:, 7:] += 1
    after = run(block, list(p.values()))
    np.testing.assert_array_equal(after[:, :7], before[:, :7])
    assert np.abs(after[:, 7:] - before[:, 7:]).max() > 0.1
