"""Arrays that outgrow registers and small caches: where panels are packed and rows are blocked."""

import numpy as np
import pytest

from week01_uops.dtypes import bfloat16, bool_, float16, float32, float64, int8, int32, int64
from week01_uops.interchange import write
from week01_uops.ops import param, program
from week03_loops import library


def runs(judge, *outputs, special=False):
    judge.runs(write(program(*outputs)), draws=1, special=special)


def tensors(*shapes, dtype=float32):
    return [param(slot, dtype, tuple(shape)) for slot, shape in enumerate(shapes)]


def sizes(*cases):
    return pytest.mark.parametrize("shape", cases, ids=str)


# Contractions -------------------------------------------------------------------------------------


@sizes((193, 151, 137), (130, 257, 65), (64, 64, 256), (12, 512, 128), (301, 17, 300))
def test_matrix_product(judge, shape):
    """A·B, with what is left of each tile."""
    m, k, n = shape
    runs(judge, library.matmul(*tensors((m, k), (k, n))))


@sizes((129, 203, 97), (16, 256, 200), (7, 300, 515))
def test_matrix_product_transposed(judge, shape):
    """x·Wᵀ + b, and Aᵀ·B."""
    m, k, n = shape
    x, w, b = tensors((m, k), (n, k), (n,))
    runs(judge, library.gelu_tanh(library.linear(x, w, b)))
    a, b = tensors((k, m), (k, n))
    runs(judge, library.matmul(library.transpose(a), b))


@pytest.mark.parametrize("dtype", [float64, float16, bfloat16, int8, int32], ids=str)
def test_matrix_product_of_a_dtype(judge, dtype):
    """A product of every kind of number."""
    runs(judge, library.matmul(*tensors((61, 130), (130, 97), dtype=dtype)))


@sizes((1, 1500), (1500, 1), (700, 513))
def test_matrix_vector_product(judge, shape):
    """A matrix times a column, and a row times a matrix."""
    m, k = shape
    runs(judge, library.matmul(*tensors((m, k), (k, 1))))
    runs(judge, library.matmul(*tensors((1, m), (m, k))))


def test_chain_of_products(judge):
    """What one product makes is an operand of the next, and of a sum beside it."""
    x, w, v = tensors((67, 96), (96, 160), (160, 96))
    h = library.silu(library.matmul(x, w))
    runs(judge, library.add(library.matmul(h, v), x), library.reduce_sum(h, 0))


def test_expensive_operand(judge):
    """An exponential of each element of an operand, which a product reads many times."""
    a, b = tensors((90, 120), (120, 110))
    runs(judge, library.matmul(library.exp(a), library.sigmoid(b)))


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((2, 16, 30, 34), (24, 16, 3, 3), {"padding": 1}),
        ((1, 24, 33, 29), (24, 1, 3, 3), {"padding": 1, "groups": 24}),
        ((1, 3, 61, 67), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((1, 64, 15, 17), (65, 64, 1, 1), {}),
        ((1, 8, 40, 41), (12, 4, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}),
        ((2, 5, 300), (7, 5, 9), {"stride": 3}),
    ],
    ids=str,
)
def test_convolution(judge, x, w, options):
    """Windows over images with padding, strides, groups, dilation; bias and a rectifier behind."""
    image, weight, bias = tensors(x, w, (w[0],))
    runs(judge, library.relu(library.conv(image, weight, bias, **options)))


@pytest.mark.parametrize("pool", [library.max_pool, library.avg_pool])
def test_pooling(judge, pool):
    """Overlapping windows of images."""
    (x,) = tensors((2, 5, 61, 67))
    runs(judge, pool(x, (3, 3), stride=2, padding=1))


# Rows and columns ---------------------------------------------------------------------------------


@sizes((37, 1030), (3, 9001), (500, 3), (1, 70001), (5, 1024), (2, 16384))
def test_softmax(judge, shape):
    """Rows that fit a cache and some that do not, of sizes even and odd."""
    (x,) = tensors(shape)
    runs(judge, library.softmax(x), special=True)


@sizes((1030, 37), (9001, 3))
def test_softmax_of_columns(judge, shape):
    """Down the columns, in whose direction memory has large steps."""
    (x,) = tensors(shape)
    runs(judge, library.softmax(x, 0))


@sizes((35, 2051), (300, 65), (2, 20011))
def test_normalization(judge, shape):
    """Mean and variance of each row, with a gain and a bias for each column."""
    x, weight, bias = tensors(shape, shape[1:], shape[1:])
    runs(judge, library.layernorm(x, weight, bias))
    runs(judge, library.rmsnorm(x, weight))


@pytest.mark.parametrize("axes", [None, (0,), (1,)], ids=str)
@pytest.mark.parametrize("dtype", [float32, float16, int32, bool_], ids=str)
@sizes((307, 701), (3, 50021), (50021, 3))
def test_reduction(judge, shape, dtype, axes):
    """Sums and maxima over everything, rows and columns."""
    (x,) = tensors(shape, dtype=dtype)
    found = [library.reduce_max(x, axes)]
    if dtype is not bool_:
        found.append(library.reduce_sum(x, axes))
    runs(judge, *found)


@sizes((32, 701), (701, 32))
def test_sums_of_halves(judge, shape):
    """Whole numbers, whose sum float32 holds: it is rounded once, of whatever parts it is made."""
    (x,) = tensors(shape, dtype=float16)
    given = np.random.default_rng(0).integers(0, 16, shape).tolist()
    total = library.reduce_sum(x, (int(np.argmax(shape)),))
    judge.runs(write(program(total)), {0: given}, tolerance=0)


def test_reductions_of_a_middle_axis(judge):
    """Neither the first nor the last axis, and all but one."""
    (x,) = tensors((11, 230, 67))
    runs(judge, library.mean(x, 1), library.reduce_max(x, (0, 2)), library.var(x, (1, 2)))


def test_running_sums(judge):
    """Running sums along both axes."""
    (x,) = tensors((130, 67))
    runs(judge, library.cumsum(x, 0), library.cumsum(x, 1))


# Attention ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@sizes((1, 2, 131, 32), (1, 1, 300, 16))
def test_attention(judge, shape, causal):
    """Scores of a row, their softmax, and its product with the values."""
    q, k, v = tensors(shape, shape, shape)
    runs(judge, library.attention(q, k, v, causal=causal))


def test_attention_in_groups(judge):
    """Four query heads share a head of keys and values."""
    q, k, v = tensors((1, 8, 97, 24), (1, 2, 97, 24), (1, 2, 97, 24))
    runs(judge, library.attention(q, k, v, causal=True))


def test_attention_with_a_mask(judge):
    """A mask of bools, of which special draws leave no row out; fewer queries than keys."""
    q, k, v = tensors((2, 3, 41, 16), (2, 3, 90, 16), (2, 3, 90, 16))
    mask = param(3, bool_, (41, 90))
    runs(judge, library.attention(q, k, v, mask=mask))


# Elements, movement, look-ups ---------------------------------------------------------------------


def test_elementwise(judge):
    """A long chain over a long array, its special values included."""
    x, y = tensors((100003,), (100003,))
    runs(judge, library.mul(library.silu(x), library.maximum(x, y)), special=True)


@pytest.mark.parametrize("narrow", [(1, 701), (303, 1), (1, 1), (701,)], ids=str)
def test_broadcast(judge, narrow):
    """A row, a column or one number with a matrix."""
    x, y = tensors((303, 701), narrow)
    runs(judge, library.add(library.mul(x, y), x), special=True)


@sizes((257, 515), (5, 9001), (2000, 6))
def test_transpose(judge, shape):
    """A matrix and its transpose added to another, and alone."""
    x, y = tensors(shape, shape[::-1])
    runs(judge, library.add(library.transpose(x), y), library.transpose(x))


@pytest.mark.parametrize("dtype", [int8, float16, int64, float64], ids=str)
def test_movement(judge, dtype):
    """Turned, cut, padded and put together, in elements of all widths."""
    (x,) = tensors((7, 61, 67), dtype=dtype)
    turned = library.move_axis(x, 0, 2)
    padded = library.pad_with(turned, [(2, 1), (0, 5), (3, 3)], 1)
    runs(judge, padded, library.concatenate([turned, turned], 1))


def test_look_up_and_scatter(judge):
    """Rows of a table, a loss that picks an element a row, and rows added to a table."""
    table, values = tensors((331, 70), (90, 70))
    index = param(2, int64, (90,))
    runs(judge, library.take(table, index))
    runs(judge, library.scatter_add(table, index, values))
    logits, target = param(0, float32, (120, 257)), param(1, int64, (120,))
    runs(judge, library.cross_entropy(logits, target))
