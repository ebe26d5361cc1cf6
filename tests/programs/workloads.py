"""Random workloads: functions of the library at small, odd shapes, as a hypothesis strategy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from tests.programs.strategy import Case
from week01_uops.dtypes import DType, bfloat16, float16, float32, float64, int32, int64
from week01_uops.node import UOp
from week01_uops.ops import param, parameters, program
from week03_loops import library

SIZES = (1, 2, 3, 5, 7, 8, 11, 16, 17)


class Inputs:
    """The arguments of one workload."""

    def __init__(self, draw: Callable) -> None:
        self.draw = draw
        self.slots = 0
        self.dtype = self.one_of(float32, float32, float32, float64, float16, bfloat16)

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def size(self) -> int:
        return self.one_of(*SIZES)

    def some(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def tensor(self, *shape: int, dtype: DType | None = None) -> UOp:
        self.slots += 1
        return param(self.slots - 1, dtype or self.dtype, shape)


def matmul(args: Inputs) -> UOp:
    m, k, n = args.size(), args.size(), args.size()
    batch = args.one_of((), (), (2,))
    a, b = args.tensor(*batch, m, k), args.tensor(k, n)
    return library.matmul(a, b)


def transposed(args: Inputs) -> UOp:
    m, k, n = args.size(), args.size(), args.size()
    if args.one_of(True, False):
        return library.relu(library.linear(args.tensor(m, k), args.tensor(n, k), args.tensor(n)))
    return library.matmul(library.transpose(args.tensor(k, m)), args.tensor(k, n))


def integers(args: Inputs) -> UOp:
    args.dtype = args.one_of(int32, int64)
    return matmul(args)


def conv(args: Inputs) -> UOp:
    groups, per_group = args.one_of((1, 1), (1, 3), (2, 1), (3, 2))
    kernel = tuple(args.some(1, 3) for _ in range(args.some(1, 2)))
    lengths = tuple(k + args.some(0, 7) for k in kernel)
    outputs = groups * args.some(1, 5)
    x = args.tensor(args.some(1, 2), groups * per_group, *lengths)
    w = args.tensor(outputs, per_group, *kernel)
    bias = args.tensor(outputs) if args.one_of(True, False) else None
    stride, padding = args.some(1, 2), args.some(0, 2)
    return library.conv(x, w, bias, stride=stride, padding=padding, groups=groups)


def pool(args: Inputs) -> UOp:
    x = args.tensor(2, args.some(3, 9), args.some(3, 9))
    pool = args.one_of(library.max_pool, library.avg_pool)
    return pool(x, (args.some(2, 3), args.some(2, 3)), stride=args.some(1, 2), padding=1)


def rows(args: Inputs) -> UOp:
    x = args.tensor(args.size(), args.size())
    norm = args.one_of(
        library.softmax, library.log_softmax, library.layernorm, library.rmsnorm, library.gelu
    )
    if norm in (library.softmax, library.log_softmax):
        return norm(x, args.one_of(0, 1))
    return norm(x)


def causal(args: Inputs) -> UOp:
    return attention(args, causal=True)


def attention(args: Inputs, causal: bool = False) -> UOp:
    d, s, t = args.some(1, 4), args.one_of(1, 2, 3, 5, 8), args.one_of(1, 2, 3, 4, 7)
    groups = args.one_of(1, 2)
    q, k, v = args.tensor(2, t, d), args.tensor(groups, s, d), args.tensor(groups, s, d)
    return library.attention(q, k, v, causal=causal and t <= s)


def reduction(args: Inputs) -> UOp:
    shape = tuple(args.size() for _ in range(args.some(1, 3)))
    axes = tuple(a for a in range(len(shape)) if args.one_of(True, False))
    reduce = args.one_of(
        library.reduce_sum, library.reduce_max, library.reduce_min, library.mean, library.var
    )
    return reduce(args.tensor(*shape), axes)


def scan(args: Inputs) -> UOp:
    x = args.tensor(args.size(), args.some(1, 4))
    return args.one_of(library.cumsum, library.cummax, library.tril)(x)


def elementwise(args: Inputs) -> UOp:
    shape = tuple(args.size() for _ in range(args.some(1, 3)))
    narrow = tuple(args.one_of(1, s) for s in shape)[args.some(0, len(shape)) :]
    x, y = args.tensor(*shape), args.tensor(*narrow)
    return library.mul(library.silu(x), library.maximum(y, x))


def moved(args: Inputs) -> UOp:
    x = args.tensor(args.size(), args.size(), args.some(1, 3))
    found = library.move_axis(x, args.some(0, 2), args.some(0, 2))
    found = library.pad_with(found, [(args.some(0, 2), args.some(0, 2))] * 3, 0.5)
    return library.concatenate([found, found], args.some(0, 2))


def indexed(args: Inputs) -> UOp:
    count, d, n = args.size(), args.size(), args.size()
    index = args.tensor(n, dtype=int64)
    if args.one_of(True, False):
        return library.take(args.tensor(count, d), index)
    return library.scatter_add(args.tensor(count, d), index, args.tensor(n, d))


WORKLOADS = (
    *(
        matmul,
        matmul,
        transposed,
        integers,
        conv,
        conv,
        pool,
        rows,
        rows,
        attention,
        causal,
        causal,
    ),
    *(reduction, reduction, scan, elementwise, moved, indexed),
)


@st.composite
def workloads(draw: Callable) -> Case:
    """A program of one workload."""
    result = draw(st.sampled_from(WORKLOADS))(Inputs(draw))
    return Case(program(result), draw(st.integers(0, 1 << 16)))


def plain_inputs(whole: UOp, seed: int) -> dict[int, np.ndarray]:
    """Small multiples of 1/8 for floats, small numbers for integers: nothing special."""
    generator = np.random.default_rng(seed)
    found = {}
    for slot, node in sorted(parameters(whole).items()):
        low, high = node.arg.range or ((0, 5) if node.dtype.kind in ("uint", "bool") else (-5, 5))
        values = generator.integers(low, min(high, 1 << 30), node.shape, endpoint=True)
        scale = 8 if node.dtype.is_float else 1
        found[slot] = np.asarray(values / scale if scale > 1 else values).astype(node.dtype.numpy)
    return found
