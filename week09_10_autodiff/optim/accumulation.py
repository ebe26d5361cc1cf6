"""One step for the gradients of several batches."""

from __future__ import annotations

from collections.abc import Iterable

from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.pending import realize_all
from week09_10_autodiff.tensor import Tensor


class Accumulator:
    """Sums of gradients in tensors of their own, so that each batch is a program by itself.

        sums = Accumulator(model.parameters())
        for x, y in batches:
            loss(x, y).backward()
            sums.add()          takes the gradients away, adds them up
        sums.give()             hands back the means as the gradients
        optimizer.step()

    Without it the expressions of all batches would be computed together, with the memory of all.
    Both parts may stand in functions of their own under `jit`.

    Attributes:
        count: how many were added, a tensor.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list(parameters)
        self.sums = [parameter.detach().zeros_like() for parameter in self.parameters]
        self.count = Tensor.zeros()
        realize_all([self.count, *self.sums])

    def add(self) -> None:
        """Add the gradients to the sums and forget them."""
        with no_grad():
            for parameter, total in zip(self.parameters, self.sums, strict=True):
                if parameter.grad is not None:
                    total.assign(total + parameter.grad)
                parameter.grad = None
            self.count.assign(self.count + 1)
        realize_all([self.count, *self.sums])

    def give(self) -> None:
        """Make the means of what was added the gradients, and begin anew."""
        with no_grad():
            for parameter, total in zip(self.parameters, self.sums, strict=True):
                if parameter.grad is not None:
                    raise TensorError("give: expected no gradients but those added; call add()")
                parameter.grad = total / self.count.to(total.dtype)
                total.assign(0.0)
            self.count.assign(0.0)
