"""What `grad` refuses, with E416 and a sentence."""

import pytest

X = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}'
I = 'i = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}'
SUM = 'y = REDUCE x : {"op": "ADD", "axes": 1}'
B = 'b = ALLOC : {"slot": 0, "dtype": "float32", "shape": [3]}'
R = 'r = RANGE : {"id": 0, "size": 3}'


def program(*lines):
    return "\n".join(lines) + "\n"


OUTPUTS = {
    "an array": (X, "return x"),
    "an array of one element": (X, "s = SHRINK x : [[0, 1]]", "return s"),
    "an integer": (
        X,
        'i = CAST x : "int32"',
        'y = REDUCE i : {"op": "ADD", "axes": 1}',
        "return y",
    ),
    "a bool": (X, SUM, 'b = CAST y : "bool"', "return b"),
    "two scalars": (X, SUM, "z = NEG y", "return y z"),
    "one scalar twice": (X, SUM, "return y y"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(judge, name):
    """A program has derivatives if it has one output, a float scalar."""
    judge.rejects(program(*OUTPUTS[name]), "E416", verb="grad --wrt 0")


USES = 'f = CAST i : "float32"', "p = MUL x f", 'y = REDUCE p : {"op": "ADD", "axes": 1}'


@pytest.mark.parametrize("slots", ["1", "2", "0,1", "0,2", "0,0", "2,0", "1,1"])
def test_slots(judge, slots):
    """Slots are those of float PARAMs of the program, each named once."""
    judge.rejects(program(X, I, *USES, "return y"), "E416", verb=f"grad --wrt {slots}")


WAYS = {
    "STORE": (B, "s = STORE b x", "v = AFTER b s"),
    "STORE of what is computed": (B, "n = NEG x", "s = STORE b n", "v = AFTER b s"),
    "STORE to a part": (
        B,
        "z = SHRINK x : [[0, 2]]",
        "q = SHRINK b : [[1, 3]]",
        "s = STORE q z",
        "v = AFTER b s",
    ),
    "BUFFER": (
        B.replace("ALLOC", "BUFFER"),
        "o = LOAD b",
        "n = ADD o x",
        "s = STORE b n",
        "v = AFTER b s",
    ),
    "AFTER": (B, "n = NEG x", "s = STORE b n", "v = AFTER x s"),
    "a loop of stores": (
        B,
        R,
        "p = INDEX x r",
        "u = LOAD p",
        "q = INDEX b r",
        "s = STORE q u",
        "e = END s r",
        "v = AFTER b e",
    ),
    "STAGE over a loop": (R, "p = INDEX x r", "u = LOAD p", "v = STAGE u r"),
    "REDUCE over a loop": (
        R,
        "p = INDEX x r",
        "u = LOAD p",
        "w = MUL u u",
        'z = REDUCE w r : {"op": "ADD", "axes": 0}',
        "v = EXPAND z : [3]",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_storage_and_loops(judge, name):
    """Nothing is derived through storage or loops."""
    lines = [*WAYS[name], 'y = REDUCE v : {"op": "ADD", "axes": 1}', "return y"]
    judge.rejects(program(X, *lines), "E416", verb="grad --wrt 0")


def test_wrong_programs(judge):
    """What is wrong with the text comes first, at its line."""
    text = program(X, "q = NIG x", SUM, "return y")
    judge.rejects(text, "E301", line=3, verb="grad --wrt 0")
    judge.rejects(program(X, "q = RESHAPE x : [2]", SUM, "return y"), "E404", verb="grad --wrt 0")
