"""Activation functions. float16 and bfloat16 are computed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from week01_uops.dtypes import float64
from week01_uops.node import UOp
from week01_uops.ops import NEG, RECIP
from week03_loops.library.arithmetic import (
    absolute,
    add,
    exp,
    lt,
    maximum,
    mul,
    square,
    sub,
    where,
    widened,
)
from week03_loops.library.check import expect_float


def relu(x: UOp) -> UOp:
    """max(x, 0); NaN stays."""
    return maximum(x, 0)


@widened
def sigmoid(x: UOp) -> UOp:
    """1 / (1 + e^−x): 0 where e^−x overflows."""
    expect_float("sigmoid", x=x)
    result: UOp = RECIP(add(exp(NEG(x)), 1))
    return result


@widened
def silu(x: UOp) -> UOp:
    """x·sigmoid(x) (Elfwing et al., 2018), also called swish."""
    expect_float("silu", x=x)
    return mul(x, sigmoid(x))


@widened
def tanh(x: UOp) -> UOp:
    """2·sigmoid(2·x) − 1, absolute error about one unit of the dtype at 1."""
    expect_float("tanh", x=x)
    return sub(mul(sigmoid(mul(x, 2)), 2), 1)


def _complement(size: UOp) -> UOp:
    """erfc(s) = P(t)·e^(−s²) for s ≥ 0, t = 1/(1 + p·s).

    The form of 7.1.26 in Abramowitz and Stegun (1964) with more terms, a minimax fit: absolute
    error 3e-9 plus rounding in float32 (6e-7 in all), 3e-17 plus rounding in float64 (2e-15).
    """
    slope, terms = _ERFC[size.dtype is float64]
    t: UOp = RECIP(add(mul(size, slope), 1))
    return mul(mul(t, polynomial(t, terms)), exp(NEG(square(size))))


def polynomial(x: UOp, terms: Sequence[float]) -> UOp:
    """terms[0] + terms[1]·x + terms[2]·x² + …, by Horner's scheme."""
    result: UOp = mul(x, terms[-1])
    for term in terms[-2:0:-1]:
        result = mul(x, add(result, term))
    return add(result, terms[0])


@widened
def erf(x: UOp) -> UOp:
    """2/√π·∫ e^(−t²) from 0 to x; error 6e-7 (float32) or 2e-15 (float64) of 1, |x| < ½ of x.

    There Σ 2/√π·(−1)ⁿ·x^(2n+1)/(n!·(2n+1)), cut off below an ulp; elsewhere sign(x)·(1 − erfc|x|).
    """
    expect_float("erf", x=x)
    size = absolute(x)
    complement = _complement(size)
    outer = where(lt(x, 0), sub(complement, 1), sub(1.0, complement))
    count = 12 if x.dtype is float64 else 6
    inner = mul(x, polynomial(square(x), [_series_of_erf(n) for n in range(count)]))
    return where(lt(size, 0.5), inner, outer)


def _series_of_erf(n: int) -> float:
    """2/√π·(−1)ⁿ/(n!·(2n + 1))."""
    return float(2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)))


_ERFC: dict[bool, tuple[float, tuple[float, ...]]] = {
    False: (
        0.33,
        (
            0.1616737372,
            0.4057096004,
            -0.6572388327,
            1.87867813,
            -1.927356834,
            1.429712845,
            -0.2911786452,
        ),
    ),
    True: (
        0.35,
        (
            0.1975553008816934,
            0.19568229304554713,
            0.20189805410406628,
            0.0675806487638106,
            0.48855079956101044,
            -0.9160022962753331,
            2.106064695456114,
            -3.123285851324269,
            3.537500990401053,
            -2.892091698274898,
            1.5927702442088525,
            -0.560374127764832,
            0.11459078969667777,
            -0.010439842479492806,
        ),
    ),
}
"""p, and the coefficients of P(t)/t; by whether the dtype is float64."""


@widened
def gelu(x: UOp) -> UOp:
    """x·Φ(x), Φ(x) = ½·(1 + erf(x/√2)) (Hendrycks and Gimpel, 2016).

    Below 0 Φ is ½·erfc(|x|/√2), so that nothing cancels there.
    """
    expect_float("gelu", x=x)
    tail = mul(_complement(mul(absolute(x), math.sqrt(0.5))), 0.5)
    return mul(x, where(lt(x, 0), tail, sub(1.0, tail)))


@widened
def gelu_tanh(x: UOp) -> UOp:
    """x·½·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the approximation in the same paper, section 2."""
    expect_float("gelu_tanh", x=x)
    inner = mul(add(x, mul(mul(square(x), x), 0.044715)), math.sqrt(2 / math.pi))
    return mul(x, sigmoid(mul(inner, 2)))
