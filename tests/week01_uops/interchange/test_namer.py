"""Listings of a program before and after a pass differ in little."""

import difflib

from week01_uops.dtypes import float32
from week01_uops.interchange import Namer
from week01_uops.node import const
from week01_uops.ops import ADD, EXP2, LOG2, MUL, NEG, param, program

X = param(0, float32)
Y = param(1, float32)


def difference(before, after):
    namer = Namer()
    first, second = namer.listing(before), namer.listing(after)
    lines = difflib.unified_diff(first, second, lineterm="", n=0)
    return [line for line in lines if line[:3] not in ("---", "+++") and line[0] != "@"]


def test_the_first_listing_is_canonical():
    assert Namer().listing(program(NEG(X))) == [
        '%0 = PARAM : {"slot": 0, "dtype": "float32", "shape": []}',
        "%1 = NEG %0",
        "return %1",
    ]


def test_same_program_same_names():
    both = program(ADD(NEG(X), Y))
    assert difference(both, both) == []


def test_a_rewrite_deep_down_keeps_the_names_above():
    def tower(x):
        return program(NEG(EXP2(ADD(NEG(LOG2(x)), Y))))

    assert difference(tower(MUL(X, const(1.0, float32))), tower(X)) == [
        '-%1 = CONST : {"value": 1, "dtype": "float32"}',
        "-%2 = MUL %0 %1",
        "-%3 = LOG2 %2",
        "+%3 = LOG2 %0",
    ]


def test_a_new_node_has_a_name_that_was_never_used():
    namer = Namer()
    namer.listing(program(ADD(X, Y)))
    namer.listing(program(X))
    assert namer.listing(program(NEG(X)))[1:] == ["%3 = NEG %0", "return %3"]


def test_names_are_unique_where_positions_merge_and_split():
    namer = Namer()
    shared = NEG(X)
    for each in (
        program(ADD(shared, shared), EXP2(X)),
        program(ADD(NEG(Y), NEG(X)), EXP2(Y)),
        program(ADD(NEG(Y), NEG(Y)), EXP2(NEG(Y))),
        program(ADD(NEG(X), NEG(EXP2(Y))), NEG(Y)),
    ):
        lines = namer.listing(each)[:-1]
        names = [line.split()[0] for line in lines]
        assert len(set(names)) == len(names) == len(each.toposort()) - 1


def test_other_numbers_of_outputs():
    assert difference(program(NEG(X)), program(NEG(X), X)) == ["-return %1", "+return %1 %0"]
