"""The ops of week 3 as text: what a reader prints and refuses."""

X = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 3]}'
B = 'b = PARAM : {"slot": 1, "dtype": "bool", "shape": [2]}'


def test_canonical(judge):
    """Arguments of week 3's ops are printed as lists and objects with keys in order."""
    judge.canonical(
        f"""
        {X}
        p = PERMUTE x : [1,0]
        a = PAD p : [[0,1],[2,0]]
        f = FLIP a : [1, 0]
        s = SHRINK f : [[1,3],[0,4]]
        r = RESHAPE s : [8]
        e = EXPAND r : [3,8]
        m = REDUCE e : {{"axes": 1, "op": "MAX"}}
        return m
        """
    )


def test_wrong_form(judge):
    """An argument of the wrong form is an E3xx."""
    for line in [
        "y = RESHAPE x",
        "y = RESHAPE x : 6",
        "y = RESHAPE x : [-1]",
        "y = RESHAPE x : [6.0]",
        "y = EXPAND x : [-2, 3]",
        "y = PERMUTE x : [0, 0]",
        "y = PERMUTE x : [1, -1]",
        "y = FLIP x : [0, 0]",
        "y = FLIP x : [-1]",
        "y = FLIP x : 0",
        "y = PAD x : [[-1, 0], [0, 0]]",
        "y = PAD x : [[0], [0, 0]]",
        "y = PAD x : [0, 0]",
        "y = SHRINK x : [[2, 1], [0, 3]]",
        "y = SHRINK x : [[-1, 1], [0, 3]]",
        'y = REDUCE x : {"op": "ADD"}',
        'y = REDUCE x : {"op": "SUB", "axes": 1}',
        'y = REDUCE x : {"op": "add", "axes": 1}',
        'y = REDUCE x : {"op": "ADD", "axes": -1}',
        'y = REDUCE x : {"op": "ADD", "axes": [0]}',
        'y = REDUCE x : "ADD"',
    ]:
        judge.rejects(f"{X}\n{B}\n{line}\nreturn x", "E3", line=4)


def test_wrong_types(judge):
    """An argument that does not fit its source is an E4xx."""
    for line in [
        "y = RESHAPE x : [5]",
        "y = RESHAPE x : []",
        "y = EXPAND x : [2, 4]",
        "y = EXPAND x : [3]",
        "y = EXPAND x : [2, 3, 1]",
        "y = PERMUTE x : [0]",
        "y = PERMUTE x : [0, 2]",
        "y = FLIP x : [2]",
        "y = PAD x : [[0, 0]]",
        "y = SHRINK x : [[0, 2]]",
        "y = SHRINK x : [[0, 3], [0, 3]]",
        'y = REDUCE x : {"op": "ADD", "axes": 3}',
        'y = REDUCE b : {"op": "ADD", "axes": 1}',
    ]:
        judge.rejects(f"{X}\n{B}\n{line}\nreturn x", "E4", line=4)


def test_later_op(judge):
    """With --week 3, an op of a later week is an E3xx."""
    judge.rejects(f"{X}\ny = STAGE x\nreturn y", "E3", line=3, verb="simplify --week 3")


def test_too_large(judge):
    """Past 2^47 elements a program is refused with E5xx, also where a movement op makes them."""
    judge.rejects(f"{X}\ny = RESHAPE x : [2, 3, 1]\nz = EXPAND y : [2, 3, {2**46}]\nreturn x", "E5")
    judge.rejects(f"{X}\ny = PAD x : [[0, {2**47}], [0, 0]]\nreturn x", "E5", line=3)


def test_written_through_expand(judge):
    """STORE through EXPAND or PAD is an E4xx: two elements, or none, would be one place."""
    place = 't = ALLOC : {"slot": 0, "dtype": "float32", "shape": [1, 3]}'
    expand = "e = EXPAND t : [2, 3]\ns = STORE e x\na = AFTER t s\nreturn a"
    judge.rejects(f"{X}\n{place}\n{expand}", "E4", line=5)
    pad = "e = PAD t : [[0, 1], [0, 0]]\ns = STORE e x\na = AFTER t s\nreturn a"
    judge.rejects(f"{X}\n{place}\n{pad}", "E4", line=5)
