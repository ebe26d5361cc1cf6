"""Reverse mode: the derivatives of a value, as a program of the same ops.

    gradient(y, [x₀, x₁, …])   →   [∂⟨y, ȳ⟩/∂x₀, ∂⟨y, ȳ⟩/∂x₁, …]

From the value back to what it is made of, every node n gets a cotangent n̄ = Σ over its users of
what their rule says (`rules.RULES`). Sources that an op broadcasts get the sum over the axes that
grew. What comes out is made of the ops that went in, so it can be differentiated again.

Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from week01_uops.calls import inline, substitute
from week01_uops.errors import ProgramError
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import ADD, RETURN, parameters
from week01_uops.rewrite import Trace
from week02_render.ops import zero
from week03_loops.library import full
from week03_loops.ops import expand
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.factors import constant_of, unbroadcast
from week09_10_autodiff.invariant import invariant_maxima
from week09_10_autodiff.ops import LATER, RECOMPUTE, variable
from week09_10_autodiff.rules import (
    BROADCASTING,
    RULES,
    STEPS,
    logistic_of,
    no_derivative,
    of_logistic,
    of_power,
    power_of,
)


def gradient(y: UOp, wrt: Sequence[UOp], cotangent: UOp | None = None) -> list[UOp]:
    """The derivatives of ⟨y, ȳ⟩ with respect to nodes, in their dtypes and shapes.

    Args:
        y: a float value without CALLs.
        wrt: float nodes; zeros come back for those that y does not depend on.
        cotangent: ȳ, of y's dtype and shape; 1 if it is not given and y is a scalar.

    Raises:
        ProgramError: E416 if y depends on one of them in a way that has no derivative.
    """
    if cotangent is None:
        if y.shape:
            raise ValueError(f"expected a cotangent for a value of shape {list(y.shape)}")
        cotangent = const(1.0, y.dtype)
    wanted = set(wrt)
    order = y.toposort()
    active = _active(order, wanted, invariant_maxima(order))
    cotangents: dict[UOp, UOp] = {y: cotangent} if y in active else {}
    for node in reversed(order):
        if node in cotangents and not active.isdisjoint(node.src):
            for source, part in _parts(node, cotangents[node], wanted):
                if source in active:
                    for watcher in CONTEXT.watchers:
                        watcher.derived(node, part)
                    known = cotangents.get(source)
                    cotangents[source] = part if known is None else ADD(known, part)
    return [
        expand(cotangents[x], x.shape) if x in cotangents else full(0.0, x.dtype, x.shape)
        for x in wrt
    ]


def _active(order: Sequence[UOp], wrt: Collection[UOp], constant: Collection[UOp]) -> set[UOp]:
    """The nodes whose value changes with those of `wrt`, but for steps: what is no float."""
    active: set[UOp] = set()
    for node in order:
        if node in wrt:
            active.add(node)
        elif not active.isdisjoint(node.src) and node not in constant:
            if node.dtype.is_float and node.op not in STEPS:
                active.add(node)
            elif node.op not in RULES:
                raise no_derivative(node)
    return active


def _parts(node: UOp, bar: UOp, wrt: Collection[UOp]) -> Iterator[tuple[UOp, UOp]]:
    """What a node hands back: to its sources, or to the x of a power x^c or sigmoid that it is."""
    if node.op is RECOMPUTE:
        yield from _recomputed(node, bar, wrt)
        return
    power, z = power_of(node), logistic_of(node)
    if power is not None and not _within(node, power[0], wrt):
        yield power[0], of_power(node, bar, *power)
        return
    if z is not None and not _within(node, z, wrt):
        yield z, of_logistic(node, bar)
        return
    if node.op not in RULES:
        raise no_derivative(node)
    for source, part in zip(node.src, RULES[node.op](node, bar), strict=True):
        if part is not None:
            over = node.shape if node.op in BROADCASTING else source.shape
            yield source, unbroadcast(part, source.shape, over)


def _recomputed(node: UOp, bar: UOp, wrt: Collection[UOp]) -> list[tuple[UOp, UOp]]:
    """What RECOMPUTE y x₀ x₁ … hands to the xₖ, and to what is asked for of that y is made of.

    These are the derivatives of y, with LATER(xₖ, ȳ) in place of xₖ. So everything between xₖ and
    y is a second node beside the one that gave y, computed when ȳ is known, and the first one is
    not kept for it. The x̄ₖ come after the other derivatives, which would keep the second.
    Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
    """
    y, *given = node.src
    inputs = dict.fromkeys(given)
    below = toposort((y,), lambda n: () if n in inputs else n.src)
    others = [n for n in below if n in wrt and n not in inputs]
    blank = {x: _blank(x) for x in inputs}
    floats = [x for x in inputs if x.dtype.is_float]
    start = _blank(bar)
    parts = gradient(substitute(y, blank), [*(blank[x] for x in floats), *others], start)
    late = {blank[x]: _after(x, [bar]) for x in inputs}
    parts = list(substitute(make(RETURN, tuple(parts)), {**late, start: bar}).src)
    own = parts[len(floats) :]
    return [
        *zip(floats, [_after(x, own) for x in parts[: len(floats)]], strict=True),
        *zip(others, own, strict=True),
    ]


def _blank(x: UOp) -> UOp:
    """A node of this type that is equal to no other and made of nothing."""
    return variable(expand(const(zero(x.dtype), x.dtype), x.shape))


def _after(x: UOp, values: Sequence[UOp]) -> UOp:
    """X, once the values are computed; constants are from the beginning."""
    awaited = tuple(v for v in dict.fromkeys(values) if constant_of(v) is None)
    return make(LATER, (x, *awaited)) if awaited else x


def _within(y: UOp, x: UOp, wrt: Collection[UOp]) -> bool:
    """Whether one of the two nodes between a power or a sigmoid y and its x is asked for."""
    middle = y.src[0]
    return middle in wrt or any(inner in wrt and x in inner.src for inner in middle.src)


def grad(program: UOp, wrt: Sequence[int]) -> UOp:
    """The verb `grad`: a program that returns the derivatives with respect to PARAM slots.

    Raises:
        ProgramError: E416 unless the program has one output, a float scalar, the slots are float
            PARAMs of it, each named once, and all ops on the way have derivatives.
    """
    program = inline(program, Trace())
    outputs = program.src
    if len(outputs) != 1 or outputs[0].shape or not outputs[0].dtype.is_float:
        got = ", ".join(f"{o.dtype}{list(o.shape)}" for o in outputs)
        raise ProgramError("E416", f"expected one output, a float scalar, got {got}", outputs)
    known = parameters(program)
    for slot in wrt:
        if slot not in known or not known[slot].dtype.is_float:
            floats = [s for s, p in sorted(known.items()) if p.dtype.is_float]
            what = f"{known[slot].dtype} in slot {slot}" if slot in known else f"slot {slot}"
            raise ProgramError("E416", f"expected float PARAMs, slots {floats}, got {what}")
    if len(set(wrt)) != len(wrt):
        raise ProgramError("E416", f"expected each slot once, got {list(wrt)}")
    result: UOp = RETURN(*gradient(outputs[0], [known[slot] for slot in wrt]))
    return result
