"""Identities of arrays: the shape of a result is part of its meaning."""


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
