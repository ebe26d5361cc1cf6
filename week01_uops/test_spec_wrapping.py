"""Integers wrap and divisors may be 0: identities and decisions that are not right."""


# Identities ------------------------------------------------------------------------------------


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


# Decisions -------------------------------------------------------------------------------------


def test_sum_that_wraps(judge):
    """x + 1 > x does not hold for the largest x."""
    judge.keeps(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        k = CONST : {"value": 1, "dtype": "int8"}
        a = ADD x k
        r = CMPLT x a
        return r
        """,
        ["PARAM"],
    )


def test_product_that_wraps(judge):
    """The range of a product or sum that may wrap is the whole dtype."""
    for bounds in ["[100, 127]", "[-128, -100]", "[60, 70]"]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int8", "shape": [], "range": {bounds}}}
            k = CONST : {{"value": 2, "dtype": "int8"}}
            z = CONST : {{"value": 0, "dtype": "int8"}}
            a = MUL x k
            b = ADD x x
            r = CMPLT a z
            s = CMPLT b z
            return r s
            """
        )


def test_negation_that_wraps(judge):
    """−x of the least x is the least x."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": [], "range": [-128, -1]}
        z = CONST : {"value": 0, "dtype": "int8"}
        n = NEG x
        r = CMPLT z n
        q = FLOORDIV n x
        return r q
        """
    )


def test_flattened_index_that_wraps(judge):
    """(8·i + j) // 8 is not i where the product may wrap."""
    judge.accepts(
        """
        i = PARAM : {"slot": 0, "dtype": "uint8", "shape": []}
        j = PARAM : {"slot": 1, "dtype": "uint8", "shape": [], "range": [0, 7]}
        c = CONST : {"value": 8, "dtype": "uint8"}
        a = MUL i c
        b = ADD a j
        q = FLOORDIV b c
        m = FLOORMOD b c
        return q m
        """
    )


def test_flattened_index_out_of_bounds(judge):
    """(8·i + j) // 8 is not i for a j outside [0, 7]; i may be negative."""
    for bounds in ["[-1, 7]", "[0, 8]", "[0, 7]"]:
        judge.accepts(
            f"""
            i = PARAM : {{"slot": 0, "dtype": "int8", "shape": [], "range": [-9, 9]}}
            j = PARAM : {{"slot": 1, "dtype": "int8", "shape": [], "range": {bounds}}}
            c = CONST : {{"value": 8, "dtype": "int8"}}
            a = MUL i c
            b = ADD j a
            q = FLOORDIV b c
            m = FLOORMOD b c
            return q m
            """
        )


def test_divisor_that_may_be_zero(judge):
    """The range of a quotient allows for a divisor of 0, and for −128 // −1."""
    for bounds in ["[-2, 2]", "[0, 2]", "[-2, 0]", "[-1, -1]", "[0, 0]", "[-128, 127]"]:
        judge.accepts(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int8", "shape": []}}
            y = PARAM : {{"slot": 1, "dtype": "int8", "shape": [], "range": {bounds}}}
            z = CONST : {{"value": 0, "dtype": "int8"}}
            q = FLOORDIV x y
            m = FLOORMOD x y
            r = CMPLT q z
            s = CMPLT m z
            u = CMPNE m x
            v = CMPLT m y
            return q m r s u v
            """
        )


def test_remainder_of_negative_divisor(judge):
    """x mod y of y in [−5, −1] lies in [−4, 0]."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int8", "shape": [], "range": [-5, -1]}
        z = CONST : {"value": 0, "dtype": "int8"}
        m = FLOORMOD x y
        r = CMPLT z m
        s = CMPLT m y
        return m r s
        """
    )


def test_cast_that_wraps(judge):
    """A CAST to a dtype that does not hold the range does not keep it."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 300]}
        z = CONST : {"value": 0, "dtype": "int8"}
        a = CAST x : "int8"
        r = CMPLT a z
        return r
        """
    )
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": [], "range": [-5, 5]}
        c = CONST : {"value": 200, "dtype": "uint8"}
        a = CAST x : "uint8"
        r = CMPLT a c
        return r
        """
    )


def test_floats_have_no_range(judge):
    """Comparisons of floats are not decided by ranges of integers: NaN and rounding stay."""
    judge.accepts(
        """
        i = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 7]}
        x = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        a = CAST i : "float32"
        r = CMPLT a x
        s = CMPNE a x
        m = MAX a x
        return r s m
        """
    )


def test_decided_for_arrays(judge):
    """A comparison of arrays may be decided, but its result keeps its shape."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": [3, 2]}
        z = CONST : {"value": 0, "dtype": "uint8"}
        a = CMPLT x z
        b = WHERE a x z
        c = MAX x z
        return a b c
        """
    )
