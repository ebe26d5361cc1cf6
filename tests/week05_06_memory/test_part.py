import numpy as np
import pytest

from tests.week02_render.by_hand import one_kernel
from tests.week05_06_memory.vectors import number
from week01_uops.dtypes import float16, float32, from_numpy
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, MAX, MUL, param
from week02_render.ops import AFTER, ALLOC, END, RANGE, STORE, index, load, loop
from week03_loops.ops import REDUCE, ReduceArg
from week05_06_memory.evaluate import evaluate
from week05_06_memory.nests import ScheduleError
from week05_06_memory.part import part
from week05_06_memory.schedule import Part, from_json, show, to_json

I, J, K, L = loop(0, 5), loop(1, 3), loop(2, 12), loop(3, 4)


def total(value, *ranges, op=ADD):
    return REDUCE(value, *ranges, arg=ReduceArg(op, 0))


def read(slot, shape, *at, dtype=float32):
    return load(index(param(slot, dtype, shape), *at))


def out(shape=(), *at, dtype=float32):
    return index(param(0, dtype, shape), *at)


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def value(body, *arrays):
    inputs = [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return evaluate(one_kernel(body, *inputs), arrays)[0]


def same(body, *arrays, parts=4, name=2):
    """The body in parts, which means what it did; integers in floats are exact."""
    found = part(body, name, parts)
    np.testing.assert_array_equal(value(body, *arrays), value(found, *arrays))
    return found


def shapes(body):
    return sorted(n.shape for n in body.toposort() if n.op is ALLOC)


def test_a_sum_of_everything():
    found = same(STORE(out(), total(read(1, (12,), K), K)), numbers(12))
    assert shapes(found) == [(4,)]
    kinds = [n.arg.kind for n in found.toposort() if n.op is RANGE]
    assert sorted(map(str, kinds)) == ["None", "None", "parallel"]


def test_what_is_left_over_is_added_at_the_end():
    found = same(STORE(out(), total(read(1, (12,), K), K)), numbers(12), parts=5)
    assert sorted(n.arg.size for n in found.toposort() if n.op is RANGE) == [2, 2, 5, 5]


@pytest.mark.parametrize("op", [ADD, MAX, MUL])
def test_every_reduction(op):
    same(STORE(out(), total(read(1, (12,), K), K, op=op)), numbers(12), parts=5)


def test_partial_results_of_several_results():
    product = MUL(read(1, (5, 12), I, K), read(2, (12, 3), K, J))
    body = END(STORE(out((5, 3), I, J), total(product, K)), I, J)
    assert shapes(same(body, numbers(5, 12), numbers(12, 3))) == [(4, 5, 3)]


def test_other_loops_of_the_reduction_stay_in_it():
    body = END(STORE(out((5,), I), total(read(1, (5, 4, 12), I, L, K), L, K)), I)
    same(body, numbers(5, 4, 12))
    same(body, numbers(5, 4, 12), name=3, parts=2)


def test_a_reduction_inside_another():
    inner = total(read(1, (12,), K), K)
    outer = total(MUL(read(1, (12,), K), inner), K)
    assert shapes(same(STORE(out(), outer), numbers(12))) == [(4,), (4,)]


def test_halves_are_summed_in_float():
    x = numbers(12, dtype=np.float16)
    found = same(STORE(out(dtype=float16), total(read(1, (12,), K, dtype=float16), K)), x)
    assert [n.dtype for n in found.toposort() if n.op is ALLOC] == [float32]
    assert any(n.op is CAST for n in found.toposort())


REFUSED = [
    (STORE(out((12,), number(0)), const(0.0, float32)), "expected one of the ranges"),
    (END(STORE(out((12,), K), read(1, (12,), K)), K), "expected a reduction over range 2"),
    (STORE(out(), total(read(1, (12,), loop(2, 3)), loop(2, 3))), "at least 4 iterations"),
    (
        STORE(out(), total(read(1, (12,), loop(2, 12, I)), loop(2, 12, I))),
        "expected a loop without a bound",
    ),
    (
        END(
            STORE(out((12,), loop(7, 12, I)), total(read(1, (12,), loop(7, 12, I)), K)),
            loop(7, 12, I),
            I,
        ),
        "expected no bounds",
    ),
    (
        END(STORE(out((12,), I), total(load(out((12,), K)), K)), I),
        "of what does not change",
    ),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_refusals(body, reason):
    with pytest.raises(ScheduleError, match=reason):
        part(body, 2, 4)


def test_a_temporary_of_each_result_is_in_the_way():
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (12,), "addrspace": "LOCAL"})
    s = loop(5, 12)
    full = AFTER(t, END(STORE(index(AFTER(t, I), s), read(1, (5, 12), I, s)), s))
    body = END(STORE(out((5,), I), total(load(index(full, K)), K)), I)
    with pytest.raises(ScheduleError, match="of what does not change"):
        part(body, 2, 4)


def test_a_part_is_data():
    step = Part(2, 4)
    assert to_json([step]) == [{"step": "part", "range": 2, "parts": 4}]
    assert from_json(to_json([step])) == (step,)
    assert show(step) == "part range 2 parts 4"
