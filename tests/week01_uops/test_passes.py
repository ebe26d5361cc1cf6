"""Dialects, passes, pipelines: values that are extended."""

import pytest

from week01_uops.compiler import COMPILER
from week01_uops.dtypes import float32
from week01_uops.errors import CompilerError
from week01_uops.ops import ADD, CALL, EXP2, MUL, NEG, OPS, PARAM, RETURN, param, program
from week01_uops.passes import (
    Dialect,
    Pass,
    Pipeline,
    on_kernels,
    rules_pass,
    top_nodes,
    verifier,
)
from week01_uops.pattern import Rule, var
from week01_uops.rewrite import Rules, Trace

f, g = param(0, float32), param(1, float32)
ALL = Dialect("all", OPS)
NO_NEG = Dialect("no NEG", OPS - {NEG})
STRIP = Rules("strip", (Rule("strip", NEG(var("x")), lambda x: x),))
SAME = Pass("same", "tensor", lambda program, trace: program, ALL)
STRIPPED = rules_pass("strip", "loop", STRIP, NO_NEG, "no NEG is left")
PIPELINE = Pipeline("test", ALL, (SAME, STRIPPED))


def test_a_pipeline_runs_its_passes_in_order():
    seen = []
    result = PIPELINE.run(program(NEG(f)), [lambda step: seen.append(step)])
    assert result is program(f)
    assert [step.of.name for step in seen] == ["same", "strip"]
    assert (seen[1].before, seen[1].after) == (program(NEG(f)), program(f))
    assert seen[1].trace.fired == {"strip": 1}
    assert seen[1].seconds >= 0


def test_until_a_level():
    assert PIPELINE.run(program(NEG(f)), until="tensor") is program(NEG(f))
    assert PIPELINE.run(program(NEG(f)), until="loop") is program(f)
    with pytest.raises(ValueError, match="expected one of the levels tensor, loop of test"):
        PIPELINE.run(program(f), until="kernel")


def test_pipelines_are_values():
    longer = PIPELINE.insert(Pass("again", "loop", STRIPPED.run, NO_NEG), after="same")
    assert [item.name for item in longer.passes] == ["same", "again", "strip"]
    shorter = PIPELINE.replace_pass("strip")
    assert [item.name for item in shorter.passes] == ["same"]
    assert [item.name for item in PIPELINE.passes] == ["same", "strip"]
    with pytest.raises(KeyError, match="expected one of the passes same, strip of test, got x"):
        PIPELINE.index("x")


def test_a_program_of_another_dialect_is_refused():
    with pytest.raises(CompilerError, match="the reader left NEG in a program of dialect no NEG"):
        Pipeline("test", NO_NEG).run(program(NEG(f)))


def test_the_verifier_names_the_pass():
    lazy = Pass("lazy", "tensor", lambda program, trace: program, NO_NEG)
    with pytest.raises(CompilerError, match="pass lazy left NEG"):
        Pipeline("test", ALL, (lazy,)).run(program(NEG(f)), [verifier])


def test_dialects_grow_and_check():
    small = Dialect("small", frozenset({PARAM, RETURN}))
    small.verify(program(f))
    (small | {ADD}).verify(program(ADD(f, g)))
    picky = Dialect("picky", OPS, (lambda node: "an ADD stands" if node.op is ADD else None,))
    with pytest.raises(CompilerError, match="expected picky, but an ADD stands at <ADD"):
        picky.verify(program(ADD(f, g)))


def test_each_distinct_body_is_done_once():
    seen = []

    def double(body, trace):
        seen.append(body)
        return MUL(body, 2.0)

    body = EXP2(f)
    before = program(ADD(CALL(body, f), CALL(body, g)))
    after = on_kernels(double)(before, Trace())
    assert after is program(ADD(CALL(MUL(body, 2.0), f), CALL(MUL(body, 2.0), g)))
    assert seen == [body]


def test_top_nodes_leave_bodies_out():
    body = EXP2(NEG(f))
    nodes = top_nodes(program(CALL(body, g)))
    assert body not in nodes
    assert g in nodes


def test_the_compiler_of_week_1():
    assert [item.name for item in COMPILER.passes] == ["inline", "simplify"]
    assert COMPILER.name == "week01"
    assert all(item.about for item in COMPILER.passes)
