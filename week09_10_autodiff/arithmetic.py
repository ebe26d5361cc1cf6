"""Elementwise operations: arithmetic, comparisons, logic, functions of one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from week01_uops.dtypes import Value, bool_, int64, uint8
from week01_uops.node import UOp
from week01_uops.ops import NEG, RECIP
from week03_loops import library as lib
from week09_10_autodiff import elementwise
from week09_10_autodiff.core import Core, Function
from week09_10_autodiff.elementwise import floats
from week09_10_autodiff.errors import TensorError, TensorTypeError


class Arithmetic(Core):
    """Arithmetic of tensors: operands broadcast, dtypes are promoted (`promotion`)."""

    __slots__ = ()

    def __add__(self, other: object) -> Self:
        return self._binary("add", elementwise.add, other)

    def __radd__(self, other: object) -> Self:
        return self._binary("add", elementwise.add, other, swapped=True)

    def __sub__(self, other: object) -> Self:
        return self._binary("sub", lib.sub, other)

    def __rsub__(self, other: object) -> Self:
        return self._binary("sub", lib.sub, other, swapped=True)

    def __mul__(self, other: object) -> Self:
        return self._binary("mul", lib.mul, other)

    def __rmul__(self, other: object) -> Self:
        return self._binary("mul", lib.mul, other, swapped=True)

    def __truediv__(self, other: object) -> Self:
        return self._binary("div", lib.div, other, floats=True)

    def __rtruediv__(self, other: object) -> Self:
        return self._binary("div", lib.div, other, swapped=True, floats=True)

    def __floordiv__(self, other: object) -> Self:
        return self._binary("floor_divide", elementwise.floor_divide, other)

    def __rfloordiv__(self, other: object) -> Self:
        return self._binary("floor_divide", elementwise.floor_divide, other, swapped=True)

    def __mod__(self, other: object) -> Self:
        return self._binary("remainder", elementwise.remainder, other)

    def __rmod__(self, other: object) -> Self:
        return self._binary("remainder", elementwise.remainder, other, swapped=True)

    def __pow__(self, other: object) -> Self:
        return self.pow(other)

    def __rpow__(self, other: object) -> Self:
        return self._binary("pow", elementwise.power, other, swapped=True)

    def __lshift__(self, bits: int) -> Self:
        return self._shifted("lshift", bits, self.__mul__)

    def __rshift__(self, bits: int) -> Self:
        return self._shifted("rshift", bits, self.__floordiv__)

    def _shifted(self, name: str, bits: int, by: Callable[[int], Self]) -> Self:
        """By a known number of bits, which is by a power of two."""
        if self.dtype.kind not in ("int", "uint") or not isinstance(bits, int):
            got = f"{self.dtype} and {type(bits).__name__}"
            raise TensorError(f"{name}: expected an integer tensor and a Python integer, got {got}")
        return by(1 << bits)

    def __neg__(self) -> Self:
        return self._apply("neg", NEG)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self.abs()

    def __iadd__(self, other: object) -> Self:
        return self._in_place(self + other)

    def __isub__(self, other: object) -> Self:
        return self._in_place(self - other)

    def __imul__(self, other: object) -> Self:
        return self._in_place(self * other)

    def __itruediv__(self, other: object) -> Self:
        return self._in_place(self / other)

    def _in_place(self, value: Self) -> Self:
        """X += y changes x, as in PyTorch; the shape stays, and so does the dtype."""
        return self._changed("in place", value)

    def add(self, other: object) -> Self:
        """The sum; of bools: or."""
        return self._wanted("add", self.__add__, other)

    def sub(self, other: object) -> Self:
        """The difference."""
        return self._wanted("sub", self.__sub__, other)

    def mul(self, other: object) -> Self:
        """The product."""
        return self._wanted("mul", self.__mul__, other)

    def div(self, other: object) -> Self:
        """The quotient; integers are divided as float32."""
        return self._wanted("div", self.__truediv__, other)

    def pow(self, other: object) -> Self:
        """The power; of a Python number by multiplying, of ½ by the square root."""
        if isinstance(other, (int, float)):
            return self._with_number_exponent(other)
        return self._binary("pow", elementwise.power, other)

    def _with_number_exponent(self, exponent: Value) -> Self:
        if isinstance(exponent, float):
            return self._of_floats("pow", elementwise.power_of_number, exponent=exponent)

        def power(x: UOp) -> UOp:
            x = lib.cast(x, int64) if x.dtype is bool_ else x
            return elementwise.power_of_number(x, exponent)

        return self._apply("pow", power)

    def maximum(self, other: object) -> Self:
        """The larger of each pair; NaN if one is."""
        return self._with("maximum", lib.maximum, other)

    def minimum(self, other: object) -> Self:
        """The smaller of each pair; NaN if one is."""
        return self._with("minimum", lib.minimum, other)

    def _wanted(self, name: str, method: Callable[[object], Self], other: object) -> Self:
        """method(other), which must know what to do with it."""
        result = method(other)
        if result is NotImplemented:
            got = type(other).__name__
            raise TensorTypeError(f"{name}: expected a tensor or a number, got {got}")
        return result

    # Of one value

    def neg(self) -> Self:
        """−x."""
        return -self

    def abs(self) -> Self:
        """|x|."""
        return self._apply("abs", lib.absolute)

    def sign(self) -> Self:
        """−1, 0 or 1; NaN of NaN."""
        return self._apply("sign", elementwise.sign)

    def square(self) -> Self:
        """x·x."""
        return self.pow(2)

    def reciprocal(self) -> Self:
        """1 / x."""
        return self._of_floats("reciprocal", RECIP)

    def _of_floats(self, name: str, function: Function, **options: object) -> Self:
        """function(x), integers and bools first made float32."""
        return self._apply(name, lambda x: function(floats(x), **options))

    def exp(self) -> Self:
        """e^x."""
        return self._of_floats("exp", lib.exp)

    def exp2(self) -> Self:
        """2^x."""
        return self._of_floats("exp2", elementwise.exp2)

    def log(self) -> Self:
        """Natural logarithm; −inf at 0, NaN below."""
        return self._of_floats("log", lib.log)

    def log2(self) -> Self:
        """Logarithm to base 2; −inf at 0, NaN below."""
        return self._of_floats("log2", elementwise.log2)

    def sqrt(self) -> Self:
        """√x; NaN below 0."""
        return self._of_floats("sqrt", lib.sqrt)

    def rsqrt(self) -> Self:
        """1 / √x; inf at 0, NaN below."""
        return self._of_floats("rsqrt", lib.rsqrt)

    def sin(self) -> Self:
        """The sine of an angle in radians."""
        return self._of_floats("sin", elementwise.sin)

    def cos(self) -> Self:
        """The cosine of an angle in radians."""
        return self._of_floats("cos", elementwise.cos)

    def floor(self) -> Self:
        """The largest integer ≤ x, in the same dtype."""
        return self._apply("floor", elementwise.floor)

    def ceil(self) -> Self:
        """The smallest integer ≥ x, in the same dtype."""
        return self._apply("ceil", elementwise.ceil)

    def trunc(self) -> Self:
        """X without its fraction, in the same dtype."""
        return self._apply("trunc", elementwise.trunc)

    def round(self) -> Self:
        """The nearest integer, the even one of two, in the same dtype."""
        return self._apply("round", elementwise.rounded)

    def relu(self) -> Self:
        """x where it is above 0, else 0; the derivative at 0 is 0, and NaN stays."""
        return self._apply("relu", elementwise.relu)

    def sigmoid(self) -> Self:
        """1 / (1 + e^−x)."""
        return self._of_floats("sigmoid", lib.sigmoid)

    def tanh(self) -> Self:
        """The hyperbolic tangent."""
        return self._of_floats("tanh", lib.tanh)

    def erf(self) -> Self:
        """2/√π·∫ e^(−t²) from 0 to x."""
        return self._of_floats("erf", lib.erf)

    def silu(self) -> Self:
        """x·sigmoid(x)."""
        return self._of_floats("silu", lib.silu)

    def gelu(self, approximate: str = "none") -> Self:
        """x·Φ(x); with `approximate="tanh"` through the hyperbolic tangent."""
        if approximate not in ("none", "tanh"):
            raise TensorError(f'gelu: expected approximate "none" or "tanh", got {approximate!r}')
        return self._of_floats("gelu", lib.gelu if approximate == "none" else lib.gelu_tanh)

    def clamp(self, min: object = None, max: object = None) -> Self:  # noqa: A002 - PyTorch's names
        """min(max(x, min), max); None is no bound. The derivative at a bound is 1."""
        low = self if min is None else self._with("clamp", elementwise.at_least, min)
        return low if max is None else low._with("clamp", elementwise.at_most, max)

    def _with(self, name: str, function: Function, bound: object) -> Self:
        return self._wanted(name, lambda o: self._binary(name, function, o), bound)

    clip = clamp

    def isnan(self) -> Self:
        """Whether x is NaN."""
        return self._apply("isnan", elementwise.isnan)

    def isinf(self) -> Self:
        """Whether x is an infinity."""
        return self._apply("isinf", elementwise.isinf)

    def isfinite(self) -> Self:
        """Whether x is neither NaN nor an infinity."""
        return self._apply("isfinite", elementwise.isfinite)


class Comparison(Arithmetic):
    """Comparisons and logic of tensors, which give bool tensors."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __lt__(self, other: object) -> Self:
        return self._compared("lt", lib.lt, other)

    def __le__(self, other: object) -> Self:
        return self._compared("le", lib.le, other)

    def __gt__(self, other: object) -> Self:
        return self._compared("gt", lib.gt, other)

    def __ge__(self, other: object) -> Self:
        return self._compared("ge", lib.ge, other)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return self._compared("eq", lib.eq, other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._compared("ne", lib.ne, other)

    def _compared(self, name: str, function: Function, other: object) -> Self:
        """Bools are compared as 0 and 1, with a number outside the dtype in a wider one."""
        if isinstance(other, int) and self.dtype.kind in ("int", "uint"):
            fits = self.dtype.min <= other <= self.dtype.max
            return (
                self._binary(name, function, other) if fits else self._wide(name, function, other)
            )

        def compared(a: UOp, b: UOp) -> UOp:
            a, b = (lib.cast(x, uint8) if x.dtype is bool_ else x for x in (a, b))
            return function(a, b)

        return self._binary(name, compared, other)

    def _wide(self, name: str, function: Function, other: int) -> Self:
        return self._apply(name, lambda x: function(lib.cast(x, int64), other))

    def __and__(self, other: object) -> Self:
        return self._logic("and", lib.mul, other)

    def __or__(self, other: object) -> Self:
        return self._logic("or", lib.maximum, other)

    def __xor__(self, other: object) -> Self:
        return self._logic("xor", lib.ne, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        self._expect_bools("not", self)
        return self._apply("not", lib.logical_not)

    def _logic(self, name: str, function: Function, other: object) -> Self:
        """function of bools; of integers bit by bit, which no op does."""
        self._expect_bools(name, self)
        if not isinstance(other, bool):
            other = self._tensor(name, other)
            self._expect_bools(name, other)
        return self._binary(name, function, other)

    def _expect_bools(self, name: str, x: Core) -> None:
        if x.dtype is not bool_:
            said = f"{name}: expected bool tensors, got {x.dtype}"
            raise TensorError(f"{said}; there are no operations on bits, * and // 2**k shift")

    def logical_not(self) -> Self:
        """Whether x is 0."""
        return ~self.bool()

    def logical_and(self, other: object) -> Self:
        """Whether neither is 0."""
        return self.bool() & self._tensor("logical_and", other).bool()

    def logical_or(self, other: object) -> Self:
        """Whether one is not 0."""
        return self.bool() | self._tensor("logical_or", other).bool()

    def logical_xor(self, other: object) -> Self:
        """Whether exactly one is not 0."""
        return self.bool() ^ self._tensor("logical_xor", other).bool()

    def bool(self) -> Self:
        """Whether x is not 0."""
        return self if self.dtype is bool_ else self._binary("bool", lib.ne, 0)

    def where(self, condition: object, other: object) -> Self:
        """Self where the condition holds, other elsewhere; all three broadcast."""
        mask = self._tensor("where", condition)
        self._expect_condition(mask)

        def chosen(a: UOp, b: UOp, m: UOp) -> UOp:
            return lib.where(m, a, b)

        return self._wanted(
            "where", lambda o: self._binary("where", chosen, o, also=(mask,)), other
        )

    def _expect_condition(self, mask: Core) -> None:
        if mask.dtype is not bool_:
            raise TensorError(f"where: expected a bool condition, got {mask.dtype}")
