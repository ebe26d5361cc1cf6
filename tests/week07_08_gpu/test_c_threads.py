import re

import numpy as np
import pytest

from tests.programs.isolated import isolated
from tests.week02_render.by_hand import Launch, joined, one_kernel
from tests.week07_08_gpu.threaded import in_new_thread, run_serially, run_with, same
from week01_uops.dtypes import float32, from_numpy, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, MUL, param
from week02_render.library import ffi
from week02_render.ops import AFTER, ALLOC, END, LARGEST_LOCAL, STORE, index, load, loop
from week02_render.runtime import load as load_program
from week02_render.sanitize import run_sanitized
from week05_06_memory.nests import joined as effects
from week05_06_memory.ops import STREAM
from week07_08_gpu.c_threads import render_threaded_c

COUNTS = (1, 2, 3, 5)


def number(value):
    return const(value, int64)


def threads(size, number=0):
    return loop(number, size, kind="parallel")


def program_of(body, *arrays):
    return one_kernel(body, *[param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)])


def agree(body, expected, *arrays):
    """The body gives what is expected on any number of threads; its text."""
    whole = program_of(body, *arrays)
    text = render_threaded_c(whole)
    for found in run_with(COUNTS, text, whole, arrays):
        np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(run_serially(text, whole, arrays)[0], expected)
    checked = render_threaded_c(whole, checked=True)
    np.testing.assert_array_equal(run_sanitized(checked, whole, arrays)[0], expected)
    return text


def doubled(i, shape, *more):
    """p0[i] = 2 · p1[i]."""
    value = MUL(load(index(param(1, float32, shape), i, *more)), const(2.0, float32))
    return STORE(index(param(0, float32, shape), i, *more), value)


def numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def pragmas(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith("#pragma")]


def test_a_parallel_loop_is_a_region():
    x, i = numbers(20), threads(20)
    text = agree(END(doubled(i, (20,)), i), 2 * x, x)
    assert pragmas(text) == ["#pragma omp parallel", "#pragma omp for schedule(dynamic, 1) nowait"]


def test_threads_take_several_iterations_of_a_long_loop_at_once():
    x, i = numbers(1000), threads(1000)
    text = agree(END(doubled(i, (1000,)), i), 2 * x, x)
    assert "schedule(dynamic, 1000 / (16 * omp_get_max_threads()) + 1)" in text


def test_loops_right_in_one_another_are_divided_together():
    x = numbers(3, 4, 5)
    i, j, k = threads(3), threads(4, 1), loop(2, 5)
    text = agree(END(doubled(i, (3, 4, 5), j, k), i, j, k), 2 * x, x)
    assert "collapse(2)" in text


def test_values_between_divided_loops_move_into_them():
    x = numbers(6, 7)
    i, j = threads(6), threads(7, 1)
    scale = CAST(MUL(i, i), arg=float32)
    value = ADD(load(index(param(1, float32, (6, 7)), i, j)), MUL(scale, ADD(scale, scale)))
    text = agree(
        END(STORE(index(param(0, float32, (6, 7)), i, j), value), i, j),
        x + np.float32(2) * np.arange(6, dtype=np.float32)[:, None] ** 4,
        x,
    )
    assert "collapse(2)" in text
    assert re.search(r"i1\+\+\) \{\n +float x0 = ", text)


def test_a_load_between_loops_keeps_them_apart():
    x, y = numbers(3, 4), numbers(3)
    i, j = threads(3), threads(4, 1)
    scale = load(index(param(2, float32, (3,)), i))
    value = MUL(load(index(param(1, float32, (3, 4)), i, j)), MUL(scale, scale))
    text = agree(
        END(STORE(index(param(0, float32, (3, 4)), i, j), value), i, j), x * (y * y)[:, None], x, y
    )
    assert "collapse" not in text
    assert len(pragmas(text)) == 2


def test_a_loop_with_a_bound_ends_early():
    n, x = np.array(11, np.int64), numbers(20)
    start = np.zeros(20, np.float32)
    bound = load(param(2, int64, ()))
    i, k = loop(0, 20, bound, "parallel"), loop(1, 20)
    zero = END(STORE(index(param(0, float32, (20,)), k), const(0.0, float32)), k)
    out = AFTER(param(0, float32, (20,)), zero)
    value = load(index(param(1, float32, (20,)), i))
    start[:11] = x[:11]
    agree(END(STORE(index(out, i), value), i), start, x, n)


def rows_through(space, columns, rows=6):
    """p0[i, j] = t[j] + t[columns − 1 − j] with t[j] = p1[i, j] · 2, t filled anew for each i."""
    i, s, j = threads(rows), loop(1, columns), loop(2, columns)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (columns,), "addrspace": space})
    value = MUL(load(index(param(1, float32, (rows, columns)), i, s)), const(2.0, float32))
    full = AFTER(t, END(STORE(index(AFTER(t, i), s), value), s))
    back = ADD(number(columns - 1), MUL(j, number(-1)))
    both = ADD(load(index(full, j)), load(index(full, back)))
    return END(STORE(index(param(0, float32, (rows, columns)), i, j), both), i, j)


def test_a_temporary_is_each_threads_own():
    x = numbers(6, 50)
    text = agree(rows_through("LOCAL", 50), 2 * x + 2 * x[:, ::-1], x)
    assert re.search(r"#pragma omp parallel\n    \{\n        float t0\[50\]", text)
    assert "program_workspace" not in text


def test_a_large_temporary_is_a_part_of_the_workspace_for_each_thread():
    columns = LARGEST_LOCAL // 4 + 3
    x = numbers(6, columns)
    text = agree(rows_through("LOCAL", columns), 2 * x + 2 * x[:, ::-1], x)
    assert f"return {LARGEST_LOCAL + 64} * (size_t)program_threads();" in text


@pytest.mark.parametrize(("loaded", "called"), [(4, 1), (1, 4)])
def test_the_number_of_threads_may_change_after_the_workspace_was_made(loaded, called):
    columns = LARGEST_LOCAL // 4 + 3
    x = numbers(6, columns)
    whole = program_of(rows_through("LOCAL", columns), x)
    text = render_threaded_c(whole)

    def run():
        openmp = ffi.dlopen("libgomp.so.1")
        openmp.omp_set_num_threads(loaded)
        call = load_program(text, whole).bind([x])
        openmp.omp_set_num_threads(called)
        call()
        return call.outputs[0]

    found = isolated(lambda: in_new_thread(run))
    np.testing.assert_array_equal(found, 2 * x + 2 * x[:, ::-1])


def test_a_variable_is_each_threads_own():
    x = numbers(40)
    i = threads(40)
    r = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    first = STORE(AFTER(r, i), load(index(param(1, float32, (40,)), i)))
    second = STORE(AFTER(r, first), MUL(load(AFTER(r, first)), const(3.0, float32)))
    end = END(STORE(index(param(0, float32, (40,)), i), load(AFTER(r, second))), i)
    agree(end, x * np.float32(3), x)


def test_storage_that_is_filled_before_is_one_for_all():
    x = numbers(30)
    s, i = loop(1, 30), threads(30)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (30,), "addrspace": "LOCAL"})
    full = AFTER(t, END(STORE(index(t, s), load(index(param(1, float32, (30,)), s))), s))
    back = ADD(number(29), MUL(i, number(-1)))
    text = agree(
        END(STORE(index(param(0, float32, (30,)), i), load(index(full, back))), i), x[::-1], x
    )
    assert text.index("float t0[30]") < text.index("#pragma omp parallel")


def test_two_nests_over_one_range_are_two_regions():
    x = numbers(30)
    i = threads(30)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (30,), "addrspace": "LOCAL"})
    full = AFTER(t, END(STORE(index(t, i), load(index(param(1, float32, (30,)), i))), i))
    back = ADD(number(29), MUL(i, number(-1)))
    text = agree(
        END(STORE(index(param(0, float32, (30,)), i), load(index(full, back))), i), x[::-1], x
    )
    assert pragmas(text).count("#pragma omp parallel") == 2


@pytest.mark.parametrize("columns", [50, LARGEST_LOCAL // 4 + 3])
def test_a_temporary_of_two_regions_is_each_threads_own_in_both(columns):
    x = numbers(6, columns)
    i, s, first = threads(6), loop(1, columns), loop(2, 10)
    rest = loop(3, columns - 10)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (columns,), "addrspace": "LOCAL"})
    value = MUL(load(index(param(1, float32, x.shape), i, s)), const(2.0, float32))
    full = AFTER(t, END(STORE(index(AFTER(t, i), s), value), s))
    out = param(0, float32, x.shape)
    second = ADD(rest, number(10))
    ends = [
        END(STORE(index(out, i, first), load(index(full, first))), i, first),
        END(STORE(index(out, i, second), load(index(full, second))), i, rest),
    ]
    text = agree(effects(ends), 2 * x, x)
    begun = re.findall(r"#pragma omp parallel.*\n    \{\n +(char \*own|float t\d\[)", text)
    assert len(begun) == 2


def test_every_thread_waits_for_what_it_streamed():
    x = numbers(64)
    i, v = threads(4), loop(1, 16, kind="vector")
    at = ADD(MUL(i, number(16)), v)
    place = STREAM(index(param(0, float32, (64,)), at))
    text = agree(END(STORE(place, load(index(param(1, float32, (64,)), at))), i, v), x, x)
    assert re.search(r"stream_fence\(\);\n    \}\n\}", text)


def test_kernels_share_the_workspace():
    """Two kernels with large temporaries: the size is that of the larger one."""
    columns = LARGEST_LOCAL // 4 + 16
    x = numbers(6, columns)
    inputs = {0: param(0, float32, x.shape)}
    bodies = [rows_through("LOCAL", columns), rows_through("REG", columns)]
    whole = joined(inputs, [Launch(body, (0,), f"k{n}") for n, body in enumerate(bodies)])
    text = render_threaded_c(whole)
    (found,) = run_with([3], text, whole, [x])
    for result in found:
        np.testing.assert_array_equal(result, 2 * x + 2 * x[:, ::-1])


@pytest.mark.parametrize("kind", [None, "loop"])
def test_without_parallel_loops_the_text_names_no_threads(kind):
    x = numbers(20)
    i = loop(0, 20, kind=kind)
    assert "omp" not in render_threaded_c(program_of(END(doubled(i, (20,)), i), x))


def test_results_do_not_depend_on_the_number_of_threads():
    x = numbers(6, 50)
    whole = program_of(rows_through("LOCAL", 50), x)
    first, *others = run_with(COUNTS, render_threaded_c(whole), whole, [x])
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize(("near", "how"), [(160, "static"), (159, "dynamic, 1"), (0, "dynamic, 1")])
def test_what_stays_in_the_cores_caches_is_divided_by_number(near, how):
    x = numbers(20)
    i = threads(20)
    whole = program_of(END(doubled(i, (20,)), i), x)
    text = render_threaded_c(whole, near=near)
    assert f"schedule({how})" in text
    for found in run_with(COUNTS, text, whole, [x]):
        np.testing.assert_array_equal(found[0], 2 * x)


def test_iterations_that_differ_are_taken_as_threads_are_free():
    x = numbers(20, 20)
    i = threads(20)
    k = loop(1, 20, ADD(i, number(1)))
    whole = program_of(END(doubled(i, (20, 20), k), i, k), x)
    assert "schedule(dynamic, 1)" in render_threaded_c(whole, near=1 << 20)
