"""Rules one step beside the right one: what a simplifier with such a slip gets wrong."""


def test_reciprocal_of_zero(judge):
    """RECIP of a constant zero is an infinity."""
    for dtype in ["float16", "bfloat16", "float32", "float64"]:
        judge.accepts(
            f"""
            z = CONST : {{"value": 0, "dtype": "{dtype}"}}
            r = RECIP z
            return r
            """
        )


def test_where_of_a_negation(judge):
    """WHERE(NOT p, x, y) takes y where p holds."""
    judge.accepts(
        """
        p = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        x = PARAM : {"slot": 1, "dtype": "int8", "shape": []}
        y = PARAM : {"slot": 2, "dtype": "int8", "shape": []}
        t = CONST : {"value": true, "dtype": "bool"}
        n = CMPNE p t
        w = WHERE n x y
        return w
        """
    )


def test_absorption(judge):
    """b OR (b AND p) and b AND (b OR p) are b, not p."""
    judge.accepts(
        """
        b = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
        p = PARAM : {"slot": 1, "dtype": "bool", "shape": []}
        a = MUL b p
        o = MAX b a
        c = MAX b p
        d = MUL b c
        return o d
        """
    )


def test_maximum_with_two_constants(judge):
    """MAX(MAX(x, c), d) keeps the larger constant, whichever stands outside."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        c = CONST : {"value": -3, "dtype": "int8"}
        d = CONST : {"value": 5, "dtype": "int8"}
        xc = MAX x c
        xd = MAX x d
        xcd = MAX xc d
        xdc = MAX xd c
        return xcd xdc
        """
    )


def test_quotient_of_a_sum(judge):
    """(a + b) // 3 is not a // 3 + b // 3, although nothing wraps; (a + 3·b) // 3 is a // 3 + b."""
    judge.accepts(
        """
        a = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 10]}
        b = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [0, 10]}
        d = CONST : {"value": 3, "dtype": "int32"}
        s = ADD a b
        q = FLOORDIV s d
        m = MUL b d
        t = ADD a m
        r = FLOORDIV t d
        return q r
        """
    )


def test_negation_of_less(judge):
    """NOT (x < c) holds at x = c, and so does NOT (c < x)."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        c = CONST : {"value": 3, "dtype": "int8"}
        t = CONST : {"value": true, "dtype": "bool"}
        a = CMPLT x c
        b = CMPNE a t
        d = CMPLT c x
        e = CMPNE d t
        return b e
        """
    )


def test_larger_of_two(judge):
    """WHERE(a < b, b, a) is the larger one."""
    judge.accepts(
        """
        a = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        b = PARAM : {"slot": 1, "dtype": "int8", "shape": []}
        c = CMPLT a b
        w = WHERE c b a
        return w
        """
    )


def test_bounds_on_both_sides(judge):
    """Both bounds of 3 < x AND x < 10 count, and both sides of x < 3 OR 10 < x."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": []}
        low = CONST : {"value": 3, "dtype": "int8"}
        high = CONST : {"value": 10, "dtype": "int8"}
        a = CMPLT low x
        b = CMPLT x high
        within = MUL a b
        c = CMPLT x low
        d = CMPLT high x
        outside = MAX c d
        return within outside
        """
    )
