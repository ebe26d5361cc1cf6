"""Floats as C computes them: rounding, special values, and when a product may be fused."""

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


def test_add_of_floats(judge):
    """ADD of every float dtype is rounded to nearest even."""
    judge.runs(binary("ADD", FLOATS), tolerance=0.0)


def test_mul_of_floats(judge):
    """MUL of every float dtype is rounded to nearest even."""
    judge.runs(binary("MUL", FLOATS), tolerance=0.0)


def test_neg_of_floats(judge):
    """NEG of every float dtype."""
    judge.runs(unary("NEG", FLOATS), tolerance=0.0)


def test_max_of_floats(judge):
    """MAX of every float dtype is NaN if either side is."""
    judge.runs(binary("MAX", FLOATS), tolerance=0.0)
    judge.runs(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [6]}
            y@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": [6]}
            a@ = MAX x@ y@
            return a@
            """,
        ),
        {10 + k: [float("nan"), 1, float("inf"), float("nan"), -1, 2] for k in range(4)}
        | {20 + k: [1, float("nan"), float("nan"), float("nan"), -2, 3] for k in range(4)},
    )


def test_exp2(judge):
    """EXP2 of every float dtype, over its whole range."""
    values = [-3000, -1080, -160, -150, -24.5, -1, -0.25, 0, 0.5, 1, 10.75, 15.9, 127.5, 1100]
    values += [float("inf"), float("-inf"), float("nan")]
    judge.runs(
        unary("EXP2", FLOATS).replace("67", str(len(values))), {10 + k: values for k in range(4)}
    )


def test_log2(judge):
    """LOG2 of every float dtype: −inf of 0, NaN of a negative number."""
    values = [0, -0.0, 1, 2, 3, 0.75, 1.0078125, 1000, 6e-8, 3e-5, 60000, -1, float("inf")]
    values += [float("-inf"), float("nan")]
    judge.runs(
        unary("LOG2", FLOATS).replace("67", str(len(values))), {10 + k: values for k in range(4)}
    )


def test_recip(judge):
    """RECIP of every float dtype: an infinity of 0, 0 of an infinity."""
    values = [0, 1, -1, 3, 0.1, 1e-3, -7, 60000, float("inf"), float("-inf"), float("nan")]
    judge.runs(
        unary("RECIP", FLOATS).replace("67", str(len(values))), {10 + k: values for k in range(4)}
    )


def test_comparisons_with_nan(judge):
    """CMPLT with NaN is false, CMPNE with NaN true, in every float dtype."""
    nan, inf = float("nan"), float("inf")
    judge.runs(
        each(
            FLOATS,
            """
            x@ = PARAM : {"slot": 1@, "dtype": "TYPE", "shape": [6]}
            y@ = PARAM : {"slot": 2@, "dtype": "TYPE", "shape": [6]}
            t@ = CONST : {"value": true, "dtype": "bool"}
            a@ = CMPLT x@ y@
            b@ = CMPLT y@ x@
            c@ = CMPNE x@ y@
            d@ = CMPNE x@ x@
            e@ = CMPNE a@ t@
            return a@ b@ c@ d@ e@
            """,
        ),
        {10 + k: [nan, 1, nan, inf, -inf, 0] for k in range(4)}
        | {20 + k: [1, nan, nan, inf, inf, -0.0] for k in range(4)},
    )


def test_where_with_nan(judge):
    """WHERE passes NaN and infinities on, and takes nothing from the other side."""
    nan, inf = float("nan"), float("inf")
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [4]}
        z = CONST : {"value": 0, "dtype": "float32"}
        c = CMPLT x z
        a = WHERE c x y
        r = RECIP x
        d = CMPNE x z
        b = WHERE d r z
        return a b
        """,
        {0: [nan, -inf, -1, 0], 1: [1, nan, inf, 2]},
    )


def test_subnormals(judge):
    """Sums and products that are subnormal are not flushed to zero."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [4]}
        a = ADD x y
        b = MUL x y
        return a b
        """,
        {0: [1e-40, 1e-38, 1.5e-45, 1e-20], 1: [2e-40, -0.9e-38, 0.5, 1e-21]},
        tolerance=0.0,
    )


def test_sum_keeps_its_order(judge):
    """(a + b) + c and a + (b + c) are two sums: the C keeps the parentheses."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [2]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [2]}
        c = PARAM : {"slot": 2, "dtype": "float32", "shape": [2]}
        ab = ADD a b
        s = ADD ab c
        bc = ADD b c
        t = ADD a bc
        u = ADD bc a
        return s t u
        """,
        {0: [1e30, 1], 1: [-1e30, 1e8], 2: [1, -1e8]},
        tolerance=0.0,
    )


def test_product_keeps_its_order(judge):
    """(a · b) · c and a · (b · c) are two products."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [2]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [2]}
        c = PARAM : {"slot": 2, "dtype": "float32", "shape": [2]}
        ab = MUL a b
        p = MUL ab c
        bc = MUL b c
        q = MUL a bc
        return p q
        """,
        {0: [1e30, 1e-30], 1: [1e30, 1e-30], 2: [1e-30, 1e30]},
        tolerance=0.0,
    )


def test_chain_in_float16(judge):
    """A chain of float16 sums is rounded to float16 after each: 2048 + 1 + 1 is 2048."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "float16", "shape": [3]}
        b = PARAM : {"slot": 1, "dtype": "float16", "shape": [3]}
        s = ADD a b
        t = ADD s b
        u = MUL s s
        v = MUL u b
        return s t u v
        """,
        {0: [2048, 60000, 1], 1: [1, 6000, 0.00048828125]},
        tolerance=0.0,
    )


def test_chain_in_bfloat16(judge):
    """A chain of bfloat16 sums is rounded to bfloat16 after each: 256 + 1 + 1 is 256."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "bfloat16", "shape": [3]}
        b = PARAM : {"slot": 1, "dtype": "bfloat16", "shape": [3]}
        s = ADD a b
        t = ADD s b
        u = MUL s s
        v = MUL u b
        return s t u v
        """,
        {0: [256, 3e38, 1], 1: [1, 3e38, 0.00390625]},
        tolerance=0.0,
    )


def test_float16_overflow(judge):
    """65504 + 16 is inf in float16, 65504 + 15 is 65504."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "float16", "shape": [4]}
        b = PARAM : {"slot": 1, "dtype": "float16", "shape": [4]}
        s = ADD a b
        p = MUL a b
        i = CONST : {"value": "inf", "dtype": "float16"}
        c = CMPNE s i
        return s p c
        """,
        {0: [65504, 65504, 256, 6e-8], 1: [16, 15, 256, 0.5]},
        tolerance=0.0,
    )


# Contraction: when one rounding instead of two is allowed ----------------------------------------


ROUNDED = {0: [1.0000001, 3.1415927, 1e10], 1: [1.0000001, 2.7182817, 1.0000001]}


def test_shared_product(judge):
    """A product with two uses is rounded before each sum: no fma, or x·y − x·y would not be 0."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        p = MUL x y
        n = NEG p
        s = ADD p n
        return s
        """,
        ROUNDED,
        tolerance=0.0,
    )


def test_product_also_returned(judge):
    """A product that is an output too is rounded before the sum."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        z = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
        p = MUL x y
        s = ADD p z
        return s p
        """,
        ROUNDED | {2: [-1.0000002, -8.5397339, -1.0000001e10]},
        tolerance=0.0,
    )


def test_product_in_two_sums(judge):
    """A product in two sums is rounded before each."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        z = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
        p = MUL x y
        s = ADD p z
        q = ADD z z
        t = ADD p q
        return s t
        """,
        ROUNDED | {2: [-1.0000002, -8.5397339, -1.0000001e10]},
        tolerance=0.0,
    )


def test_equal_products_are_one(judge):
    """Two equal MULs are one node with two uses."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float64", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float64", "shape": [3]}
        p = MUL x y
        q = MUL x y
        n = NEG q
        s = ADD p n
        m = MAX p y
        return s m
        """,
        {0: [1.1, 2.2, 1e100], 1: [1.3, 0.7, 1.0000000000000002]},
        tolerance=0.0,
    )


def test_product_and_maximum(judge):
    """A product that feeds a maximum and a sum is rounded before the sum, as in a softmax."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        p = MUL x y
        m = MAX p y
        n = NEG m
        d = ADD p n
        return d
        """,
        {0: [1.0000001, 3.1415927, 1e10], 1: [1.0000001, 2.7182817, 1.0000001]},
        tolerance=0.0,
    )


def test_stored_product(judge):
    """A product that is stored and used again is the stored one: x·y minus it is 0."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [3]}
        p = MUL x y
        s = STORE t p
        u = AFTER t s
        n = NEG u
        d = ADD p n
        return d
        """,
        ROUNDED,
        tolerance=0.0,
    )


def test_product_used_once(judge):
    """A product whose only use is a sum may be rounded once or twice: both are near enough."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [67]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [67]}
        z = PARAM : {"slot": 2, "dtype": "float32", "shape": [67]}
        p = MUL x y
        s = ADD p z
        return s
        """,
        special=False,
    )
