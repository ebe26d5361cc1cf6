"""The ops that tensors add, which `realize` takes away before anything is compiled.

DETACH x is the value of x; nothing is derived through it.
RECOMPUTE y x₀ x₁ … is the value of y, whose derivatives compute again what lies between y and
the xₖ rather than keep it.
LATER x v₀ v₁ … is the value of x, computed when the values vₖ are known: the nodes made of it are
others than those made of x.
"""

from __future__ import annotations

import itertools

from week01_uops import intervals
from week01_uops.args import integer
from week01_uops.node import MANY, Op, Type, UOp, make
from week01_uops.signatures import expect_value

_numbers = itertools.count()


def _same_value(src: tuple[UOp, ...], arg: int | None) -> Type:
    expect_value(src[0])
    return Type(src[0].dtype, src[0].shape)


DETACH = Op(
    "DETACH",
    9,
    (1, 1),
    _same_value,
    integer("a number ≥ 0", 0),
    intervals.same,
    internal=True,
    optional=True,
)
RECOMPUTE = Op("RECOMPUTE", 9, (1, MANY), _same_value, interval=intervals.same, internal=True)
LATER = Op("LATER", 9, (1, MANY), _same_value, interval=intervals.same, internal=True)
NAMES = frozenset({DETACH, RECOMPUTE})
"""Ops whose value is their first source's."""


def detach(x: UOp) -> UOp:
    """The value of x as a constant of derivatives."""
    return x if x.op is DETACH and x.arg is None else make(DETACH, (x,))


def variable(x: UOp) -> UOp:
    """The value of x as a node of its own, equal to no other: something to derive for."""
    return make(DETACH, (x,), next(_numbers))


def bare(x: UOp) -> UOp:
    """X without the DETACHes around it."""
    while x.op is DETACH:
        x = x.src[0]
    return x
