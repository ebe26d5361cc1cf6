import numpy as np
import pytest

from tests.week03_loops.oracle import check, normal, run
from week01_uops.dtypes import float32, int32
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib

torch = pytest.importorskip("torch", reason="PyTorch is the reference of pooling")
functional = torch.nn.functional

OPTIONS = [
    {},
    {"stride": 1},
    {"stride": 2, "padding": 1},
    {"stride": (3, 1), "padding": (0, 1)},
    {"stride": 4},
]


@pytest.mark.parametrize("options", [*OPTIONS, {"dilation": 2}, {"dilation": (1, 3), "padding": 1}])
def test_max_pool(options):
    x = -np.abs(normal(2, 3, 11, 10))
    expected = functional.max_pool2d(torch.from_numpy(x), (3, 2), **options).numpy()
    check(lambda p: lib.max_pool(p, (3, 2), **options), expected, x, ulps=0)


@pytest.mark.parametrize("count", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
def test_avg_pool(options, count):
    x = normal(2, 3, 11, 10)
    expected = functional.avg_pool2d(
        torch.from_numpy(x), (3, 2), count_include_pad=count, **options
    ).numpy()
    ours = lambda p: lib.avg_pool(p, (3, 2), count_padding=count, **options)
    check(ours, expected, x, ulps=8, scale=1)


def test_ranks():
    x = normal(2, 12)
    check(lambda p: lib.max_pool(p, (4,)), x.reshape(2, 3, 4).max(-1), x)
    x = normal(1, 2, 4, 6, 2)
    expected = functional.avg_pool3d(torch.from_numpy(x), 2).numpy()
    check(lambda p: lib.avg_pool(p, (2, 2, 2)), expected, x, ulps=8, scale=1)


def test_padding_never_wins():
    x = np.full((1, 1, 3), -128, np.int8)
    check(lambda p: lib.max_pool(p, (3,), stride=1, padding=1), x, x)
    assert run(lambda p: lib.max_pool(p, (2,)), np.zeros((0, 4), np.float32)).shape == (0, 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda x: lib.max_pool(x, (3, 3), padding=3),
            "E311 max_pool: expected padding below the window",
        ),
        (lambda x: lib.max_pool(x, (5, 1)), "E403 max_pool: expected a window of 1 to 4"),
        (lambda x: lib.max_pool(x, (0, 1)), r"E311 max_pool: expected 2 integer\(s\) ≥ 1 as size"),
        (lambda x: lib.avg_pool(x, (2,) * 5), "E406 avg_pool: expected x with"),
        (lambda x: lib.avg_pool(param(0, int32, (4,)), (2,)), "E402 avg_pool: expected a float x"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build(param(0, float32, (1, 2, 4, 4)))
