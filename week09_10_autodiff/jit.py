"""`jit`: a function of tensors as one compiled program.

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

The first call carries the function out on tensors without elements, to see what it computes, and
compiles that; further calls run the program. Tensors that the function assigns are changed in
place, and whoever held the old value keeps it. What is no tensor counts as a constant: another
value, or a tensor of another dtype or shape, and the function is captured again; `why` says why.

- Python's effects (printing, appending, counting in an int) happen when the function is captured,
  once or more, and not later.
- Elements cannot be looked at inside: `item()`, `numpy()`, `if tensor:` are errors that name the
  line.
- Results are constants of derivatives. A gradient that the function leaves becomes the tensor's
  `grad`, unless it changed the tensor as well: then it is gone.
- A tensor that the function reads is found again when it is assigned elsewhere, but not when an
  attribute is bound to another one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from types import MethodType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar
from weakref import ref

from week01_uops.node import UOp
from week09_10_autodiff.captured import Captured, RecaptureError
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.owning import move
from week09_10_autodiff.planning import Plan, SharedLeavesError, plan_of
from week09_10_autodiff.storage import LOCK, placeholder
from week09_10_autodiff.structure import describe, is_tensor, leaves, rebuilt, signature
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.tracing import Trace

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 4
"""So often a function is carried out to capture it, if tensors have to be computed first."""

VARIANTS = 4
"""So many captures of one signature are kept, which differ in what other tensors have become."""

CAPACITY = 64
"""For so many signatures captures are kept; the oldest goes first."""


class _Call(NamedTuple):
    """The arguments of a call.

    Attributes:
        named: by the name of the parameter.
        tensors: all tensors among them.
        key: what two calls share if one program does for both.
        pinned: objects whose identity is part of the key.
    """

    named: Mapping[str, Any]
    tensors: list[Tensor]
    key: Hashable
    pinned: list[object]

    def described(self) -> dict[str, str]:
        """Each argument, and what is in it, in words; at "" whether derivatives are wanted."""
        found = {"": "with derivatives" if CONTEXT.derives else "without derivatives"}
        for name, value in self.named.items():
            found |= {path: describe(item) for path, item in leaves(value, name)}
        return found


class Jit(Generic[P, R]):
    """A function that is captured; see the module.

    Attributes:
        captures: how often it was captured.
        why: why that was last done.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.captures = 0
        self.why = "it was not called yet"
        self._function = function
        self._signature = inspect.signature(function)
        kinds = [p.kind for p in self._signature.parameters.values()]
        self._plain = all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)
        self._names = list(self._signature.parameters)
        self._known: dict[Hashable, list[Captured]] = {}
        self._described: dict[Hashable, dict[str, str]] = {}

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401
        """A method, whose `self` counts as a constant."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function returns. Inside of another captured function it is a part of that."""
        if CONTEXT.tracer is not None:
            return self._function(*args, **kwargs)
        call = self._call(args, kwargs)
        known = self._known.get(call.key, [])
        reason: str | None = None
        for captured in reversed(known):
            try:
                return captured(call.tensors)  # type: ignore[no-any-return]
            except RecaptureError as why:
                reason = str(why)
        return self._captured(call, reason)(call.tensors)  # type: ignore[no-any-return]

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Capture the function for these arguments, so that the next call only runs it."""
        call = self._call(args, kwargs)
        if call.key not in self._known:
            self._captured(call, None)

    def programs(self) -> list[UOp]:
        """The programs of all captures that are kept, the last one last."""
        return [captured.program for known in self._known.values() for captured in known]

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call:
        if self._plain and not kwargs and len(args) == len(self._names):
            named: Mapping[str, Any] = dict(zip(self._names, args, strict=True))
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            named = bound.arguments
        tensors: list[Tensor] = []
        pinned: list[object] = []
        keys = tuple([signature(value, tensors, pinned) for value in named.values()])
        return _Call(named, tensors, (CONTEXT.derives, keys), pinned)

    # Capturing

    def _captured(self, call: _Call, reason: str | None) -> Captured:
        """The function captured for a call, with what it depends on."""
        with LOCK:
            described = call.described()
            why = reason or self._reason(described)
            found = Captured(self._plan(call), self._pinned(call))
            self.captures, self.why = self.captures + 1, why
            self._described[call.key] = described
            self._known.setdefault(call.key, []).append(found)
            del self._known[call.key][:-VARIANTS]
            while len(self._known) > CAPACITY:
                self._forget(next(iter(self._known)))
        return found

    def _pinned(self, call: _Call) -> list[object]:
        """What makes the key valid: with an object, its captures are forgotten."""
        key = call.key
        return [_pin(item, lambda _: self._forget(key)) for item in call.pinned]

    def _forget(self, key: Hashable) -> None:
        self._known.pop(key, None)
        self._described.pop(key, None)

    def _plan(self, call: _Call) -> Plan:
        """Carry the function out, again if tensors had to be computed or moved apart before."""
        for attempt in range(1, ATTEMPTS + 1):
            fresh = [_fresh(tensor) for tensor in call.tensors]
            trace = Trace(getattr(self, "__name__", "a function")).run(self._applied(call, fresh))
            try:
                plan = plan_of(trace, fresh)
            except SharedLeavesError as shared:
                for tensor in shared.tensors:
                    move(tensor)
                continue
            pending = trace.pending()
            if not pending or attempt == ATTEMPTS:
                return plan
            pending[0].realize(*pending[1:])
        raise AssertionError("expected tensors moved apart to stay apart")

    def _applied(self, call: _Call, fresh: list[Tensor]) -> Callable[[], R]:
        """The function with other tensors for those of a call."""
        rest = iter(fresh)
        named = {
            name: rebuilt(value, lambda x: next(rest) if is_tensor(x) else x)
            for name, value in call.named.items()
        }
        bound = inspect.BoundArguments(self._signature, named)
        return lambda: self._function(*bound.args, **bound.kwargs)

    def _reason(self, described: Mapping[str, str]) -> str:
        """Why none of the captures does, compared with the last of those that differ least."""
        if not self._described:
            return "it was called for the first time"
        differences = [
            _differences(known, described) for known in [*self._described.values()][::-1]
        ]
        least = min(differences, key=len)
        return "; ".join(least) or "an argument is another object than before"


def _differences(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Where two calls differ."""
    return [
        f"argument {path}: expected {known.get(path, 'nothing')}, got {now.get(path, 'nothing')}"
        if path
        else f"expected a call {known[path]}, got one {now[path]}"
        for path in {**known, **now}
        if known.get(path) != now.get(path)
    ]


def _pin(item: object, gone: Callable[[object], None]) -> object:
    """A weak reference that tells when the object is gone; the object, if it cannot have one."""
    try:
        return ref(item, gone)
    except TypeError:
        return item


def _fresh(tensor: Tensor) -> Tensor:
    """A tensor of the same kind without elements."""
    fresh = Tensor._of(placeholder(tensor.dtype, tensor.shape))
    return fresh.requires_grad_() if tensor.requires_grad else fresh


def jit(function: Callable[P, R]) -> Jit[P, R]:
    """The function as one compiled program; see the module. Also a decorator, of methods too."""
    return Jit(function)
