"""Templates of helper functions: C text in which words in capitals stand for types.

Of vectors f32x16, `T` is the type itself, also at the end of a name; `E` is its element, `I` and
`U` are vectors of signed and unsigned integers of the same size, `M` is a mask (i32x16), and `H`
and `V` are `T` and `U` with half the lanes. Of one lane, `T` is float, and `exp2_T` exp2_f32.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from week01_uops.dtypes import DType
from week02_render.c_types import SHORT, VALUE_TYPE
from week05_06_memory.c_vector_types import vector_type

INLINE = "static inline __attribute__((always_inline))"
"""Vectors are passed in registers only where there is no call."""

_WORD = re.compile(r"((?<![A-Za-z0-9_])(?:[A-Z]+|inline)|_[A-Z]+)(?![A-Za-z0-9])")


@functools.cache
def _parts(template: str) -> list[str]:
    return _WORD.split(template)


def filled(template: str, words: Mapping[str, str]) -> str:
    """The template with its words replaced."""
    return "".join([words.get(part, part) for part in _parts(template)])


def words_of(dtype: DType, lanes: int) -> dict[str, str]:
    """What the words stand for."""
    words = {"E": VALUE_TYPE[dtype], "inline": INLINE, "_E": f"_{SHORT[dtype]}"}
    if lanes == 1:
        signed, unsigned = f"int{dtype.bits}_t", f"uint{dtype.bits}_t"
        names = {"T": VALUE_TYPE[dtype], "_T": f"_{SHORT[dtype]}", "I": signed, "U": unsigned}
        return words | names | {"M": "int"}
    kinds = {
        "T": vector_type(dtype, lanes),
        "I": f"i{dtype.bits}x{lanes}",
        "U": f"u{dtype.bits}x{lanes}",
        "M": f"i32x{lanes}",
        "H": vector_type(dtype, lanes // 2),
        "V": f"u{dtype.bits}x{lanes // 2}",
    }
    return words | kinds | {f"_{name}": f"_{kind}" for name, kind in kinds.items()}
