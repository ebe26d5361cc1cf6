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

from week01_uops.dtypes import Value
from week03_loops import library as lib
from week09_10_autodiff import einstein, movement
from week09_10_autodiff.access import Access
from week09_10_autodiff.arithmetic import Comparison
from week09_10_autodiff.casts import Casts
from week09_10_autodiff.creation import Creation
from week09_10_autodiff.derivatives import Derivatives
from week09_10_autodiff.interop import Interop
from week09_10_autodiff.ordering import Ordering
from week09_10_autodiff.products import Products
from week09_10_autodiff.promotion import default_dtype, promote
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


def einsum(equation: str, *tensors: Tensor) -> Tensor:
    """Einstein summation in NumPy's notation, as "ij,jk->ik"; dtypes are promoted."""
    result: Tensor = joined("einsum", tensors, lambda nodes, _: einstein.einsum(equation, nodes), 0)
    return result


def where(condition: Tensor, x: Tensor | Value, y: Tensor | Value) -> Tensor:
    """X where the condition holds, y elsewhere; all three broadcast, dtypes are promoted."""
    if isinstance(x, Tensor):
        return x.where(condition, y)
    if isinstance(y, Tensor):
        return y.where(~condition, x)
    dtype = promote(default_dtype(x), default_dtype(y))
    return Tensor(x, dtype).where(condition, Tensor(y, dtype))


def maximum(x: Tensor, y: Tensor | Value) -> Tensor:
    """The larger of each pair."""
    return x.maximum(y)


def minimum(x: Tensor, y: Tensor | Value) -> Tensor:
    """The smaller of each pair."""
    return x.minimum(y)


def realize(*tensors: Tensor) -> None:
    """Compute the values of tensors, in one program."""
    if tensors:
        tensors[0].realize(*tensors[1:])


zeros, ones, full = Tensor.zeros, Tensor.ones, Tensor.full
arange, linspace, eye = Tensor.arange, Tensor.linspace, Tensor.eye
from_numpy, from_dlpack = Tensor.from_numpy, Tensor.from_dlpack
