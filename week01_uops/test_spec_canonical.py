"""The canonical form: one text for each graph."""

X = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}'
Y = 'y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}'


def test_names_in_post_order(judge):
    """Names are %0, %1, … in a depth-first post-order from the outputs, sources left to right."""
    judge.canonical(
        f"""
        {Y}
        {X}
        unused = NEG y
        a = FLOORDIV x y
        b = FLOORMOD y x
        c = FLOORDIV a b
        return c
        """,
        to="""
        %0 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %1 = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
        %2 = FLOORDIV %0 %1
        %3 = FLOORMOD %1 %0
        %4 = FLOORDIV %2 %3
        return %4
        """,
    )


def test_post_order_goes_deep_first(judge):
    """A source's whole graph comes before the next source, however long."""
    judge.canonical(
        f"""
        {X}
        {Y}
        a = FLOORDIV x y
        b = FLOORMOD a y
        c = FLOORDIV y b
        return c a
        """,
        to="""
        %0 = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
        %1 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %2 = FLOORDIV %1 %0
        %3 = FLOORMOD %2 %0
        %4 = FLOORDIV %0 %3
        return %4 %2
        """,
    )


def test_outputs_in_order(judge):
    """Outputs are numbered from the first to the last, and return repeats what is repeated."""
    judge.canonical(
        f"""
        {X}
        {Y}
        a = FLOORDIV x y
        b = FLOORDIV y x
        return b x a b
        """,
        to="""
        %0 = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
        %1 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %2 = FLOORDIV %0 %1
        %3 = FLOORDIV %1 %0
        return %2 %1 %3 %2
        """,
    )


def test_equal_nodes_are_one(judge):
    """Nodes of one op with equal sources and arguments are one node, under any names."""
    judge.canonical(
        f"""
        {X}
        again = PARAM : {{"shape": [], "dtype": "int32", "slot": 0}}
        {Y}
        a = FLOORDIV x y
        b = FLOORDIV again y
        c = FLOORMOD a b
        d = FLOORMOD b a
        return c d
        """,
        to="""
        %0 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %1 = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
        %2 = FLOORDIV %0 %1
        %3 = FLOORMOD %2 %2
        return %3 %3
        """,
    )


def test_nothing_unneeded(judge):
    """Comments, names and statements that no output needs are gone."""
    judge.canonical(
        f"""
        {X}
        {Y}
        a = ADD x y   # not needed
        b = NEG a
        c = NEG x
        return c      # the end
        """,
        to="""
        %0 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %1 = NEG %0
        return %1
        """,
    )


def test_order_of_keys(judge):
    """Keys stand in the order of the op table, a blank after each comma and colon."""
    judge.canonical(
        """
        x = PARAM : {"range":[0,7],"shape":[],"dtype":"uint8","slot":3}
        y = PARAM : {"shape":[2,0,1],"slot":0,"dtype":"float32"}
        c = CONST : {"dtype":"bool","value":true}
        return x y c
        """,
        to="""
        %0 = PARAM : {"slot": 3, "dtype": "uint8", "shape": [], "range": [0, 7]}
        %1 = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 0, 1]}
        %2 = CONST : {"value": true, "dtype": "bool"}
        return %0 %1 %2
        """,
    )


def test_dtype_as_argument(judge):
    """The argument of CAST is a JSON string."""
    judge.canonical(
        f"""
        {X}
        y = CAST x:"float32"
        return y
        """.replace("x:", "x : "),
        to="""
        %0 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %1 = CAST %0 : "float32"
        return %1
        """,
    )


def test_integers_in_full(judge):
    """Integers are printed with all their digits."""
    judge.canonical(
        """
        a = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        b = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        c = CONST : {"value": -0, "dtype": "int8"}
        return a b c
        """,
        to="""
        %0 = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        %1 = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        %2 = CONST : {"value": 0, "dtype": "int8"}
        return %0 %1 %2
        """,
    )


def test_non_finite_floats(judge):
    """Infinities and NaN are printed as strings; all NaNs are one."""
    judge.canonical(
        """
        a = CONST : {"value": "inf", "dtype": "float32"}
        b = CONST : {"value": "-inf", "dtype": "float32"}
        c = CONST : {"value": "nan", "dtype": "float32"}
        d = ADD a b
        return a b c d
        """,
        to="""
        %0 = CONST : {"value": "inf", "dtype": "float32"}
        %1 = CONST : {"value": "-inf", "dtype": "float32"}
        %2 = CONST : {"value": "nan", "dtype": "float32"}
        return %0 %1 %2 %2
        """,
    )


def test_floats_in_the_shortest_form(judge):
    """Floats have the fewest digits that read back as the same value of their dtype."""
    judge.canonical(
        """
        a = CONST : {"value": 0.1, "dtype": "float32"}
        b = CONST : {"value": 0.10000000149011612, "dtype": "float32"}
        c = CONST : {"value": 0.3333333333333333, "dtype": "float64"}
        d = CONST : {"value": 0.0999755859375, "dtype": "float16"}
        e = CONST : {"value": 65504, "dtype": "float16"}
        f = CONST : {"value": 16777218, "dtype": "float32"}
        g = CONST : {"value": 0.015625, "dtype": "float16"}
        return a b c d e f g
        """,
        to="""
        %0 = CONST : {"value": 0.1, "dtype": "float32"}
        %1 = CONST : {"value": 0.3333333333333333, "dtype": "float64"}
        %2 = CONST : {"value": 0.1, "dtype": "float16"}
        %3 = CONST : {"value": 65500, "dtype": "float16"}
        %4 = CONST : {"value": 16777218, "dtype": "float32"}
        %5 = CONST : {"value": 0.01563, "dtype": "float16"}
        return %0 %0 %1 %2 %3 %4 %5
        """,
    )


def test_spelling_of_floats(judge):
    """Floats are spelled plainly from 1e-6 to 1e21, and with an exponent beyond."""
    judge.canonical(
        """
        a = CONST : {"value": 2.0, "dtype": "float32"}
        b = CONST : {"value": 1e-9, "dtype": "float64"}
        c = CONST : {"value": 0.0000015, "dtype": "float64"}
        d = CONST : {"value": 1e20, "dtype": "float64"}
        e = CONST : {"value": 1.5e21, "dtype": "float64"}
        f = CONST : {"value": -65.50, "dtype": "float64"}
        g = CONST : {"value": -0.0, "dtype": "float64"}
        h = CONST : {"value": 0, "dtype": "float64"}
        return a b c d e f g h
        """,
        to="""
        %0 = CONST : {"value": 2, "dtype": "float32"}
        %1 = CONST : {"value": 1e-9, "dtype": "float64"}
        %2 = CONST : {"value": 0.0000015, "dtype": "float64"}
        %3 = CONST : {"value": 100000000000000000000, "dtype": "float64"}
        %4 = CONST : {"value": 1.5e+21, "dtype": "float64"}
        %5 = CONST : {"value": -65.5, "dtype": "float64"}
        %6 = CONST : {"value": -0, "dtype": "float64"}
        %7 = CONST : {"value": 0, "dtype": "float64"}
        return %0 %1 %2 %3 %4 %5 %6 %7
        """,
    )


def test_settled(judge):
    """The canonical form of a canonical form is itself."""
    judge.canonical(
        f"""
        {X}
        {Y}
        a = ADD x y
        b = MUL a a
        return b a
        """
    )
    judge.settles(
        f"""
        {X}
        {Y}
        a = ADD x y
        b = MUL a a
        return b a
        """
    )
