"""Gates of lanes at places that are not all in range: masked loads and stores, on any machine."""

from dataclasses import replace

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, joined
from tests.week02_render.test_c_text import same
from tests.week05_06_memory.vectors import lanes, number, place
from week01_uops.dtypes import ALL
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, param
from week02_render.ops import AFTER, END, LOAD, STORE, index, loop, zero
from week02_render.runtime import load
from week02_render.sanitize import run_sanitized
from week02_render.toolchain import find_toolchain
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.evaluate import evaluate

SIZE = 64
WIDTHS = (2, 4, 8, 16, 32)


def shifted(dtype, width, other):
    """p0[i − 5] = p1[i − 3], where both are in range, else 0, or `other` for what is read."""
    i, j, v = loop(0, SIZE // width), loop(1, SIZE), lanes(width)
    at = place(i, v)
    whole = param(0, dtype, (SIZE,))
    zeros = END(STORE(index(whole, j), const(zero(dtype), dtype)), j)
    source = index(param(1, dtype, (SIZE,)), ADD(at, number(-3)))
    target = index(AFTER(whole, zeros), ADD(at, number(-5)))
    value = LOAD(source, CMPLT(number(2), at), *other)
    return END(STORE(target, value, CMPLT(number(4), at)), i, v)


def whole():
    """A kernel for every dtype and number of lanes."""
    inputs, arrays, launches = {}, {}, []
    for slot, dtype in enumerate(ALL):
        inputs[slot] = param(slot, dtype, (SIZE,))
        arrays[slot] = np.arange(1, SIZE + 1).astype(dtype.numpy)
        for width in WIDTHS:
            others = ((), (const(zero(dtype).__class__(1), dtype),))
            launches += [Launch(shifted(dtype, width, other), (slot,)) for other in others]
    return joined(inputs, launches), arrays


@pytest.mark.parametrize("machine", ["native", "x86-64-v3", "x86-64-v2"])
def test_masked_loads_and_stores(machine):
    program, arrays = whole()
    chain = find_toolchain()
    chain = replace(chain, flags=tuple(f.replace("native", machine) for f in chain.flags))
    results = load(render_vector_c(program), program, toolchain=chain).run(arrays)
    for got, wanted in zip(results, evaluate(program, arrays), strict=True):
        assert same(got, wanted).all()


def test_nothing_else_is_touched():
    """Sanitizers see the accesses of a machine without masks."""
    program, arrays = whole()
    chain = find_toolchain()
    chain = replace(chain, flags=tuple(f for f in chain.flags if f != "-march=native"))
    results = run_sanitized(render_vector_c(program), program, arrays, toolchain=chain)
    for got, wanted in zip(results, evaluate(program, arrays), strict=True):
        assert same(got, wanted).all()
