"""What a reader refuses, with the family of the error and its line."""

X = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}'
Y = 'y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}'


def test_header(judge):
    """The first line is the header `uops 1`."""
    for text in [
        "",
        "\n",
        f"{X}\nreturn x\n",
        f"uop 1\n{X}\nreturn x\n",
        f"# first\nuops 1\n{X}\nreturn x\n",
        f"uops 2\n{X}\nreturn x\n",
        f"uops 1.0\n{X}\nreturn x\n",
        f"uops\n{X}\nreturn x\n",
    ]:
        judge.rejects(text, "E1", line=1, raw=True)


def test_grammar(judge):
    """A line that is not `name = OP sources : json` is an E1xx on that line."""
    for line in [
        "y NEG x",
        "y = ",
        "y=NEG x",
        "y = neg x",
        "y = Neg x",
        "1y = NEG x",
        "y-z = NEG x",
        "= NEG x",
        "return = NEG x",
        "uops = NEG x",
        "y = NEG x, x",
        "y = NEG (x)",
        "NEG x",
        "y = NEG x = x",
    ]:
        judge.rejects(f"{X}\n{line}\nreturn x", "E1", line=3)


def test_json(judge):
    """What stands behind the colon is one JSON value, and nothing follows it."""
    for json in [
        '{"slot": 0, "dtype": "int32", "shape": []',
        '{"slot": 0, "dtype": "int32", "shape": [}',
        "{'slot': 0, 'dtype': 'int32', 'shape': []}",
        '{"slot": 0, "dtype": "int32", "shape": [],}',
        '{"slot": 00, "dtype": "int32", "shape": []}',
        '{"slot": 0, "dtype": "int32", "shape": []} {}',
        '{"slot": 0, "dtype": "int32", "shape": []} x',
        "",
    ]:
        judge.rejects(f"x = PARAM : {json}\nreturn x", "E1", line=2)


def test_not_a_number(judge):
    """NaN and Infinity without quotes are no JSON."""
    judge.rejects('x = CONST : {"value": NaN, "dtype": "float32"}\nreturn x', "E1", line=2)
    judge.rejects('x = CONST : {"value": -Infinity, "dtype": "float32"}\nreturn x', "E1", line=2)


def test_bare_return(judge):
    """return names at least one output."""
    judge.rejects(f"{X}\nreturn", "E1", line=3)


def test_after_return(judge):
    """return is the last statement."""
    judge.rejects(f"{X}\nreturn x\ny = NEG x", "E1", line=4)
    judge.rejects(f"{X}\nreturn x\nreturn x", "E1", line=4)


def test_encoding(judge):
    """A program is UTF-8 without a byte-order mark."""
    good = f"uops 1\n{X}\nreturn x\n".encode()
    judge.rejects(b"\xef\xbb\xbf" + good, "E1", line=1)
    judge.rejects(good.replace(b"return", b"# \xff\xfe\nreturn"), "E1", line=3)


def test_arbitrary_bytes(judge):
    """A reader answers whatever the bytes are."""
    judge.rejects(bytes(range(256)) * 8, "E", raw=True)
    judge.rejects(b"uops 1\n" + b"[" * 100_000, "E1", raw=True)
    nested = "[" * 100_000
    judge.rejects(f"x = CONST : {nested}\nreturn x", "E", line=2)


def test_undefined(judge):
    """A name is defined before its first use."""
    judge.rejects(f"{X}\ny = ADD x z\nreturn y", "E2", line=3)
    judge.rejects(f"{X}\nz = NEG y\ny = NEG x\nreturn z", "E2", line=3)
    judge.rejects(f"{X}\ny = NEG y\nreturn y", "E2", line=3)
    judge.rejects(f"{X}\nreturn x z", "E2", line=3)


def test_redefined(judge):
    """A name is defined once."""
    judge.rejects(f"{X}\nx = NEG x\nreturn x", "E2", line=3)


def test_no_return(judge):
    """A program ends with a return."""
    judge.rejects(f"{X}\ny = NEG x\n", "E2")


def test_unknown_op(judge):
    """An op that does not exist is an E3xx."""
    judge.rejects(f"{X}\ny = SUB x x\nreturn y", "E3", line=3)
    judge.rejects(f"{X}\ny = RETURN x\nreturn y", "E3", line=3)


def test_later_op(judge):
    """With --week 1, an op of a later week is an E3xx."""
    for line in [
        'y = BUFFER : {"slot": 0, "dtype": "int32", "shape": []}',
        "y = LOAD x",
        "y = RESHAPE x : [1]",
        'y = RANGE : {"id": 0, "size": 3}',
        "y = STAGE x",
    ]:
        judge.rejects(f"{X}\n{line}\nreturn x", "E3", line=3, verb="simplify --week 1")


def test_number_of_sources(judge):
    """An op with too few or too many sources is an E3xx."""
    for line in [
        "y = NEG",
        "y = NEG x x",
        "y = ADD x",
        "y = ADD x x x",
        "y = WHERE x x",
        "y = CALL",
    ]:
        judge.rejects(f"{X}\n{line}\nreturn x", "E3", line=3)


def test_argument(judge):
    """An argument of the wrong form is an E3xx on its line."""
    for line in [
        "y = PARAM",
        "y = CONST",
        "y = CAST x",
        'y = NEG x : {"a": 1}',
        "y = NEG x : null",
        "y = CAST x : null",
        'y = CAST x : ["int8"]',
        "y = PARAM : [1]",
        'y = PARAM : {"slot": 1, "dtype": "int32"}',
        'y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "size": 3}',
        'y = PARAM : {"slot": 1, "slot": 1, "dtype": "int32", "shape": []}',
        'y = PARAM : {"slot": 1.0, "dtype": "int32", "shape": []}',
        'y = PARAM : {"slot": 1, "dtype": "int32", "shape": [12.0]}',
        'y = PARAM : {"slot": 1, "dtype": "int32", "shape": [1e1]}',
        'y = PARAM : {"slot": -1, "dtype": "int32", "shape": []}',
        'y = PARAM : {"slot": true, "dtype": "int32", "shape": []}',
        'y = PARAM : {"slot": 1, "dtype": "int32", "shape": [-1]}',
        'y = PARAM : {"slot": 1, "dtype": "int32", "shape": 3}',
        'y = PARAM : {"slot": 1, "dtype": "int33", "shape": []}',
        'y = PARAM : {"slot": 1, "dtype": "INT32", "shape": []}',
        'y = PARAM : {"slot": 1, "dtype": 32, "shape": []}',
        'y = CAST x : "int"',
        'y = CALL x x : {"title": "f"}',
    ]:
        judge.rejects(f"{X}\n{line}\nreturn x", "E3", line=3)


def test_constant_outside_its_dtype(judge):
    """A constant is a value of its dtype: true or false, an integer in range, or a number."""
    for value, dtype in [
        ("128", "int8"),
        ("-129", "int8"),
        ("-1", "uint8"),
        ("9223372036854775808", "int64"),
        ("18446744073709551616", "uint64"),
        ("1.0", "int32"),
        ("true", "int32"),
        ("1", "bool"),
        ("0", "bool"),
        ('"true"', "bool"),
        ("true", "float32"),
        ('"1"', "float32"),
        ('"Infinity"', "float32"),
        ("1e400", "float64"),
        ("3.5e38", "float32"),
        ("65520", "float16"),
        ("null", "float32"),
    ]:
        line = f'y = CONST : {{"value": {value}, "dtype": "{dtype}"}}'
        judge.rejects(f"{line}\nreturn y", "E3", line=2)


def test_param_range(judge):
    """A range is [lo, hi] with lo ≤ hi, on an integer scalar, within its dtype."""
    for dtype, shape, bounds in [
        ("int32", "[]", "[4, 3]"),
        ("int8", "[]", "[0, 128]"),
        ("uint8", "[]", "[-1, 3]"),
        ("float32", "[]", "[0, 1]"),
        ("bool", "[]", "[0, 1]"),
        ("int32", "[3]", "[0, 1]"),
        ("int32", "[]", "[0]"),
        ("int32", "[]", "[0.0, 1]"),
        ("int32", "[]", "3"),
    ]:
        line = f'x = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": {shape}, "range": {bounds}}}'
        judge.rejects(f"{line}\nreturn x", "E3", line=2)


F = 'f = PARAM : {"slot": 2, "dtype": "float32", "shape": []}'
B = 'b = PARAM : {"slot": 3, "dtype": "bool", "shape": []}'
V = 'v = PARAM : {"slot": 4, "dtype": "int32", "shape": [3]}'
W = 'w = PARAM : {"slot": 5, "dtype": "int32", "shape": [2]}'


def test_types(judge):
    """Sources of the wrong dtypes, or shapes that do not broadcast, are an E4xx."""
    for line in [
        "y = ADD x f",
        "y = CMPNE x b",
        "y = WHERE b x f",
        "y = WHERE x x x",
        "y = ADD b b",
        "y = NEG b",
        "y = CMPLT b b",
        "y = FLOORDIV f f",
        "y = FLOORMOD b b",
        "y = RECIP x",
        "y = EXP2 x",
        "y = LOG2 b",
        "y = ADD v w",
        "y = WHERE b v w",
    ]:
        judge.rejects("\n".join([X, F, B, V, W, line, "return x"]), "E4", line=7)


def test_broadcast_of_empty(judge):
    """A size of 0 broadcasts with 1 and 0 alone."""
    text = """
        a = PARAM : {"slot": 0, "dtype": "int32", "shape": [0]}
        b = PARAM : {"slot": 1, "dtype": "int32", "shape": [2]}
        c = ADD a b
        return c
        """
    judge.rejects(text, "E4", line=4)


def test_two_params_of_one_slot(judge):
    """Two PARAMs of one slot are equal."""
    x_again = 'y = PARAM : {"slot": 0, "dtype": "int32", "shape": []}'
    other = 'y = PARAM : {"slot": 0, "dtype": "int16", "shape": []}'
    judge.accepts(f"{X}\n{x_again}\nz = ADD x y\nreturn z")
    judge.rejects(f"{X}\n{other}\nreturn x y", "E4", line=3)


def test_limits(judge):
    """Past 32 axes or 2^47 elements a program is refused with E5xx."""
    ones = ", ".join(["1"] * 33)
    judge.rejects(
        f'x = PARAM : {{"slot": 0, "dtype": "int8", "shape": [{ones}]}}\nreturn x', "E5", line=2
    )
    huge = 'x = PARAM : {"slot": 0, "dtype": "int8", "shape": [4294967296, 32769]}'
    judge.rejects(f"{huge}\nreturn x", "E5", line=2)
    a = 'a = PARAM : {"slot": 0, "dtype": "int8", "shape": [16777216, 1]}'
    b = 'b = PARAM : {"slot": 1, "dtype": "int8", "shape": [16777216]}'
    judge.rejects(f"{a}\n{b}\nc = ADD a b\nreturn c", "E5", line=4)


def test_every_error(judge):
    """Every error is reported, not the first one alone."""
    text = f'{X}\ny = SUB x x\nz = ADD x q\nw = NEG x : 1\nv = CAST x : "int9"\nreturn x'
    judge.rejects(text, "E3", line=3)
    judge.rejects(text, "E2", line=4)
    judge.rejects(text, "E3", line=5)
    judge.rejects(text, "E3", line=6)
