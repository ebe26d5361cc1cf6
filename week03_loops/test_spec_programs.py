"""Whole programs: matrix products, convolutions, pooling, scans, normalizations, look-ups.

The programs with names are the files of `programs/`.
"""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


def named(*names):
    return pytest.mark.parametrize("name", names)


def runs(judge, name):
    judge.runs((PROGRAMS / f"{name}.uop").read_text(), draws=1)


@named("gemm", "gemm_odd", "gemm_batched", "gemm_float16", "gemm_int8", "gemm_bias_relu", "gemv")
def test_matrix_product(judge, name):
    """A matrix product is MUL and REDUCE over broadcast axes, in every dtype."""
    runs(judge, name)


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (7, 13, 5), (1, 17, 1), (31, 1, 2), (3, 0, 2), (0, 4, 2)], ids=str
)
def test_matrix_product_of_odd_sizes(judge, sizes):
    """A matrix product of any sizes, 1 and 0 among them: with no terms every sum is 0."""
    m, k, n = sizes
    judge.runs(
        f"""
        a  = PARAM : {{"slot": 0, "dtype": "float32", "shape": [{m}, {k}]}}
        b  = PARAM : {{"slot": 1, "dtype": "float32", "shape": [{k}, {n}]}}
        at = PERMUTE a : [1, 0]
        a3 = RESHAPE at : [{k}, {m}, 1]
        b3 = RESHAPE b : [{k}, 1, {n}]
        p  = MUL a3 b3
        c  = REDUCE p : {{"op": "ADD", "axes": 1}}
        return c
        """
    )


@named("linear", "gelu", "gelu_tanh", "swiglu")
def test_layer(judge, name):
    """A linear layer, and activations made of EXP2 and RECIP."""
    runs(judge, name)


@named(
    "conv",
    "conv1d",
    "conv3d",
    "conv_asymmetric",
    "conv_depthwise",
    "conv_dilation",
    "conv_groups",
    "conv_stride_padding",
)
def test_convolution(judge, name):
    """A convolution is movement, MUL and REDUCE."""
    runs(judge, name)


def test_convolution_by_hand(judge):
    """A convolution of 3 taps over a padded row, its windows made by EXPAND and RESHAPE."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [8]}
        w = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        p = PAD x : [[1, 1]]
        e = EXPAND p : [4, 10]
        f = RESHAPE e : [40]
        s = SHRINK f : [[0, 33]]
        r = RESHAPE s : [3, 11]
        v = SHRINK r : [[0, 3], [0, 8]]
        k = RESHAPE w : [3, 1]
        m = MUL v k
        a = REDUCE m : {"op": "ADD", "axes": 1}
        return a
        """
    )


@named("max_pool", "max_pool_overlapping", "avg_pool")
def test_pooling(judge, name):
    """Pooling is movement and a reduction."""
    runs(judge, name)


@named("cumsum", "cumprod", "cummax", "arange", "tril")
def test_scan(judge, name):
    """Running sums, products and maxima, and what can be made of running sums of ones."""
    runs(judge, name)


def test_cumsum_by_hand(judge):
    """A running sum is a window over a padded array."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [5]}
        p = PAD x : [[4, 0]]
        e = EXPAND p : [6, 9]
        f = RESHAPE e : [54]
        s = SHRINK f : [[0, 50]]
        r = RESHAPE s : [5, 10]
        w = SHRINK r : [[0, 5], [0, 5]]
        a = REDUCE w : {"op": "ADD", "axes": 1}
        return a
        """
    )


@named("sum_all", "sum_rows", "sum_columns", "max_middle", "mean_and_variance")
def test_reduction(judge, name):
    """Sums and maxima over any axes."""
    runs(judge, name)


@named(
    "softmax",
    "softmax_columns",
    "log_softmax",
    "layernorm",
    "rmsnorm",
    "batchnorm",
    "residual_layernorm",
    "cross_entropy",
)
def test_normalization(judge, name):
    """Reductions that are broadcast back: softmax, norms, losses."""
    runs(judge, name)


@named("gather", "embedding", "one_hot", "scatter_add")
def test_look_up(judge, name):
    """Look-ups by comparison: a one-hot mask and a sum."""
    runs(judge, name)


def test_look_up_by_index(judge):
    """The same look-up by INDEX: rows of a table, picked and summed."""
    judge.runs(
        """
        table = PARAM : {"slot": 0, "dtype": "float32", "shape": [11, 6]}
        ids = PARAM : {"slot": 1, "dtype": "int64", "shape": [9]}
        p = INDEX table ids
        v = LOAD p
        s = REDUCE v : {"op": "ADD", "axes": 1}
        return v s
        """
    )


@named("elementwise_chain", "exp_float64", "comparisons", "rotary")
def test_elementwise(judge, name):
    """Long elementwise programs."""
    runs(judge, name)


@named("transpose", "concatenate", "windows")
def test_movement(judge, name):
    """Programs that only move elements."""
    runs(judge, name)


def test_histogram(judge):
    """A histogram: comparisons, casts and a sum of ones."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": [50]}
        one = CONST : {"value": 1, "dtype": "uint8"}
        r = RESHAPE one : [1]
        e = EXPAND r : [4]
        p = PAD e : [[3, 0]]
        w = EXPAND p : [5, 7]
        f = RESHAPE w : [35]
        s = SHRINK f : [[0, 32]]
        g = RESHAPE s : [4, 8]
        h = SHRINK g : [[0, 4], [0, 4]]
        bins = REDUCE h : {"op": "ADD", "axes": 1}
        c = RESHAPE x : [50, 1]
        d = CMPNE c bins
        t = CONST : {"value": true, "dtype": "bool"}
        q = CMPNE d t
        n = CAST q : "int32"
        a = REDUCE n : {"op": "ADD", "axes": 1}
        return a bins
        """,
        {0: [k % 6 for k in range(50)]},
    )


def test_matrix_power(judge):
    """Three matrix products, one after the other."""
    lines = ['y0 = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 6]}']
    lines += ["r = RESHAPE y0 : [6, 1, 6]"]
    for n in range(3):
        lines += [f"p{n} = PERMUTE y{n} : [1, 0]", f"q{n} = RESHAPE p{n} : [6, 6, 1]"]
        lines += [f"m{n} = MUL q{n} r", f'y{n + 1} = REDUCE m{n} : {{"op": "ADD", "axes": 1}}']
    judge.runs("\n".join([*lines, "return y3"]), special=False)


def test_distances(judge):
    """Squared distances between all pairs of points."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float64", "shape": [7, 3]}
        t = PERMUTE x : [1, 0]
        a = RESHAPE t : [3, 7, 1]
        b = RESHAPE t : [3, 1, 7]
        n = NEG b
        d = ADD a n
        q = MUL d d
        s = REDUCE q : {"op": "ADD", "axes": 1}
        m = NEG s
        k = REDUCE m : {"op": "MAX", "axes": 2}
        return s k
        """
    )


def test_simplify_of_a_program(judge):
    """`simplify` keeps the meaning of a whole program."""
    judge.accepts((PROGRAMS / "layernorm.uop").read_text())
    judge.accepts((PROGRAMS / "max_pool.uop").read_text())
