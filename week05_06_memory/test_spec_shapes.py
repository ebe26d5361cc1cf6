"""Every kind of workload at prime, 1-sized and 0-sized shapes: schedules leave remainders."""

import pytest

from week01_uops.dtypes import float16, float32, float64, int8, int32, int64
from week01_uops.interchange import write
from week01_uops.ops import param, program
from week03_loops import library


def runs(judge, *outputs):
    judge.runs(write(program(*outputs)), draws=1, special=False)


def tensors(*shapes, dtype=float32):
    return [param(slot, dtype, tuple(shape)) for slot, shape in enumerate(shapes)]


def sizes(*cases):
    return pytest.mark.parametrize("shape", cases, ids=str)


@sizes((1, 1, 1), (7, 13, 5), (67, 31, 101), (1, 61, 17), (53, 1, 19), (37, 29, 1), (0, 3, 2))
def test_matrix_product(judge, shape):
    """A·B of odd sizes (m, k, n)."""
    m, k, n = shape
    runs(judge, library.matmul(*tensors((m, k), (k, n))))


@sizes((3, 0, 2), (2, 3, 0), (0, 0, 0))
def test_matrix_product_of_nothing(judge, shape):
    """A sum without terms is 0; a result without elements is none."""
    m, k, n = shape
    runs(judge, library.matmul(*tensors((m, k), (k, n))))


@sizes((1, 1, 1), (13, 71, 37), (1, 41, 67), (59, 23, 3), (17, 0, 5))
def test_matrix_product_transposed(judge, shape):
    """x·Wᵀ + b, and Aᵀ·B."""
    m, k, n = shape
    x, w, b = tensors((m, k), (n, k), (n,))
    runs(judge, library.relu(library.linear(x, w, b)))
    a, b = tensors((k, m), (k, n))
    runs(judge, library.matmul(library.transpose(a), b))


@sizes((2, 7, 11, 13), (3, 1, 17, 1), (1, 37, 1, 41), (0, 2, 3, 4), (3, 2, 0, 4))
def test_matrix_products_in_a_batch(judge, shape):
    """One product for each element of a batch."""
    b, m, k, n = shape
    runs(judge, library.matmul(*tensors((b, m, k), (b, k, n))))


@pytest.mark.parametrize("dtype", [float64, float16, int8, int32, int64], ids=str)
def test_matrix_product_of_a_dtype(judge, dtype):
    """A product of every kind of number."""
    runs(judge, library.matmul(*tensors((19, 23), (23, 37), dtype=dtype)))


@sizes((1, 127), (127, 1), (1, 1), (97, 61), (0, 5), (5, 0))
def test_matrix_vector_product(judge, shape):
    """A row of a matrix by a vector, both ways around."""
    m, k = shape
    runs(judge, library.matmul(*tensors((m, k), (k, 1))))
    runs(judge, library.matmul(*tensors((1, m), (m, k))))


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((2, 3, 11, 13), (5, 3, 3, 3), {"padding": 1}),
        ((1, 7, 17, 19), (7, 1, 3, 3), {"padding": 1, "groups": 7}),
        ((1, 3, 23, 29), (11, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((1, 13, 7, 5), (17, 13, 1, 1), {}),
        ((3, 4, 31), (6, 2, 5), {"groups": 2, "dilation": 3, "padding": ((2, 1),)}),
        ((1, 1, 1, 1), (1, 1, 1, 1), {}),
        ((2, 1, 3, 3), (1, 1, 3, 3), {}),
        ((0, 3, 5, 5), (2, 3, 3, 3), {"padding": 1}),
        ((2, 3, 5, 5), (0, 3, 3, 3), {"padding": 1}),
        ((2, 0, 5, 5), (4, 0, 3, 3), {"padding": 1}),
    ],
    ids=str,
)
def test_convolution(judge, x, w, options):
    """Windows, strides, padding, groups, where no tile fits."""
    runs(judge, library.conv(*tensors(x, w), **options))


@sizes((1, 1), (7, 131), (131, 7), (1, 67), (67, 1), (3, 0), (0, 3))
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(judge, shape, axis):
    """Rows and columns: a maximum, a sum and a division."""
    (x,) = tensors(shape)
    runs(judge, library.softmax(x, axis), library.log_softmax(x, axis))


@sizes((1, 1), (5, 127), (127, 5), (1, 61), (61, 1), (0, 3))
def test_normalization(judge, shape):
    """Mean and variance of each row."""
    x, weight, bias = tensors(shape, shape[1:], shape[1:])
    runs(judge, library.layernorm(x, weight, bias), library.rmsnorm(x, weight))


@pytest.mark.parametrize("causal", [False, True])
@sizes((1, 2, 1, 1), (2, 1, 37, 5), (1, 2, 61, 16), (3, 1, 7, 1), (1, 1, 0, 4), (0, 2, 3, 4))
def test_attention(judge, shape, causal):
    """Scores, a softmax of their rows, and a product with the values."""
    q, k, v = tensors(shape, shape, shape)
    runs(judge, library.attention(q, k, v, causal=causal))


@sizes((1, 4, 13, 7), (2, 6, 31, 3))
def test_attention_in_groups(judge, shape):
    """Several query heads share a head of keys and values."""
    batch, heads, length, width = shape
    shared = (batch, heads // 2, length, width)
    q, k, v = tensors(shape, shared, shared)
    runs(judge, library.attention(q, k, v, causal=True))


REDUCTIONS = [
    library.reduce_sum,
    library.reduce_max,
    library.reduce_min,
    library.mean,
    library.var,
]


@pytest.mark.parametrize("reduce", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axes", [None, (0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
def test_reduction(judge, reduce, axes):
    """A reduction over any axes."""
    runs(judge, reduce(*tensors((7, 13, 17)), axes))


@sizes((1, 1, 1), (1, 101, 1), (3, 1, 67))
@pytest.mark.parametrize("axes", [None, (0,), (1, 2)], ids=str)
def test_reduction_of_short_axes(judge, axes, shape):
    """A reduction over axes of one element."""
    (x,) = tensors(shape)
    runs(judge, library.reduce_sum(x, axes), library.reduce_max(x, axes))


@sizes((0,), (3, 0), (0, 3))
@pytest.mark.parametrize("axes", [None, (0,)], ids=str)
def test_reduction_of_nothing(judge, shape, axes):
    """No terms: 0, or the least value."""
    (x,) = tensors(shape)
    runs(judge, library.reduce_sum(x, axes), library.reduce_max(x, axes))


@sizes((1,), (67,), (7, 1, 13), (1, 61), (31, 37), (0,), (3, 0, 2))
def test_elementwise(judge, shape):
    """Chains of arithmetic, with broadcasts along each axis."""
    x, *rest = tensors(
        shape, *(tuple(1 if a == b else s for b, s in enumerate(shape)) for a in range(len(shape)))
    )
    total = x
    for other in rest:
        total = library.mul(library.silu(total), library.add(other, x))
    runs(judge, total, library.gelu(x))


@sizes((7, 13), (1, 31), (31, 1), (0, 3))
def test_movement(judge, shape):
    """Transposed, padded, cut and put together."""
    (x,) = tensors(shape)
    padded = library.pad_with(x, [(1, 2), (3, 0)], 0.5)
    runs(judge, library.transpose(padded), library.concatenate([x, x], 1))


@sizes((1, 1, 1), (7, 13, 11), (31, 3, 61), (5, 7, 0))
def test_look_up_and_scatter(judge, shape):
    """Rows of a table, and rows added to a table."""
    count, width, n = shape
    table, values = tensors((count, width), (n, width))
    index = param(2, int64, (n,))
    runs(judge, library.take(table, index))
    runs(judge, library.scatter_add(table, index, values))


@sizes((1, 1), (11, 5), (1, 37), (37, 1))
def test_scan(judge, shape):
    """Running sums, and the lower triangle."""
    (x,) = tensors(shape)
    runs(judge, library.cumsum(x, 0), library.cumsum(x, 1), library.tril(x))
