"""Memory for time: what a function computes on the way is not kept for its derivatives.

    y = recompute(block, x)        y = block(x), and backward computes the inside again

With k blocks of n values inside and one between, backward keeps k + n values rather than k·n, and
each block is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from week01_uops.node import make
from week09_10_autodiff.errors import TensorTypeError
from week09_10_autodiff.ops import RECOMPUTE
from week09_10_autodiff.tensor import Tensor

R = TypeVar("R", bound=Tensor | tuple[Tensor, ...])


def recompute(function: Callable[..., R], *args: object, **options: object) -> R:
    """function(*args, **options), whose inside is computed again for derivatives.

    What is computed again begins at the tensors among `args`; anything else that the function
    uses, parameters above all, may come from around it. If it gives several tensors, each begins
    anew: let it give one. Random numbers are the same in both computations. As
    torch.utils.checkpoint.checkpoint.

    Raises:
        TensorTypeError: the function gives something else than tensors.
    """
    result = function(*args, **options)
    inputs = tuple(dict.fromkeys(x.node for x in args if isinstance(x, Tensor)))

    def marked(y: object) -> Tensor:
        if not isinstance(y, Tensor):
            got = type(y).__name__
            raise TensorTypeError(f"recompute: expected a function that gives tensors, got {got}")
        node = make(RECOMPUTE, (y.node, *inputs))
        return Tensor._of(node, requires_grad=True) if y.requires_grad else y

    return tuple(map(marked, result)) if isinstance(result, tuple) else marked(result)  # type: ignore[return-value]
