"""What looks like an identity and is none in floats: NaN, infinities, rounding."""

import textwrap

FLOATS = ["float16", "bfloat16", "float32", "float64"]


def each(dtypes, template):
    """One program out of a template for each dtype: @ stands for its number, TYPE for its name."""
    lines, outputs = [], []
    for number, dtype in enumerate(dtypes):
        text = textwrap.dedent(template).strip().replace("@", str(number)).replace("TYPE", dtype)
        *body, end = text.splitlines()
        lines += body
        outputs += end.split()[1:]
    return "\n".join([*lines, "return " + " ".join(outputs)])


def test_float_times_zero(judge):
    """x · 0 stays in floats: of inf and NaN it is NaN."""
    judge.keeps(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            z@ = CONST : {"value": 0, "dtype": "TYPE"}
            a@ = MUL x@ z@
            return a@
            """,
        ),
        {"MUL": 4},
    )


def test_float_minus_itself(judge):
    """x − x stays in floats: of inf and NaN it is NaN."""
    judge.keeps(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            n@ = NEG x@
            a@ = ADD x@ n@
            return a@
            """,
        ),
        {"ADD": 4},
    )


def test_float_divided_by_itself(judge):
    """x · (1/x) stays: of 0, inf and NaN it is NaN."""
    judge.keeps(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            r@ = RECIP x@
            a@ = MUL x@ r@
            return a@
            """,
        ),
        {"RECIP": 4, "MUL": 4},
    )


def test_float_differs_from_itself(judge):
    """x ≠ x stays in floats: it is how a program asks for NaN."""
    judge.keeps(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = CMPNE x@ x@
            return a@
            """,
        ),
        {"CMPNE": 4},
    )


def test_recip_recip(judge):
    """1/(1/x) is not x: it is rounded twice, and overflows."""
    judge.keeps(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = RECIP x@
            b@ = RECIP a@
            return b@
            """,
        ),
        {"RECIP": 8},
    )


def test_exp_of_log(judge):
    """EXP2(LOG2 x) is not x: of a negative x it is NaN."""
    judge.keeps(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        a = LOG2 x
        b = EXP2 a
        return b
        """,
        ["LOG2", "EXP2"],
    )


def test_sum_minus_term(judge):
    """(x + y) − y is not x in floats: the sum was rounded."""
    judge.keeps(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        s = ADD x y
        n = NEG y
        d = ADD s n
        return d
        """,
        {"ADD": 2},
    )


def test_float_sum_of_constants(judge):
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


def test_where_and_max(judge):
    """WHERE(x < y, y, x) is no MAX(x, y) in floats, because of NaN."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        c = CMPLT x y
        a = WHERE c x y
        b = WHERE c y x
        d = CMPLT y x
        e = WHERE d x y
        return a b e
        """
    )


def test_not_less(judge):
    """Not (x < y) is no y ≤ x in floats, because of NaN."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        a = CMPLT x y
        b = CMPNE a t
        c = CMPLT y x
        d = MAX a c
        e = CMPNE d t
        f = CMPNE x y
        return b e d f
        """
    )
