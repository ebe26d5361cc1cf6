"""Checks of the library's arguments: ProgramErrors that name the function and the argument."""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.errors import ProgramError
from week01_uops.node import UOp

Axes = int | Sequence[int] | None
PerAxis = int | Sequence[int]
Padding = int | Sequence[int | tuple[int, int]]


def expect(good: bool, code: str, message: str, *nodes: UOp) -> None:
    """Raise a ProgramError with this code and message unless `good`."""
    if not good:
        raise ProgramError(code, message, nodes)


def expect_float(name: str, **arguments: UOp) -> None:
    """E402 unless every argument is a float."""
    for argument, x in arguments.items():
        expect(x.dtype.is_float, "E402", f"{name}: expected a float {argument}, got {x.dtype}", x)


def expect_integer(name: str, **arguments: UOp) -> None:
    """E402 unless every argument is an integer."""
    for argument, x in arguments.items():
        good = x.dtype.is_int
        expect(good, "E402", f"{name}: expected an integer {argument}, got {x.dtype}", x)


def expect_shape(name: str, argument: str, x: UOp, shape: Sequence[int]) -> None:
    """E403 unless x has exactly this shape."""
    expect(
        x.shape == tuple(shape),
        "E403",
        f"{name}: expected {argument} of shape {list(shape)}, got {list(x.shape)}",
        x,
    )


def expect_rank(name: str, argument: str, x: UOp, least: int, axes: str) -> None:
    """E406 unless x has at least `least` axes; `axes` says which they are."""
    good = len(x.shape) >= least
    expect(good, "E406", f"{name}: expected {argument} with axes {axes}, got {list(x.shape)}", x)


def axis_of(name: str, axis: int, rank: int) -> int:
    """The axis counted from the left; a negative one counts from the right."""
    good = -rank <= axis < rank
    expect(good, "E405", f"{name}: expected an axis in [{-rank}, {rank}), got {axis}")
    return axis % rank


def axes_of(name: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """Distinct axes in ascending order; None stands for all."""
    if axes is None:
        return tuple(range(rank))
    found = sorted(axis_of(name, a, rank) for a in ([axes] if isinstance(axes, int) else axes))
    good = len(set(found)) == len(found)
    expect(good, "E311", f"{name}: expected each axis once, got {axes}")
    return tuple(found)


def per_axis(name: str, argument: str, value: PerAxis, rank: int, least: int) -> tuple[int, ...]:
    """One integer ≥ `least` for each of `rank` axes; a single one stands for all."""
    found = (value,) * rank if isinstance(value, int) else tuple(value)
    good = len(found) == rank and all(item >= least for item in found)
    wanted = f"{rank} integer(s) ≥ {least} as {argument}"
    expect(good, "E311", f"{name}: expected {wanted}, got {value}")
    return found


def margins(name: str, padding: Padding, rank: int) -> tuple[tuple[int, int], ...]:
    """A pair (before, after) for each of `rank` axes, from one integer, one each, or pairs."""
    each = (padding,) * rank if isinstance(padding, int) else tuple(padding)
    pairs = tuple((p, p) if isinstance(p, int) else (p[0], p[1]) for p in each)
    good = len(pairs) == rank and all(low >= 0 and high >= 0 for low, high in pairs)
    wanted = f"{rank} integer(s) or pairs ≥ 0 as padding"
    expect(good, "E311", f"{name}: expected {wanted}, got {padding}")
    return pairs
