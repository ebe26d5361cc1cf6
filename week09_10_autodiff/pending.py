"""Values that should be computed with the next step of an optimizer, in its one program.

What a forward pass assigns by the way (running averages) and the losses that `backward` was
called on share most of their work with the step. Alone they would repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.core import Core

_waiting: WeakValueDictionary[int, Core] = WeakValueDictionary()
"""By id: tensors compare elementwise."""


def realize_later(*tensors: Core | None) -> None:
    """Let tensors wait for the next step; if one waits already, compute all that do now.

    Where a function is captured nothing waits: everything becomes one program anyway.
    """
    if CONTEXT.tracer is not None:
        return
    new = [tensor for tensor in tensors if tensor is not None]
    if any(id(tensor) in _waiting for tensor in new):
        realize_all(())
    _waiting.update({id(tensor): tensor for tensor in new if not tensor.is_realized})


def realize_all(tensors: Sequence[Core]) -> None:
    """Compute tensors and those that wait in one program; not where a function is captured."""
    if CONTEXT.tracer is not None:
        return
    both = [*tensors, *_waiting.values()]
    _waiting.clear()
    if both:
        both[0].realize(*both[1:])
