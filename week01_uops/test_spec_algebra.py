"""Identities: those that a simplifier is asked for, and those that are not right."""

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


# Asked for ----------------------------------------------------------------------------------


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


def test_cast_to_itself(judge):
    """A CAST to the dtype that x has is x."""
    judge.simplifies(
        each(
            ALL,
            """
            x@ = PARAM : {"slot": @, "dtype": "TYPE", "shape": []}
            a@ = CAST x@ : "TYPE"
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


def test_cast_there_and_back(judge):
    """A CAST to a dtype that holds every value, and back, is x."""
    for dtype, wide in [
        ("int8", "int32"),
        ("uint8", "int16"),
        ("uint32", "int64"),
        ("int8", "float16"),
        ("uint16", "float32"),
        ("int32", "float64"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float64"),
        ("bool", "int8"),
        ("bool", "float16"),
    ]:
        x = f'x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": []}}'
        judge.simplifies(
            f'{x}\ny = CAST x : "{wide}"\nz = CAST y : "{dtype}"\nreturn z', to=f"{x}\nreturn x"
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


# Not right in floats ------------------------------------------------------------------------


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


# Not right in integers, which wrap ----------------------------------------------------------


def test_product_divided(judge):
    """x·3 // 3 is not x, and x·3 mod 3 not 0, where the product may wrap."""
    for dtype in ["int8", "uint8"]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": []}}
            k = CONST : {{"value": 3, "dtype": "{dtype}"}}
            a = MUL x k
            b = FLOORDIV a k
            c = FLOORMOD a k
            return b c
            """
        )


def test_quotient_multiplied(judge):
    """(x // 3)·3 is not x, but with x mod 3 added it is."""
    for dtype in ["int8", "uint8"]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": []}}
            k = CONST : {{"value": 3, "dtype": "{dtype}"}}
            a = FLOORDIV x k
            b = MUL a k
            c = FLOORMOD x k
            d = ADD b c
            return b d
            """
        )


def test_divided_by_itself(judge):
    """x // x is 0 for x = 0, and x mod x is 0 there too."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        a = FLOORDIV x x
        b = FLOORMOD x x
        return a b
        """
    )


def test_division_of_every_int8(judge):
    """FLOORDIV and FLOORMOD by a constant keep their value for every int8."""
    for divisor in [-128, -7, -2, -1, 2, 5, 16, 127]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int8", "shape": []}}
            k = CONST : {{"value": {divisor}, "dtype": "int8"}}
            a = FLOORDIV x k
            b = FLOORMOD x k
            c = ADD a b
            d = FLOORDIV k x
            e = FLOORMOD k x
            return a b c d e
            """
        )


def test_quotient_of_quotient(judge):
    """(x // 4) // 8 keeps its value, and so do (x // −4) // 8 and (x // 100) // 100."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        four = CONST : {"value": 4, "dtype": "int8"}
        eight = CONST : {"value": 8, "dtype": "int8"}
        minus = CONST : {"value": -4, "dtype": "int8"}
        hundred = CONST : {"value": 100, "dtype": "int8"}
        a = FLOORDIV x four
        b = FLOORDIV a eight
        c = FLOORDIV x minus
        d = FLOORDIV c eight
        e = FLOORDIV x hundred
        f = FLOORDIV e hundred
        return b d f
        """
    )


def test_less_after_adding(judge):
    """x + 1 < y + 1 is not x < y where a side may wrap."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int8", "shape": []}
        k = CONST : {"value": 1, "dtype": "int8"}
        a = ADD x k
        b = ADD y k
        c = CMPLT a b
        d = CMPNE a b
        return c d
        """
    )


def test_less_of_doubles(judge):
    """2x < 2y is not x < y where a product may wrap, and 2x ≠ 2y is not x ≠ y."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "uint8", "shape": []}
        k = CONST : {"value": 2, "dtype": "uint8"}
        a = MUL x k
        b = MUL y k
        c = CMPLT a b
        d = CMPNE a b
        return c d
        """
    )


def test_unsigned_negation(judge):
    """−x < 1 of unsigned integers holds for 0 alone."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": []}
        k = CONST : {"value": 1, "dtype": "uint8"}
        a = NEG x
        b = CMPLT a k
        c = MAX a x
        return b c
        """
    )


def test_cast_that_loses(judge):
    """A CAST to a dtype that loses something, and back, stays."""
    for dtype, narrow in [
        ("int32", "int8"),
        ("int8", "uint16"),
        ("uint8", "bool"),
        ("int32", "float32"),
        ("int64", "float64"),
        ("float32", "float16"),
        ("float32", "bfloat16"),
        ("float64", "float32"),
        ("float16", "bfloat16"),
    ]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": []}}
            y = CAST x : "{narrow}"
            z = CAST y : "{dtype}"
            return z
            """
        )


def test_cast_of_sum(judge):
    """A CAST does not move into a sum or product that may wrap."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int8", "shape": []}
        a = ADD x y
        b = CAST a : "int32"
        c = CAST b : "uint8"
        d = MUL a a
        e = CAST d : "int16"
        return b c e
        """
    )


# Shapes -------------------------------------------------------------------------------------


def test_constants_have_no_shape(judge):
    """x · 0 of a shaped x has x's shape, which no constant has."""
    for shape in ["[3]", "[2, 1]", "[0]", "[1]"]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int32", "shape": {shape}}}
            z = CONST : {{"value": 0, "dtype": "int32"}}
            k = CONST : {{"value": 1, "dtype": "int32"}}
            a = MUL x z
            b = FLOORMOD x k
            c = CMPNE x x
            d = FLOORDIV x z
            n = NEG x
            e = ADD x n
            f = CMPLT x x
            return a b c d e f
            """
        )


def test_where_keeps_its_shape(judge):
    """WHERE(true, x, y) of a scalar x has y's shape."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        c = PARAM : {"slot": 2, "dtype": "bool", "shape": [2, 1]}
        t = CONST : {"value": true, "dtype": "bool"}
        a = WHERE t x y
        b = WHERE c x x
        d = WHERE c y y
        e = WHERE t y x
        return a b d e
        """
    )


def test_broadcast_keeps_its_shape(judge):
    """An identity that would drop a larger shape does not apply."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [2, 3]}
        z = CONST : {"value": 0, "dtype": "int32"}
        a = MUL y z
        b = ADD x a
        c = MAX x b
        d = MUL x a
        e = FLOORMOD x a
        return b c d e
        """
    )


def test_identities_of_arrays(judge):
    """x + 0, x · 1, −(−x) and MAX(x, x) of arrays are x."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 5]}
        z = CONST : {"value": 0, "dtype": "float32"}
        k = CONST : {"value": 1, "dtype": "float32"}
        a = ADD x z
        b = MUL k a
        c = NEG b
        d = NEG c
        e = MAX d x
        return e
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 5]}
        return x
        """,
    )
