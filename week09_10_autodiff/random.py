"""Random tensors: a value depends on the seed and on its position in the stream alone.

    manual_seed(0);   x = randn(3, 4);   y = rand(2)

Each function takes the next positions of a stream, one or two for each element in row-major order
(`squares`), so that shapes, threads and `jit` change nothing: rand(6) is rand(2, 3) in a row. A
`Generator` is a stream of its own. Seed and position are tensors, which functions captured by `jit`
change as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from week01_uops.dtypes import DType, float32, float64, int32, int64, uint64
from week01_uops.node import UOp, const, make
from week01_uops.ops import FLOORDIV, FLOORMOD
from week03_loops import library as lib
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.promotion import DTypeLike, dtype_of
from week09_10_autodiff.shaping import Sizes, sizes_of
from week09_10_autodiff.squares import HALF, WORD, draws, draws_now, key_of
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.turns import cos_turns

Function = Callable[..., UOp]
Numbers = NDArray[np.uint64]


class Generator:
    """A stream of random numbers.

    Args:
        seed: any integer, modulo 2⁶⁴; equal seeds give equal streams.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = Tensor(np.zeros((), np.uint64))
        self._key = Tensor(np.zeros((), np.uint64))
        self._position = Tensor(np.zeros((), np.uint64))
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of a seed."""
        self.set_state({"seed": seed, "position": 0})
        return self

    def initial_seed(self) -> int:
        """The seed, in [0, 2⁶⁴)."""
        return int(self._seed.item())

    def get_state(self) -> dict[str, int]:
        """What `set_state` takes to go on from here: {"seed", "position"}."""
        return {"seed": self.initial_seed(), "position": int(self._position.item())}

    state = get_state

    def set_state(self, state: Mapping[str, int]) -> None:
        """Go on from where `get_state` was asked."""
        seed, position = (_integer(name, state.get(name)) for name in ("seed", "position"))
        for tensor, value in (
            (self._seed, seed),
            (self._key, key_of(seed)),
            (self._position, position),
        ):
            tensor.assign(_word(value))

    def draw(self, name: str, count: int, numbers: int, function: Function) -> Tensor:
        """A tensor of `count` elements, each made of so many of the next numbers below 2³².

        Args:
            name: of what is made, for errors.
            count: of elements.
            numbers: that an element takes.
            function: from the numbers of all elements, in `numbers` nodes, to a node (count).
        """

        def drawn(position: UOp, key: UOp) -> UOp:
            first = lib.add(lib.mul(lib.arange(count, uint64), numbers), position)
            places = [lib.add(first, k) if k else first for k in range(numbers)]
            return function(*[draws(key, place) for place in places])

        result = self._position._apply(name, drawn, self._key)
        self._advance(count * numbers)
        return result

    def draw_now(self, count: int, numbers: int) -> Numbers:
        """The numbers that `draw` hands to its function, at once (count, numbers)."""
        start, total = int(self._position.item()), count * numbers
        places = np.arange(total, dtype=np.uint64) + np.uint64(start)
        self._advance(total)
        return draws_now(int(self._key.item()), places).reshape(count, numbers)

    def _advance(self, count: int) -> None:
        """Use up positions; outside of `jit` the next is a known value: programs stay the same."""
        if CONTEXT.tracer is not None:
            self._position.assign(self._position + count)
        else:
            self._position.assign(_word((int(self._position.item()) + count) % WORD))


def _word(value: int) -> Tensor:
    return Tensor(np.asarray(value, np.uint64))


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TensorError(f"expected an integer as {name}, got {value!r}")
    return value % WORD


DEFAULT = Generator(0)
"""The stream of calls that are given no generator."""


def manual_seed(seed: int) -> Generator:
    """Begin the stream of a seed in the default generator, which is returned."""
    return DEFAULT.manual_seed(seed)


def get_state() -> dict[str, int]:
    """The state of the default generator: {"seed", "position"}."""
    return DEFAULT.get_state()


def set_state(state: Mapping[str, int]) -> None:
    """Set the state of the default generator."""
    DEFAULT.set_state(state)


def rand(
    *shape: Sizes,
    dtype: DTypeLike = float32,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform in [0, 1): multiples of 2⁻²⁴, in float64 of 2⁻⁵³, each as likely."""
    wanted = _float("rand", dtype)
    if wanted is float64:
        return _drawn("rand", shape, wanted, 2, _uniform64, generator, requires_grad)
    return _drawn("rand", shape, wanted, 1, _uniform32, generator, requires_grad)


def randn(
    *shape: Sizes,
    dtype: DTypeLike = float32,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal, of mean 0 and variance 1: √(−2·ln u)·cos 2πv for u in (0, 1], v in [0, 1).

    At most 6.8 in size, in float64 8.6. Box and Muller, "A Note on the Generation of Random Normal
    Deviates", 1958; the sine, which is independent, is left out.
    """
    wanted = _float("randn", dtype)
    if wanted is float64:
        return _drawn("randn", shape, wanted, 4, _normal64, generator, requires_grad)
    return _drawn("randn", shape, wanted, 2, _normal32, generator, requires_grad)


def randint(
    low: int,
    high: int | Sequence[int] | None = None,
    size: Sequence[int] = (),
    *,
    dtype: DTypeLike = int64,
    generator: Generator | None = None,
) -> Tensor:
    """Integers from low to high − 1, of a size; from 0 if only high and a size are given.

    The upper 64 bits of a product of 64 random bits with n = high − low ≤ 2³² (Lemire, "Fast Random
    Integer Generation in an Interval", 2019, without rejection), their rest for larger n: the
    probabilities of two values differ by n/2⁶⁴ of themselves at most.

    Raises:
        TensorError: there is no such integer, or it does not fit the dtype.
    """
    if isinstance(high, int):
        first, past, sizes = low, high, size
    else:
        first, past, sizes = 0, low, size if high is None else high
    wanted = dtype_of(dtype)
    if not wanted.is_int:
        raise TensorError(f"randint: expected an integer dtype, got {wanted}")
    if not wanted.min <= first < past <= wanted.max + 1:
        limits = f"{wanted.min} ≤ low < high ≤ {wanted.max + 1} for {wanted}"
        raise TensorError(f"randint: expected {limits}, got low {first} and high {past}")
    scaled = _below(past - first)

    def integer(upper: UOp, lower: UOp) -> UOp:
        return lib.add(lib.cast(scaled(upper, lower), wanted), first)

    return _drawn("randint", (tuple(sizes),), wanted, 2, integer, generator)


def randperm(n: int, *, dtype: DTypeLike = int64, generator: Generator | None = None) -> Tensor:
    """The numbers 0 … n − 1 in random order: that of 64 random bits for each.

    Outside of `jit` they are put in order by NumPy, which takes n·log n steps; a captured function
    sorts them itself. Both give the same.
    """
    wanted = dtype_of(dtype)
    if n < 0 or not wanted.is_int or n > wanted.max + 1:
        raise TensorError(f"randperm: expected 0 ≤ n and n − 1 in an integer dtype, got {n}")
    stream = generator or DEFAULT
    if CONTEXT.tracer is not None:
        keys = stream.draw("randperm", n, 2, lambda a, b: lib.add(lib.mul(a, HALF), b))
        return keys.argsort().to(wanted)
    upper, lower = stream.draw_now(n, 2).T
    order = np.argsort(upper << np.uint64(32) | lower, kind="stable")
    return Tensor(order.astype(wanted.numpy))


def bernoulli(p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probabilities p, else 0, in p's shape and dtype."""
    if not p.dtype.is_float:
        raise TensorError(f"bernoulli: expected float probabilities, got {p.dtype}")
    uniform = rand(p.shape, dtype=float64 if p.dtype is float64 else float32, generator=generator)
    return (uniform < p.detach()).to(p.dtype)


def dropout(x: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """X with each element 0 with probability p, else divided by 1 − p (Srivastava et al., 2014)."""
    if not 0 <= p <= 1:
        raise TensorError(f"dropout: expected p in [0, 1], got {p}")
    if p in (0, 1):
        return x if p == 0 else x * 0
    kept = rand(x.shape, generator=generator) >= p
    return (x * (1 / (1 - p))).where(kept, 0)


# From numbers below 2³² to elements -----------------------------------------------------------


def _drawn(
    name: str,
    shape: tuple[Sizes, ...],
    dtype: DType,
    numbers: int,
    function: Function,
    generator: Generator | None,
    requires_grad: bool = False,
) -> Tensor:
    sizes = sizes_of(shape)
    count = math.prod(sizes)
    result = (generator or DEFAULT).draw(name, count, numbers, function)
    result = result.to(dtype).reshape(sizes)
    return result.requires_grad_() if requires_grad else result


def _float(name: str, dtype: DTypeLike) -> DType:
    wanted = dtype_of(dtype)
    if not wanted.is_float:
        raise TensorError(f"{name}: expected a float dtype, got {wanted}")
    return wanted


def _divided(x: UOp, power: int) -> UOp:
    """⌊x / 2^power⌋."""
    return make(FLOORDIV, (x, const(1 << power, uint64)))


def _uniform32(x: UOp) -> UOp:
    return lib.mul(lib.cast(lib.cast(_divided(x, 8), int32), float32), 2.0**-24)


def _bits53(upper: UOp, lower: UOp) -> UOp:
    """53 random bits as a float64: 27 of one number and 26 of another."""
    whole = lib.add(lib.mul(_divided(upper, 5), 1 << 26), _divided(lower, 6))
    return lib.cast(lib.cast(whole, int64), float64)


def _uniform64(upper: UOp, lower: UOp) -> UOp:
    return lib.mul(_bits53(upper, lower), 2.0**-53)


def _normal32(a: UOp, b: UOp) -> UOp:
    u = lib.mul(lib.add(lib.cast(lib.cast(a, int64), float32), 0.5), 2.0**-32)
    return _box_muller(u, _uniform32(b))


def _normal64(a: UOp, b: UOp, c: UOp, d: UOp) -> UOp:
    u = lib.mul(lib.add(_bits53(a, b), 0.5), 2.0**-53)
    return _box_muller(u, _uniform64(c, d))


def _box_muller(u: UOp, v: UOp) -> UOp:
    radius = lib.sqrt(lib.maximum(lib.mul(lib.log(u), -2.0), 0.0))
    return lib.mul(radius, cos_turns(v))


def _below(n: int) -> Function:
    """From 64 random bits, in halves, to an integer in [0, n), as uint64."""

    def product(upper: UOp, lower: UOp) -> UOp:
        low = _divided(lib.mul(lower, n), 32)
        return _divided(lib.add(lib.mul(upper, n), low), 32)

    def rest(upper: UOp, lower: UOp) -> UOp:
        whole = lib.add(lib.mul(upper, HALF), lower)
        return whole if n == WORD else make(FLOORMOD, (whole, const(n, uint64)))

    return product if n <= HALF else rest
