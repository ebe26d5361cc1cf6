"""Kernels with vector ranges, built by hand, against the evaluator, which ignores kinds."""

from tests.week02_render.by_hand import one_kernel
from week01_uops.closeness import close
from week01_uops.dtypes import float32, from_numpy, int64
from week01_uops.node import const
from week01_uops.ops import ADD, MUL, param
from week02_render.ops import ALLOC, END, STORE, index, load, loop
from week02_render.runtime import load as load_program
from week02_render.sanitize import run_sanitized
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.evaluate import evaluate


def number(value):
    """An index."""
    return const(value, int64)


def lanes(size, number=9):
    """A vector range."""
    return loop(number, size, kind="vector")


def place(outer, vector):
    """outer · lanes + vector."""
    return ADD(MUL(outer, number(vector.arg.size)), vector)


def elementwise(function, size, dtypes, result, width):
    """p0[i] = function(p1[i], p2[i], …), a vector at a time."""
    i, v = loop(0, size // width), lanes(width)
    at = place(i, v)
    values = [load(index(param(k + 1, dtype, (size,)), at)) for k, dtype in enumerate(dtypes)]
    return END(STORE(index(param(0, result, (size,)), at), function(*values)), i, v)


def register(slot=0, dtype=float32):
    """A variable."""
    return ALLOC(arg={"slot": slot, "dtype": dtype, "shape": (), "addrspace": "REG"})


def program_of(body, *arrays):
    """A program of one kernel, and its inputs."""
    inputs = [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return one_kernel(body, *inputs)


def text_of(body, *arrays, checked=False):
    """The C text of a program of one kernel."""
    return render_vector_c(program_of(body, *arrays), checked=checked)


def agree(body, *arrays, out=None, ulps=0.0, watched=False, toolchain=None):
    """Compile and run a body, hold the result against the evaluator's, and give it."""
    whole = program_of(body, *arrays)
    text = render_vector_c(whole)
    expected = evaluate(whole, arrays)[0]
    got = load_program(text, whole, toolchain=toolchain).run(arrays, out=out and [out])[0]
    assert close(expected, got, whole.src[0].dtype, ulps=ulps) is None, text
    if watched:
        for checked in (False, True):
            source = render_vector_c(whole, checked=checked)
            got = run_sanitized(source, whole, arrays, toolchain=toolchain)[0]
            assert close(expected, got, whole.src[0].dtype, ulps=ulps) is None, source
    return got
