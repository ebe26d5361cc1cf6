"""Small kernel bodies for the tests of schedule steps, and what they mean."""

import numpy as np

from projects.uopc.nests import body_lines
from tests.week02_render.by_hand import Launch, joined
from week01_uops.closeness import close
from week01_uops.dtypes import float32, from_numpy, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, MAX, MUL, param
from week01_uops.passes import Pipeline, verifier
from week02_render.ops import AFTER, END, LOAD, STORE, index, load, loop
from week02_render.runtime import load as load_program
from week03_loops.ops import reduce
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.compiler import COMPILER
from week05_06_memory.evaluate import evaluate
from week05_06_memory.scheduling import tidied


def number(value):
    """An index."""
    return const(value, int64)


def place(slot, shape, *indices, dtype=float32):
    """An element of a PARAM."""
    return index(param(slot, dtype, shape), *indices)


def copy(*shape, bound=None):
    """p0[i…] = p1[i…] + 1; the last loop may have a bound."""
    ranges = [loop(k, size) for k, size in enumerate(shape)]
    if bound is not None:
        ranges[-1] = loop(len(shape) - 1, shape[-1], bound(*ranges[:-1]))
    value = ADD(load(place(1, shape, *ranges)), 1.0)
    return END(STORE(place(0, shape, *ranges), value), *ranges)


def total(size, op=ADD, bound=None, gate=None, dtype=float32):
    """p0 = Σ p1[k], with a bound or with a gate for p1[k − 1]."""
    k = loop(0, size, bound)
    element = load(place(1, (size,), k, dtype=dtype))
    if gate:
        before = place(1, (size,), ADD(k, number(-1)), dtype=dtype)
        element = load(before, CMPLT(number(0), k))
    return STORE(param(0, dtype, ()), reduce(op, element, 0, k))


def row_sums(rows, columns, op=ADD, bound=None):
    """p0[i] = Σ p1[i, k]."""
    i = loop(0, rows)
    k = loop(1, columns, bound and bound(i))
    value = reduce(op, load(place(1, (rows, columns), i, k)), 0, k)
    return END(STORE(place(0, (rows,), i), value), i)


def product(m, k, n):
    """p0[i, j] = Σ p1[i, l]·p2[l, j]; i, j, l are ranges 0, 1, 2."""
    i, j, l = loop(0, m), loop(1, n), loop(2, k)
    term = MUL(load(place(1, (m, k), i, l)), load(place(2, (k, n), l, j)))
    return END(STORE(place(0, (m, n), i, j), reduce(ADD, term, 0, l)), i, j)


def cleared(shape, numbers):
    """p0, filled with 0 before."""
    ranges = [loop(n, size) for n, size in zip(numbers, shape, strict=True)]
    zeros = END(STORE(place(0, shape, *ranges), const(0.0, float32)), *ranges)
    return AFTER(param(0, float32, shape), zeros)


def column_sums(rows, columns):
    """p0[j] = p0[j] + p1[k, j] for k, j (ranges 0 and 1), p0 cleared before (range 2)."""
    k, j = loop(0, rows), loop(1, columns)
    here = index(AFTER(cleared((columns,), (2,)), k), j)
    value = load(place(1, (rows, columns), k, j))
    return END(STORE(here, ADD(LOAD(here), value)), k, j)


def running(size):
    """p0[i + 1] = max(p0[i], p1[i]) for range 0."""
    i = loop(0, size)
    base = AFTER(cleared((size + 1,), (1,)), i)
    value = MAX(LOAD(index(base, i)), load(place(1, (size,), i)))
    return END(STORE(index(base, ADD(i, number(1))), value), i)


def overwritten(rows, columns):
    """p0[j] = p1[i, j] for i, j: the last row wins."""
    i, j = loop(0, rows), loop(1, columns)
    value = load(place(1, (rows, columns), i, j))
    return END(STORE(place(0, (columns,), j), value), i, j)


def text(body):
    """The loops of a body, as uopc prints them."""
    return "\n".join(body_lines(body)) + "\n"


def values(*shape, seed=0):
    """Small numbers: their sums are exact."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def inputs_of(body):
    """An array for each input of a body."""
    params = {n.arg.slot: n for n in body.toposort() if n.op is param(0, float32, ()).op}
    return [values(*params[slot].shape, seed=slot) for slot in sorted(params) if slot]


def program_of(bodies, arrays):
    """A program with a kernel and an output for each body."""
    inputs = {k: param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)}
    return joined(inputs, [Launch(body, tuple(inputs), f"k{n}") for n, body in enumerate(bodies)])


def lowered(bodies, arrays):
    """The program of scheduled bodies at kernel level, verified after each pass."""
    at = COMPILER.index("schedule") + 1
    last = Pipeline("test", COMPILER.passes[at - 1].leaves, COMPILER.passes[at:])
    return last.run(program_of(map(tidied, bodies), arrays), [verifier])


def agree(before, *bodies, arrays=None):
    """Bodies mean what the first one means: interpreted, expanded, and as compiled C."""
    arrays = inputs_of(before) if arrays is None else arrays
    (expected,) = evaluate(program_of([before], arrays), arrays)
    whole, kernels = program_of(bodies, arrays), lowered(bodies, arrays)
    tidy = program_of(map(tidied, bodies), arrays)
    results = [evaluate(level, arrays) for level in (whole, tidy, kernels)]
    results.append(load_program(render_vector_c(kernels), whole).run(arrays))
    for outputs in results:
        for output, got in zip(whole.src, outputs, strict=True):
            assert close(expected, got, output.dtype, ulps=2) is None
