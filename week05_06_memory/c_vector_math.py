"""Functions of float32 as polynomials, of vectors and of scalars alike: within 2 ulp.

EXP2 and LOG2 follow the plan of Cephes (S. Moshier) with coefficients of our own: minimax for the
relative error, each rounded to float32 before the next was fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from week01_uops.dtypes import float32
from week05_06_memory.c_template import filled, words_of
from week05_06_memory.c_vector_types import LANES

_BITS = {
    "bits_T": "inline U bits_T(T x) {\n    return (U)x;\n}\n",
    "from_bits_T": "inline T from_bits_T(U u) {\n    return (T)u;\n}\n",
}

_SCALAR = {
    "from_bits_T": "inline T from_bits_T(U u) {\n    return f32_bits(u);\n}\n",
    "select_T": "inline T select_T(M condition, T a, T b) {\n    return condition ? a : b;\n}\n",
}

_FUNCTIONS = {
    # Two instructions, which give x if it is NaN.
    "clamp_T": """\
inline T clamp_T(float low, T x, float high) {
#if CLAMPS
    __asm__("vminps %1, %2, %0" : "=x"(x) : "x"(x), "x"(high - (T){0}));
    __asm__("vmaxps %1, %2, %0" : "=x"(x) : "x"(x), "x"(low - (T){0}));
    return x;
#else
    x = select_T(x > high, high - (T){0}, x);
    return select_T(x < low, low - (T){0}, x);
#endif
}
""",
    # 2^x = 2^n · 2^f with n the nearest integer, to which a large sum rounds. The power of n is
    # split in two, so that a subnormal result is rounded once, by the last product. The sum ends
    # in n + 254, so that (n + 254) / 2 is the exponent of one half, with its bias.
    "exp2_T": """\
inline T exp2_T(T x) {
#if SCALES
    T f, y;
    __asm__("vreduceps $0, %1, %0" : "=v"(f) : "v"(x));
    T n = x - f;
#else
    x = clamp_T(-151.0f, x, 129.0f);
    T t = x + 0x1.8001fcp23f;
    T f = x - (t - 0x1.8001fcp23f);
#endif
    T p = 0x1.5f082ep-10f + f * 0x1.416b5p-13f;
    p = 0x1.3b2dep-7f + f * p;
    p = 0x1.c6af7cp-5f + f * p;
    p = 0x1.ebfbdcp-3f + f * p;
    p = 0x1.62e43p-1f + f * p;
    p = 1.0f + f * p;
#if SCALES
    __asm__("vscalefps %2, %1, %0" : "=v"(y) : "v"(p), "v"(n));
    return y;
#else
    U half = bits_T(t) >> 1 << 23;
    return p * from_bits_T(half) * from_bits_T((bits_T(t) << 23) - half);
#endif
}
""",
    # log2 x = e + log2(1 + f) with 1 + f in [√½, √2). Of log2 e = 1 + L, the 1 is added last.
    "log2_T": """\
inline T log2_T(T x) {
    M tiny = x < 0x1p-126f;
    I i = (I)(bits_T(select_T(tiny, x * 0x1p23f, x)) - 0x3f3504f3u);
    T f = from_bits_T((U)(i & 0x7fffff) + 0x3f3504f3u) - 1.0f;
    T e = from_bits_T((U)((i >> 23) + 0x4b400000)) - 0x1.8p23f;
    e = select_T(tiny, e - 23.0f, e);
    T p = -0x1.de01dcp-4f + f * 0x1.14733ep-4f;
    p = 0x1.e6c00ap-4f + f * p;
    p = -0x1.fc28cap-4f + f * p;
    p = 0x1.233ba2p-3f + f * p;
    p = -0x1.555c44p-3f + f * p;
    p = 0x1.99a476p-3f + f * p;
    p = -0x1.000006p-2f + f * p;
    p = 0x1.555548p-2f + f * p;
    p = f * f * (f * p - 0.5f);
    T y = (p + f) * 0x1.c551d8p-2f + p + f + e;
    y = select_T(x == __builtin_inff(), x, y);
    T pole = select_T(x == 0.0f, -__builtin_inff() - (T){0}, __builtin_nanf("") - (T){0});
    return select_T(x > 0.0f, y, pole);
}
""",
}

_SCALES = {
    4: "defined(__AVX512DQ__) && defined(__AVX512VL__)",
    8: "defined(__AVX512DQ__) && defined(__AVX512VL__)",
    16: "defined(__AVX512DQ__)",
}
"""Where the machine splits and scales floats itself."""


_CLAMPS = dict.fromkeys((4, 8), "defined(__AVX__)")
"""Where it takes the smaller or larger of two floats."""


def _functions(lanes: int) -> Iterator[tuple[str, str]]:
    machine = {"SCALES": _SCALES.get(lanes, "0"), "CLAMPS": _CLAMPS.get(lanes, "0")}
    words = words_of(float32, lanes) | machine
    for name, template in ((_SCALAR if lanes == 1 else _BITS) | _FUNCTIONS).items():
        yield filled(name, words), filled(template, words)


MATH: Mapping[str, str] = dict(pair for n in (1, *LANES) for pair in _functions(n))
"""Name → definition, for all numbers of lanes."""
