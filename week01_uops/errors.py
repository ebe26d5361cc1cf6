"""What can be wrong with a program, as numbered errors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CODES: Mapping[str, str] = MappingProxyType(
    {
        "E101": "the header is missing",
        "E102": "unsupported version",
        "E103": "the text is not UTF-8 without a byte-order mark",
        "E104": "a line is not a statement",
        "E105": "JSON does not parse",
        "E106": "return is malformed or names nothing",
        "E107": "a statement after return",
        "E201": "undefined name",
        "E202": "name defined twice",
        "E203": "no return",
        "E301": "unknown op",
        "E302": "an op of a later week",
        "E303": "wrong number of sources",
        "E304": "an argument is missing",
        "E305": "an argument where none is taken",
        "E306": "an argument of the wrong form",
        "E307": "a key is missing",
        "E308": "unknown key",
        "E309": "repeated key",
        "E310": "unknown dtype",
        "E311": "an argument outside its domain",
        "E312": "a constant outside its dtype",
        "E401": "dtypes differ",
        "E402": "dtype not allowed",
        "E403": "shapes do not broadcast",
        "E404": "numbers of elements differ",
        "E405": "axis out of range",
        "E406": "not as many entries as axes",
        "E407": "arguments of a CALL do not match its body",
        "E408": "two different PARAMs of one slot",
        "E409": "a value, a place, an effect or a RANGE was expected",
        "E410": "a bound outside its axis",
        "E411": "an index of the wrong dtype or shape",
        "E412": "an axis that cannot be expanded",
        "E413": "an output is not a value",
        "E414": "storage that may not be written",
        "E415": "a RANGE is left open or closed twice",
        "E416": "no derivative",
        "E501": "too many nodes",
        "E502": "rank too high",
        "E503": "too many elements",
        "E504": "not enough memory",
    }
)


class ProgramError(Exception):
    """A fault of the program being read, built or compiled.

    Attributes:
        code: a stable number of `CODES`.
        nodes: the few UOps around the fault, for the printer.
        also: further faults that were found along with this one.
    """

    also: tuple[ProgramError, ...] = ()

    def __init__(self, code: str, message: str, nodes: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.nodes = nodes

    def __str__(self) -> str:
        return f"{self.code} {self.args[0]}"


class CompilerError(Exception):
    """A fault of the compiler itself: a pass that broke a rule of its dialect."""
