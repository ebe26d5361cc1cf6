"""Inlining of CALLs: scopes, sharing, depth."""

import pytest

from week01_uops import calls
from week01_uops.calls import inline, substitute
from week01_uops.compiler import COMPILER, INLINED, REFERENCE
from week01_uops.dtypes import float32, int32
from week01_uops.errors import ProgramError
from week01_uops.interface import UnsupportedError
from week01_uops.node import const
from week01_uops.ops import ADD, CALL, EXP2, MUL, NEG, param, program
from week01_uops.passes import verifier
from week01_uops.rewrite import Trace

a, b, c = (param(slot, float32) for slot in range(3))


def inlined(*outputs):
    return inline(program(*outputs), Trace()).src


def test_a_body_gets_its_arguments():
    assert inlined(CALL(MUL(a, EXP2(b)), NEG(c), a)) == (MUL(NEG(c), EXP2(a)),)


def test_params_of_arguments_are_the_callers():
    """Exchanging two inputs: what is put in is not searched again."""
    body = ADD(a, MUL(b, 2.0))
    assert inlined(CALL(body, b, a)) == (ADD(b, MUL(a, 2.0)),)


def test_a_body_that_calls():
    inner = ADD(a, 1.0)
    outer = MUL(CALL(inner, NEG(a)), CALL(inner, b))
    assert inlined(CALL(outer, b, c)) == (MUL(ADD(NEG(b), 1.0), ADD(c, 1.0)),)


def test_an_argument_that_calls():
    body = ADD(a, 1.0)
    assert inlined(CALL(body, CALL(body, CALL(body, c)))) == (ADD(ADD(ADD(c, 1.0), 1.0), 1.0),)


def test_gaps_between_slots():
    body = MUL(a, c)
    assert inlined(CALL(body, a, b, c)) == (MUL(a, c),)


def test_a_body_without_params():
    assert inlined(CALL(const(3.0, float32))) == (const(3.0, float32),)


def test_the_same_call_is_one_node():
    call = CALL(EXP2(a), NEG(b))
    first, second = inlined(ADD(call, call), call)
    assert first is ADD(second, second)


def test_shapes_and_names():
    wide = param(0, float32, (2, 3))
    assert inlined(CALL(ADD(wide, 1.0), wide)) == (ADD(wide, 1.0),)
    assert inlined(CALL(ADD(a, 1.0), b, arg={"name": "f"})) == (ADD(b, 1.0),)


def test_a_deep_chain_of_calls():
    body = ADD(a, 1.0)
    value = b
    for _ in range(50_000):
        value = CALL(body, value)
    (result,) = inlined(value)
    assert len(result.toposort()) == 50_002


def test_calls_that_double_stay_shared():
    """f₀(x) = x + x, fₖ₊₁(x) = fₖ(x)·fₖ(x): a graph of one node a level."""
    body = ADD(a, a)
    for _ in range(200):
        call = CALL(body, a)
        body = MUL(call, call)
    (result,) = inlined(CALL(body, b))
    assert len(result.toposort()) == 202


def test_an_explosion_is_refused(monkeypatch):
    """fₖ₊₁(x) = fₖ(fₖ(x)) unfolds to 2^k nodes."""
    monkeypatch.setattr(calls, "LIMIT", 10_000)
    body = NEG(EXP2(a))
    for _ in range(40):
        body = CALL(body, CALL(body, a))
    with pytest.raises(ProgramError, match="E501"):
        inlined(body)


def test_calls_are_counted():
    trace = Trace()
    inline(program(CALL(NEG(a), b), CALL(NEG(a), c)), trace)
    assert trace.fired["inline"] == 2


def test_substitute():
    node = ADD(MUL(a, b), a)
    assert substitute(node, {a: b, b: a}) is ADD(MUL(b, a), b)
    assert substitute(node, {MUL(a, b): c}) is ADD(c, a)
    assert substitute(node, {c: a}) is node
    assert substitute(node, {node: c}) is c


def test_substitute_leaves_bodies_alone():
    node = CALL(NEG(a), a)
    assert substitute(node, {a: b}) is CALL(NEG(a), b)


# The compiler of week 1.


def test_the_compiler_leaves_no_call():
    source = program(CALL(MUL(a, 1.0), ADD(b, 0.0)))
    assert COMPILER.run(source, [verifier]) is program(b)
    INLINED.verify(program(b))


def test_the_reference_simplifies_only():
    x = param(0, int32)
    source = program(ADD(CALL(NEG(x), x), x))
    assert REFERENCE.simplify(source) is program(const(0, int32))
    with pytest.raises(UnsupportedError, match="nothing yet"):
        REFERENCE.compile(source, "c")
    with pytest.raises(UnsupportedError, match="week 9"):
        REFERENCE.grad(source, [0])
