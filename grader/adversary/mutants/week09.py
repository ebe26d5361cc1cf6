"""Mutants of weeks 9 and 10: derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence

from grader.adversary.mutant import Mutant, Patch
from week01_uops.node import Op, UOp, const
from week01_uops.ops import CMPLT, EXP2, LOG2, MAX, MUL, RECIP, WHERE
from week03_loops.ops import FLIP, PAD, PERMUTE, REDUCE, SHRINK, expand, pad, permute, shrink
from week09_10_autodiff import gradients
from week09_10_autodiff.factors import scaled, times, unbroadcast
from week09_10_autodiff.rules import RULES, Parts, Rule, of_logistic


def _rule(op: Op, rule: Rule) -> tuple[Patch, ...]:
    """Another derivative of an op."""
    return (Patch(gradients, "RULES", {**RULES, op: rule}),)


def _untied(y: UOp, bar: UOp) -> Parts:
    a, b = y.src
    zero = const(0.0, bar.dtype)
    return WHERE(CMPLT(a, b), zero, bar), WHERE(CMPLT(b, a), zero, bar)


def _one_side(y: UOp, bar: UOp) -> Parts:
    return None, bar, bar


def _unmoved(y: UOp, bar: UOp) -> Parts:
    return (expand(bar, y.shape) if bar.shape else bar,)


def _permuted_again(y: UOp, bar: UOp) -> Parts:
    whole = expand(bar, y.shape)
    once = permute(whole, y.arg)
    return (once,) if once.shape == y.src[0].shape else RULES[PERMUTE](y, bar)


def _from_the_start(y: UOp, bar: UOp) -> Parts:
    return (shrink(expand(bar, y.shape), [(0, size) for size in y.src[0].shape]),)


def _at_the_start(y: UOp, bar: UOp) -> Parts:
    margins = [(0, n - m) for n, m in zip(y.src[0].shape, y.shape, strict=True)]
    return (pad(expand(bar, y.shape), margins),)


def _all_of_maxima(y: UOp, bar: UOp) -> Parts:
    """Each equal maximum of a reduction gets all of the cotangent."""
    if y.arg.op is not MAX or len(y.src) > 1:
        return RULES[REDUCE](y, bar)
    return (WHERE(CMPLT(y.src[0], y), const(0.0, bar.dtype), bar),)


def _quotients(y: UOp, bar: UOp) -> Parts:
    """Of a product Π: Π/xₖ, which is NaN at 0."""
    if y.arg.op is not MUL or len(y.src) > 1:
        return RULES[REDUCE](y, bar)
    return (times(bar, MUL(y, RECIP(y.src[0]))),)


def _maxima(order: Sequence[UOp]) -> set[UOp]:
    return {n for n in order if n.op is REDUCE and n.arg.op is MAX and n.dtype.is_float}


def _averaged(x: UOp, shape: Sequence[int], over: Sequence[int]) -> UOp:
    found = unbroadcast(x, shape, over)
    copies = math.prod(over) // max(math.prod(shape), 1)
    return scaled(found, 1 / copies) if copies else found


MUTANTS = (
    Mutant(
        "grad-parts-overwrite",
        9,
        "Of a node with several uses only the last part counts.",
        patches=(Patch(gradients, "ADD", lambda known, part: part),),
    ),
    Mutant(
        "grad-mul-exchanged",
        9,
        "Each factor gets the cotangent times itself.",
        patches=_rule(MUL, lambda y, bar: (times(bar, y.src[0]), times(bar, y.src[1]))),
    ),
    Mutant(
        "grad-square-once",
        9,
        "A square hands back ȳ·a, not 2·ȳ·a.",
        patches=_rule(
            MUL,
            lambda y, bar: (
                (times(bar, y.src[0]), None) if y.src[0] is y.src[1] else RULES[MUL](y, bar)
            ),
        ),
    ),
    Mutant(
        "grad-max-untied",
        9,
        "Equal sources of MAX get all of the cotangent each.",
        patches=_rule(MAX, _untied),
    ),
    Mutant(
        "grad-recip-sign",
        9,
        "RECIP hands back ȳ·y², without the sign.",
        patches=_rule(RECIP, lambda y, bar: (times(bar, MUL(y, y)),)),
    ),
    Mutant(
        "grad-exp2-natural",
        9,
        "EXP2 hands back ȳ·y, as e^x does.",
        patches=_rule(EXP2, lambda y, bar: (times(bar, y),)),
    ),
    Mutant(
        "grad-log2-natural",
        9,
        "LOG2 hands back ȳ/x, as the natural logarithm does.",
        patches=_rule(LOG2, lambda y, bar: (times(bar, RECIP(y.src[0])),)),
    ),
    Mutant(
        "grad-where-both-sides",
        9,
        "Both sides of WHERE get the cotangent everywhere.",
        patches=_rule(WHERE, _one_side),
    ),
    Mutant(
        "grad-permute-again",
        9,
        "PERMUTE is applied to the cotangent, not undone.",
        patches=_rule(PERMUTE, _permuted_again),
    ),
    Mutant(
        "grad-flip-unmoved",
        9,
        "The cotangent of FLIP is not flipped back.",
        patches=_rule(FLIP, _unmoved),
    ),
    Mutant(
        "grad-pad-from-the-start",
        9,
        "Of PAD's cotangent the first elements are taken, not those inside.",
        patches=_rule(PAD, _from_the_start),
    ),
    Mutant(
        "grad-shrink-to-the-start",
        9,
        "The cotangent of SHRINK is put at the beginning.",
        patches=_rule(SHRINK, _at_the_start),
    ),
    Mutant(
        "grad-equal-maxima-get-all",
        9,
        "Of a REDUCE each equal maximum gets all of the cotangent.",
        patches=_rule(REDUCE, _all_of_maxima),
    ),
    Mutant(
        "grad-product-by-quotients",
        9,
        "The derivative of a product is the product over the element, NaN at 0.",
        patches=_rule(REDUCE, _quotients),
    ),
    Mutant(
        "grad-maxima-constant",
        9,
        "Every maximum is taken for one that its users cancel.",
        patches=(Patch(gradients, "invariant_maxima", _maxima),),
    ),
    Mutant(
        "grad-broadcast-not-summed",
        9,
        "What a source was repeated to is averaged, not summed.",
        patches=(Patch(gradients, "unbroadcast", _averaged),),
    ),
    Mutant(
        "grad-power-of-itself",
        9,
        "x^c hands back ȳ·c·x^c.",
        patches=(
            Patch(
                gradients,
                "of_power",
                lambda y, bar, x, exponent: scaled(times(bar, y), exponent),
            ),
        ),
    ),
    Mutant(
        "grad-sigmoid-sign",
        9,
        "A sigmoid hands back its derivative with the other sign.",
        patches=(
            Patch(gradients, "of_logistic", lambda y, bar: scaled(of_logistic(y, bar), -1.0)),
        ),
    ),
)
