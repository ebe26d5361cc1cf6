import math

import numpy as np
import pytest

from tests.week03_loops.oracle import check, normal, run, wide
from week01_uops.dtypes import bool_, float32, float64
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


def reference(q, k, v, allowed=None, added=0.0, scale=None):
    """Head by head, in float64."""
    q, k, v = map(wide, (q, k, v))
    share = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(x, share, -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1])) + added
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def heads(queries=6, keys=6, count=4, groups=4, dtype=np.float32, width=8):
    q = normal(2, count, queries, width, dtype=dtype)
    k = normal(2, groups, keys, width, dtype=dtype, seed=1)
    return q, k, normal(2, groups, keys, 5, dtype=dtype, seed=2)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("queries", "keys"), [(6, 6), (1, 7), (4, 9), (1, 1)])
def test_attention(queries, keys, groups):
    arrays = heads(queries, keys, groups=groups)
    check(lib.attention, reference(*arrays), *arrays, ulps=64, scale=1)
    allowed = np.tril(np.ones((queries, keys), bool), keys - queries)
    ours = lambda *p: lib.attention(*p, causal=True)
    check(ours, reference(*arrays, allowed), *arrays, ulps=64, scale=1)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype):
    arrays = heads(dtype=dtype)
    check(lib.attention, reference(*arrays), *arrays, ulps=64, scale=0.2)


def test_masks_and_scale():
    arrays = heads()
    added, allowed = normal(6, 6, seed=3), normal(2, 1, 6, 6, seed=4) < 0.5
    allowed[..., 0] = True
    ours = lambda q, k, v, m: lib.attention(q, k, v, mask=m)
    check(ours, reference(*arrays, added=added), *arrays, added, ulps=64, scale=1)
    check(ours, reference(*arrays, allowed), *arrays, allowed, ulps=64, scale=1)
    ours = lambda *p: lib.attention(*p, scale=0.1)
    check(ours, reference(*arrays, scale=0.1), *arrays, ulps=64, scale=1)


def test_a_row_that_sees_nothing_is_nan():
    arrays = heads(3, 2)
    result = run(lambda *p: lib.attention(*p, causal=True), *arrays)
    assert np.isnan(result[..., 0, :]).all()
    assert np.isfinite(result[..., 1:, :]).all()


def test_against_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the second opinion")
    arrays = heads(groups=2)
    tensors = map(torch.from_numpy, arrays)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *tensors, is_causal=True, enable_gqa=True
    ).numpy()
    check(lambda *p: lib.attention(*p, causal=True), expected, *arrays, ulps=64, scale=1)


@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (5, 2), (0, 4), (3, 1, 6)])
def test_rotary_turns_complex_numbers(shape):
    x = normal(*shape, dtype=np.float64)
    length, half = shape[-2], shape[-1] // 2
    angles = np.outer(np.arange(length), 100.0 ** -np.arange(half))
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    expected = np.concatenate([turned.real, turned.imag], -1)
    check(lib.rotary, expected, x, np.cos(angles), np.sin(angles), ulps=16, scale=1)


Q = param(0, float32, (2, 4, 6, 8))
TABLE = param(1, float32, (6, 3))
WRONG = [
    (
        lambda: lib.attention(Q, param(1, float32, (2, 4, 6, 7)), Q),
        "E403 attention: expected k of shape",
    ),
    (
        lambda: lib.attention(Q, param(1, float32, (4, 6, 8)), Q),
        "E403 attention: expected k of shape",
    ),
    (
        lambda: lib.attention(Q, Q, param(2, float32, (2, 4, 5, 8))),
        "E403 attention: expected v of shape",
    ),
    (
        lambda: lib.attention(Q, *[param(1, float32, (2, 3, 6, 8))] * 2),
        "E403 attention: expected heads of k that divide 4, got 3",
    ),
    (
        lambda: lib.attention(Q, Q, Q, mask=param(3, float64, (6, 6))),
        "E402 attention: expected a mask of bool",
    ),
    (lambda: lib.attention(Q, Q, Q, mask=param(3, bool_, (3, 2, 4, 6, 6))), "E403 .*broadcast"),
    (
        lambda: lib.attention(Q, Q, Q, mask=param(3, bool_, (3, 1, 1, 6, 6))),
        "E403 attention: .* mask that",
    ),
    (lambda: lib.attention(param(0, bool_, (1, 1, 1)), Q, Q), "E402 attention: expected a float q"),
    (
        lambda: lib.attention(param(0, float32, (6, 8)), Q, Q),
        "E406 attention: expected q with axes",
    ),
    (
        lambda: lib.rotary(Q, TABLE, TABLE),
        r"E403 rotary: expected a cosine of shape \[6, 4\], got \[6, 3\]",
    ),
    (lambda: lib.rotary(TABLE, TABLE, TABLE), "E404 rotary: expected an even last axis, got 3"),
]


@pytest.mark.parametrize(("build", "message"), WRONG)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
