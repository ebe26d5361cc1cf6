"""Vectors of float16 and bfloat16: as float32 to compute with, as their bits in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from week01_uops.dtypes import float32, uint16
from week05_06_memory.c_template import filled, words_of
from week05_06_memory.c_vector_types import LANES, vector_type

_BFLOAT16 = {
    "load_bf16N": """\
inline T load_bf16N(S x) {
    return (T)(__builtin_convertvector(x, U) << 16);
}
""",
    "store_bf16N": """\
inline S store_bf16N(T x) {
    return __builtin_convertvector((U)x >> 16, S);
}
""",
    # To nearest even: add half of the last place that stays, a little less where that one is even.
    "round_bf16N": """\
inline T round_bf16N(T x) {
    U u = (U)x, nan = (U)(x != x);
    u = (nan & (u | 0x400000)) | (~nan & (u + 0x7fff + (u >> 16 & 1)));
    return (T)(u & 0xffff0000);
}
""",
}

_FLOAT16 = {
    # By hand: scaled by 2^112, a subnormal becomes normal and all exponents fit.
    "load_f16N": """\
inline T load_f16N(S x) {
#if CONVERTS
    T y;
    __asm__("vcvtph2ps %1, %0" : "=v"(y) : "v"(x));
    return y;
#else
    U u = __builtin_convertvector(x, U);
    U sign = (u & 0x8000) << 16, rest = (u & 0x7fff) << 13;
    U special = (U)(rest >= 0xf800000), y = (U)((T)rest * 0x1p112f);
    return (T)(sign | (special & (rest | 0x7f800000)) | (~special & y));
#endif
}
""",
    "store_f16N": """\
inline S store_f16N(T x) {
#if CONVERTS
    S y;
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(y) : "v"(x));
    return y;
#else
    U u = (U)x, sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    U y = ((rest + 0xfff + (rest >> 13 & 1)) >> 13) - 0x1c000;
    U low = (U)(rest < 0x38800000), high = (U)(rest >= 0x477ff000), nan = (U)(x != x);
    y = (~low & y) | (low & ((U)((T)rest + 0.5f) - 0x3f000000));
    y = (~high & y) | (high & 0x7c00);
    y = (~nan & y) | (nan & (0x7e00 | (rest >> 13 & 0x3ff)));
    return __builtin_convertvector(sign | y, S);
#endif
}
""",
    "round_f16N": "inline T round_f16N(T x) {\n    return load_f16N(store_f16N(x));\n}\n",
}

_CONVERTS = {8: "defined(__F16C__)", 16: "defined(__AVX512F__)"}
"""Where the machine converts float16 itself."""


def _functions(lanes: int) -> Iterator[tuple[str, str]]:
    words = words_of(float32, lanes)
    words |= {"S": vector_type(uint16, lanes), "CONVERTS": _CONVERTS.get(lanes, "0")}
    for name, template in (_BFLOAT16 | _FLOAT16).items():
        yield (
            name.replace("16N", f"16x{lanes}"),
            filled(template, words).replace("16N", f"16x{lanes}"),
        )


HALVES: Mapping[str, str] = dict(pair for n in LANES for pair in _functions(n))
"""Name → definition, for all numbers of lanes."""
