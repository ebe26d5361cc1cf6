"""Kernels that become one, stores that nobody reads, and temporaries that share memory."""

import numpy as np
import pytest

from week01_uops.dtypes import float32, int8
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CALL, EXP2, FLOORDIV, MAX, MUL, NEG, param, program
from week01_uops.rewrite import Trace
from week02_render.compiler import REFERENCE as WEEK02
from week02_render.ops import AFTER, ALLOC, BUFFER, LOAD, STORE, WORKSPACE, AllocArg, StorageArg
from week02_render.runtime import load
from week03_loops.ops import PAD, permute, reduce, reshape
from week04_fusion.compiler import COMPILER, REFERENCE
from week04_fusion.evaluate import evaluate
from week04_fusion.plan import Lifetime, lifetimes, place_all

X = param(0, float32, (32, 24))


def calls(whole: UOp) -> list[UOp]:
    return [n for n in whole.toposort() if n.op is CALL]


def before(name: str, whole: UOp) -> UOp:
    """The program just before a pass."""
    at = COMPILER.index(name)
    short = COMPILER.__class__(COMPILER.name, COMPILER.accepts, COMPILER.passes[:at])
    return short.run(whole)


def check(whole: UOp) -> UOp:
    generator = np.random.default_rng(1)
    inputs = {
        n.arg.slot: generator.standard_normal(n.shape).astype(np.float32)
        for n in whole.toposort()
        if n.op.name == "PARAM"
    }
    expected = evaluate(whole, inputs)
    lowered = COMPILER.run(whole)
    for got in (
        evaluate(lowered, inputs, state={}),
        load(REFERENCE.compile(whole, "c"), whole).run(inputs),
    ):
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)
    return lowered


def test_sums_of_one_array_are_one_kernel():
    whole = program(reduce(ADD, X, 1), reduce(MAX, X, 1))
    assert len(calls(before("merge", whole))) == 2
    assert len(calls(check(whole))) == 1


def test_kernels_that_read_different_arrays_stay_apart():
    y = param(1, float32, (32, 24))
    z = param(2, float32, (32, 24))
    first, second = reduce(ADD, MUL(X, y), 1), reduce(ADD, MUL(X, z), 1)
    assert len(calls(check(program(first, second)))) == 2


def test_a_result_that_is_used_where_it_is_made_is_not_loaded():
    mean = MUL(reduce(ADD, X, 1), 1 / 32)
    centred = ADD(X, NEG(reshape(mean, (1, 24))))
    whole = program(mean, reduce(ADD, MUL(centred, centred), 1))
    lowered = check(whole)
    assert len(calls(lowered)) == 1
    assert not any(n.op is WORKSPACE for n in lowered.toposort())


def test_a_result_that_is_used_elsewhere_stays_its_own_kernel():
    total = reduce(ADD, X, 1)
    flipped = reshape(permute(reshape(total, (4, 6)), (1, 0)), (24,))
    assert len(calls(check(program(total, EXP2(flipped))))) == 2


def test_chains_of_results_become_one_kernel():
    a = EXP2(X)
    b = ADD(a, 1.0)
    c = MUL(b, a)
    assert len(calls(check(program(a, b, c)))) == 1


def test_the_same_output_twice():
    total = reduce(ADD, X, 1)
    check(program(total, total))


def life(size: int, *users: int) -> Lifetime:
    return Lifetime(make(ALLOC, (), AllocArg(users[0], float32, (size,))), list(users))


@pytest.mark.parametrize("seed", range(30))
def test_no_two_temporaries_that_live_together_overlap(seed):
    generator = np.random.default_rng(seed)
    items = []
    for _ in range(20):
        first = int(generator.integers(0, 30))
        items.append(
            life(int(generator.integers(1, 500)), first, first + int(generator.integers(1, 8)))
        )
    place_all(items)
    for k, a in enumerate(items):
        assert a.offset % 64 == 0
        for b in items[:k]:
            assert not a.lives_with(b) or a.end <= b.offset or b.end <= a.offset


def layers(count: int) -> UOp:
    x = param(0, float32, (40, 40))
    for _ in range(count):
        left = reshape(permute(x, (1, 0)), (40, 40, 1))
        x = MUL(reduce(ADD, MUL(left, reshape(x, (40, 1, 40))), 1), 0.01)
    return program(x)


def size(lowered: UOp) -> int:
    return max(n.arg.offset + n.size * 4 for n in lowered.toposort() if n.op is WORKSPACE)


def test_memory_does_not_grow_with_depth():
    assert size(COMPILER.run(layers(20))) == size(COMPILER.run(layers(4)))
    check(layers(6))


def test_lifetimes_span_all_users():
    planned = before("plan", layers(5))
    found = lifetimes(calls(planned))
    assert all(len(item.users) == 2 for item in found)
    assert len(found) == 4


def test_reused_memory_waits_for_its_last_users():
    lowered = COMPILER.run(layers(6))
    tenants = {}
    for n in lowered.toposort():
        if n.op is WORKSPACE:
            tenants.setdefault(n.arg.offset, []).append(n)
    assert len(tenants) == 2


def test_week_two_gives_each_temporary_memory_of_its_own():
    place = make(ALLOC, (), AllocArg(0, float32, (32, 24)))
    kept = make(AFTER, (place, STORE(place, EXP2(X))))
    whole = program(ADD(kept, kept))
    got = load(WEEK02.compile(whole, "c"), whole).run([np.zeros((32, 24), np.float32)])
    np.testing.assert_array_equal(got[0], np.full((32, 24), 2, np.float32))


def test_traces_say_what_was_joined():
    trace = Trace()
    COMPILER.passes[COMPILER.index("merge")].run(
        before("merge", program(reduce(ADD, X, 1), reduce(MAX, X, 1))), trace
    )
    assert trace.fired["merge"] == 1


def test_a_merged_kernel_keeps_no_argument_that_it_does_not_use():
    empty = make(PAD, (param(0, int8, (0,)),), ((0, 2),))
    buffer = make(BUFFER, (), StorageArg(0, int8, (2,)))
    first = make(AFTER, (buffer, make(STORE, (buffer, empty))))
    raised = MAX(make(LOAD, (first,)), const(0, int8))
    second = make(AFTER, (first, make(STORE, (first, raised))))
    whole = program(FLOORDIV(empty, second))
    source = REFERENCE.compile(whole, "c")
    nothing = np.empty(0, np.int8)
    (result,) = load(source, whole).run([nothing])
    assert np.array_equal(result, evaluate(whole, [nothing])[0])


def test_a_kernel_without_loops_stands_between_two_others():
    """x² and x²·Σ x² are over the same loops, but the sum has to be known in between."""
    squares = EXP2(MUL(X, X))
    total = reduce(ADD, squares, 2)
    whole = program(squares, total, ADD(squares, total))
    names = [call.arg.name for call in calls(check(whole))]
    assert sorted(names) == ["add_32x24", "add_scalar", "exp2_32x24"]


def test_a_write_that_needs_nothing_of_the_value_comes_after_its_reads():
    """max(v, 127) of an int8 is 127, and v + x, in the same loop, is still of the v before."""
    x, y = param(0, int8, (2,)), param(1, int8, (2,))
    place = make(BUFFER, (), StorageArg(0, int8, (2,)))
    other = make(BUFFER, (), StorageArg(1, int8, (2,)))
    copied = make(AFTER, (place, make(STORE, (place, x))))
    first = make(AFTER, (other, make(STORE, (other, copied))))
    v = make(LOAD, (first,))
    second = make(AFTER, (first, make(STORE, (first, MAX(v, const(127, int8))))))
    whole = program(ADD(y, v), second)
    assert len(calls(COMPILER.run(whole))) == 2
    inputs = [np.array([5, -128], np.int8), np.array([-4, 4], np.int8)]
    got = load(REFERENCE.compile(whole, "c"), whole).run(inputs)
    assert [list(a) for a in got] == [[1, -124], [127, 127]]


def test_what_is_read_in_a_loop_may_be_replaced_in_it():
    """A read of an array and a write that takes nothing of it are one kernel."""
    x = param(0, float32, (32, 24))
    place = make(BUFFER, (), StorageArg(0, float32, (32, 24)))
    v = make(LOAD, (place,))
    read = EXP2(ADD(v, x))
    after = make(AFTER, (place, make(STORE, (place, NEG(x))), v))
    whole = program(read, after)
    assert len(calls(COMPILER.run(whole))) == 1
    inputs = [np.linspace(-1, 1, 32 * 24, dtype=np.float32).reshape(32, 24)]
    loaded = load(REFERENCE.compile(whole, "c"), whole)
    state: dict = {}
    for _ in range(2):
        got, expected = loaded.run(inputs), evaluate(whole, inputs, state=state)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
