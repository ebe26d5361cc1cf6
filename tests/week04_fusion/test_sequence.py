"""The order of kernels that needs the least memory."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from week01_uops.dtypes import float32
from week01_uops.node import UOp, make
from week01_uops.ops import CALL, EXP2, MUL, param, program
from week01_uops.passes import Pipeline, top_nodes, verifier
from week02_render.ops import AFTER, ALLOC, END, STORE, WORKSPACE, AllocArg, index, loop
from week02_render.runtime import load
from week03_loops.library import matmul, reduce_sum, transpose
from week04_fusion.compiler import COMPILER, REFERENCE
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import stage
from week04_fusion.plan import lifetimes, place_all
from week04_fusion.sequence import _peak, _temporaries, frugal_order

SIZES = st.integers(1, 5)


def kernel(target: UOp, *sources: UOp) -> UOp:
    """A CALL that writes its first argument and reads the others."""
    item = loop(0, 1)
    places = [param(k, float32, place.shape) for k, place in enumerate((target, *sources))]
    value = EXP2(param(9, float32, ()))
    for place in places[1:]:
        value = MUL(value, EXP2(reduce_sum(place)))
    body = make(END, (make(STORE, (index(places[0], item), value)), item))
    arguments = [target, *sources]
    arguments += [param(99, float32, ())] * (10 - len(arguments))
    return make(CALL, (body, *arguments))


def chain(sizes: list[int], choices: list[list[int]]) -> tuple[list[UOp], list[UOp]]:
    """Kernels that each write a temporary from some of the earlier ones."""
    allocs = [
        make(ALLOC, (), AllocArg(k, float32, (256 * size,), None)) for k, size in enumerate(sizes)
    ]
    calls: list[UOp] = []
    for k, earlier in enumerate(choices):
        read = sorted({i % k for i in earlier}) if k else []
        calls.append(kernel(allocs[k], *(make(AFTER, (allocs[i], calls[i])) for i in read)))
    return calls, allocs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SIZES, st.lists(st.integers(0, 50), max_size=3)), min_size=1, max_size=9))
def test_every_kernel_runs_after_those_it_waits_for_and_memory_never_grows(parts):
    calls, allocs = chain([size for size, _ in parts], [reads for _, reads in parts])
    found = frugal_order(calls, {allocs[-1]})
    assert sorted(map(id, found)) == sorted(map(id, calls))
    done: set[UOp] = set()
    for call in found:
        waits = {d for a in call.src[1:] if a.op is AFTER for d in a.src[1:]}
        assert waits <= done
        done.add(call)
    used = {call: _temporaries(call) for call in calls}
    users = {place: sum(place in u for u in used.values()) for place in allocs}
    users[allocs[-1]] += 1
    assert _peak(found, used, users) <= _peak(calls, used, users)


def test_what_frees_memory_goes_first():
    """Of a chain a, b, c, d, and w made of the large a: w does not wait until the end."""
    calls, allocs = chain([5, 1, 3, 1, 1], [[], [0], [1], [2], [0]])
    a, b, c, d, w = calls
    assert list(frugal_order(calls, {allocs[3], allocs[4]})) == [a, b, w, c, d]


def test_a_program_needs_less_and_means_the_same():
    """As derivatives do: values of a chain are wanted again, in the opposite order."""
    x, chained = param(0, float32, (32, 32)), []
    value = x
    for _ in range(6):
        value = stage(matmul(value, x))
        chained.append(value)
    results, back = [], value
    for earlier in reversed(chained):
        results.append(matmul(transpose(earlier), back))
        back = stage(matmul(back, transpose(x)))
    whole = program(back, *results)
    planned = COMPILER.index("plan")
    earlier = Pipeline("before", COMPILER.accepts, COMPILER.passes[:planned]).run(whole)
    plain = lifetimes([n for n in top_nodes(earlier) if n.op is CALL])
    place_all(plain)
    places = [n for n in top_nodes(COMPILER.run(whole, [verifier])) if n.op is WORKSPACE]
    assert max(n.arg.offset + 4 * n.size for n in places) < max(t.end for t in plain)
    array = np.random.default_rng(0).uniform(-0.1, 0.1, (32, 32)).astype(np.float32)
    got = load(REFERENCE.compile(whole, "c"), whole).run([array])
    for have, want in zip(got, evaluate(whole, [array]), strict=True):
        assert np.allclose(have, want, rtol=1e-5)
