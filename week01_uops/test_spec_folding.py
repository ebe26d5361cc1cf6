"""Constant folding: an op on constants is the constant that the dtype's arithmetic gives."""

import json

SIGNED = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def const(name, value, dtype):
    return f"{name} = CONST : " + json.dumps({"value": value, "dtype": dtype})


def folds(judge, op, table, result=None):
    """One program with an output for each row of each dtype: op(sources…) is the last value."""
    left, right, outputs = [], [], []
    for dtype, rows in table.items():
        for *values, answer in rows:
            number = len(outputs)
            names = [f"{letter}{number}" for letter in "abc"[: len(values)]]
            left += [const(name, value, dtype) for name, value in zip(names, values, strict=True)]
            left.append(f"r{number} = {op} {' '.join(names)}")
            right.append(const(f"r{number}", answer, result or dtype))
            outputs.append(f"r{number}")
    end = f"return {' '.join(outputs)}"
    judge.simplifies("\n".join([*left, end]), to="\n".join([*right, end]))


def casts(judge, rows):
    """One program with an output for each (value, from, to, result)."""
    left, right = [], []
    for number, (value, source, target, answer) in enumerate(rows):
        left.append(const(f"a{number}", value, source))
        left.append(f'r{number} = CAST a{number} : "{target}"')
        right.append(const(f"r{number}", answer, target))
    end = "return " + " ".join(f"r{number}" for number in range(len(rows)))
    judge.simplifies("\n".join([*left, end]), to="\n".join([*right, end]))


def test_int8_wrap(judge):
    """In int8, 100 + 100 is −56."""
    folds(judge, "ADD", {"int8": [(100, 100, -56)]})


def test_signed_add(judge):
    """ADD of signed integers wraps modulo 2^n."""
    table = {}
    for dtype, bits in SIGNED.items():
        top = 2 ** (bits - 1) - 1
        table[dtype] = [(2, 3, 5), (top, 1, -top - 1), (-top - 1, -1, top), (top, top, -2)]
    folds(judge, "ADD", table)


def test_unsigned_add(judge):
    """ADD of unsigned integers wraps modulo 2^n."""
    tops = {dtype: 2**bits - 1 for dtype, bits in UNSIGNED.items()}
    folds(judge, "ADD", {d: [(2, 3, 5), (t, 1, 0), (t, t, t - 1)] for d, t in tops.items()})


def test_signed_mul(judge):
    """MUL of signed integers wraps modulo 2^n, exactly."""
    table = {}
    for dtype, bits in SIGNED.items():
        top, least = 2 ** (bits - 1) - 1, -(2 ** (bits - 1))
        table[dtype] = [(-3, 5, -15), (top, top, 1), (least, -1, least), (top, 2, -2)]
    folds(judge, "MUL", table)


def test_unsigned_mul(judge):
    """MUL of unsigned integers wraps modulo 2^n, exactly."""
    tops = {dtype: 2**bits - 1 for dtype, bits in UNSIGNED.items()}
    folds(judge, "MUL", {d: [(3, 5, 15), (t, t, 1), (t, 2, t - 1)] for d, t in tops.items()})


def test_neg(judge):
    """NEG wraps: of the least signed integer, and of every unsigned one."""
    table = {}
    for dtype, bits in SIGNED.items():
        least = -(2 ** (bits - 1))
        table[dtype] = [(5, -5), (-5, 5), (0, 0), (least, least)]
    for dtype, bits in UNSIGNED.items():
        table[dtype] = [(5, 2**bits - 5), (0, 0), (2**bits - 1, 1)]
    folds(judge, "NEG", table)


def test_floordiv(judge):
    """FLOORDIV rounds toward minus infinity."""
    rows = [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (-6, 2, -3), (6, -3, -2), (-1, 5, -1)]
    folds(judge, "FLOORDIV", dict.fromkeys(SIGNED, rows))


def test_floormod(judge):
    """FLOORMOD has the sign of the divisor."""
    rows = [(7, 2, 1), (-7, 2, 1), (7, -2, -1), (-7, -2, -1), (-6, 2, 0), (-1, 5, 4), (1, -5, -4)]
    folds(judge, "FLOORMOD", dict.fromkeys(SIGNED, rows))


def test_division_by_zero(judge):
    """x FLOORDIV 0 is 0, and x FLOORMOD 0 is x."""
    dtypes = [*SIGNED, *UNSIGNED]
    folds(judge, "FLOORDIV", {key: [(5, 0, 0), (0, 0, 0), (127, 0, 0)] for key in dtypes})
    folds(judge, "FLOORMOD", {key: [(5, 0, 5), (0, 0, 0), (127, 0, 127)] for key in dtypes})
    folds(judge, "FLOORDIV", {key: [(-5, 0, 0)] for key in SIGNED})
    folds(judge, "FLOORMOD", {key: [(-5, 0, -5)] for key in SIGNED})


def test_least_divided_by_minus_one(judge):
    """The least integer FLOORDIV −1 wraps to itself, and leaves no remainder."""
    least = {dtype: -(2 ** (bits - 1)) for dtype, bits in SIGNED.items()}
    folds(judge, "FLOORDIV", {dtype: [(x, -1, x)] for dtype, x in least.items()})
    folds(judge, "FLOORMOD", {dtype: [(x, -1, 0)] for dtype, x in least.items()})


def test_unsigned_division(judge):
    """Unsigned FLOORDIV and FLOORMOD see no sign."""
    tops = {dtype: 2**bits - 1 for dtype, bits in UNSIGNED.items()}
    rows = {d: [(t, 2, t // 2), (t, t, 1), (3, t, 0)] for d, t in tops.items()}
    folds(judge, "FLOORDIV", rows)
    folds(judge, "FLOORMOD", {d: [(t, 2, 1), (t, 10, t % 10), (3, t, 3)] for d, t in tops.items()})


def test_large_quotients(judge):
    """Quotients of 64-bit integers are exact, not rounded through a float."""
    top = 2**63 - 1
    rows = [(top, 3, top // 3), (-top, 3, -top // 3), (top, 1, top), (-top - 1, 7, (-top - 1) // 7)]
    folds(judge, "FLOORDIV", {"int64": rows})
    folds(judge, "FLOORMOD", {"int64": [(top, 1000, 807), (-top - 1, 1000, 192)]})


def test_max_of_integers(judge):
    """MAX of integers sees the sign, or sees none."""
    folds(judge, "MAX", {"int8": [(-1, 1, 1), (-128, 127, 127), (-5, -6, -5)]})
    folds(judge, "MAX", {"uint64": [(2**64 - 1, 1, 2**64 - 1), (2**63, 2**63 - 1, 2**63)]})


def test_bool(judge):
    """On bools MUL is and, MAX is or, CMPNE is exclusive or."""
    every = [(False, False), (False, True), (True, False), (True, True)]
    folds(judge, "MUL", {"bool": [(a, b, a and b) for a, b in every]})
    folds(judge, "MAX", {"bool": [(a, b, a or b) for a, b in every]})
    folds(judge, "CMPNE", {"bool": [(a, b, a != b) for a, b in every]})


def test_comparisons_of_integers(judge):
    """CMPLT and CMPNE of integers give bools."""
    rows = [(-1, 0, True), (0, -1, False), (3, 3, False), (-128, 127, True)]
    folds(judge, "CMPLT", {"int8": rows}, "bool")
    folds(judge, "CMPLT", {"uint64": [(2**63, 1, False), (1, 2**64 - 1, True)]}, "bool")
    rows = [(2**53, 2**53 + 1, True), (5, 5, False)]
    folds(judge, "CMPNE", {"int64": rows}, "bool")


def test_comparisons_of_floats(judge):
    """CMPLT with NaN is false, CMPNE with NaN true, and −0 equals 0."""
    rows = [(1.0, 2.0, True), (2.0, 2.0, False), ("nan", 1.0, False), (1.0, "nan", False)]
    rows += [("-inf", "inf", True), (-0.0, 0.0, False), ("nan", "nan", False)]
    folds(judge, "CMPLT", {"float32": rows}, "bool")
    rows = [(1.0, 2.0, True), (2.0, 2.0, False), ("nan", 1.0, True), ("nan", "nan", True)]
    rows += [("inf", "inf", False), (-0.0, 0.0, False)]
    folds(judge, "CMPNE", {"float32": rows}, "bool")


def test_float32_rounds(judge):
    """float32 constants are rounded to float32 after each op."""
    rows = [(16777216.0, 1.0, 16777216.0), (16777216.0, 3.0, 16777220.0), (1.5, 2.25, 3.75)]
    rows += [(3e38, 3e38, "inf"), ("inf", "-inf", "nan"), ("nan", 1.0, "nan")]
    folds(judge, "ADD", {"float32": rows})
    rows = [(16777215.0, 16777215.0, 281474943156224.0), (1e30, 1e30, "inf"), ("inf", 0.0, "nan")]
    folds(judge, "MUL", {"float32": [*rows, (-3.0, 0.5, -1.5), (0.1, 10.0, 1.0)]})


def test_narrow_floats_round(judge):
    """float16 and bfloat16 constants are rounded to nearest even in their own dtype."""
    rows = [(2048.0, 1.0, 2048.0), (2048.0, 3.0, 2052.0), (65504.0, 16.0, "inf")]
    folds(judge, "ADD", {"float16": [*rows, (65504.0, 15.0, 65504.0)]})
    folds(judge, "MUL", {"float16": [(256.0, 256.0, "inf"), (3.0, 0.25, 0.75)]})
    folds(judge, "ADD", {"bfloat16": [(256.0, 1.0, 256.0), (256.0, 3.0, 260.0)]})


def test_float64_is_exact(judge):
    """float64 constants keep all their bits."""
    rows = [(9007199254740992.0, 1.0, 9007199254740992.0), (0.1, 0.2, 0.1 + 0.2)]
    folds(judge, "ADD", {"float64": [*rows, (1e308, 1e308, "inf")]})


def test_max_of_floats(judge):
    """MAX propagates NaN, from either side."""
    rows = [("nan", 1.0, "nan"), (1.0, "nan", "nan"), ("-inf", 3.0, 3.0), ("inf", 3.0, "inf")]
    folds(judge, "MAX", {"float32": [*rows, (-2.0, -3.0, -2.0)]})


def test_recip(judge):
    """RECIP of a zero is an infinity, of an infinity 0."""
    judge.accepts(
        """
        a = CONST : {"value": 4, "dtype": "float32"}
        b = CONST : {"value": 3, "dtype": "float64"}
        c = CONST : {"value": "inf", "dtype": "float32"}
        d = CONST : {"value": "nan", "dtype": "float32"}
        e = CONST : {"value": 3, "dtype": "float16"}
        u = RECIP a
        v = RECIP b
        w = RECIP c
        x = RECIP d
        y = RECIP e
        return u v w x y
        """
    )


def test_exp2_and_log2(judge):
    """EXP2 and LOG2 of constants, folded or not, keep their meaning."""
    judge.accepts(
        """
        a = CONST : {"value": 0.5, "dtype": "float32"}
        b = CONST : {"value": 1000, "dtype": "float32"}
        c = CONST : {"value": -1, "dtype": "float32"}
        d = CONST : {"value": 0, "dtype": "float32"}
        e = CONST : {"value": "-inf", "dtype": "float64"}
        f = CONST : {"value": 10.5, "dtype": "bfloat16"}
        s = EXP2 a
        t = EXP2 b
        u = LOG2 c
        v = LOG2 d
        w = EXP2 e
        x = LOG2 a
        y = EXP2 f
        return s t u v w x y
        """
    )


def test_where(judge):
    """WHERE with constant sources is the side that its condition names."""
    judge.simplifies(
        """
        t = CONST : {"value": true, "dtype": "bool"}
        f = CONST : {"value": false, "dtype": "bool"}
        a = CONST : {"value": 1, "dtype": "int8"}
        b = CONST : {"value": 2, "dtype": "int8"}
        x = WHERE t a b
        y = WHERE f a b
        return x y
        """,
        to="""
        a = CONST : {"value": 1, "dtype": "int8"}
        b = CONST : {"value": 2, "dtype": "int8"}
        return a b
        """,
    )


def test_cast_between_integers(judge):
    """CAST of an integer to an integer wraps."""
    casts(
        judge,
        [
            (300, "int32", "int8", 44),
            (200, "int32", "int8", -56),
            (-1, "int8", "uint8", 255),
            (-1, "int8", "uint64", 2**64 - 1),
            (255, "uint8", "int8", -1),
            (2**64 - 1, "uint64", "int64", -1),
            (-129, "int16", "int8", 127),
        ],
    )


def test_cast_to_bool(judge):
    """CAST to bool is x ≠ 0, of a fraction and NaN too; from bool it is 0 or 1."""
    casts(
        judge,
        [
            (0, "int32", "bool", False),
            (256, "int32", "bool", True),
            (0.25, "float32", "bool", True),
            (0.0, "float32", "bool", False),
            ("nan", "float32", "bool", True),
            (True, "bool", "int8", 1),
            (True, "bool", "float32", 1.0),
            (False, "bool", "uint64", 0),
        ],
    )


def test_cast_float_to_integer(judge):
    """CAST of a float to an integer truncates toward zero."""
    casts(
        judge,
        [
            (2.75, "float32", "int32", 2),
            (-2.75, "float32", "int32", -2),
            (-0.5, "float32", "int8", 0),
            (255.5, "float32", "uint8", 255),
            (-0.75, "float64", "uint8", 0),
            (9007199254740993.0, "float64", "int64", 9007199254740992),
        ],
    )


def test_cast_integer_to_float(judge):
    """CAST of an integer to a float rounds the exact value once, to nearest even."""
    casts(
        judge,
        [
            (16777217, "int32", "float32", 16777216.0),
            (16777219, "int32", "float32", 16777220.0),
            (2**62 + 2**38 + 1, "int64", "float32", float(2**62 + 2**39)),
            (2**53 + 1, "int64", "float64", float(2**53)),
            (2**64 - 1, "uint64", "float64", float(2**64)),
            (2049, "int32", "float16", 2048.0),
            (65520, "int32", "float16", "inf"),
            (257, "int32", "bfloat16", 256.0),
        ],
    )


def test_cast_between_floats(judge):
    """CAST of a float to a float rounds once, to nearest even."""
    casts(
        judge,
        [
            (0.1, "float64", "float32", 0.10000000149011612),
            (65519.0, "float32", "float16", 65504.0),
            (65520.0, "float32", "float16", "inf"),
            (1e-8, "float32", "float16", 0.0),
            (2.0**-24, "float32", "float16", 2.0**-24),
            (3.0 * 2.0**-25, "float32", "float16", 2.0**-23),
            (257.0, "float32", "bfloat16", 256.0),
            ("-inf", "float64", "float32", "-inf"),
            ("nan", "float64", "float16", "nan"),
        ],
    )


def test_nested(judge):
    """A whole expression of constants becomes one constant."""
    judge.simplifies(
        """
        a = CONST : {"value": 7, "dtype": "int32"}
        b = CONST : {"value": -4, "dtype": "int32"}
        c = MUL a b
        d = ADD c a
        e = FLOORDIV d b
        f = FLOORMOD d b
        g = CMPLT e f
        h = WHERE g e f
        i = CAST h : "uint8"
        return i
        """,
        to='i = CONST : {"value": 255, "dtype": "uint8"}\nreturn i',
    )


def test_constants_behind_a_variable(judge):
    """(x + 3) + 4 is x + 7 in integers, and x·3·5 is x·15, modulo 2^n."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        three = CONST : {"value": 3, "dtype": "int8"}
        hundred = CONST : {"value": 100, "dtype": "int8"}
        y = ADD x hundred
        z = ADD y hundred
        v = MUL x three
        w = MUL hundred v
        return z w
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        a = CONST : {"value": -56, "dtype": "int8"}
        z = ADD x a
        b = CONST : {"value": 44, "dtype": "int8"}
        w = MUL x b
        return z w
        """,
    )


def test_no_reassociation_of_floats(judge):
    """(x + 1e30) − 1e30 stays in floats: compensated sums live on it."""
    judge.keeps(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        a = CONST : {"value": 1e30, "dtype": "float32"}
        b = CONST : {"value": -1e30, "dtype": "float32"}
        y = ADD x a
        z = ADD y b
        return z
        """,
        {"ADD": 2},
    )
