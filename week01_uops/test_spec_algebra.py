"""Identities that a simplifier is asked for."""

import textwrap

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
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


def test_add_zero(judge):
    """x + 0 and 0 + x are x, in every dtype: the sign of a zero is open."""
    judge.simplifies(
        each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            a@ = ADD x@ z@
            b@ = ADD z@ x@
            return a@ b@
            """,
        ),
        to=each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            return x@ x@
            """,
        ),
    )


def test_mul_one(judge):
    """x · 1 and 1 · x are x, in every dtype."""
    judge.simplifies(
        each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            k@ = CONST : {"value": 1, "dtype": "TYPE"}
            a@ = MUL x@ k@
            b@ = MUL k@ x@
            return a@ b@
            """,
        ),
        to=each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            return x@ x@
            """,
        ),
    )


def test_mul_zero(judge):
    """x · 0 and 0 · x are 0 in integers."""
    judge.simplifies(
        each(
            INTEGERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            a@ = MUL x@ z@
            b@ = MUL z@ x@
            return a@ b@
            """,
        ),
        to=each(
            INTEGERS,
            """
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            return z@ z@
            """,
        ),
    )


def test_neg_neg(judge):
    """−(−x) is x, of unsigned integers too."""
    judge.simplifies(
        each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = NEG x@
            b@ = NEG a@
            return b@
            """,
        ),
        to=each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            return x@
            """,
        ),
    )


def test_max_same(judge):
    """MAX(x, x) is x, in every dtype."""
    judge.simplifies(
        each(
            ALL,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = MAX x@ x@
            return a@
            """,
        ),
        to=each(
            ALL,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            return x@
            """,
        ),
    )


def test_divide_by_one(judge):
    """x // 1 is x, and x mod 1 is 0."""
    judge.simplifies(
        each(
            INTEGERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            k@ = CONST : {"value": 1, "dtype": "TYPE"}
            a@ = FLOORDIV x@ k@
            b@ = FLOORMOD x@ k@
            return a@ b@
            """,
        ),
        to=each(
            INTEGERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            return x@ z@
            """,
        ),
    )


def test_divide_by_zero(judge):
    """x // 0 is 0, and x mod 0 is x."""
    judge.simplifies(
        each(
            INTEGERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            a@ = FLOORDIV x@ z@
            b@ = FLOORMOD x@ z@
            return a@ b@
            """,
        ),
        to=each(
            INTEGERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            return z@ x@
            """,
        ),
    )


def test_bool_identities(judge):
    """Of bools: x∧1, x∨0, x∧x, x∨x and x⊕0 are x; x∧0 and x⊕x are false; x∨1 is true."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        f = CONST : {"value": false, "dtype": "bool"}
        a = MUL x t
        b = MAX x f
        c = MUL x x
        d = MAX x x
        e = CMPNE x f
        g = MUL f x
        h = CMPNE x x
        i = MAX t x
        return a b c d e g h i
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        f = CONST : {"value": false, "dtype": "bool"}
        return x x x x x f f t
        """,
    )


def test_not_not(judge):
    """Negated twice, a bool is itself: (x ⊕ 1) ⊕ 1 is x."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        a = CMPNE x t
        b = CMPNE a t
        return b
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        return x
        """,
    )


def test_where_constant(judge):
    """WHERE of a constant condition is the side that it takes."""
    judge.simplifies(
        each(
            ["bool", "int32", "float32"],
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": []}
            y@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": []}
            t@ = CONST : {"value": true, "dtype": "bool"}
            f@ = CONST : {"value": false, "dtype": "bool"}
            a@ = WHERE t@ x@ y@
            b@ = WHERE f@ x@ y@
            return a@ b@
            """,
        ),
        to=each(
            ["bool", "int32", "float32"],
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": []}
            y@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": []}
            return x@ y@
            """,
        ),
    )


def test_where_same(judge):
    """WHERE of two equal sides is that side."""
    judge.simplifies(
        each(
            ["bool", "int32", "float32"],
            """
            c@ = PARAM : {"slot": 1@, "dtype": "bool", "shape": []}
            x@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": []}
            a@ = WHERE c@ x@ x@
            return a@
            """,
        ),
        to=each(
            ["bool", "int32", "float32"],
            """
            x@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": []}
            return x@
            """,
        ),
    )


def test_where_of_bools(judge):
    """WHERE(c, true, false) is c."""
    judge.simplifies(
        """
        c = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        f = CONST : {"value": false, "dtype": "bool"}
        a = WHERE c t f
        return a
        """,
        to="""
        c = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        return c
        """,
    )


def test_less_than_itself(judge):
    """x < x is false, in every dtype: NaN < NaN is false as well."""
    judge.simplifies(
        each(
            NUMBERS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = CMPLT x@ x@
            return a@
            """,
        ),
        to=each(
            NUMBERS,
            """
            f@ = CONST : {"value": false, "dtype": "bool"}
            return f@
            """,
        ),
    )


def test_differs_from_itself(judge):
    """x ≠ x is false, where there is no NaN."""
    judge.simplifies(
        each(
            ["bool", *INTEGERS],
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = CMPNE x@ x@
            return a@
            """,
        ),
        to=each(
            ["bool", *INTEGERS],
            """
            f@ = CONST : {"value": false, "dtype": "bool"}
            return f@
            """,
        ),
    )


def test_max_of_minus_infinity(judge):
    """MAX(x, −inf) is x: NaN stays NaN."""
    judge.simplifies(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            k@ = CONST : {"value": "-inf", "dtype": "TYPE"}
            a@ = MAX x@ k@
            b@ = MAX k@ x@
            return a@ b@
            """,
        ),
        to=each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            return x@ x@
            """,
        ),
    )


def test_identities_meet(judge):
    """What one identity leaves, the next one takes up."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        z = CONST : {"value": 0, "dtype": "int32"}
        k = CONST : {"value": 1, "dtype": "int32"}
        a = ADD x z
        b = MUL a k
        c = FLOORDIV b k
        d = NEG c
        e = NEG d
        f = MAX e x
        g = CMPNE f x
        h = WHERE g z x
        return h
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        return x
        """,
    )


def test_identities_in_a_chain(judge):
    """Identities are applied until none applies, through a chain of any length."""
    start = """
        y0 = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        z = CONST : {"value": 0, "dtype": "float32"}
        k = CONST : {"value": 1, "dtype": "float32"}
        """
    steps = [f"y{n + 1} = {('ADD', 'MUL')[n % 2]} y{n} {'zk'[n % 2]}" for n in range(500)]
    judge.simplifies(
        "\n".join([textwrap.dedent(start), *steps, "return y500"]),
        to='x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}\nreturn x',
    )


def test_shared_nodes(judge):
    """A shared node is simplified once: sixty levels of sharing are no 2^60 visits."""
    start = 'y0 = PARAM : {"slot": 0, "dtype": "float32", "shape": []}\ns0 = RECIP y0'
    steps = [f"y{n + 1} = MAX y{n} s{n}\ns{n + 1} = RECIP y{n + 1}" for n in range(60)]
    judge.accepts("\n".join([start, *steps, "return y60"]))
