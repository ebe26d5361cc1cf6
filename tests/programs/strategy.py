"""Random programs over every op and dtype of weeks 1 to 4, as a hypothesis strategy.

A program grows from a pool of values: each step picks one of the makers below, which takes values
from the pool (or makes a leaf) and puts its result back. Shapes are small and include 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from week01_uops import ops as w1
from week01_uops.dtypes import ALL, FLOATS, INTEGERS, DType, bool_, float32, int32, int64
from week01_uops.errors import ProgramError
from week01_uops.node import UOp, const, make
from week01_uops.ops import CallArg, param, program
from week02_render import ops as w2
from week02_render.ops import AllocArg, StorageArg, loop
from week03_loops import ops as w3
from week03_loops.ops import ReduceArg
from week04_fusion.ops import stage

SIZES = (0, 1, 1, 2, 3, 4, 5, 7)
LARGEST = 600

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, math.inf, -math.inf, math.nan, 1e-3, 100.0)


class Case(NamedTuple):
    """A program, and the seed of its inputs."""

    program: UOp
    seed: int


class Pool:
    """The values made so far, and what numbers are taken."""

    def __init__(self, draw: Callable) -> None:
        self.draw = draw
        self.values: list[UOp] = []
        self.slots = 0
        self.storage = 0
        self.ranges = 0

    def pick(self, test: Callable[[UOp], bool] = lambda _: True) -> UOp | None:
        """A value of the pool that passes a test."""
        good = [v for v in self.values if test(v)]
        return self.draw(st.sampled_from(good)) if good else None

    def any_dtype(self, dtypes=ALL) -> DType:
        return self.draw(st.sampled_from(dtypes))

    def shape(self, most: int = 3) -> tuple[int, ...]:
        return tuple(self.draw(st.lists(st.sampled_from(SIZES), max_size=most)))

    def param(self, dtype: DType, shape: tuple[int, ...]) -> UOp:
        self.slots += 1
        return param(self.slots - 1, dtype, shape)

    def const(self, dtype: DType) -> UOp:
        if dtype is bool_:
            return const(self.draw(st.booleans()), dtype)
        if dtype.is_int:
            near = [0, 1, 2, 3, 7, dtype.max, dtype.min]
            near += [-1, -3] if dtype.kind == "int" else []
            return const(self.draw(st.sampled_from(near)), dtype)
        return const(self.draw(st.sampled_from(SPECIAL)), dtype)

    def number(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def fresh_range(self, size: int) -> UOp:
        self.ranges += 1
        return loop(self.ranges - 1, size)

    def alloc(self, dtype: DType, shape: tuple[int, ...]) -> UOp:
        self.storage += 1
        return make(w2.ALLOC, (), AllocArg(self.storage - 1, dtype, shape))

    def buffer(self, dtype: DType, shape: tuple[int, ...]) -> UOp:
        self.storage += 1
        return make(w2.BUFFER, (), StorageArg(self.storage - 1, dtype, shape))


Maker = Callable[[Pool], UOp | None]


def leaf(pool: Pool) -> UOp:
    dtype = pool.any_dtype()
    return pool.const(dtype) if pool.number(3) == 0 else pool.param(dtype, pool.shape())


def unary(pool: Pool) -> UOp | None:
    op = pool.draw(st.sampled_from([w1.NEG, w1.RECIP, w1.EXP2, w1.LOG2]))
    x = pool.pick(lambda v: v.dtype.is_float or (op is w1.NEG and v.dtype.is_int))
    return op(x) if x is not None else None


def cast(pool: Pool) -> UOp | None:
    x = pool.pick()
    if x is None:
        return None
    to = pool.any_dtype()
    if x.dtype.is_float and to.is_int:
        return None  # out of range the value is unspecified
    return w1.CAST(x, arg=to)


def partner(pool: Pool, x: UOp) -> UOp:
    """A value of x's dtype that broadcasts with it, now and then x itself."""

    def fits(v: UOp) -> bool:
        try:
            w1.CMPNE(x, v)
        except ProgramError:
            return False
        return True

    kind = pool.number(5)
    other = pool.pick(fits) if kind > 1 else None
    if other is not None:
        return other
    return pool.const(x.dtype) if kind else pool.param(x.dtype, x.shape)


ARITHMETIC = (w1.ADD, w1.MUL, w1.MAX, w1.FLOORDIV, w1.FLOORMOD, w1.CMPLT, w1.CMPNE)


def binary(pool: Pool) -> UOp | None:
    op = pool.draw(st.sampled_from(ARITHMETIC))
    x = pool.pick()
    if x is None:
        return None
    other = partner(pool, x)
    return op(x, other) if pool.draw(st.booleans()) else op(other, x)


def where(pool: Pool) -> UOp | None:
    condition, x = pool.pick(lambda v: v.dtype is bool_), pool.pick()
    if condition is None or x is None:
        return None
    return w1.WHERE(condition, x, partner(pool, x))


def call(pool: Pool) -> UOp | None:
    x = pool.pick(lambda v: not v.dtype.is_float)
    if x is None:
        return None
    y = partner(pool, x)
    a, b = param(0, x.dtype, x.shape), param(1, y.dtype, y.shape)
    body = pool.draw(st.sampled_from([w1.MAX, w1.MUL, w1.CMPNE]))(b, a)
    return w1.CALL(body, x, y, arg=CallArg("f"))


def reshape(pool: Pool) -> UOp | None:
    x = pool.pick()
    if x is None:
        return None
    sizes = list(x.shape)
    choice = pool.number(3)
    if choice == 0:
        sizes = [x.size]
    elif choice == 1:
        sizes.insert(pool.number(len(sizes)), 1)
    elif choice == 2 and len(sizes) > 1:
        at = pool.number(len(sizes) - 2)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    elif sizes:
        at = pool.number(len(sizes) - 1)
        divisor = next((d for d in (2, 3, 5) if sizes[at] and sizes[at] % d == 0), 1)
        sizes[at : at + 1] = [sizes[at] // divisor, divisor]
    return w3.reshape(x, sizes)


def expand(pool: Pool) -> UOp | None:
    x = pool.pick()
    if x is None:
        return None
    grown = tuple(pool.draw(st.sampled_from(SIZES)) if s == 1 else s for s in x.shape)
    front = (pool.draw(st.sampled_from(SIZES)),) if pool.number(2) == 0 else ()
    return w3.expand(x, front + grown)


def permute(pool: Pool) -> UOp | None:
    x = pool.pick(lambda v: len(v.shape) > 1)
    return w3.permute(x, pool.draw(st.permutations(range(len(x.shape))))) if x is not None else None


def flip(pool: Pool) -> UOp | None:
    x = pool.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return None
    return w3.flip(x, sorted(pool.draw(st.sets(st.integers(0, len(x.shape) - 1), min_size=1))))


def pad(pool: Pool) -> UOp | None:
    x = pool.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return None
    return w3.pad(x, [(pool.number(2), pool.number(2)) for _ in x.shape])


def shrink(pool: Pool) -> UOp | None:
    x = pool.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return None
    starts = [pool.number(s) for s in x.shape]
    return w3.shrink(x, [(a, a + pool.number(s - a)) for a, s in zip(starts, x.shape, strict=True)])


def reduce(pool: Pool) -> UOp | None:
    x = pool.pick()
    if x is None:
        return None
    op = pool.draw(st.sampled_from([w1.ADD, w1.MAX, w1.MUL]))
    if (op is w1.ADD and x.dtype is bool_) or (op is w1.MUL and x.dtype.is_float):
        op = w1.MAX
    return w3.reduce(op, x, pool.number(len(x.shape)))


def staged(pool: Pool) -> UOp | None:
    x = pool.pick()
    return stage(x) if x is not None else None


def stored(pool: Pool) -> UOp | None:
    """A value written to storage whole, and read back."""
    x = pool.pick()
    if x is None:
        return None
    place = (pool.alloc if pool.draw(st.booleans()) else pool.buffer)(x.dtype, x.shape)
    return make(w2.AFTER, (place, w2.STORE(place, x)))


def updated(pool: Pool) -> UOp | None:
    """A buffer that is written, read, and written again from what was read."""
    x = pool.pick(lambda v: v.dtype is not bool_)
    if x is None:
        return None
    place = pool.buffer(x.dtype, x.shape)
    first = make(w2.AFTER, (place, w2.STORE(place, x)))
    old = w2.LOAD(first)
    changed = w3.flip(old, [0]) if x.shape and pool.draw(st.booleans()) else old
    new = w1.MAX(changed, pool.const(x.dtype))
    if pool.draw(st.booleans()):
        pool.values.append(old)
    again = make(w2.AFTER, (first, old)) if pool.draw(st.booleans()) else first
    return make(w2.AFTER, (first, w2.STORE(again, new)))


def gathered(pool: Pool) -> UOp | None:
    """Elements of an input at computed indices, scalar or an array of them."""
    i = pool.pick(lambda v: v.dtype in INTEGERS and len(v.shape) < 2)
    if i is None:
        return None
    dtype, size = pool.any_dtype(), 1 + pool.number(4)
    place = pool.param(dtype, (size, 3)[: 1 + pool.number(1)])
    if size > i.dtype.max:
        return None
    at = w1.FLOORMOD(i, size)
    if pool.draw(st.booleans()):
        return w2.LOAD(w2.INDEX(place, at))
    gate = w1.CMPLT(at, 2)
    place = w2.INDEX(place, at)
    if place.shape != gate.shape:
        return None
    return w2.LOAD(place, gate, pool.const(dtype))


def looped(pool: Pool) -> UOp | None:
    """A loop written by hand: each element of an input, changed, to storage."""
    dtype, size = pool.any_dtype((float32, int32, bool_)), pool.draw(st.sampled_from(SIZES))
    x, place, i = pool.param(dtype, (size,)), pool.buffer(dtype, (size,)), pool.fresh_range(size)
    value = w1.MAX(w2.LOAD(w2.INDEX(x, i)), pool.const(dtype))
    gates = [w1.CMPLT(i, pool.number(4))] if pool.draw(st.booleans()) else []
    effect = w2.STORE(w2.INDEX(place, i), value, *gates)
    return make(w2.AFTER, (place, w2.END(effect, i)))


def looped_sum(pool: Pool) -> UOp | None:
    """A reduction over a loop, its end an input's value."""
    size = pool.draw(st.sampled_from(SIZES))
    x, bound = pool.param(int64, (size,)), const(pool.number(8), int64)
    pool.ranges += 1
    r = loop(pool.ranges - 1, size, bound if pool.draw(st.booleans()) else None)
    op = pool.draw(st.sampled_from([w1.ADD, w1.MAX]))
    return make(w3.REDUCE, (w2.LOAD(w2.INDEX(x, r)), r), ReduceArg(op, 0))


MAKERS: tuple[Maker, ...] = (
    *(leaf, unary, cast, binary, binary, binary, binary, binary, where, call),
    *(reshape, expand, permute, flip, pad, shrink, reduce, reduce),
    *(staged, stored, updated, gathered, looped, looped_sum),
)


@st.composite
def cases(draw: Callable, most: int = 16) -> Case:
    """A random program of a few outputs."""
    pool = Pool(draw)
    pool.values.append(pool.param(pool.any_dtype((*FLOATS, *ALL)), pool.shape()))
    for _ in range(draw(st.integers(2, most))):
        maker = draw(st.sampled_from(MAKERS))
        try:
            made = maker(pool)
        except ProgramError:
            continue
        if made is not None and made.size <= LARGEST and len(made.shape) < 6:
            pool.values.append(made)
    outputs = [pool.values[-1]]
    if draw(st.booleans()):
        outputs.append(draw(st.sampled_from(pool.values)))
    return Case(program(*outputs), draw(st.integers(0, 1 << 16)))
