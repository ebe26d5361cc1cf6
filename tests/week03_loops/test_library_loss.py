import numpy as np
import pytest

from tests.week03_loops.oracle import FLOATS, check, normal, run, wide
from week01_uops.dtypes import float32, int64
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


def cross_entropy(logits, target):
    low = logits - logits.max(-1, keepdims=True)
    chosen = low - np.log(np.exp(low).sum(-1, keepdims=True))
    return -np.take_along_axis(chosen, target[..., None], -1).mean()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 4), (1, 1), (6,)])
def test_cross_entropy(shape, dtype):
    logits = normal(*shape, dtype=dtype)
    target = np.random.default_rng(0).integers(0, shape[-1], shape[:-1])
    check(lib.cross_entropy, cross_entropy(wide(logits), target), logits, target, ulps=8, scale=4)


def test_of_an_empty_batch_is_nan():
    assert np.isnan(run(lib.cross_entropy, normal(0, 3), np.zeros(0, np.int64)))


def test_mean_square_error():
    x, y = normal(3, 4, dtype=np.float64), normal(3, 4, dtype=np.float64, seed=1)
    check(lib.mean_square_error, np.square(x - y).mean(), x, y, ulps=16)


X = param(0, float32, (3, 4))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: lib.cross_entropy(X, param(1, float32, (3,))),
            "E402 cross_entropy: expected an integer target",
        ),
        (
            lambda: lib.cross_entropy(X, param(1, int64, (4,))),
            r"cross_entropy: expected a target of shape \[3\]",
        ),
        (
            lambda: lib.mean_square_error(X, param(1, float32, (4,))),
            "E403 mean_square_error: expected a target",
        ),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
