"""Loads and stores of the lanes that a mask names, which touch nothing else in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from week01_uops.dtypes import DType
from week05_06_memory.c_template import filled, words_of
from week05_06_memory.c_vector_types import ELEMENTS, LANES

_TEMPLATES = {
    # 0 in the other lanes.
    "load_if_T": """\
inline T load_if_T(M mask, const void *place) {
#if PREDICATES
    T x;
    uint16_t k;
    __asm__("vpmovd2m %1, %0" : "=k"(k) : "v"(mask));
    __asm__("MOVE %2, %0%{%1%}%{z%}" : "=v"(x) : "Yk"(k), "m"(*(const T_u *)place));
    return x;
#elif MASKS
    T x;
    I k = __builtin_convertvector(mask, I);
    __asm__("BLEND %2, %1, %0" : "=x"(x) : "x"(k), "m"(*(const T_u *)place));
    return x;
#else
    E x[COUNT] = {0};
    for (int k = 0; k < COUNT; k++)
        if (mask[k]) __builtin_memcpy(x + k, (const char *)place + k * sizeof *x, sizeof *x);
    return *(T_u *)x;
#endif
}
""",
    "store_if_T": """\
inline void store_if_T(M mask, void *place, T x) {
#if PREDICATES
    uint16_t k;
    __asm__("vpmovd2m %1, %0" : "=k"(k) : "v"(mask));
    __asm__("MOVE %1, %0%{%2%}" : "+m"(*(T_u *)place) : "v"(x), "Yk"(k));
#elif MASKS
    I k = __builtin_convertvector(mask, I);
    __asm__("BLEND %2, %1, %0" : "+m"(*(T_u *)place) : "x"(k), "x"(x));
#else
    for (int k = 0; k < COUNT; k++) {
        E lane = x[k];
        if (mask[k]) __builtin_memcpy((char *)place + k * sizeof lane, &lane, sizeof lane);
    }
#endif
}
""",
}

_MOVE = {1: "vmovdqu8", 2: "vmovdqu16", 4: "vmovups", 8: "vmovupd"}
_BLEND = {4: "vmaskmovps", 8: "vmaskmovpd"}


def _functions(dtype: DType, lanes: int) -> Iterator[tuple[str, str]]:
    size = dtype.bits // 8
    features = ["__AVX512DQ__"]
    features += ["__AVX512VL__"] * (lanes < 16 or size * lanes < 64) + ["__AVX512BW__"] * (size < 4)
    predicates = 4 <= lanes <= 16 and size * lanes in (16, 32, 64)
    masks = size in _BLEND and size * lanes in (16, 32)
    words = words_of(dtype, lanes) | {
        "PREDICATES": " && ".join(f"defined({f})" for f in features) if predicates else "0",
        "MASKS": "defined(__AVX__)" if masks else "0",
        "MOVE": _MOVE[size],
        "BLEND": _BLEND.get(size, ""),
        "COUNT": str(lanes),
    }
    for name, template in _TEMPLATES.items():
        yield filled(name, words), filled(template, words)


MASKED: Mapping[str, str] = dict(
    p for n in LANES for dtype in ELEMENTS for p in _functions(dtype, n)
)
"""Name → definition."""
