"""Intervals: what the declared range of a PARAM decides."""

TRUE = 't = CONST : {"value": true, "dtype": "bool"}\nreturn t'
FALSE = 't = CONST : {"value": false, "dtype": "bool"}\nreturn t'


# Comparisons --------------------------------------------------------------------------------


def test_less(judge):
    """x < c is decided where every x in its range gives one answer."""
    for bounds, limit, answer in [
        ("[0, 7]", 8, TRUE),
        ("[0, 7]", 0, FALSE),
        ("[-5, -1]", 0, TRUE),
        ("[3, 3]", 3, FALSE),
        ("[-100, 100]", 101, TRUE),
    ]:
        judge.simplifies(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int32", "shape": [], "range": {bounds}}}
            c = CONST : {{"value": {limit}, "dtype": "int32"}}
            r = CMPLT x c
            return r
            """,
            to=answer,
        )


def test_less_of_two_ranges(judge):
    """c < x and x < y are decided by the ranges of both sides."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [10, 20]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [21, 30]}
        c = CONST : {"value": 9, "dtype": "int32"}
        a = CMPLT c x
        b = CMPLT x y
        d = CMPLT y x
        return a b d
        """,
        to="""
        t = CONST : {"value": true, "dtype": "bool"}
        f = CONST : {"value": false, "dtype": "bool"}
        return t t f
        """,
    )


def test_undecided(judge):
    """x < c stays where the range has values on both sides."""
    for bounds, limit in [("[0, 8]", 8), ("[-1, 7]", 0), ("[0, 255]", 255)]:
        judge.keeps(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int32", "shape": [], "range": {bounds}}}
            c = CONST : {{"value": {limit}, "dtype": "int32"}}
            r = CMPLT x c
            return r
            """,
            ["PARAM"],
        )


def test_whole_dtype(judge):
    """Without a declared range the dtype is the range: an unsigned x is never below 0."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "uint16", "shape": []}
        z = CONST : {"value": 0, "dtype": "uint16"}
        r = CMPLT x z
        return r
        """,
        to=FALSE,
    )


def test_differs(judge):
    """x ≠ y is true where the ranges do not meet."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 5]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [6, 9]}
        r = CMPNE x y
        return r
        """,
        to=TRUE,
    )


def test_one_value(judge):
    """A range of one value is a constant."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [42, 42]}
        r = NEG x
        return r
        """,
        to='c = CONST : {"value": -42, "dtype": "int32"}\nreturn c',
    )


# Quotients, remainders, maxima --------------------------------------------------------------


def test_floordiv(judge):
    """x // c is a constant where the range lies within one quotient."""
    for bounds, divisor, quotient in [
        ("[0, 7]", 8, 0),
        ("[8, 15]", 8, 1),
        ("[-8, -1]", 8, -1),
        ("[100, 100]", 7, 14),
        ("[1, 7]", -8, -1),
    ]:
        judge.simplifies(
            f"""
            x = PARAM : {{"slot": 0, "dtype": "int32", "shape": [], "range": {bounds}}}
            c = CONST : {{"value": {divisor}, "dtype": "int32"}}
            r = FLOORDIV x c
            return r
            """,
            to=f'q = CONST : {{"value": {quotient}, "dtype": "int32"}}\nreturn q',
        )


def test_floormod(judge):
    """x mod y is x where every x is at least 0 and below every y."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 7]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [8, 20]}
        c = CONST : {"value": 8, "dtype": "int32"}
        a = FLOORMOD x c
        b = FLOORMOD x y
        return a b
        """,
        to="""
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 7]}
        return x x
        """,
    )


def test_max(judge):
    """MAX of ranges that do not overlap is the larger source."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 5]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [5, 9]}
        r = MAX x y
        s = MAX y x
        return r s
        """,
        to="""
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [5, 9]}
        return y y
        """,
    )


def test_condition_of_where(judge):
    """A decided condition takes its side of WHERE."""
    judge.simplifies(
        """
        i = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 15]}
        x = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        n = CONST : {"value": 16, "dtype": "int32"}
        z = CONST : {"value": 0, "dtype": "float32"}
        c = CMPLT i n
        r = WHERE c x z
        return r
        """,
        to="""
        x = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        return x
        """,
    )


# Ranges of results --------------------------------------------------------------------------


def test_ranges_of_sums(judge):
    """Ranges are carried through ADD and MUL."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 7]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [0, 3]}
        k = CONST : {"value": 4, "dtype": "int32"}
        c = CONST : {"value": 32, "dtype": "int32"}
        a = MUL x k
        b = ADD a y
        r = CMPLT b c
        return r
        """,
        to=TRUE,
    )


def test_ranges_of_negations(judge):
    """Ranges are carried through NEG, which exchanges their ends."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [3, 9]}
        c = CONST : {"value": -2, "dtype": "int32"}
        n = NEG x
        r = CMPLT n c
        return r
        """,
        to=TRUE,
    )


def test_ranges_of_remainders(judge):
    """x mod 8 lies in [0, 7], whatever x is."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        c = CONST : {"value": 8, "dtype": "int32"}
        a = FLOORMOD x c
        r = CMPLT a c
        return r
        """,
        to=TRUE,
    )


def test_ranges_of_quotients(judge):
    """x // 4 of x in [0, 31] lies in [0, 7]."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 31]}
        k = CONST : {"value": 4, "dtype": "int32"}
        c = CONST : {"value": 8, "dtype": "int32"}
        a = FLOORDIV x k
        r = CMPLT a c
        return r
        """,
        to=TRUE,
    )


def test_ranges_of_max_and_where(judge):
    """MAX and WHERE have ranges: a clamped index is known not to be negative."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        z = CONST : {"value": 0, "dtype": "int32"}
        c = CONST : {"value": 9, "dtype": "int32"}
        p = MAX x z
        o = CMPLT p c
        q = WHERE o p z
        r = CMPLT q z
        return r
        """,
        to=FALSE,
    )


def test_ranges_of_casts(judge):
    """A CAST keeps the range where the target holds it."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": []}
        c = CONST : {"value": 256, "dtype": "int32"}
        a = CAST x : "int32"
        r = CMPLT a c
        return r
        """,
        to=TRUE,
    )


def test_flattened_index(judge):
    """(8·i + j) // 8 is i, and (8·i + j) mod 8 is j, for j in [0, 7] and no wrap."""
    judge.simplifies(
        """
        i = PARAM : {"slot": 0, "dtype": "int64", "shape": [], "range": [0, 99]}
        j = PARAM : {"slot": 1, "dtype": "int64", "shape": [], "range": [0, 7]}
        c = CONST : {"value": 8, "dtype": "int64"}
        a = MUL i c
        b = ADD a j
        q = FLOORDIV b c
        m = FLOORMOD b c
        return q m
        """,
        to="""
        i = PARAM : {"slot": 0, "dtype": "int64", "shape": [], "range": [0, 99]}
        j = PARAM : {"slot": 1, "dtype": "int64", "shape": [], "range": [0, 7]}
        return i j
        """,
    )


def test_range_stays(judge):
    """The range of a PARAM that stays is still declared."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [-3, 12]}
        c = CONST : {"value": 5, "dtype": "int32"}
        a = ADD x c
        return a
        """
    judge.simplifies(text, to=text)


def test_ranges_are_not_shared(judge):
    """A range belongs to its PARAM: another one without a range is not bounded."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 7]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
        c = CONST : {"value": 8, "dtype": "int32"}
        a = CMPLT x c
        b = CMPLT y c
        return a b
        """,
        at_most_of={"CMPLT": 1},
    )
