"""The node: interning, properties, arguments, and programs of any depth."""

import gc
import math
import pickle
import threading

import pytest

from week01_uops.dtypes import bool_, float16, float32, int8, int32, uint8
from week01_uops.errors import ProgramError
from week01_uops.node import UOp, const, make, recursive, toposort
from week01_uops.ops import (
    ADD,
    CALL,
    CAST,
    CMPLT,
    FLOORDIV,
    MUL,
    NEG,
    PARAM,
    RETURN,
    WHERE,
    param,
    parameters,
    program,
)

f, g, i = param(0, float32), param(1, float32), param(2, int32)


def test_equal_nodes_are_one_object():
    assert ADD(f, g) is ADD(f, g)
    assert ADD(f, g) is not ADD(g, f)
    assert const(1, int32) is const(1, int32)
    assert const(1, int32) is not const(1, int8)
    assert CAST(f, arg=int32) is CAST(f, arg="int32")


def test_constants_differ_by_their_bits():
    assert const(0.0, float32) is not const(-0.0, float32)
    assert const(math.nan, float32) is const(-math.nan, float32)
    assert const(True, bool_) is not const(1, int8)
    assert const(0.1, float32) is const(0.1 + 1e-12, float32)
    assert const("inf", float16) is const(math.inf, float16)


def test_dead_nodes_are_forgotten():
    gc.collect()
    before = len(UOp._table)
    node = ADD(MUL(f, 17.5), 18.5)
    assert len(UOp._table) == before + 4
    del node
    gc.collect()
    assert len(UOp._table) <= before  # others' nodes may go as well


def test_threads_agree():
    made: list[UOp] = []

    def work() -> None:
        node = f
        for _ in range(300):
            node = NEG(MUL(node, 3.0))
        made.append(node)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1


def test_types_follow():
    row, column = param(3, float32, (3,)), param(4, float32, (2, 1))
    assert ADD(row, column).shape == (2, 3)
    assert CMPLT(row, column).dtype is bool_
    assert WHERE(CMPLT(row, column), f, g).shape == (2, 3)
    assert CAST(row, arg=int8).dtype is int8
    assert ADD(row, column).size == 6
    assert ADD(row, column).place is None
    assert row.place is not None


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: ADD(f, i), "E401"),
        (lambda: ADD(param(0, bool_), param(1, bool_)), "E402"),
        (lambda: FLOORDIV(f, g), "E402"),
        (lambda: ADD(param(0, int8, (2,)), param(1, int8, (3,))), "E403"),
        (lambda: NEG(f, g), "E303"),
        (lambda: RETURN(), "E303"),
        (lambda: CAST(f), "E304"),
        (lambda: NEG(f, arg=1), "E305"),
        (lambda: CAST(f, arg="int7"), "E310"),
        (lambda: const(200, int8), "E312"),
        (lambda: const(1e9, float16), "E312"),
        (lambda: const(1.5, int8), "E306"),
        (lambda: const(1, bool_), "E306"),
        (lambda: WHERE(f, f, f), "E402"),
        (lambda: param(0, int8, (), (3, 2)), "E311"),
        (lambda: param(0, float32, (), (0, 1)), "E311"),
        (lambda: PARAM(arg={"slot": -1, "dtype": "int8", "shape": []}), "E311"),
        (lambda: PARAM(arg={"slot": 0, "dtype": "int8"}), "E307"),
        (lambda: PARAM(arg={"slot": 0, "dtype": "int8", "shape": [], "rank": 0}), "E308"),
        (lambda: CALL(ADD(f, g), f), "E407"),
        (lambda: CALL(NEG(f), i), "E407"),
        (lambda: CALL(ADD(param(0, int8), CAST(f, arg=int8)), f), "E408"),
    ],
)
def test_faults_have_codes(build, code):
    with pytest.raises(ProgramError) as caught:
        build()
    assert caught.value.code == code


def test_wrong_python_is_told_at_once():
    with pytest.raises(TypeError, match="ADD: expected UOps as sources, got 'x'"):
        ADD(f, "x")
    with pytest.raises(TypeError, match="ADD: expected a UOp"):
        ADD(1, 2)
    with pytest.raises(TypeError, match="interchange"):
        pickle.dumps(f)


def test_numbers_become_constants():
    assert ADD(f, 1) is ADD(f, const(1, float32))
    assert ADD(2, i) is ADD(const(2, int32), i)
    assert WHERE(True, f, 0.0) is WHERE(const(True, bool_), f, const(0.0, float32))


def test_order_is_depth_first_and_each_node_once():
    shared = MUL(f, g)
    root = ADD(NEG(shared), shared)
    assert root.toposort() == [f, g, shared, NEG(shared), root]
    assert toposort((root, f), lambda node: ()) == [root, f]


def test_million_deep():
    node = i
    for _ in range(30_000):
        node = ADD(node, 0) if node.op is NEG else NEG(node)
    assert len(node.toposort()) == 30_002
    assert node.interval == (int32.min, int32.max)
    depth = recursive(lambda n: 1 + max((depth(s) for s in n.src), default=0))
    assert depth(node) == 30_001


def test_recursive_properties_are_computed_once():
    computed = []
    size = recursive(lambda node: computed.append(node) or sum(map(size, node.src)) + 1)
    root = ADD(MUL(f, g), MUL(f, g))
    assert size(root) == 7
    assert size(root) == 7
    assert len(computed) == 4


def test_parameters_of_a_body():
    body = ADD(f, g)
    assert parameters(body) == {0: f, 1: g}
    assert parameters(CALL(NEG(f), g)) == {1: g}


def test_programs():
    root = program(f, ADD(f, g))
    assert root.op is RETURN
    assert root.src == (f, ADD(f, g))
    assert make(RETURN, (f, ADD(f, g))) is root
    assert repr(const(200, uint8)) == "<CONST : 200 uint8 uint8[]>"
