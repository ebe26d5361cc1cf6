from dataclasses import replace

import numpy as np
import pytest

from tests.week07_08_gpu.threaded import MACHINE, run_serially, run_with, same, source
from week01_uops.closeness import close
from week01_uops.dtypes import float32, float64, int64
from week01_uops.node import const
from week01_uops.ops import ADD, MUL, param, parameters, program
from week02_render.ops import AFTER, BUFFER, END, STORE, index, load, loop
from week03_loops import library
from week04_fusion.evaluate import evaluate
from week05_06_memory import compiler as week05
from week05_06_memory.machine import FORK_CYCLES
from week05_06_memory.schedule import Hoist, Kind, Part, Reorder, Split
from week07_08_gpu import threads as module
from week07_08_gpu.compiler import compiler_for, pipeline_for
from week07_08_gpu.threads import ThreadPlanner, free_loops, outermost
from week07_08_gpu.work import costs

COUNTS = (1, 2, 3)
COMMON = replace(MACHINE, fork_cycles=FORK_CYCLES)


def f32(*shape, slot=0):
    return param(slot, float32, shape)


def matmul(m, k, n):
    return program(library.matmul(f32(m, k), f32(k, n, slot=1)))


def bodies(whole, machine=MACHINE):
    """The kernels of a program as the scheduler gets them."""
    passes = pipeline_for(machine)
    before = replace(passes, passes=passes.passes[: passes.index("schedule")]).run(whole)
    return [n.src[0] for n in before.toposort() if n.op.name == "CALL"]


def planned(whole, machine=MACHINE):
    (body,) = bodies(whole, machine)
    return ThreadPlanner(body, machine).run()


def steps(whole, machine=MACHINE):
    return [item.step for item in planned(whole, machine).steps]


def parallel(whole, machine=MACHINE):
    """The sizes of the parallel loops of each nest that stands in no other."""
    return [
        [r.arg.size for r in end.src[1:] if r.arg.kind == "parallel"]
        for end in outermost(planned(whole, machine).body)
    ]


def agree(whole, machine=MACHINE, ulps=0.0):
    """Any number of threads, and none, give the same bits, which are close to what is meant.

    Of small integers, sums of products are exact in any order.
    """
    rng = np.random.default_rng(5)
    inputs = {
        slot: np.asarray(rng.integers(-3, 4, n.shape), n.dtype.numpy)
        for slot, n in parameters(whole).items()
    }
    text = source(whole, machine)
    first, *others = run_with(COUNTS, text, whole, inputs)
    assert all(same(first, other) for other in [*others, run_serially(text, whole, inputs)])
    for node, expected, got in zip(
        whole.src, evaluate(whole, inputs, state={}), first, strict=True
    ):
        assert close(expected, got, node.dtype, ulps=ulps) is None, text
    return text


# Which loops are divided


def test_one_core_compiles_to_what_week_5_does():
    whole, machine = matmul(96, 96, 96), replace(MACHINE, cores=1)
    text = compiler_for(machine).compile(whole, "c").source
    assert text == week05.compiler_for(machine).compile(whole, "c").source


def test_the_text_is_the_same_for_any_number_of_cores_but_one():
    whole = matmul(96, 96, 96)
    assert source(whole) == source(whole, replace(MACHINE, cores=64))


@pytest.mark.parametrize(("size", "divided"), [(1 << 10, False), (1 << 20, True)])
def test_little_work_stays_with_one_thread(size, divided):
    text = source(program(library.exp(f32(size))), COMMON)
    assert ("omp parallel" in text) == divided


def test_rows_are_divided():
    """Long ones one by one, short ones in strips of eight."""
    assert parallel(program(library.softmax(f32(40, 512)))) == [[40]]
    assert parallel(program(library.softmax(f32(320, 64)))) == [[40]]
    agree(program(library.softmax(f32(320, 64))), ulps=40)


def test_panels_are_divided_where_there_are_enough():
    whole = matmul(64, 300, 1024)
    (sizes,) = parallel(whole, COMMON)[-1:]
    assert sizes[0] >= module.ENOUGH
    assert not any(isinstance(s, Split) for s in steps(whole, COMMON)[-1:])


def test_few_panels_are_filled_by_each_thread_for_its_rows():
    whole = matmul(200, 64, 32)
    done = steps(whole)
    kinds = [s.range for s in done if isinstance(s, Kind) and s.kind == "parallel"]
    (order,) = [s for s in done if isinstance(s, Reorder)][-1:]
    assert order.order[0] == kinds[0]
    (sizes,) = parallel(whole)[-1:]
    assert np.prod(sizes) >= module.ENOUGH
    agree(whole)


def test_loops_are_divided_together_where_one_is_short():
    whole = program(library.softmax(f32(3, 32, 50)))
    text = agree(whole, ulps=40)
    assert "collapse" in text or parallel(whole) == [[12]]


def test_a_nest_with_a_dependence_stays_in_order():
    """p[i + 1] = p[i] + x[i]: each iteration reads what the one before it stored."""
    i = loop(0, 63)
    state = BUFFER(arg={"slot": 0, "dtype": float64, "shape": (64,)})
    x = param(0, float64, (64,))
    place = AFTER(state, i)
    total = ADD(load(index(place, i)), load(index(x, i)))
    after = ADD(i, const(1, int64))
    whole = program(AFTER(state, END(STORE(index(place, after), total), i)))
    text = agree(whole)
    assert "omp parallel for" not in text


def test_columns_of_a_recurrence_are_divided():
    """p[i + 1, j] = p[i, j] + x[i, j]: the columns have nothing to do with one another."""
    i, j = loop(0, 15), loop(1, 48)
    state = BUFFER(arg={"slot": 0, "dtype": float32, "shape": (16, 48)})
    place = AFTER(state, i, j)
    total = ADD(load(index(place, i, j)), load(index(f32(16, 48), i, j)))
    stored = STORE(index(place, ADD(i, const(1, int64)), j), total)
    whole = program(AFTER(state, END(stored, i, j)))
    agree(whole)
    found = [(b, e) for b in bodies(whole) for e in outermost(b)]
    loops = [[r.arg.size for r in e.src[1:] if r in free_loops(b, e)] for b, e in found]
    assert [48] in loops


def test_stores_that_may_meet_stay_in_order():
    n = 400
    i = loop(0, n)
    at = load(index(param(0, int64, (n,)), i))
    out = BUFFER(arg={"slot": 0, "dtype": int64, "shape": (8,)})
    stored = STORE(index(AFTER(out, i), at), i)
    whole = program(AFTER(out, END(stored, i)))
    inputs = {0: np.random.default_rng(0).integers(0, 8, n)}
    text = source(whole)
    for (got,) in run_with(COUNTS, text, whole, inputs):
        np.testing.assert_array_equal(got, evaluate(whole, inputs, state={})[0])


# Reductions in parts


@pytest.mark.parametrize("reduce", [library.reduce_sum, library.reduce_max])
def test_a_reduction_of_everything_is_done_in_parts(reduce):
    whole = program(reduce(f32(1 << 14)))
    assert [s.parts for s in steps(whole) if isinstance(s, Part)] == [module.PARTS]
    assert [module.PARTS] in parallel(whole)
    agree(whole)


def test_sums_one_after_the_other_are_done_in_parts():
    whole = program(library.var(f32(5000)))
    assert any(isinstance(s, Part) for s in steps(whole))
    agree(whole, ulps=1000)


def test_few_long_rows_are_done_in_parts():
    whole = program(library.reduce_sum(f32(3, 20000), 1))
    assert any(isinstance(s, Part) for s in steps(whole))
    agree(whole)


def test_a_matrix_read_row_by_row_is_summed_in_parts():
    machine = replace(MACHINE, l2=32 << 10)
    whole = program(library.reduce_sum(f32(256, 300), 0))
    done = steps(whole, machine)
    assert any(isinstance(s, Part) for s in done)
    assert any(isinstance(s, Hoist) for s in done)
    agree(whole, machine)


def test_parts_are_left_whole_where_there_are_results_enough():
    assert not any(isinstance(s, Part) for s in steps(matmul(64, 256, 256)))


# The cost of a nest


def test_the_work_of_a_nest_grows_with_its_loops():
    totals = []
    for n in (64, 128):
        body = planned(matmul(n, 64, 64)).body
        totals.append(sum(sum(costs(e, MACHINE).values()) for e in outermost(body)))
    assert 1.5 < totals[1] / totals[0] < 2.5


def test_a_vector_costs_the_registers_that_it_takes():
    (narrow,) = bodies(program(library.add(f32(1 << 10), f32(1 << 10, slot=1))))
    tiled = planned(program(library.add(f32(1 << 10), f32(1 << 10, slot=1)))).body
    cost = [sum(costs(outermost(b)[0], MACHINE).values()) for b in (narrow, tiled)]
    assert cost[1] * 4 <= cost[0] * 3


def test_products_in_sums_cost_nothing():
    whole = program(library.matmul(f32(16, 32), f32(32, 16, slot=1)))
    (body,) = bodies(whole)
    work = costs(outermost(body)[0], MACHINE)
    assert not any(n.op is MUL and n.dtype is float32 for n in work)
