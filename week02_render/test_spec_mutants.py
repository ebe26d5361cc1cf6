"""One step beside the right C: what a compiler with such a slip gets wrong."""


def test_constants_keep_their_digits(judge):
    """A float constant is printed so that C reads the same number."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float64", "shape": [3]}
        c = CONST : {"value": 1.2345678, "dtype": "float32"}
        d = CONST : {"value": 1.2345678901234567, "dtype": "float64"}
        a = MUL x c
        b = MUL y d
        return a b
        """,
        {0: [1, -2, 4], 1: [1, -2, 4]},
        tolerance=0,
    )


def test_write_that_needs_no_value(judge):
    """A value is read before the write behind it, also if what is written turns out to be 0."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": []}
        s = STORE t x
        first = AFTER t s
        v = LOAD first
        zero = CONST : {"value": 0, "dtype": "int32"}
        z = MUL v zero
        u = STORE first z
        second = AFTER first u
        w = LOAD second
        n = NEG v
        return w n
        """
    )
