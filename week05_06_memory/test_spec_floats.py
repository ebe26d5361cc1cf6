"""Arithmetic in long arrays, where vectors do it: special values in every lane, and accuracy."""

import math
import struct

import pytest

NAN, INF = float("nan"), float("inf")
SIZE = 67
"""Not a multiple of any vector's lanes."""

HALVES = struct.unpack("<65536e", bytes(byte for n in range(65536) for byte in (n % 256, n >> 8)))
"""All values of float16."""


def param(slot, *shape, dtype="float32"):
    return f'PARAM : {{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}}}'


def unary(op, values, dtype="float32"):
    return f"x = {param(0, len(values), dtype=dtype)}\ny = {op} x\nreturn y", {0: values}


def around(center, count=40, step=2.0**-23):
    return [center * (1 + k * step) for k in range(-count, count + 1)]


def spread(values, size=SIZE, at=3):
    """The values between ordinary ones, each in another lane."""
    found = [(k % 11 - 5) / 4 for k in range(size)]
    for number, value in enumerate(values):
        found[(at + 7 * number) % size] = value
    return found


SPECIAL = [0.0, -0.0, INF, -INF, NAN, 3.4e38, -3.4e38, 1.2e-38, 1e-40, -1e-45]


# Functions ----------------------------------------------------------------------------------------


def test_exp2_is_accurate(judge):
    """EXP2 of float32 is within 2 units in the last place, over all of its range."""
    judge.runs(*unary("EXP2", [k / 37 - 151 for k in range(10360)]))


def test_exp2_near_integers(judge):
    """EXP2 next to integers and halves, where an argument reduction changes its mind."""
    judge.runs(*unary("EXP2", [x for n in range(-126, 128, 3) for x in around(n + 0.5, 4)]))
    judge.runs(*unary("EXP2", [x for n in range(-126, 128, 3) for x in around(n or 1e-3, 4)]))


def test_exp2_at_the_ends(judge):
    """EXP2 overflows to infinity from 128 on, and goes through the subnormals to 0."""
    ends = [*around(128.0), *around(-126.0), *around(-149.0), *around(-150.0), -1e38, 1e38]
    judge.runs(*unary("EXP2", spread([*SPECIAL, *ends], 521)))


def test_log2_is_accurate(judge):
    """LOG2 of float32 is within 2 units in the last place, from subnormals to the largest."""
    judge.runs(*unary("LOG2", [2.0 ** (k / 41 - 149) for k in range(11357)]))


def test_log2_near_one(judge):
    """LOG2 next to 1, where the result is small, and next to other powers of two."""
    judge.runs(*unary("LOG2", [*around(1.0, 300), *(1 + k / 1024 for k in range(-700, 700))]))
    judge.runs(*unary("LOG2", [x for n in range(-120, 127, 5) for x in around(2.0**n, 5)]))


def test_log2_of_special_values(judge):
    """LOG2 of 0 and −0 is −∞, of negative numbers NaN, of ∞ itself."""
    judge.runs(*unary("LOG2", spread([*SPECIAL, -1.0, -INF, 1.0, 2.0**-149])))


def test_recip_of_special_values(judge):
    """RECIP of zeros is infinite, of infinities 0, of large numbers subnormal or 0."""
    judge.runs(*unary("RECIP", spread([*SPECIAL, 1.7e38, -2.5e38, 3.0])))


@pytest.mark.parametrize("op", ["EXP2", "LOG2", "RECIP"])
def test_float16_functions(judge, op):
    """Of every float16, within one unit in the last place."""
    judge.runs(*unary(op, HALVES, "float16"))


@pytest.mark.parametrize("op", ["EXP2", "LOG2", "RECIP"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_functions_of_other_dtypes(judge, op, dtype):
    """Of float64 within 4 units in the last place, of bfloat16 within one."""
    values = [sign * 2.0 ** (k / 7 - 130) for k in range(1800) for sign in (1, -1)]
    judge.runs(*unary(op, spread(SPECIAL, 70) + values, dtype))


def test_roots_written_by_logarithms(judge):
    """2^(±½ · LOG2 x) is a root and its reciprocal, of 0, ∞ and negative numbers too."""
    for half in (0.5, -0.5):
        judge.runs(
            f"""
            x = {param(0, 1003)}
            half = CONST : {{"value": {half}, "dtype": "float32"}}
            l = LOG2 x
            m = MUL l half
            y = EXP2 m
            return y
            """,
            {0: spread([*SPECIAL, -4.0], 1003)},
        )


# Maxima, choices, comparisons ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_max_keeps_nan(judge, dtype):
    """MAX of a NaN and anything is NaN, whichever side it is on, in every lane."""
    for values in (spread([NAN] * 9), spread([INF, -INF, NAN, -0.0, 0.0], at=40)):
        judge.runs(
            f"""
            x = {param(0, SIZE, dtype=dtype)}
            y = {param(1, SIZE, dtype=dtype)}
            a = MAX x y
            b = MAX y x
            return a b
            """,
            {0: values, 1: spread([0.0, NAN, INF, -INF, -0.0], at=11)},
        )


@pytest.mark.parametrize("place", [0, 1, 15, 16, 33, 64, 66])
def test_max_over_an_axis_keeps_nan(judge, place):
    """One NaN anywhere makes a maximum NaN; −∞ alone stays."""
    row = [-1.0 - k for k in range(SIZE)]
    judge.runs(
        f"""
        x = {param(0, 3, SIZE)}
        t = PERMUTE x : [1, 0]
        r = REDUCE t : {{"op": "MAX", "axes": 1}}
        c = REDUCE x : {{"op": "MAX", "axes": 1}}
        return r c
        """,
        {0: [row, [NAN if k == place else v for k, v in enumerate(row)], [-INF] * SIZE]},
    )


def test_sum_of_special_values(judge):
    """∞ − ∞ is NaN, ∞ and numbers are ∞, in rows and in columns."""
    rows = [spread([INF]), spread([INF, -INF]), spread([NAN]), spread([-INF]), spread([])]
    judge.runs(
        f"""
        x = {param(0, 5, SIZE)}
        t = PERMUTE x : [1, 0]
        r = REDUCE t : {{"op": "ADD", "axes": 1}}
        c = REDUCE x : {{"op": "ADD", "axes": 1}}
        a = REDUCE x : {{"op": "ADD", "axes": 2}}
        return r c a
        """,
        {0: rows},
    )


def test_comparisons(judge):
    """NaN is less than nothing, and not equal to itself; zeros are equal."""
    judge.runs(
        f"""
        x = {param(0, SIZE)}
        y = {param(1, SIZE)}
        a = CMPLT x y
        b = CMPLT y x
        c = CMPNE x y
        d = CMPNE x x
        e = WHERE a x y
        f = WHERE d y x
        g = MUL a c
        h = MAX b d
        return a b c d e f g h
        """,
        {0: spread(SPECIAL), 1: spread(SPECIAL[::-1], at=5)},
    )


def test_choice_in_rows(judge):
    """WHERE with a condition for each column, and for each row."""
    judge.runs(
        f"""
        x = {param(0, 9, SIZE)}
        c = {param(1, SIZE, dtype="bool")}
        r = {param(2, 9, 1, dtype="bool")}
        low = CONST : {{"value": "-inf", "dtype": "float32"}}
        a = WHERE c x low
        b = WHERE r a x
        return a b
        """,
        draws=1,
    )


# Masks --------------------------------------------------------------------------------------------


def softmax(rows, columns):
    """Of each row of x where the mask is true, −∞ elsewhere."""
    return f"""
        x = {param(0, rows, columns)}
        m = {param(1, rows, columns, dtype="bool")}
        low = CONST : {{"value": "-inf", "dtype": "float32"}}
        s = WHERE m x low
        t = PERMUTE s : [1, 0]
        top = REDUCE t : {{"op": "MAX", "axes": 1}}
        high = RESHAPE top : [{rows}, 1]
        n = NEG high
        d = ADD s n
        e = EXP2 d
        et = PERMUTE e : [1, 0]
        sum = REDUCE et : {{"op": "ADD", "axes": 1}}
        column = RESHAPE sum : [{rows}, 1]
        part = RECIP column
        y = MUL e part
        return y
        """


def test_masked_softmax(judge):
    """Masked elements are 0; a row that is masked as a whole is NaN; large numbers stay exact."""
    rows, columns = 6, SIZE
    x = [[(k * 7 + r * 3) % 19 - 9.0 for k in range(columns)] for r in range(rows)]
    x[1] = [v * 1e37 for v in x[1]]
    x[2] = [-3e38] * columns
    x[3][60] = INF
    mask = [[(k + r) % 3 != 0 for k in range(columns)] for r in range(rows)]
    mask[4] = [False] * columns
    mask[5] = [k == 66 for k in range(columns)]
    judge.runs(softmax(rows, columns), {0: x, 1: mask})


# Products that must be rounded, or may not be -----------------------------------------------------


def test_a_shared_product_is_rounded(judge):
    """p − p is 0 for a product p = x · y: with p used twice, no difference is fused with one."""
    judge.runs(
        f"""
        x = {param(0, 1003)}
        y = {param(1, 1003)}
        p = MUL x y
        n = NEG p
        d = ADD p n
        z = {param(2, 1003)}
        e = ADD p z
        return d e
        """,
        draws=2,
        special=False,
    )


def test_rounding_of_halves(judge):
    """Every float16 sum and product is rounded at once."""
    judge.runs(
        f"""
        x = {param(0, 1003, dtype="float16")}
        y = {param(1, 1003, dtype="float16")}
        s = ADD x y
        p = MUL s y
        q = MUL s p
        r = ADD q x
        return s p r
        """
    )


# Integers and casts -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integers_wrap(judge, dtype):
    """Sums, products and negation wrap in every lane; division is defined for every divisor."""
    judge.runs(
        f"""
        x = {param(0, 131, dtype=dtype)}
        y = {param(1, 131, dtype=dtype)}
        a = ADD x y
        b = MUL x y
        c = NEG x
        d = MAX x y
        e = FLOORDIV x y
        f = FLOORMOD x y
        g = CMPLT x y
        h = REDUCE b : {{"op": "ADD", "axes": 1}}
        i = REDUCE x : {{"op": "MUL", "axes": 1}}
        j = REDUCE y : {{"op": "MAX", "axes": 1}}
        return a b c d e f g h i j
        """,
        draws=1,
    )


@pytest.mark.parametrize("to", ["int8", "int32", "int64", "uint16", "uint32", "uint64", "bool"])
def test_floats_to_integers(judge, to):
    """Casts truncate toward zero; out of range anything may come, and nothing traps."""
    inside = [k / 3 for k in range(-300, 300)] if to[0] != "u" else [k / 3 for k in range(600)]
    values = [*inside, *SPECIAL, 1e10, -1e10, 127.9, -128.9, 65535.9, 2.0**31, 2.0**63, 2.0**64]
    judge.runs(f'x = {param(0, len(values))}\ny = CAST x : "{to}"\nreturn y', {0: values})


@pytest.mark.parametrize("source", ["int16", "uint32", "int64", "uint64", "float64"])
@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32"])
def test_casts_round_once(judge, source, to):
    """To a narrower float the exact value is rounded once, ties to even."""
    bits = {"float16": 11, "bfloat16": 8, "float32": 24}[to]
    limit = {"int16": 15, "uint32": 32, "int64": 63, "uint64": 64, "float64": 60}[source]
    starts = [1 << n for n in range(bits, limit)]
    steps = [s >> bits for s in starts]
    edges = [s + k * step for s, step in zip(starts, steps, strict=True) for k in (1, 3)]
    near = [edge + k for edge in edges for k in (-1, 0, 1)]
    values = [min(v, 2**limit - 1) for v in [*near, *range(100)]]
    values += [-v for v in values] if source[0] != "u" else []
    if source == "float64":
        values = [*map(float, values), *(math.ldexp(v, -80) for v in values)]
    text = f'x = {param(0, len(values), dtype=source)}\ny = CAST x : "{to}"\nreturn y'
    judge.runs(text, {0: values})
