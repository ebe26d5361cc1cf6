"""The sample programs, each built with the library at a small size that real models have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from week01_uops.dtypes import DType, float16, float32, float64, int8, int32, int64
from week01_uops.node import UOp
from week01_uops.ops import param, program
from week03_loops import library as lib


@dataclass(frozen=True)
class Sample:
    """A program with its name and what it computes.

    Attributes:
        name: of its file, without .uop.
        about: one line, the equation.
        build: its outputs.
    """

    name: str
    about: str
    build: Callable[[], UOp | tuple[UOp, ...]]

    def program(self) -> UOp:
        """The outputs under one RETURN."""
        outputs = self.build()
        return program(*(outputs if isinstance(outputs, tuple) else (outputs,)))


def floats(slot: int, *shape: int, dtype: DType = float32) -> UOp:
    """PARAM `slot`, float32 unless said otherwise."""
    return param(slot, dtype, shape)


def integers(slot: int, *shape: int, dtype: DType = int64) -> UOp:
    """PARAM `slot`, int64 unless said otherwise."""
    return param(slot, dtype, shape)


def _elementwise_chain() -> UOp:
    x, y = floats(0, 512, 384), floats(1, 384)
    return lib.clamp(lib.div(lib.sub(lib.mul(x, 2), y), lib.add(lib.square(y), 1)), -1, 1)


def _mean_and_variance() -> tuple[UOp, ...]:
    x = floats(0, 64, 768)
    return lib.mean(x, -1), lib.var(x, -1)


def _comparisons() -> tuple[UOp, ...]:
    x, y = floats(0, 33, 65), floats(1, 33, 65)
    below = lib.le(x, y)
    return lib.where(below, x, y), lib.reduce_max(below, 0), lib.reduce_prod(below, 0)


def _swiglu() -> UOp:
    x, gate, up, down = (
        floats(0, 32, 64),
        floats(1, 160, 64),
        floats(2, 160, 64),
        floats(3, 64, 160),
    )
    return lib.linear(lib.mul(lib.silu(lib.linear(x, gate)), lib.linear(x, up)), down)


def _mixed_gemm() -> UOp:
    a, b = integers(0, 48, 64, dtype=int8), integers(1, 64, 40, dtype=int8)
    return lib.matmul(lib.cast(a, int32), lib.cast(b, int32))


def _windows() -> UOp:
    return lib.windows(floats(0, 3, 32), [1], [5], [2], [3])


def _normalized_residual() -> UOp:
    x, y = floats(0, 16, 256), floats(1, 16, 256)
    return lib.layernorm(lib.add(x, y), floats(2, 256), floats(3, 256))


def _heads(slot: int, heads: int = 4, length: int = 48, width: int = 32) -> UOp:
    return floats(slot, 2, heads, length, width)


ELEMENTWISE = (
    Sample("elementwise_chain", "clamp((2·x − y)/(y² + 1), −1, 1)", _elementwise_chain),
    Sample("comparisons", "the smaller of x and y; any and all of x ≤ y", _comparisons),
    Sample("gelu", "x·Φ(x) with erf", lambda: lib.gelu(floats(0, 64, 1024))),
    Sample("gelu_tanh", "x·Φ(x) with tanh", lambda: lib.gelu_tanh(floats(0, 64, 1024))),
    Sample("exp_float64", "e^x", lambda: lib.exp(floats(0, 1000, dtype=float64))),
)

MOVEMENT = (
    Sample("transpose", "xᵀ", lambda: lib.transpose(floats(0, 200, 120))),
    Sample(
        "concatenate", "x above y", lambda: lib.concatenate([floats(0, 20, 64), floats(1, 12, 64)])
    ),
    Sample("windows", "x[i, 2·o + 3·j] at (i, o, j)", _windows),
    Sample("arange", "0, 1, …, 99", lambda: lib.arange(100)),
    Sample("tril", "x below the diagonal", lambda: lib.tril(floats(0, 2, 40, 40))),
)

REDUCTIONS = (
    Sample("sum_all", "Σ x", lambda: lib.reduce_sum(floats(0, 128, 256))),
    Sample("sum_rows", "Σ_j x[i, j]", lambda: lib.reduce_sum(floats(0, 256, 200), 1)),
    Sample("sum_columns", "Σ_i x[i, j]", lambda: lib.reduce_sum(floats(0, 256, 200), 0)),
    Sample("max_middle", "max_j x[i, j, k]", lambda: lib.reduce_max(floats(0, 12, 30, 40), 1)),
    Sample("mean_and_variance", "of each row", _mean_and_variance),
    Sample("cumsum", "running sums of each row", lambda: lib.cumsum(floats(0, 32, 128), 1)),
    Sample("cumprod", "running products", lambda: lib.cumprod(floats(0, 64), 0)),
    Sample("cummax", "running maxima of each column", lambda: lib.cummax(floats(0, 64, 32), 0)),
)

PRODUCTS = (
    Sample("gemm", "A·B", lambda: lib.matmul(floats(0, 128, 96), floats(1, 96, 160))),
    Sample("gemm_odd", "A·B, odd sizes", lambda: lib.matmul(floats(0, 37, 61), floats(1, 61, 53))),
    Sample(
        "gemm_float16",
        "A·B in float16",
        lambda: lib.matmul(floats(0, 64, 64, dtype=float16), floats(1, 64, 64, dtype=float16)),
    ),
    Sample("gemm_int8", "A·B of int8, in int32", _mixed_gemm),
    Sample("gemm_batched", "A·B", lambda: lib.matmul(floats(0, 3, 32, 24), floats(1, 3, 24, 40))),
    Sample("gemv", "A·x", lambda: lib.matmul(floats(0, 300, 200), floats(1, 200))),
    Sample(
        "linear",
        "x·Wᵀ + b",
        lambda: lib.linear(floats(0, 64, 96), floats(1, 80, 96), floats(2, 80)),
    ),
    Sample(
        "gemm_bias_relu",
        "max(A·B + b, 0)",
        lambda: lib.relu(
            lib.add(lib.matmul(floats(0, 64, 128), floats(1, 128, 96)), floats(2, 96))
        ),
    ),
    Sample("swiglu", "(silu(x·Gᵀ)·(x·Uᵀ))·Dᵀ", _swiglu),
)

CONVOLUTIONS = (
    Sample("conv", "3 × 3", lambda: lib.conv(floats(0, 2, 8, 16, 18), floats(1, 12, 8, 3, 3))),
    Sample(
        "conv_stride_padding",
        "7 × 7, stride 2, padding 3, bias",
        lambda: lib.conv(
            floats(0, 1, 3, 32, 32), floats(1, 16, 3, 7, 7), floats(2, 16), stride=2, padding=3
        ),
    ),
    Sample(
        "conv_dilation",
        "3 × 3, dilation 2, padding 2",
        lambda: lib.conv(floats(0, 1, 4, 20, 20), floats(1, 8, 4, 3, 3), dilation=2, padding=2),
    ),
    Sample(
        "conv_groups",
        "3 × 3, 4 groups, padding 1",
        lambda: lib.conv(floats(0, 2, 16, 14, 14), floats(1, 32, 4, 3, 3), groups=4, padding=1),
    ),
    Sample(
        "conv_asymmetric",
        "2 × 4 with padding (0, 1) and (1, 2), stride 1 and 3",
        lambda: lib.conv(
            floats(0, 2, 3, 15, 17), floats(1, 5, 3, 2, 4), padding=[(0, 1), (1, 2)], stride=[1, 3]
        ),
    ),
    Sample(
        "conv_depthwise",
        "3 × 3, a filter for each channel, padding 1",
        lambda: lib.conv(floats(0, 1, 32, 28, 28), floats(1, 32, 1, 3, 3), groups=32, padding=1),
    ),
    Sample(
        "conv1d",
        "width 5, padding 2",
        lambda: lib.conv(floats(0, 4, 8, 64), floats(1, 8, 8, 5), padding=2),
    ),
    Sample(
        "conv3d", "3 × 3 × 3", lambda: lib.conv(floats(0, 1, 3, 8, 9, 10), floats(1, 4, 3, 3, 3, 3))
    ),
    Sample("max_pool", "2 × 2, stride 2", lambda: lib.max_pool(floats(0, 2, 8, 28, 28), (2, 2))),
    Sample(
        "max_pool_overlapping",
        "3 × 3, stride 2, padding 1",
        lambda: lib.max_pool(floats(0, 2, 8, 28, 28), (3, 3), stride=2, padding=1),
    ),
    Sample(
        "avg_pool",
        "3 × 3, stride 2, padding 1, zeros not counted",
        lambda: lib.avg_pool(
            floats(0, 2, 8, 15, 15), (3, 3), stride=2, padding=1, count_padding=False
        ),
    ),
)

INDEXED = (
    Sample("embedding", "E[i]", lambda: lib.take(floats(0, 100, 32), integers(1, 4, 16))),
    Sample("gather", "x[i, j[i, k]]", lambda: lib.gather(floats(0, 24, 50), integers(1, 24, 5), 1)),
    Sample(
        "scatter_add",
        "v[k] added to x[i[k]]",
        lambda: lib.scatter_add(floats(0, 40, 16), integers(1, 100), floats(2, 100, 16)),
    ),
    Sample("one_hot", "1 at i", lambda: lib.one_hot(integers(0, 64), 10)),
)

NETWORKS = (
    Sample("softmax", "of each row", lambda: lib.softmax(floats(0, 64, 256))),
    Sample("softmax_columns", "of each column", lambda: lib.softmax(floats(0, 256, 64), 0)),
    Sample("log_softmax", "of each row", lambda: lib.log_softmax(floats(0, 64, 100))),
    Sample(
        "layernorm",
        "over rows, weight and bias",
        lambda: lib.layernorm(floats(0, 64, 256), floats(1, 256), floats(2, 256)),
    ),
    Sample("residual_layernorm", "of x + y", _normalized_residual),
    Sample("rmsnorm", "over rows, weight", lambda: lib.rmsnorm(floats(0, 64, 256), floats(1, 256))),
    Sample(
        "batchnorm",
        "of channels, with given mean and variance",
        lambda: lib.batchnorm(floats(0, 2, 16, 14, 14), *(floats(i, 16) for i in range(1, 5))),
    ),
    Sample(
        "rotary",
        "pairs of x rotated by tables of cosines and sines",
        lambda: lib.rotary(_heads(0), floats(1, 48, 16), floats(2, 48, 16)),
    ),
    Sample("attention", "softmax(q·kᵀ/√d)·v", lambda: lib.attention(*map(_heads, range(3)))),
    Sample(
        "attention_causal",
        "softmax(q·kᵀ/√d)·v, no query sees later keys",
        lambda: lib.attention(*map(_heads, range(3)), causal=True),
    ),
    Sample(
        "attention_grouped",
        "8 query heads share 2 heads of k and v, causal",
        lambda: lib.attention(_heads(0, 8), _heads(1, 2), _heads(2, 2), causal=True),
    ),
    Sample(
        "cross_entropy",
        "−mean log_softmax(x)[target]",
        lambda: lib.cross_entropy(floats(0, 32, 10), integers(1, 32)),
    ),
)

SAMPLES = (*ELEMENTWISE, *MOVEMENT, *REDUCTIONS, *PRODUCTS, *CONVOLUTIONS, *INDEXED, *NETWORKS)
