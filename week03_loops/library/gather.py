"""Reading and adding at computed positions, through one-hot masks.

A masked sum has one term that is not 0; a compiler may turn it into an indexed load. A position
outside the axis reads 0 and adds nothing; negative positions do not count from the end.
"""

from __future__ import annotations

from week01_uops.dtypes import DType, bool_, float32
from week01_uops.node import UOp
from week01_uops.ops import ADD, MAX
from week03_loops.library.arithmetic import add, cast, logical_not, maximum, ne, where
from week03_loops.library.check import axis_of, expect, expect_integer, expect_shape
from week03_loops.library.movement import move_axis, unsqueeze
from week03_loops.library.reduction import reduce_axes
from week03_loops.library.scan import arange
from week03_loops.ops import identity, reshape


def one_hot(index: UOp, count: int, dtype: DType = float32) -> UOp:
    """Index (…) → (…, count): 1 at the index, 0 elsewhere."""
    expect_integer("one_hot", index=index)
    return cast(logical_not(_is_elsewhere(index, count)), dtype)


def _is_elsewhere(index: UOp, count: int) -> UOp:
    """Index (…) → bool (…, count): false at the index, true elsewhere."""
    fits = index.dtype.max >= count - 1
    wanted = f"an index whose dtype holds {count - 1}"
    expect(fits, "E402", f"one_hot: expected {wanted}, got {index.dtype}", index)
    return ne(unsqueeze(index, -1), arange(count, index.dtype))


def _masked_sum(name: str, elsewhere: UOp, x: UOp, axis: int) -> UOp:
    """Σ x over the axis but for the elements that are elsewhere; of bools: or."""
    op = MAX if x.dtype is bool_ else ADD
    terms = where(elsewhere, identity(op, x.dtype), x)
    return reduce_axes(name, op, terms, axis, keepdim=False)


def take(x: UOp, index: UOp, axis: int = 0) -> UOp:
    """y[…, i…, …] = x[…, index[i…], …]: Σ_v [index = v]·x[v]; as numpy.take, an embedding.

    x (*before, n, *after), index any shape (integers) → (*before, *index.shape, *after).
    """
    expect_integer("take", index=index)
    at = axis_of("take", axis, len(x.shape))
    before, count, after = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    mask = _is_elsewhere(index, count)
    mask = reshape(mask, (*mask.shape, *[1] * len(after)))
    table = reshape(x, (*before, *[1] * len(index.shape), count, *after))
    return _masked_sum("take", mask, table, at + len(index.shape))


def gather(x: UOp, index: UOp, axis: int) -> UOp:
    """y[i…] = x[i… with index[i…] at the axis]; as numpy.take_along_axis.

    x and index have the same shape but for the axis, which y takes from the index.
    """
    expect_integer("gather", index=index)
    at = axis_of("gather", axis, len(x.shape))
    rank = len(index.shape) == len(x.shape)
    wanted = f"an index of rank {len(x.shape)}"
    expect(rank, "E406", f"gather: expected {wanted}, got {list(index.shape)}", index)
    shape = (*x.shape[:at], index.shape[at], *x.shape[at + 1 :])
    expect_shape("gather", "an index", index, shape)
    table = unsqueeze(move_axis(x, at, -1), at)
    return _masked_sum("gather", _is_elsewhere(index, x.shape[at]), table, -1)


def scatter_add(x: UOp, index: UOp, values: UOp, axis: int = 0) -> UOp:
    """Add values[…, i, …] to x[…, index[i], …]; repeated positions add up.

    x (*before, n, *after), index (m), values (*before, m, *after) → the shape of x: every
    y[v] sums the values whose index is v. As torch.Tensor.index_add.
    """
    expect_integer("scatter_add", index=index)
    at = axis_of("scatter_add", axis, len(x.shape))
    wanted = f"an index of one axis, got {list(index.shape)}"
    expect(len(index.shape) == 1, "E406", f"scatter_add: expected {wanted}", index)
    before, count, after = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    expect_shape("scatter_add", "values", values, (*before, *index.shape, *after))
    mask = move_axis(_is_elsewhere(index, count), 0, 1)
    mask = reshape(mask, (*mask.shape, *[1] * len(after)))
    sums = _masked_sum("scatter_add", mask, unsqueeze(values, at), at + 1)
    return maximum(x, sums) if x.dtype is bool_ else add(x, sums)
