import sys

import pytest

from tests.week02_render.sequential import Program, run
from week01_uops.dtypes import float32, int64
from week01_uops.errors import CompilerError
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, EXP2, MUL, NEG, param, program
from week01_uops.rewrite import Trace
from week02_render.linearize import alloc_scopes, linearize
from week02_render.ops import AFTER, ALLOC, END, LINEAR, LOAD, RANGE, STORE, index, load, loop
from week04_fusion.evaluate import evaluate

I, J, K = loop(0, 4), loop(1, 5), loop(2, 6)
OUT = param(0, float32, (4, 5))
A, B = param(1, float32, (4,)), param(2, float32, (5,))


def register(slot=0):
    return ALLOC(arg={"slot": slot, "dtype": float32, "shape": (), "addrspace": "REG"})


def order(body: UOp) -> list[UOp]:
    return list(linearize(body, Trace()).src)


def depths(nodes: list[UOp]) -> dict[UOp, list[int]]:
    """At how many open loops each node stands, once for each time that it stands there."""
    found: dict[UOp, list[int]] = {}
    depth = 0
    for node in nodes:
        if node.op is END:
            depth -= len(node.src) - 1
        found.setdefault(node, []).append(depth)
        depth += node.op is RANGE
    assert depth == 0
    return found


def assert_defined_before_use(nodes: list[UOp]) -> None:
    """Every source has been computed in a block that is still open."""
    blocks: list[set[UOp]] = [set()]
    for node in nodes:
        visible = set().union(*blocks)
        if node.op is RANGE:
            assert visible.issuperset(node.src)
            blocks.append({node})
            continue
        if node.op is END:
            assert node.src[0] in visible
            del blocks[1 - len(node.src) :]
        else:
            assert visible.issuperset(node.src), node
        blocks[-1].add(node)


def test_nodes_stand_in_the_loops_they_depend_on():
    f, g = EXP2(load(index(A, I))), EXP2(load(index(B, J)))
    store = STORE(index(OUT, I, J), MUL(f, g))
    nodes = order(END(store, I, J))
    assert_defined_before_use(nodes)
    found = depths(nodes)
    assert (found[A], found[f], found[g], found[store]) == ([0], [1], [2], [2])


def test_the_order_of_end_is_the_order_of_loops():
    f, g = EXP2(load(index(A, I))), EXP2(load(index(B, J)))
    nodes = order(END(STORE(index(OUT, I, J), MUL(f, g)), J, I))
    assert [n for n in nodes if n.op is RANGE] == [J, I]
    assert depths(nodes)[g] == [1]
    assert depths(nodes)[f] == [2]


def reduction(values: UOp, over: UOp, *outer: UOp, slot: int = 0) -> UOp:
    """The sum of `values` over a loop, in a register."""
    total = register(slot)
    start = STORE(AFTER(total, *outer) if outer else total, const(0.0, float32))
    inside = AFTER(total, start, over)
    update = STORE(inside, ADD(LOAD(inside), values))
    return LOAD(AFTER(total, END(update, over)))


def test_an_accumulator_starts_in_the_outer_loop():
    total = reduction(load(index(OUT, I, J)), J, I)
    store = STORE(index(param(3, float32, (4,)), I), total)
    nodes = order(END(store, I))
    assert_defined_before_use(nodes)
    stores = [(n, d) for n, ds in depths(nodes).items() for d in ds if n.op is STORE]
    assert [d for _, d in stores] == [1, 2, 1]
    assert depths(nodes)[register()] == [1]


def test_an_accumulator_without_outer_loops_stands_outside():
    whole = END(STORE(index(OUT, I, J), reduction(load(index(B, K)), K)), I, J)
    found = depths(order(whole))
    assert found[register()] == [0]
    assert [found[n] for n in found if n.op is END] == [[0], [0]]


def test_what_waits_for_nothing_is_outside_but_the_closed_effect_is_inside():
    place = param(0, float32, (1,))
    value = EXP2(load(index(A, const(0, int64))))
    store = STORE(index(place, const(0, int64)), value)
    found = depths(order(END(store, I)))
    assert found[value] == [0]
    assert found[store] == [1]


def test_effects_joined_by_after_are_inside():
    zero = const(0, int64)
    first = STORE(index(param(0, float32, (1,)), zero), const(1.0, float32))
    second = STORE(index(AFTER(param(3, float32, (1,)), first), zero), const(2.0, float32))
    nodes = order(END(AFTER(second, first), I))
    assert depths(nodes)[first] == depths(nodes)[second] == [1]
    assert nodes.index(first) < nodes.index(second)


def test_what_waits_for_a_closed_effect_is_inside_with_it():
    """The first STORE depends on neither loop, the second on the outer one only."""
    scratch, place = register(), param(0, float32, (4,))
    first = STORE(scratch, const(1.0, float32))
    value = EXP2(ADD(LOAD(AFTER(scratch, first)), load(index(A, I))))
    second = STORE(index(place, I), value)
    found = depths(order(END(AFTER(second, first), I, J)))
    assert found[first] == found[value] == found[second] == [2]
    assert found[load(index(A, I))] == [1]


def test_an_effect_waited_for_is_outside_if_it_does_not_depend_on_the_loop():
    scratch = register()
    start = STORE(scratch, const(1.0, float32))
    end = END(STORE(index(A, I), LOAD(AFTER(scratch, start))), I)
    assert depths(order(end))[start] == [0]


def test_ends_over_one_range_are_loops_of_their_own():
    shared = EXP2(load(index(A, I)))
    first = END(STORE(index(param(0, float32, (4,)), I), shared), I)
    second = END(STORE(index(AFTER(param(3, float32, (4,)), first), I), NEG(shared)), I)
    nodes = order(AFTER(second, first))
    assert_defined_before_use(nodes)
    assert [n for n in nodes if n.op is RANGE] == [I, I]
    assert depths(nodes)[shared] == [1, 1]


def test_inner_loops_over_one_range_share_what_does_not_depend_on_it():
    scale = EXP2(load(index(A, I)))
    row = [MUL(load(index(OUT, I, J)), scale), MUL(NEG(load(index(OUT, I, J))), scale)]
    sums = [reduction(value, J, I, slot=k) for k, value in enumerate(row)]
    nodes = order(END(STORE(index(param(3, float32, (4,)), I), MUL(*sums)), I))
    assert_defined_before_use(nodes)
    assert depths(nodes)[scale] == [1]
    assert depths(nodes)[load(index(OUT, I, J))] == [2, 2]


def test_a_bound_is_computed_in_the_outer_loop():
    bounded = loop(3, 5, ADD(I, const(1, int64)))
    store = STORE(index(OUT, I, bounded), const(1.0, float32))
    nodes = order(END(store, I, bounded))
    assert_defined_before_use(nodes)
    assert depths(nodes)[bounded.src[0]] == [1]


def test_a_bound_may_not_depend_on_an_inner_loop():
    bounded = loop(3, 4, ADD(J, const(1, int64)))
    with pytest.raises(CompilerError, match="expected the bound"):
        order(END(STORE(index(OUT, bounded, J), const(1.0, float32)), bounded, J))


def test_an_open_range_is_refused():
    with pytest.raises(CompilerError, match="is open"):
        order(STORE(index(OUT, I, J), const(1.0, float32)))


def test_a_loop_in_a_loop_over_the_same_range():
    """The inner effect does not depend on the outer loop, but is its direct effect."""
    inner = END(STORE(index(A, I), const(1.0, float32)), I)
    assert depths(order(END(inner, I)))[inner.src[0]] == [2]


def test_storage_stands_in_the_loops_that_every_access_names():
    scratch = register()
    named = AFTER(scratch, I)
    body = END(STORE(index(A, I), LOAD(AFTER(named, STORE(named, const(1.0, float32))))), I)
    assert alloc_scopes(body) == {scratch: {I}}
    carried = END(STORE(scratch, ADD(LOAD(named), const(1.0, float32))), I)
    assert alloc_scopes(carried) == {scratch: frozenset()}


def test_a_linear_stays():
    linear = linearize(END(STORE(index(A, I), const(1.0, float32)), I), Trace())
    assert linear.op is LINEAR
    assert linearize(linear, Trace()) is linear


def test_equal_bodies_give_the_same_order():
    def body():
        return END(STORE(index(OUT, I, J), MUL(load(index(A, I)), load(index(B, J)))), I, J)

    assert order(body()) == order(body())


def calls(function, *arguments) -> int:
    """How many Python and C functions a call runs: its work, whatever else the machine does."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def deep(size: int) -> UOp:
    value = load(index(A, I))
    for k in range(size):
        value = ADD(MUL(value, const(1.5, float32)), const(float(k), float32))
    return END(STORE(index(param(0, float32, (4,)), I), value), I)


def many_loops(count: int) -> UOp:
    place = param(0, float32, (4,))
    effect = END(STORE(index(place, I), load(index(A, I))), I)
    for _ in range(count):
        after = AFTER(place, effect)
        effect = END(STORE(index(after, I), NEG(load(index(after, I)))), I)
    return effect


@pytest.mark.parametrize(("build", "small", "large"), [(deep, 500, 10_000), (many_loops, 50, 1000)])
def test_large_bodies_take_linear_work(build, small, large):
    assert calls(order, build(large)) < 2 * large / small * calls(order, build(small))


@pytest.mark.parametrize("seed", [3, 19, 40, 131, *range(200, 220)])
def test_the_order_of_random_programs_is_theirs(seed):
    """Loops, gates and storage carried between iterations, against a scalar interpreter."""
    random = Program(seed)
    ordered = linearize(random.effect, Trace())
    got = evaluate(program(*[AFTER(place, ordered) for place in random.outputs]), [])
    assert [array.tolist() for array in got] == run(random.effect, random.outputs)
