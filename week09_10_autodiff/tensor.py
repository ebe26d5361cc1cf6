"""`Tensor`: an array that is computed when it is looked at.

    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x @ x).relu().sum()
    y.backward()
    y.item(), x.grad.numpy()

An operation makes an expression (`Tensor.node`) and computes nothing. `realize`, `numpy`, `item`
and whatever else must know elements compile what is needed into one program and run it. Names and
meanings are PyTorch's or NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from week03_loops import library as lib
from week09_10_autodiff import movement
from week09_10_autodiff.access import Access
from week09_10_autodiff.arithmetic import Comparison
from week09_10_autodiff.casts import Casts
from week09_10_autodiff.creation import Creation
from week09_10_autodiff.derivatives import Derivatives
from week09_10_autodiff.interop import Interop
from week09_10_autodiff.ordering import Ordering
from week09_10_autodiff.products import Products
from week09_10_autodiff.reductions import Reductions
from week09_10_autodiff.shaping import Shaping, joined


@final
class Tensor(
    Comparison,
    Access,
    Ordering,
    Reductions,
    Products,
    Shaping,
    Creation,
    Interop,
    Derivatives,
    Casts,
):
    """An array of one dtype, computed when it is looked at.

    Args:
        data: a number, lists of numbers, an array of any library (copied), or a tensor (its
            value, as a constant of derivatives).
        dtype: of the elements; by default that of an array, float32 of floats, int64 of integers.
        requires_grad: it is a variable, for which `backward` fills `grad`.
    """

    __slots__ = ()


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along an axis."""
    result: Tensor = joined("cat", tensors, lib.concatenate, dim)
    return result


concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors along a new axis."""
    result: Tensor = joined("stack", tensors, movement.stack, dim)
    return result
