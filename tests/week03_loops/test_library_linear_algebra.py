import numpy as np
import pytest

from tests.week03_loops.oracle import BFLOAT16, INTEGERS, check, normal, wide
from week01_uops.dtypes import float32, float64
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((2, 5, 3, 4), (1, 5, 4, 1)),
    ((3, 0), (0, 2)),
    ((0, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((3, 1), (1, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul_shapes(left, right):
    a, b = normal(*left, seed=1, dtype=np.float64), normal(*right, seed=2, dtype=np.float64)
    check(lib.matmul, a @ b, a, b, ulps=32, scale=1)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_matmul_of_integers_wraps(dtype):
    a, b = (np.random.default_rng(s).integers(0, 99, (5, 5)).astype(dtype) for s in (1, 2))
    check(lib.matmul, a @ b, a, b)


@pytest.mark.parametrize("dtype", [np.dtype("float16"), BFLOAT16])
def test_matmul_accumulates_narrow_floats_in_float32(dtype):
    a, b = normal(3, 400, dtype=dtype, seed=1), normal(400, 4, dtype=dtype, seed=2)
    scale = (np.abs(wide(a)) @ np.abs(wide(b))).max()
    check(lib.matmul, wide(a) @ wide(b), a, b, ulps=1, scale=scale)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear(shape):
    x, w, b = normal(*shape), normal(5, 4, seed=1), normal(5, seed=2)
    check(lib.linear, x @ w.T + b, x, w, b, ulps=16, scale=1)
    check(lib.linear, x @ w.T, x, w, ulps=16, scale=1)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bhtd,bhsd->bhts", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("ij,ij->j", [(2, 3), (1, 3)]),
        (" ij , j -> i ", [(2, 0), (0,)]),
    ],
)
def test_einsum(equation, shapes):
    arrays = [normal(*shape, seed=k, dtype=np.float64) for k, shape in enumerate(shapes)]
    expected = np.einsum(equation, *arrays)
    check(lambda *p: lib.einsum(equation, *p), expected, *arrays, ulps=32, scale=1)


def matrix(slot, *shape, dtype=float32):
    return param(slot, dtype, shape)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: lib.matmul(matrix(0, 2, 3), matrix(1, 4, 5)),
            r"E403 matmul: expected a of shape \[..., 4\], .* \[4, 5\] .* got \[2, 3\]",
        ),
        (lambda: lib.matmul(matrix(0, 2, 1), matrix(1, 4, 5)), "E403 matmul"),
        (lambda: lib.matmul(matrix(0), matrix(1, 4)), "E406 matmul: expected a with axes"),
        (lambda: lib.matmul(matrix(0, 4), matrix(1)), "E406 matmul: expected b with axes"),
        (lambda: lib.matmul(matrix(0, 2, 3, 4), matrix(1, 3, 4, 5)), "E403 matmul: .* batch0"),
        (lambda: lib.matmul(matrix(0, 4), matrix(1, 4, dtype=float64)), "E401"),
        (
            lambda: lib.linear(matrix(0, 4), matrix(1, 4, 5)),
            r"linear: expected a weight of shape \[out, 4\]",
        ),
        (
            lambda: lib.linear(matrix(0, 4), matrix(1, 5, 4), matrix(2, 4)),
            r"linear: expected a bias of shape \[5\]",
        ),
        (lambda: lib.einsum("ij,jk", matrix(0, 2, 2), matrix(1, 2, 2)), "E311 einsum"),
        (lambda: lib.einsum("ii->i", matrix(0, 2, 2)), "E311 einsum: expected each label once"),
        (lambda: lib.einsum("ij->k", matrix(0, 2, 2)), "E311 einsum: expected output labels"),
        (lambda: lib.einsum("ij->i", matrix(0, 2)), "E406 einsum: expected 2 axes"),
        (
            lambda: lib.einsum("i,i->i", matrix(0, 2), matrix(1, 3)),
            "E403 einsum: .* axis i .* 2 and 3",
        ),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
