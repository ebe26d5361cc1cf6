"""A few claims, to try the grader with."""


def test_multiplication_by_zero(judge):
    """x · 0 is 0 for integers."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        z = CONST : {"value": 0, "dtype": "int32"}
        y = MUL x z
        return y
        """,
        to="""
        z = CONST : {"value": 0, "dtype": "int32"}
        return z
        """,
    )


def test_float_zero(judge):
    """x · 0 stays for floats."""
    judge.keeps(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        z = CONST : {"value": 0, "dtype": "float32"}
        y = MUL x z
        return y
        """,
        ["MUL"],
    )


def test_rejects(judge):
    judge.rejects("x = PARAM\nreturn x", "E3xx", line=2)


def test_impossible(judge):
    judge.simplifies(
        'x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}\nreturn x', at_most=0
    )
