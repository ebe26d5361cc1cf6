"""Helper functions of the emitted C, each copied into a translation unit that names it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week02_render.c_types import SHORT, STORAGE_TYPE, VALUE_TYPE


def _function(result: str, name: str, parameters: str, *lines: str) -> str:
    body = "\n".join(f"    {line}" if not line.startswith("#") else line for line in lines)
    return f"static inline {result} {name}({parameters}) {{\n{body}\n}}\n"


def _unsigned(dtype: DType) -> str:
    return f"uint{max(dtype.bits, 32)}_t"


def _floordiv(dtype: DType) -> tuple[str, str]:
    """The function x FLOORDIV y: 0 for y = 0, and the least x over −1 wraps."""
    c, name = VALUE_TYPE[dtype], f"floordiv_{SHORT[dtype]}"
    if dtype.kind == "uint":
        return name, _function(c, name, f"{c} x, {c} y", "return y ? x / y : 0;")
    u = _unsigned(dtype)
    return name, _function(
        c,
        name,
        f"{c} x, {c} y",
        "if (y == 0) return 0;",
        f"if (y == -1) return ({c})(0 - ({u})x);",
        f"return ({c})(x / y - (x % y != 0 && (x < 0) != (y < 0)));",
    )


def _floormod(dtype: DType) -> tuple[str, str]:
    """The function x FLOORMOD y: with the sign of y; x for y = 0."""
    c, name = VALUE_TYPE[dtype], f"floormod_{SHORT[dtype]}"
    if dtype.kind == "uint":
        return name, _function(c, name, f"{c} x, {c} y", "return y ? x % y : x;")
    return name, _function(
        c,
        name,
        f"{c} x, {c} y",
        "if (y == 0) return x;",
        "if (y == -1) return 0;",
        f"{c} r = x % y;",
        f"return ({c})(r != 0 && (r < 0) != (y < 0) ? r + y : r);",
    )


def _maximum(dtype: DType) -> tuple[str, str]:
    """max(x, y); NaN if either is. With a running maximum as y, the chain is one instruction."""
    c, name = VALUE_TYPE[dtype], f"max_{SHORT[dtype]}"
    nan = "x != x ? x : " if dtype.is_float else ""
    return name, _function(c, name, f"{c} x, {c} y", f"return {nan}x > y ? x : y;")


def _truncate(dtype: DType, source: DType) -> tuple[str, str]:
    """Toward zero; 0 where the integer part is outside the dtype (C leaves that undefined)."""
    name = f"{SHORT[dtype]}_from_{SHORT[source]}"
    c, x = VALUE_TYPE[dtype], VALUE_TYPE[source]
    suffix = "f" if x == "float" else ""
    wide = dtypes.int64 if dtype.kind == "uint" and dtype.bits < 64 else dtype
    wide = dtypes.int32 if dtype.bits < 32 else wide
    low = (
        f"x >= -0x1p{wide.bits - 1}{suffix}" if wide.kind == "int" else f"x > -1{suffix and '.0f'}"
    )
    high = f"x < 0x1p{wide.bits - (wide.kind == 'int')}{suffix}"
    inside = f"{VALUE_TYPE[wide]} y = ({VALUE_TYPE[wide]})({low} && {high} ? x : 0);"
    return name, _function(c, name, f"{x} x", inside, f"return ({c})y;")


def _keep(dtype: DType) -> tuple[str, str]:
    """x, behind a wall that no multiplication is fused through."""
    c, name = VALUE_TYPE[dtype], f"keep_{SHORT[dtype]}"
    return name, _function(
        c,
        name,
        f"{c} x",
        "#if defined(__x86_64__)",
        '__asm__("" : "+x"(x));',
        "return x;",
        "#elif defined(__aarch64__)",
        '__asm__("" : "+w"(x));',
        "return x;",
        "#else",
        f"volatile {c} y = x;",
        "return y;",
        "#endif",
    )


_BITS = {
    "bits_f32": _function(
        "uint32_t",
        "bits_f32",
        "float x",
        "uint32_t u;",
        "__builtin_memcpy(&u, &x, 4);",
        "return u;",
    ),
    "f32_bits": _function(
        "float", "f32_bits", "uint32_t u", "float x;", "__builtin_memcpy(&x, &u, 4);", "return x;"
    ),
}

_BFLOAT16 = {
    "bf16_t": "typedef uint16_t bf16_t;\n",
    "load_bf16": _function("float", "load_bf16", "bf16_t x", "return f32_bits((uint32_t)x << 16);"),
    "store_bf16": _function(
        "bf16_t", "store_bf16", "float x", "return (bf16_t)(bits_f32(x) >> 16);"
    ),
    # To nearest even: add half of the last place that stays, a little less where that one is even.
    "round_bf16": _function(
        "float",
        "round_bf16",
        "float x",
        "uint32_t u = bits_f32(x);",
        "u = x != x ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1);",
        "return f32_bits(u & 0xffff0000);",
    ),
    # Toward zero, and the last bit set if that was inexact: rounding once more is then right.
    "odd_f32": _function(
        "float",
        "odd_f32",
        "double x",
        "float y = (float)x;",
        "if ((double)y == x || x != x) return y;",
        "_Bool away = __builtin_fabs((double)y) > __builtin_fabs(x);",
        "return f32_bits((bits_f32(y) - away) | 1);",
    ),
    # Where a double cannot hold all bits, the last 11 are joined into one.
    "odd_u64": _function(
        "double",
        "odd_u64",
        "uint64_t x",
        "if (x >> 53) x = (x & ~2047ull) | (uint64_t)((x & 2047) != 0) << 11;",
        "return (double)x;",
    ),
    "odd_i64": _function(
        "double",
        "odd_i64",
        "int64_t x",
        "return x < 0 ? -odd_u64(0 - (uint64_t)x) : odd_u64((uint64_t)x);",
    ),
}

_FLOAT16 = {
    "f16_t": """\
#ifdef __FLT16_MANT_DIG__
typedef _Float16 f16_t;
#else
typedef uint16_t f16_t;
#endif
""",
    # Without the type: scaled by 2^112, a subnormal becomes normal and all exponents fit.
    "load_f16": """\
static inline float load_f16(f16_t x) {
#ifdef __FLT16_MANT_DIG__
    return (float)x;
#else
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
    if (rest >= 0x7c00) return f32_bits(sign | 0x7f800000 | rest << 13);
    float y = f32_bits(rest << 13) * 0x1p112f;
    return f32_bits(sign | bits_f32(y));
#endif
}
""",
    "store_f16": """\
static inline f16_t store_f16(float x) {
#ifdef __FLT16_MANT_DIG__
    return (f16_t)x;
#else
    uint32_t u = bits_f32(x), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    if (rest > 0x7f800000) return (f16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) return (f16_t)(sign | 0x7c00);
    if (rest < 0x38800000) /* subnormal: the sum with 1/2 rounds to multiples of 2^-24 */
        return (f16_t)(sign | (bits_f32(f32_bits(rest) + 0.5f) - bits_f32(0.5f)));
    return (f16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1)) >> 13) - 0x1c000);
#endif
}
""",
    # gcc 12 leaves both conversions out where it makes vectors of them, with AVX512-FP16.
    "hidden_f16": """\
static inline f16_t hidden_f16(f16_t x) {
#if defined(__AVX512FP16__) && !defined(__clang__)
    __asm__("" : "+x"(x));
#endif
    return x;
}
""",
    "round_f16": _function(
        "float", "round_f16", "float x", "return load_f16(hidden_f16(store_f16(x)));"
    ),
    "round_f16_f64": """\
static inline float round_f16_f64(double x) {
#ifdef __FLT16_MANT_DIG__
    return (float)hidden_f16((f16_t)x);
#else
    return round_f16(odd_f32(x));
#endif
}
""",
}

_CHECKS = {
    "program_error": "char program_error[256];\n",
    "program_error_set": "static _Bool program_error_set;\n",
    # The first report stays, whichever thread makes it.
    "in_bounds": """\
static _Bool in_bounds(int64_t index, int64_t size, const char *what) {
    if (index >= 0 && index < size) return 1;
    if (!__atomic_exchange_n(&program_error_set, 1, __ATOMIC_RELAXED))
        __builtin_snprintf(program_error, sizeof program_error,
                           "%s: index %lld is outside [0, %lld)",
                           what, (long long)index, (long long)size);
    return 0;
}
""",
}


def _alias(dtype: DType) -> tuple[str, str]:
    """An element of storage that the kernel also reaches through a pointer of another type."""
    name = f"alias_{SHORT[dtype]}"
    return name, f"typedef {STORAGE_TYPE[dtype]} {name} __attribute__((may_alias));\n"


_WIDE_FLOATS = (dtypes.float32, dtypes.float64)

PRELUDE: Mapping[str, str] = {
    **_BITS,
    **_BFLOAT16,
    **_FLOAT16,
    **_CHECKS,
    **dict(_alias(dtype) for dtype in dtypes.ALL),
    **dict(_floordiv(dtype) for dtype in dtypes.INTEGERS),
    **dict(_floormod(dtype) for dtype in dtypes.INTEGERS),
    **dict(_maximum(dtype) for dtype in (*dtypes.INTEGERS, *_WIDE_FLOATS)),
    **dict(_truncate(dtype, x) for dtype in dtypes.INTEGERS for x in _WIDE_FLOATS),
    **dict(_keep(dtype) for dtype in _WIDE_FLOATS),
}
"""Name → definition. A definition may name earlier ones."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def helpers(text: str, prelude: Mapping[str, str] = PRELUDE) -> str:
    """The definitions that a text names, and those that they name, in the prelude's order."""
    used: set[str] = set()
    waiting = [text]
    while waiting:
        for name in set(_WORD.findall(waiting.pop())) - used:
            if name in prelude:
                used.add(name)
                waiting.append(prelude[name])
    return "\n".join(definition for name, definition in prelude.items() if name in used)
