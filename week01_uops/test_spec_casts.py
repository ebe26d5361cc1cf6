"""CASTs that go away, and CASTs that stay."""


def test_cast_to_itself(judge):
    """A CAST to the dtype that x has is x."""
    for dtype in ["bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float64"]:
        x = f'x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": []}}'
        judge.simplifies(f'{x}\ny = CAST x : "{dtype}"\nreturn y', to=f"{x}\nreturn x")


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
