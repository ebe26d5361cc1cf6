"""Helper functions on vectors, each copied into a translation unit that names it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week02_render.c_types import SHORT, VALUE_TYPE
from week05_06_memory.c_template import filled, words_of
from week05_06_memory.c_vector_halves import HALVES
from week05_06_memory.c_vector_masked import MASKED
from week05_06_memory.c_vector_math import MATH
from week05_06_memory.c_vector_squares import QUAD
from week05_06_memory.c_vector_types import ELEMENTS, LANES, SQUARES, vector_type

_TYPES = {
    "T": "typedef E T __attribute__((vector_size(BYTES)));\n",
    "T_u": "typedef E T_u __attribute__((vector_size(BYTES), aligned(SIZE), may_alias));\n",
}

_VECTOR = {
    "select_T": """\
inline T select_T(M condition, T a, T b) {
    I m = __builtin_convertvector(condition, I);
    return (T)((m & (I)a) | (~m & (I)b));
}
""",
    "low_T": """\
inline H low_T(T x) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(x, x, LOW);
#else
    H y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
#endif
}
""",
    "high_T": """\
inline H high_T(T x) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(x, x, HIGH);
#else
    H y;
    __builtin_memcpy(&y, (char *)&x + sizeof y, sizeof y);
    return y;
#endif
}
""",
    "stream_T": """\
inline void stream_T(void *place, T x) {
#if STREAMS
    __asm__("vmovntps %1, %0" : "=m"(*(T_u *)place) : "v"(x));
#else
    *(T_u *)place = x;
#endif
}
""",
}

_SWAP = """\
inline void swap_T(T *a, T *b) {
#if defined(__clang__)
    T c = __builtin_shufflevector(*a, *b, LOW);
    *b = __builtin_shufflevector(*a, *b, HIGH);
#else
    T c = __builtin_shuffle(*a, *b, (I){LOW});
    *b = __builtin_shuffle(*a, *b, (I){HIGH});
#endif
    *a = c;
}
"""

# What was written past the caches is not in order with other stores until then.
_FENCE = """\
#if defined(__SSE2__)
#define stream_fence() __builtin_ia32_sfence()
#else
#define stream_fence() ((void)0)
#endif
"""

_FETCH = "#define fetch_ahead(place, bytes) __builtin_prefetch((const char *)(place) + (bytes))\n"

_FLOAT = {
    "all_T": "inline T all_T(E x) {\n    return x - (T){};\n}\n",
    # One instruction, which gives y if either is NaN; gcc takes the loop apart where it stands
    # between loads that have other users.
    "larger_T": """\
inline T larger_T(T x, T y) {
#if MAXES
    __asm__("VMAX %1, %2, %0" : "=v"(y) : "v"(y), "v"(x));
#else
    for (int k = 0; k < COUNT; k++) y[k] = x[k] > y[k] ? x[k] : y[k];
#endif
    return y;
}
""",
    "max_T": """\
inline T max_T(T x, T y) {
    y = larger_T(x, y);
    I m = x != x;
    return (T)((m & (I)x) | (~m & (I)y));
}
""",
    "abs_T": "inline T abs_T(T x) {\n    return (T)((I)x & ~(I)(-(T){0}));\n}\n",
    "sqrt_T": """\
inline T sqrt_T(T x) {
    for (int k = 0; k < COUNT; k++) x[k] = SQRT(x[k] + 0);
    return x;
}
""",
    "keep_T": """\
inline T keep_T(T x) {
    HOLD(x);
    return x;
}
""",
    "sum_T": "inline E sum_T(T x) {\n    return sum_H(low_T(x) + high_T(x));\n}\n",
    "product_T": "inline E product_T(T x) {\n    return product_H(low_T(x) * high_T(x));\n}\n",
}

_SCALAR = {"larger_T": "inline T larger_T(T x, T y) {\n    return x > y ? x : y;\n}\n"}

_INTEGER = {
    "all_T": "inline T all_T(E x) {\n    return x + (T){};\n}\n",
    "max_T": """\
inline T max_T(T x, T y) {
    I m = x > y;
    return (T)((m & (I)x) | (~m & (I)y));
}
""",
    "sum_T": """\
inline E sum_T(T x) {
    return sum_H((H)((V)low_T(x) + (V)high_T(x)));
}
""",
    "product_T": """\
inline E product_T(T x) {
    return product_H((H)((V)low_T(x) * (V)high_T(x)));
}
""",
}

_ACROSS = {
    "largest_T": "inline E largest_T(T x) {\n    return largest_H(max_H(low_T(x), high_T(x)));\n}\n"
}

_PICK = """\
#if defined(__clang__)
#define pick_T(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define pick_T(a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#endif
"""

# All four lanes at once: vectors of two are no register's size, and pass through memory.
_FOUR = {
    "largest_T": """\
inline E largest_T(T x) {
    x = max_T(x, pick_T(x, x, 2, 3, 0, 1));
    return max_T(x, pick_T(x, x, 1, 0, 3, 2))[0];
}
""",
}

_FOUR_FLOATS = {
    f"{name}_T": f"""\
inline E {name}_T(T x) {{
    x = x {op} pick_T(x, x, 2, 3, 0, 1);
    return x[0] {op} x[1];
}}
"""
    for name, op in (("sum", "+"), ("product", "*"))
}

_PAIR = {
    "sum_T": "inline E sum_T(T x) {\n    return (E)((W)x[0] + (W)x[1]);\n}\n",
    "product_T": "inline E product_T(T x) {\n    return (E)((W)x[0] * (W)x[1]);\n}\n",
    "largest_T": "inline E largest_T(T x) {\n    return max_E(x[0], x[1]);\n}\n",
}


def _functions(dtype: DType, lanes: int) -> Mapping[str, str]:
    of_kind = _FLOAT if dtype.is_float else _INTEGER
    if lanes == 4:
        totals = _FOUR_FLOATS if dtype.is_float else {}
        found = {"pick_T": _PICK} | _VECTOR | of_kind | _FOUR | totals
    else:
        found = _VECTOR | of_kind | (_ACROSS if lanes > 2 else _PAIR)
    if dtype.is_float:
        found["top_T"] = found["largest_T"].replace("largest", "top").replace("max", "larger")
    return found


def _transposition(dtype: DType, lanes: int) -> Iterator[tuple[str, str]]:
    """n vectors of n lanes, transposed: squares of w × w change places, for w = n/2 … 1."""
    words = words_of(dtype, lanes)
    widths = [1 << k for k in reversed(range(lanes.bit_length() - 1))]
    for w in widths:
        low = [lanes + k - w if k & w else k for k in range(lanes)]
        words |= {"LOW": _listed(low), "HIGH": _listed([k + w for k in low])}
        name = filled(f"swap{w}_T", words)
        yield name, filled(_SWAP, words).replace("swap_", f"swap{w}_")
    pairs = [(w, k) for w in widths for k in range(lanes) if not k & w]
    lines = [f"    swap{w}_T(x + {k}, x + {k + w});\n" for w, k in pairs]
    whole = f"inline void transpose_T(T *x) {{\n{''.join(lines)}}}\n"
    yield filled("transpose_T", words), filled(whole, words)


_SCATTER = """\
inline void scatter4_T(E *place, int64_t step, T a, T b, T c, T d) {
    T low = pick_T(a, b, PAIRS_LOW), high = pick_T(a, b, PAIRS_HIGH);
    T next = pick_T(c, d, PAIRS_LOW), last = pick_T(c, d, PAIRS_HIGH);
    T x[4] = {
        pick_T(low, next, HALVES_LOW), pick_T(low, next, HALVES_HIGH),
        pick_T(high, last, HALVES_LOW), pick_T(high, last, HALVES_HIGH),
    };
STORES}
"""

_PIECE = """\
#if defined(__clang__) || __GNUC__ >= 12
#define piece_T(x, k) __builtin_shufflevector(x, x, k, k + 1, k + 2, k + 3)
#else
#define piece_T(x, k) ((Q){(x)[k], (x)[k + 1], (x)[k + 2], (x)[k + 3]})
#endif
"""


def _scatter(dtype: DType, lanes: int) -> Iterator[tuple[str, str]]:
    """Four vectors, the k-th elements of which are neighbours in memory."""
    words = words_of(dtype, lanes)
    words["Q"] = vector_type(dtype, QUAD)
    yield filled("pick_T", words), filled(_PICK, words)
    yield filled("piece_T", words), filled(_PIECE, words)
    groups = range(0, lanes, QUAD)
    firsts = [[g + half for g in groups] for half in (0, 2)]
    pairs = [[(k, k + lanes, k + 1, k + 1 + lanes) for k in first] for first in firsts]
    halves = [[(k, k + 1, k + lanes, k + 1 + lanes) for k in first] for first in firsts]
    names = ("PAIRS_LOW", "PAIRS_HIGH", "HALVES_LOW", "HALVES_HIGH")
    picks = {n: _listed(itertools.chain(*p)) for n, p in zip(names, pairs + halves, strict=True)}
    stores = [
        f"    *(Q_u *)(place + {g + k} * step) = piece_T(x[{k}], {g});\n"
        for g in groups
        for k in range(QUAD)
    ]
    text = _SCATTER.replace("STORES", "".join(stores).replace("Q_u", f"{words['Q']}_u"))
    for name, numbers in picks.items():
        text = text.replace(name, numbers)
    yield filled("scatter4_T", words), filled(text, words)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _of_type(dtype: DType, lanes: int, templates: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    size = dtype.bits // 8
    words = words_of(dtype, lanes) | {
        "BYTES": str(size * lanes),
        "SIZE": str(size),
        "COUNT": str(lanes),
        "SQRT": "__builtin_sqrt" + "f" * (dtype.bits == 32),
        "LOW": _listed(range(lanes // 2)),
        "HIGH": _listed(range(lanes // 2, lanes)),
        "HOLD": f"hold{size * lanes}",
        "STREAMS": _STREAMS.get(size * lanes, "0"),
        "MAXES": _MAXES.get(size * lanes, "0"),
        "VMAX": "vmaxps" if dtype.bits == 32 else "vmaxpd",
        "W": VALUE_TYPE[dtype] if dtype.is_float else f"uint{max(dtype.bits, 32)}_t",
    }
    for name, template in templates.items():
        yield filled(name, words), filled(template, words)


def _numbers(lanes: int) -> tuple[str, str]:
    """The numbers of the lanes."""
    name = f"lane_i32x{lanes}"
    return name, f"#define {name} ((i32x{lanes}){{{_listed(range(lanes))}}})\n"


def _truncate(dtype: DType, source: DType, lanes: int) -> tuple[str, str]:
    """Toward zero; 0 where the integer part is outside the dtype, as for a scalar."""
    wide = dtypes.int64 if dtype.kind == "uint" and dtype.bits < 64 else dtype
    wide = dtypes.int32 if dtype.bits < 32 else wide
    suffix = "" if source is dtypes.float64 else "f"
    low = f">= -0x1p{wide.bits - 1}" if wide.kind == "int" else "> -1.0"
    words = words_of(source, lanes) | {
        "LOW": f"{low}{suffix}",
        "HIGH": f"0x1p{wide.bits - (wide.kind == 'int')}{suffix}",
        "WIDE": vector_type(wide, lanes),
        "TO": vector_type(dtype, lanes),
    }
    name = f"{SHORT[dtype]}_from_{vector_type(source, lanes)}"
    template = (
        f"inline TO {name}(T x) {{\n"
        + """\
    I inside = (x LOW) & (x < HIGH);
    WIDE y = __builtin_convertvector((T)(inside & (I)x), WIDE);
    return __builtin_convertvector(y, TO);
}
"""
    )
    return name, filled(template, words)


def _register(size: int, machine: str) -> Iterator[tuple[str, str]]:
    """How a vector is kept in a register, where the machine has one that is wide enough."""
    condition = f"#if defined({machine})" if machine else "#if 0"
    arm = '#elif defined(__aarch64__)\n#define NAME(x) __asm__("" : "+w"(x))\n' * (size == 16)
    for name, otherwise in ((f"pin{size}", "((void)0)"), (f"hold{size}", '__asm__("" : "+m"(x))')):
        yield (
            name,
            (
                f'{condition}\n#define {name}(x) __asm__("" : "+v"(x))\n{arm.replace("NAME", name)}'
                f"#else\n#define {name}(x) {otherwise}\n#endif\n"
            ),
        )


_STREAMS = {32: "defined(__AVX__)", 64: "defined(__AVX512F__)"}
"""Bytes of the vectors that a machine can write past the caches."""

_MAXES = {16: "defined(__AVX__)", **_STREAMS}
"""Bytes of the vectors of which a machine has the larger elements in one instruction."""

_REGISTERS = {8: "", 16: "__SSE2__", 32: "__AVX__", 64: "__AVX512F__", 128: "", 256: "", 512: ""}

VECTOR_PRELUDE: Mapping[str, str] = {
    **dict(pair for size, machine in _REGISTERS.items() for pair in _register(size, machine)),
    **dict(p for d in (dtypes.float32, dtypes.float64) for p in _of_type(d, 1, _SCALAR)),
    **dict(p for n in LANES for dtype in ELEMENTS for p in _of_type(dtype, n, _TYPES)),
    **dict(
        p for n in LANES for dtype in ELEMENTS for p in _of_type(dtype, n, _functions(dtype, n))
    ),
    **dict(p for n in SQUARES for dtype in ELEMENTS for p in _transposition(dtype, n)),
    **dict(p for n in (8, 16) for p in _scatter(dtypes.float32, n)),
    **dict(_numbers(n) for n in LANES),
    **dict(
        _truncate(dtype, source, n)
        for n in LANES
        for dtype in dtypes.INTEGERS
        for source in (dtypes.float32, dtypes.float64)
    ),
    **MASKED,
    **HALVES,
    **MATH,
    "stream_fence": _FENCE,
    "fetch_ahead": _FETCH,
}
"""Name → definition. A definition may name earlier ones."""
