"""What the tests of loop-level passes share: programs up to a pass, and what they mean."""

from dataclasses import replace

import numpy as np

from tests.programs.inputs import same
from week01_uops.node import UOp
from week01_uops.ops import CALL, PARAM
from week01_uops.passes import Pipeline, verifier
from week02_render.render import render_c
from week02_render.runtime import load
from week05_06_memory.compiler import COMPILER
from week05_06_memory.evaluate import evaluate
from week05_06_memory.machine import detect

SMALL = replace(detect(), l1=1 << 10, l2=8 << 10, l3=64 << 10)
"""A machine with caches so small that small programs are large."""

SCHEDULING = ("numbers", "schedule", "unroll", "larger")
"""What the C text of week 2 cannot be without."""


def pipeline(*without: str, until: str | None = None) -> Pipeline:
    """The compiler's passes up to a named one, that one left out, and some others too."""
    passes = COMPILER.passes[: COMPILER.index(until) if until else None]
    return Pipeline("test", COMPILER.accepts, tuple(p for p in passes if p.name not in without))


def before(name: str, whole: UOp, *without: str) -> UOp:
    """The program as a pass gets it."""
    return pipeline(*without, until=name).run(whole, [verifier])


def inputs_of(whole: UOp, seed: int = 3) -> dict[int, np.ndarray]:
    """Normal floats, small integers."""
    generator = np.random.default_rng(seed)
    return {
        n.arg.slot: (
            generator.standard_normal(n.shape)
            if n.dtype.is_float
            else generator.integers(*(n.arg.range or (0, 5)), n.shape, endpoint=True)
        ).astype(n.dtype.numpy)
        for n in whole.toposort()
        if n.op is PARAM
    }


def agree(whole: UOp, *forms: UOp, inputs: dict[int, np.ndarray] | None = None) -> None:
    """All forms of a program mean what it means, NaN where it has NaN."""
    given = inputs_of(whole) if inputs is None else inputs
    expected = evaluate(whole, given, state={})
    for form in forms:
        for output, a, b in zip(whole.src, expected, evaluate(form, given, state={}), strict=True):
            assert same(output.dtype, a, b) is None


def run_plain(whole: UOp, inputs: dict[int, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the C text without a schedule."""
    text = render_c(pipeline(*SCHEDULING).run(whole, [verifier]))
    return load(text, whole).run(inputs)


def kernels(whole: UOp) -> list[UOp]:
    """The CALLs of a program."""
    return [n for n in whole.toposort() if n.op is CALL]
