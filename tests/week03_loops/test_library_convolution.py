import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.week03_loops.oracle import check, normal, run, wide
from week01_uops.dtypes import float32, int32
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


def reference(x, weight, *, stride, padding, dilation, groups):
    """The sum in the docstring of `conv`, position by position."""
    x = np.pad(wide(x), [(0, 0), (0, 0), *padding])
    weight = wide(weight)
    spans = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    shape = [(n - s) // step + 1 for n, s, step in zip(x.shape[2:], spans, stride, strict=True)]
    filters, inner = weight.shape[0] // groups, weight.shape[1]
    y = np.zeros((x.shape[0], weight.shape[0], *shape))
    for o in range(weight.shape[0]):
        first = o // filters * inner
        for p in itertools.product(*map(range, shape)):
            box = [
                slice(i * s, i * s + span, d)
                for i, s, span, d in zip(p, stride, spans, dilation, strict=True)
            ]
            patch = x[(slice(None), slice(first, first + inner), *box)]
            y[(slice(None), o, *p)] = (patch * weight[o]).reshape(x.shape[0], -1).sum(1)
    return y


def options(rank):
    return st.fixed_dictionaries(
        {
            "stride": st.lists(st.integers(1, 4), min_size=rank, max_size=rank),
            "dilation": st.lists(st.integers(1, 3), min_size=rank, max_size=rank),
            "padding": st.lists(
                st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=rank, max_size=rank
            ),
            "groups": st.sampled_from([1, 2, 4]),
        }
    )


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_conv_is_its_sum(rank, data):
    choice = data.draw(options(rank))
    lengths = data.draw(st.lists(st.integers(1, 9 - 2 * rank), min_size=rank, max_size=rank))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    for length, size, step, (low, high) in zip(
        lengths, kernel, choice["dilation"], choice["padding"], strict=True
    ):
        assume((size - 1) * step + 1 <= length + low + high)
    x = normal(2, 4, *lengths)
    weight = normal(4, 4 // choice["groups"], *kernel, seed=1)
    expected = reference(x, weight, **choice)
    check(lambda a, b: lib.conv(a, b, **choice), expected, x, weight, ulps=64, scale=1)


def test_conv_against_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the second opinion")
    functional = torch.nn.functional
    x, weight, bias = normal(2, 6, 13, 11), normal(9, 2, 3, 2, seed=1), normal(9, seed=2)
    given_options = {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 3), "groups": 3}
    tensors = [torch.from_numpy(a) for a in (x, weight, bias)]
    expected = functional.conv2d(*tensors, **given_options).numpy()
    check(lambda *p: lib.conv(*p, **given_options), expected, x, weight, bias, ulps=64, scale=1)


def test_conv_of_integers_and_empty_batches():
    x, weight = np.arange(24).reshape(1, 2, 12), np.arange(6).reshape(1, 2, 3)
    expected = reference(x, weight, stride=[1], padding=[(0, 0)], dilation=[1], groups=1)
    check(lib.conv, expected.astype(np.int64), x, weight)
    assert run(lib.conv, normal(0, 2, 5), normal(3, 2, 3)).shape == (0, 3, 3)
    assert run(lib.conv, normal(2, 2, 5), normal(0, 2, 3)).shape == (2, 0, 3)


X, W = param(0, float32, (1, 4, 5, 5)), param(1, float32, (6, 4, 3, 3))
WRONG = [
    (
        lambda: lib.conv(X, param(1, float32, (6, 3, 3, 3))),
        r"E403 conv: expected a weight of shape \[a multiple of 1, 4, kernel, kernel\], "
        r"got \[6, 3, 3, 3\]",
    ),
    (lambda: lib.conv(X, param(1, float32, (6, 4, 3))), "E403 conv: expected a weight"),
    (
        lambda: lib.conv(X, param(1, float32, (6, 4, 6, 1))),
        "E403 conv: expected a window of 1 to 5 .* got 6",
    ),
    (
        lambda: lib.conv(X, param(1, float32, (6, 4, 0, 1))),
        "E403 conv: expected a window of 1 to 5 .* got 0",
    ),
    (
        lambda: lib.conv(X, W, param(2, float32, (4,))),
        r"conv: expected a bias of shape \[6\], got \[4\]",
    ),
    (lambda: lib.conv(X, W, groups=3), "E311 conv: expected groups that divide 4 channels, got 3"),
    (lambda: lib.conv(X, W, groups=0), "E311 conv: expected groups"),
    (lambda: lib.conv(X, W, stride=0), r"E311 conv: expected 2 integer\(s\) ≥ 1 as stride, got 0"),
    (lambda: lib.conv(X, W, dilation=[1]), r"E311 conv: expected 2 integer\(s\) ≥ 1 as dilation"),
    (lambda: lib.conv(X, W, padding=-1), "E311 conv: .* as padding, got -1"),
    (lambda: lib.conv(X, param(1, int32, (6, 4, 3, 3))), "E401"),
    (lambda: lib.conv(param(0, float32, (5,)), W), "E406 conv: expected x with axes"),
]


@pytest.mark.parametrize(("build", "message"), WRONG)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
