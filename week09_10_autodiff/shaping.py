"""Tensors in other shapes: axes moved, added, cut and joined."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Self

from week01_uops.dtypes import Value
from week01_uops.errors import ProgramError
from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.check import axis_of
from week09_10_autodiff import movement
from week09_10_autodiff.core import Core
from week09_10_autodiff.errors import TensorError, converted
from week09_10_autodiff.promotion import promote

Sizes = int | Sequence[int]


def sizes_of(sizes: tuple[Sizes, ...]) -> tuple[int, ...]:
    """f(2, 3) and f((2, 3)) are the same."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(operator.index(size) for size in sizes[0])
    return tuple(operator.index(size) for size in sizes)  # type: ignore[arg-type]


class Shaping(Core):
    """Movement of elements; sizes and axes may be given one by one or as one sequence."""

    __slots__ = ()

    def reshape(self, *shape: Sizes) -> Self:
        """The elements in row-major order in another shape, in which one −1 is found."""
        return self._apply("reshape", movement.reshaped, shape=sizes_of(shape))

    view = reshape

    def expand(self, *shape: Sizes) -> Self:
        """Broadcast to a shape; −1 leaves an axis as it is."""
        return self._apply("expand", movement.expanded, shape=sizes_of(shape))

    broadcast_to = expand

    def permute(self, *dims: Sizes) -> Self:
        """The axes in another order."""
        return self._apply("permute", movement.permuted, axes=sizes_of(dims))

    def transpose(self, dim0: int, dim1: int) -> Self:
        """Two axes exchanged."""
        return self._apply("transpose", lib.transpose, first=dim0, second=dim1)

    swapaxes = transpose

    def movedim(self, source: int, destination: int) -> Self:
        """One axis moved to where it becomes axis `destination`."""
        return self._apply("movedim", lambda x: lib.move_axis(x, source, destination))

    def t(self) -> Self:
        """The transpose of a matrix; a vector as it is."""
        if self.ndim > 2:
            raise TensorError(f"t: expected at most two axes, got {list(self.shape)}")
        return self.T

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's name
        """The axes in reverse order."""
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Self:  # noqa: N802 - PyTorch's name
        """The last two axes exchanged."""
        return self.transpose(-2, -1)

    def unsqueeze(self, dim: int) -> Self:
        """A new axis of size 1."""
        return self._apply("unsqueeze", lib.unsqueeze, axis=dim)

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Self:
        """Without axes of size 1."""
        return self._apply("squeeze", movement.squeeze, axes=dim)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Axes start_dim … end_dim as one."""
        return self._apply("flatten", movement.flatten, start=start_dim, end=end_dim)

    def ravel(self) -> Self:
        """All axes as one."""
        return self.reshape(-1)

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """One axis as several."""
        return self._apply("unflatten", movement.unflatten, axis=dim, sizes=tuple(sizes))

    def flip(self, *dims: Sizes) -> Self:
        """Axes reversed."""
        return self._apply("flip", movement.flipped, axes=sizes_of(dims))

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """`length` elements of an axis from `start`."""
        return self._apply("narrow", lambda x: lib.narrow(x, dim, start, start + length))

    def pad(self, pad: Sequence[Any], value: Value = 0) -> Self:
        """A value around it; a negative margin cuts off.

        Either pairs (before, after), one for each axis, as numpy.pad; or numbers in a row as
        torch.nn.functional.pad: before and after of the last axis, then of the one before it, ….
        """
        margins = _margins(pad, self.ndim)
        return self._apply("pad", movement.pad, margins=margins, value=value)

    def repeat(self, *counts: Sizes) -> Self:
        """Repeated along each axis, as torch.Tensor.repeat: at least one count for each axis."""
        found = sizes_of(counts)
        if len(found) < self.ndim:
            raise TensorError(f"repeat: expected at least {self.ndim} counts, got {list(found)}")
        return self._apply("repeat", movement.tile, counts=found)

    def tile(self, *counts: Sizes) -> Self:
        """Repeated along each axis, as numpy.tile: fewer counts are of the last axes."""
        return self._apply("tile", movement.tile, counts=sizes_of(counts))

    def repeat_interleave(self, repeats: int, dim: int) -> Self:
        """Each element several times in a row along an axis."""
        return self._apply("repeat_interleave", movement.repeat_interleave, count=repeats, axis=dim)

    def roll(self, shifts: Sizes, dims: Sizes | None = None) -> Self:
        """The elements moved along axes, those pushed out coming in at the other end."""
        if dims is None:
            return self.ravel().roll(shifts, 0).reshape(self.shape)
        moves = [shifts] if isinstance(shifts, int) else list(shifts)
        axes = [dims] if isinstance(dims, int) else list(dims)
        if len(moves) != len(axes):
            raise TensorError(f"roll: expected a shift for each axis, got {shifts} and {dims}")
        pairs = list(zip(moves, axes, strict=True))
        return self._apply(
            "roll", lambda x: functools.reduce(lambda y, m: movement.roll(y, *m), pairs, x)
        )

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The diagonal of two axes, as the last axis."""
        return self._apply("diagonal", movement.diagonal, offset=offset, first=dim1, second=dim2)

    def split(self, size: Sizes, dim: int = 0) -> tuple[Self, ...]:
        """Cut along an axis: pieces of one size, the last one smaller, or of these sizes."""
        at = self._axis("split", dim)
        length = self.shape[at]
        if isinstance(size, int):
            if size < 1:
                raise TensorError(f"split: expected a size ≥ 1, got {size}")
            size = [min(size, length - i) for i in range(0, length, size)] or [0]
        return self._pieces("split", at, size)

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """Cut along an axis into at most so many pieces of one size, the last one smaller."""
        if chunks < 1:
            raise TensorError(f"chunk: expected at least one piece, got {chunks}")
        length = self.shape[self._axis("chunk", dim)]
        return self.split(max(-(-length // chunks), 1), dim)

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The slices along an axis, without it."""
        at = self._axis("unbind", dim)
        return tuple(piece.squeeze(at) for piece in self.split(1, at)[: self.shape[at]])

    def _axis(self, name: str, dim: int) -> int:
        try:
            return axis_of(name, dim, self.ndim)
        except ProgramError as error:
            raise converted(error, name) from None

    def _pieces(self, name: str, axis: int, sizes: Sequence[int]) -> tuple[Self, ...]:
        try:
            nodes = movement.sections(self._node, axis, sizes)
        except ProgramError as error:
            raise converted(error, name) from None
        return tuple(self._result(name, node) for node in nodes)

    def tril(self, diagonal: int = 0) -> Self:
        """0 above a diagonal of the last two axes."""
        return self._apply("tril", lib.tril, diagonal=diagonal)

    def triu(self, diagonal: int = 0) -> Self:
        """0 below a diagonal of the last two axes."""
        return self._apply("triu", movement.triu, diagonal=diagonal)


def _margins(pad: Sequence[Any], rank: int) -> list[tuple[int, int]]:
    if all(isinstance(item, (list, tuple)) for item in pad):
        pairs = [(int(low), int(high)) for low, high in pad]
        if len(pairs) != rank:
            raise TensorError(f"pad: expected {rank} pairs, one for each axis, got {list(pad)}")
        return pairs
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise TensorError(f"pad: expected at most {rank} pairs of numbers, got {list(pad)}")
    pairs = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)][::-1]
    return [(0, 0)] * (rank - len(pairs)) + pairs


def joined(name: str, tensors: Sequence[Any], function: Any, dim: int) -> Any:  # noqa: ANN401
    """function([nodes], dim) of tensors in the dtype that all promote to."""
    if not tensors or not all(isinstance(t, Core) for t in tensors):
        raise TensorError(f"{name}: expected at least one tensor, got {tensors!r}")
    dtype = promote(*[t.dtype for t in tensors])

    def join(*nodes: UOp) -> UOp:
        result: UOp = function([lib.cast(node, dtype) for node in nodes], dim)
        return result

    return tensors[0]._apply(name, join, *tensors[1:])
