"""What is going on in this thread: whether derivatives are wanted, who watches, who traces."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from week01_uops.node import UOp


class Watcher(Protocol):
    """Someone who is told of every operation on tensors."""

    def saw(self, name: str, node: UOp) -> None:
        """An operation made a node."""

    def derived(self, user: UOp, part: UOp) -> None:
        """In a derivative, a node handed this cotangent to one of its sources."""


class Tracer(Protocol):
    """Someone who captures a function, in which tensors may be changed but not looked at."""

    def used(self, tensors: Sequence[object]) -> None:
        """An operation read these tensors."""

    def assigning(self, tensor: object) -> None:
        """A tensor is about to be assigned."""

    def realizing(self, nodes: Sequence[UOp]) -> None:
        """Values are asked for; raises a TensorError if that cannot be."""


class _Context(threading.local):
    derives: bool = True
    watchers: tuple[Watcher, ...] = ()
    tracer: Tracer | None = None


CONTEXT = _Context()
"""Of this thread alone."""


@contextmanager
def no_grad() -> Iterator[None]:
    """What is computed inside is a constant of derivatives. Also a decorator: `@no_grad()`."""
    before, CONTEXT.derives = CONTEXT.derives, False
    try:
        yield
    finally:
        CONTEXT.derives = before


@contextmanager
def enable_grad() -> Iterator[None]:
    """Derivatives are wanted inside, even within `no_grad`."""
    before, CONTEXT.derives = CONTEXT.derives, True
    try:
        yield
    finally:
        CONTEXT.derives = before


def is_grad_enabled() -> bool:
    """Whether derivatives are wanted here."""
    return CONTEXT.derives


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """The watcher is told of every operation inside."""
    before, CONTEXT.watchers = CONTEXT.watchers, (*CONTEXT.watchers, watcher)
    try:
        yield
    finally:
        CONTEXT.watchers = before


@contextmanager
def traced_by(tracer: Tracer | None) -> Iterator[None]:
    """The tracer is told of assignments and of values asked for inside; None: nobody is."""
    before, CONTEXT.tracer = CONTEXT.tracer, tracer
    try:
        yield
    finally:
        CONTEXT.tracer = before
