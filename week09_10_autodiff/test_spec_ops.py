"""The derivative of each op, by all elements of all inputs, once and twice."""

import re

import pytest


def param(slot, *shape, dtype="float32", **more):
    extra = "".join(f', "{key}": {value}' for key, value in more.items())
    return f'PARAM : {{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}{extra}}}'


def const(value, dtype="float32"):
    return f'CONST : {{"value": {value}, "dtype": "{dtype}"}}'


def total(x, rank, op="ADD"):
    return f'REDUCE {x} : {{"op": "{op}", "axes": {rank}}}'


def summed(lines, rank, result="y"):
    """A program that sums the squares of an array of this rank."""
    return f"""
        {lines}
        squared = MUL {result} {result}
        sum = {total("squared", rank)}
        return sum
        """


A = f"a = {param(0, 2, 3)}"
B = f"b = {param(1, 2, 3)}"
ROW = f"b = {param(1, 3)}"
COLUMN = f"b = {param(1, 2, 1)}"
SCALAR = f"b = {param(1)}"
POSITIVE = "e = EXP2 a"

BINARY = {
    f"{op}, {name}": f"""
        {A}
        {other}
        y = {op} a b"""
    for op in ("ADD", "MUL", "MAX")
    for name, other in (("alike", B), ("a row", ROW), ("a column", COLUMN), ("a scalar", SCALAR))
}

UNARY = {
    "NEG": "y = NEG a",
    "EXP2": "y = EXP2 a",
    "RECIP": f"""{POSITIVE}
        y = RECIP e""",
    "LOG2": f"""{POSITIVE}
        s = ADD e e
        y = LOG2 s""",
    "CAST to a wider float": """c = CAST a : "float64"
        y = MUL c c""",
    "CAST to a narrower float": """c = CAST a : "float16"
        y = MUL c c""",
    "CAST to an integer": """i = CAST a : "int32"
        g = CAST i : "float32"
        y = MUL g a""",
    "CMPLT": f"""zero = {const(0)}
        n = CMPLT a zero
        m = NEG a
        y = WHERE n m a""",
    "CMPNE": f"""zero = {const(0)}
        n = CMPNE a zero
        g = CAST n : "float32"
        y = MUL g a""",
    "FLOORDIV and FLOORMOD": f"""i = CAST a : "int32"
        two = {const(2, "int32")}
        q = FLOORDIV i two
        r = FLOORMOD i two
        s = ADD q r
        g = CAST s : "float32"
        y = MUL g a""",
    "a square root": f"""{POSITIVE}
        l = LOG2 e
        half = {const(0.5)}
        h = MUL l half
        y = EXP2 h""",
    "a node with three uses": """q = MUL a a
        r = MUL q a
        s = ADD q r
        y = MUL s q""",
}

MOVEMENT = {
    "RESHAPE": ("y = RESHAPE a : [3, 2]", 2),
    "RESHAPE to one axis": ("y = RESHAPE a : [6]", 1),
    "EXPAND of new axes": ("y = EXPAND a : [4, 2, 3]", 3),
    "EXPAND of an axis of 1": (
        """r = RESHAPE a : [2, 1, 3]
        y = EXPAND r : [2, 5, 3]""",
        3,
    ),
    "PERMUTE": ("y = PERMUTE a : [1, 0]", 2),
    "PERMUTE of three axes": (
        """r = RESHAPE a : [1, 2, 3]
        y = PERMUTE r : [2, 0, 1]""",
        3,
    ),
    "FLIP": ("y = FLIP a : [1, 0]", 2),
    "PAD": ("y = PAD a : [[1, 0], [0, 2]]", 2),
    "SHRINK": ("y = SHRINK a : [[1, 2], [0, 2]]", 2),
    "SHRINK to nothing": ("y = SHRINK a : [[1, 1], [0, 2]]", 2),
    "windows": (
        """r = RESHAPE a : [6]
        e = EXPAND r : [4, 6]
        f = RESHAPE e : [24]
        s = SHRINK f : [[0, 21]]
        w = RESHAPE s : [3, 7]
        y = SHRINK w : [[0, 3], [0, 4]]""",
        2,
    ),
    "STAGE": ("y = STAGE a", 2),
}

REDUCTIONS = {
    "sums": (total("a", 1), 1),
    "sums over no axis": (total("a", 0), 2),
    "a sum of all": (total("a", 2), 0),
    "products": (total("a", 1, "MUL"), 1),
    "a product of all": (total("a", 2, "MUL"), 0),
    "maxima": (total("a", 1, "MAX"), 1),
    "a maximum of all": (total("a", 2, "MAX"), 0),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_ops(judge, name):
    """Both sources of a binary op, broadcast or not."""
    judge.differentiates(summed(BINARY[name], 2), times=2)


@pytest.mark.parametrize("name", UNARY)
def test_unary_ops(judge, name):
    """Functions of one array, and what is made of them."""
    judge.differentiates(summed(f"{A}\n{UNARY[name]}", 2), times=2)


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(judge, name):
    """Each element's derivative comes back to where it came from."""
    lines, rank = MOVEMENT[name]
    bend = "q = EXP2 a\nb = ADD a q"
    moved = re.sub(r"\ba\b", "b", lines)
    judge.differentiates(summed(f"{A}\n{bend}\n{moved}", rank), times=2)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(judge, name):
    """Sums, products and maxima over the first axes."""
    line, rank = REDUCTIONS[name]
    judge.differentiates(summed(f"{A}\ny = {line}", rank), times=2)


def test_sources_broadcast_to_three_axes(judge):
    """An axis of 1 in the middle, and axes that are missing."""
    text = f"""
        a = {param(0, 2, 1, 3)}
        b = {param(1, 4, 1)}
        c = {param(2)}
        p = MUL a b
        y = ADD p c"""
    judge.differentiates(summed(text, 3), times=2)


def test_where(judge):
    """The side that is taken gets the derivative, summed where it was broadcast."""
    text = f"""
        a = {param(0, 2, 3)}
        b = {param(1, 3)}
        c = {param(2, 2, 1, dtype="bool")}
        y = WHERE c a b"""
    judge.differentiates(summed(text, 2), times=2)


@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX"])
def test_both_sources_alike(judge, op):
    """A node that is both sources gets both parts."""
    judge.differentiates(summed(f"{A}\nd = NEG a\ny = {op} d d", 2), times=2)


def test_equal_maxima(judge):
    """Equal sources of MAX get half each, k equal elements of a REDUCE a k-th each."""
    text = f"""
        a = {param(0, 4)}
        b = {param(1, 4)}
        w = {param(2, 4)}
        m = MAX a b
        p = MUL m w
        y = {total("p", 1)}
        return y
        """
    ties = {0: [1, 2, 3, -1], 1: [1, 3, 2, -1], 2: [1, 10, 100, 1000]}
    judge.differentiates(text, inputs=ties)
    text = f"""
        a = {param(0, 4, 2)}
        m = {total("a", 1, "MAX")}
        y = {total("m", 1)}
        return y
        """
    judge.differentiates(text, inputs={0: [[1, 2], [3, 2], [3, 0], [3, 1]]})


@pytest.mark.parametrize("zeros", [1, 2, 3, 5])
def test_products_with_zeros(judge, zeros):
    """The derivative of a product by an element is the product of the others, 0 or not."""
    text = f"""
        a = {param(0, 5)}
        y = {total("a", 1, "MUL")}
        return y
        """
    judge.differentiates(text, inputs={0: [0] * zeros + [2, 3, 5, 7, 11][zeros:]})
    judge.differentiates(text, inputs={0: [2, 3, 5, 7, 11][zeros:] + [0] * zeros}, times=2)


def test_no_elements(judge):
    """Empty arrays have empty derivatives; what a sum of nothing is multiplied with gets 0."""
    text = f"""
        a = {param(0, 0, 3)}
        b = {param(1, 3)}
        s = {total("a", 1)}
        p = MUL s b
        y = {total("p", 1)}
        return y
        """
    judge.differentiates(text, times=2)


def test_axes_of_one(judge):
    """Axes of size 1 are summed over only where they were repeated."""
    text = f"""
        a = {param(0, 1, 3)}
        b = {param(1, 1, 1)}
        p = MUL a b
        y = ADD p b"""
    judge.differentiates(summed(text, 2), times=2)


INDICES = {
    "a row": ("p = INDEX q i", 1, (param(1, dtype="int64"),)),
    "rows": ("p = INDEX q i", 2, (param(1, 4, dtype="int32"),)),
    "an element": ("p = INDEX q i j", 0, (param(1, dtype="int64"), param(2, dtype="int8"))),
    "a grid": ("p = INDEX q i j", 2, (param(1, 3, dtype="int32"), param(2, 2, dtype="int32"))),
    "a column": ("p = INDEX q i j", 1, (param(1, 3, dtype="int32"), param(2, dtype="int32"))),
}


@pytest.mark.parametrize("name", INDICES)
def test_places(judge, name):
    """What is read twice gets both parts, whether it is an input or a temporary."""
    line, rank, kinds = INDICES[name]
    indices = "\n".join(f"{i} = {kind}" for i, kind in zip("ij", kinds, strict=False))
    for place in ("q = STAGE e", "q = FLIP a : [0]"):
        text = f"a = {param(0, 4, 3)}\ne = EXP2 a\n{indices}\n{place}\n{line}\ny = LOAD p"
        judge.differentiates(summed(text, rank), times=2)


def test_gates(judge):
    """Where the gate is false, the alternative gets the derivative."""
    for gate in ("", "4, 3"):
        text = f"""
            a = {param(0, 5, 3)}
            i = {param(1, 4, dtype="int32")}
            g = PARAM : {{"slot": 2, "dtype": "bool", "shape": [{gate}]}}
            o = {param(3, 3)}
            p = INDEX a i
            y = LOAD p g o"""
        judge.differentiates(summed(text, 2), times=2)


NARROW = ["float16", "bfloat16", "float64"]


@pytest.mark.parametrize("dtype", NARROW)
def test_dtypes(judge, dtype):
    """A derivative has the dtype of its input."""
    text = f"""
        a = {param(0, 3, dtype=dtype)}
        b = {param(1, 3)}
        c = CAST a : "float32"
        p = MUL b c
        q = EXP2 p
        y = {total("q", 1)}
        return y
        """
    judge.differentiates(text)


SPECIAL = {
    "0 · log2 0": ("l = LOG2 a\ny = MUL a l", [0.0, 1.0, 2.0, 4.0, 0.5, 8.0]),
    "x / x": ("r = RECIP a\ny = MUL a r", [0.0, 1.0, 2.0, -4.0, 0.5, 8.0]),
    "1 / 0 of another element": ("y = RECIP a", [0.0, 1.0, 2.0, -4.0, 0.5, 8.0]),
    "√ 0": (f"l = LOG2 a\nh = {const(0.5)}\nk = MUL l h\ny = EXP2 k", [0.0, 1, 4, 9, 16, 25]),
    "an overflow": ("y = EXP2 a", [2000.0, 0, 1, 2, 3, -2000.0]),
    "infinity": ("y = MUL a a", ["inf", 1, 2, 3, 4, "-inf"]),
    "a side that is not taken": (
        f"z = {const(0)}\nn = CMPLT z a\nl = LOG2 a\ny = WHERE n l a",
        [0.0, 1.0, -1.0, 2.0, 4.0, 0.0],
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(judge, name):
    """No derivative that is not finite is taken for a number, and no number is lost."""
    lines, values = SPECIAL[name]
    values = [float(v) for v in values]
    text = f"{A}\n{lines}\nsum = {total('y', 2)}\nreturn sum"
    judge.differentiates(text, inputs={0: [values[:3], values[3:]]})


def test_steps_alone(judge):
    """What depends on an input by comparisons and integers alone has derivative 0."""
    text = f"""
        a = {param(0, 4)}
        b = {param(1, 4)}
        n = CMPLT a b
        g = CAST n : "float32"
        y = {total("g", 1)}
        return y
        """
    judge.differentiates(text)


def test_order_of_slots(judge):
    """The derivatives come in the order in which they are asked for."""
    text = f"""
        a = {param(4, 2)}
        b = {param(2, 2)}
        c = {param(0, 2, dtype="int32")}
        f = CAST c : "float32"
        p = MUL a b
        q = MUL p f
        r = MUL q b
        y = {total("r", 1)}
        return y
        """
    for slots in ([2, 4], [4, 2], [4], [2]):
        judge.differentiates(text, slots)
