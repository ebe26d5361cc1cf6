"""Integers, bools and constants as C computes them: elementwise over arrays."""

import textwrap

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = INTEGERS + FLOATS
ALL = ["bool", *NUMBERS]


def each(dtypes, template):
    """One program out of a template for each dtype: @ stands for its number, TYPE for its name."""
    lines, outputs = [], []
    for number, dtype in enumerate(dtypes):
        text = textwrap.dedent(template).strip().replace("@", str(number)).replace("TYPE", dtype)
        *body, end = text.splitlines()
        lines += body
        outputs += end.split()[1:]
    return "\n".join([*lines, "return " + " ".join(outputs)])


def binary(op, dtypes):
    """op(x, y) of arrays of 67 elements, an output for each dtype."""
    template = """
        x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [67]}
        y@ = PARAM : {"slot": 3@, "dtype": "TYPE", "shape": [67]}
        a@ = OP x@ y@
        return a@
        """
    return each(dtypes, template.replace("OP", op))


def unary(op, dtypes):
    """op(x) of arrays of 67 elements, an output for each dtype."""
    template = """
        x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [67]}
        a@ = OP x@
        return a@
        """
    return each(dtypes, template.replace("OP", op))


def test_add_of_integers(judge):
    """ADD of every integer dtype wraps."""
    judge.runs(binary("ADD", INTEGERS))


def test_mul_of_integers(judge):
    """MUL of every integer dtype wraps."""
    judge.runs(binary("MUL", INTEGERS))


def test_neg_of_integers(judge):
    """NEG of every integer dtype wraps."""
    judge.runs(unary("NEG", INTEGERS))


def test_max_of_integers(judge):
    """MAX of signed and unsigned integers."""
    judge.runs(binary("MAX", INTEGERS))


def test_floordiv(judge):
    """FLOORDIV of every integer dtype rounds down, and survives 0 and −1 as divisors."""
    judge.runs(binary("FLOORDIV", INTEGERS))


def test_floormod(judge):
    """FLOORMOD of every integer dtype, with divisors of both signs, 0 and −1."""
    judge.runs(binary("FLOORMOD", INTEGERS))


def test_cmplt(judge):
    """CMPLT of every number dtype."""
    judge.runs(binary("CMPLT", NUMBERS))


def test_cmpne(judge):
    """CMPNE of every dtype."""
    judge.runs(binary("CMPNE", ALL))


def test_bool(judge):
    """MUL, MAX and CMPNE of bools are and, or and exclusive or."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "bool", "shape": [4]}
        y = PARAM : {"slot": 1, "dtype": "bool", "shape": [4]}
        a = MUL x y
        b = MAX x y
        c = CMPNE x y
        return a b c
        """,
        {0: [False, False, True, True], 1: [False, True, False, True]},
    )


def test_where(judge):
    """WHERE of every dtype takes the side that its condition names."""
    judge.runs(
        each(
            ALL,
            """
            c@ = PARAM : {"slot": 1@, "dtype": "bool", "shape": [67]}
            x@ = PARAM : {"slot": 3@, "dtype": "TYPE", "shape": [67]}
            y@ = PARAM : {"slot": 5@, "dtype": "TYPE", "shape": [67]}
            a@ = WHERE c@ x@ y@
            return a@
            """,
        )
    )


def test_constants(judge):
    """Constants of every dtype are written exactly."""
    judge.runs(
        """
        a = CONST : {"value": true, "dtype": "bool"}
        b = CONST : {"value": -128, "dtype": "int8"}
        c = CONST : {"value": -32768, "dtype": "int16"}
        d = CONST : {"value": -2147483648, "dtype": "int32"}
        e = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        f = CONST : {"value": 255, "dtype": "uint8"}
        g = CONST : {"value": 65535, "dtype": "uint16"}
        h = CONST : {"value": 4294967295, "dtype": "uint32"}
        i = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        j = CONST : {"value": 0.1, "dtype": "float16"}
        k = CONST : {"value": 0.1, "dtype": "bfloat16"}
        l = CONST : {"value": 0.1, "dtype": "float32"}
        m = CONST : {"value": 0.1, "dtype": "float64"}
        n = CONST : {"value": 1e-45, "dtype": "float32"}
        o = CONST : {"value": 5e-324, "dtype": "float64"}
        p = CONST : {"value": 3.4028235e38, "dtype": "float32"}
        q = CONST : {"value": "nan", "dtype": "float16"}
        r = CONST : {"value": "inf", "dtype": "bfloat16"}
        s = CONST : {"value": "-inf", "dtype": "float64"}
        return a b c d e f g h i j k l m n o p q r s
        """,
        tolerance=0.0,
    )


def test_constants_in_use(judge):
    """Constants of every dtype as operands, at the ends of their ranges."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [9]}
        y = PARAM : {"slot": 1, "dtype": "int64", "shape": [9]}
        z = PARAM : {"slot": 2, "dtype": "uint64", "shape": [9]}
        f = PARAM : {"slot": 3, "dtype": "float32", "shape": [9]}
        a = CONST : {"value": -2147483648, "dtype": "int32"}
        b = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        c = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        d = CONST : {"value": "-inf", "dtype": "float32"}
        e = CONST : {"value": "nan", "dtype": "float32"}
        p = CMPLT a x
        q = MAX y b
        r = CMPLT z c
        s = CMPLT d f
        t = CMPNE e f
        u = ADD x a
        v = MUL z c
        return p q r s t u v
        """
    )


# Wrapping, in a language whose signed overflow is undefined -----------------------------------


def test_signed_wrap_is_seen(judge):
    """x + 1 < x holds for the largest x: a C compiler may not assume otherwise."""
    judge.runs(
        each(
            SIGNED,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": [3]}
            k@ = CONST : {"value": 1, "dtype": "TYPE"}
            a@ = ADD x@ k@
            b@ = CMPLT a@ x@
            return a@ b@
            """,
        ),
        {
            0: [127, -128, 5],
            1: [32767, -32768, 5],
            2: [2147483647, -2147483648, 5],
            3: [9223372036854775807, -9223372036854775808, 5],
        },
    )


def test_narrow_results_wrap_at_once(judge):
    """An int8 or uint8 sum is wrapped before it is compared, though C adds in int."""
    judge.runs(
        each(
            ["int8", "uint8", "int16", "uint16"],
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [67]}
            y@ = PARAM : {"slot": 3@, "dtype": "TYPE", "shape": [67]}
            a@ = ADD x@ y@
            b@ = CMPLT a@ x@
            c@ = MUL x@ y@
            d@ = MAX c@ x@
            e@ = FLOORDIV c@ y@
            n@ = NEG x@
            f@ = CMPLT n@ y@
            return b@ d@ e@ f@
            """,
        )
    )


def test_product_of_large_halves(judge):
    """65535 · 65535 in uint16 is 1, and the sign of the int that C multiplies in is not seen."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "uint16", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "uint16", "shape": [3]}
        k = CONST : {"value": 2, "dtype": "uint16"}
        a = MUL x y
        b = FLOORDIV a k
        c = CAST a : "int32"
        return a b c
        """,
        {0: [65535, 50000, 3], 1: [65535, 50000, 5]},
    )


def test_negation_of_the_least(judge):
    """−x of the least integer is the least integer, and still negative."""
    judge.runs(
        each(
            SIGNED,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": [2]}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            n@ = NEG x@
            a@ = CMPLT n@ z@
            return n@ a@
            """,
        ),
        {
            0: [-128, 1],
            1: [-32768, 1],
            2: [-2147483648, 1],
            3: [-9223372036854775808, 1],
        },
    )


def test_division_that_traps(judge):
    """x // 0 is 0, x mod 0 is x, and the least integer divided by −1 wraps: nothing traps."""
    least = [-128, -32768, -2147483648, -9223372036854775808]
    judge.runs(
        each(
            SIGNED,
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [5]}
            y@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": [5]}
            q@ = FLOORDIV x@ y@
            r@ = FLOORMOD x@ y@
            return q@ r@
            """,
        ),
        {10 + k: [x, x, 7, -7, 0] for k, x in enumerate(least)}
        | {20 + k: [-1, 0, 0, 0, 0] for k in range(4)},
    )


def test_division_by_constants(judge):
    """FLOORDIV and FLOORMOD by constants of both signs round down."""
    text = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": [31]}\n'
    outputs = []
    for k, divisor in enumerate([2, 3, 8, -1, -2, -8, 7, -7, 2147483647, -2147483648]):
        text += f'c{k} = CONST : {{"value": {divisor}, "dtype": "int32"}}\n'
        text += f"q{k} = FLOORDIV x c{k}\nr{k} = FLOORMOD x c{k}\n"
        outputs += [f"q{k}", f"r{k}"]
    values = [*range(-13, 14), -2147483648, -2147483647, 2147483647, 2147483646]
    judge.runs(f"{text}return {' '.join(outputs)}", {0: values})


def test_unsigned_numbers_are_large(judge):
    """The upper half of uint64 is large, not negative, in comparisons, quotients and MAX."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "uint64", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "uint64", "shape": [3]}
        a = CMPLT x y
        b = MAX x y
        c = FLOORDIV x y
        d = FLOORMOD x y
        e = CAST x : "float64"
        return a b c d e
        """,
        {0: [2**64 - 1, 5, 2**63], 1: [3, 2**63 + 1, 10]},
    )


# Expressions --------------------------------------------------------------------------------


def test_deep_expression(judge):
    """A chain of two thousand UOps compiles and runs."""
    steps = [f"y{n + 1} = {'NEG' if n % 2 else 'EXP2'} y{n}" for n in range(2000)]
    start = 'y0 = PARAM : {"slot": 0, "dtype": "float64", "shape": [2]}'
    judge.runs("\n".join([start, *steps, "return y2000"]), {0: [0.5, -3]})


def test_shared_expression(judge):
    """Sixty levels of sharing are sixty lines of C, not 2^60 operations."""
    steps = [f"y{n + 1} = MAX y{n} s{n}\ns{n + 1} = RECIP y{n + 1}" for n in range(60)]
    start = 'y0 = PARAM : {"slot": 0, "dtype": "float64", "shape": [2]}\ns0 = RECIP y0'
    judge.runs("\n".join([start, *steps, "return y60"]), {0: [0.5, -3]})


def test_call(judge):
    """A CALL runs as its body would."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [5]}
        n = NEG y
        body = ADD x n
        a = CALL body y x : {"name": "difference"}
        b = CALL body a y
        return a b
        """
    )
