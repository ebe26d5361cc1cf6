"""Captured functions: what goes in and out, and reasons for new captures."""

import gc
from dataclasses import dataclass
from typing import NamedTuple
from weakref import ref

import numpy as np

from tests.week09_10_autodiff.jitted import place, tensor
from week01_uops.dtypes import float64
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.jit import jit
from week09_10_autodiff.tensor import Tensor


def test_reasons_for_new_captures():
    f = jit(lambda x, y=1, *, z=(): x * y)
    x, other = tensor(8, 128), tensor(4, 128)
    f(x)
    f(x, 1, z=())
    assert f.captures == 1
    expected = [
        ((other,), {}, r"argument x: expected float32[8, 128], got float32[4, 128]"),
        ((x, 2), {}, "argument y: expected 1, got 2"),
        ((x, 2.0), {}, "argument y: expected 2, got 2.0"),
        ((x.to(float64),), {}, "argument x: expected float32[4, 128], got float64[8, 128]"),
        ((x,), {"z": ({"a": 1},)}, "argument z[0]['a']: expected nothing, got 1"),
        ((x,), {"z": ({"a": 2},)}, "argument z[0]['a']: expected 1, got 2"),
    ]
    for number, (args, options, why) in enumerate(expected):
        f(*args, **options)
        assert f.captures == number + 2
        assert why in f.why
    f(x)
    f(other)
    assert f.captures == len(expected) + 1


def test_derivatives_wanted_or_not_are_two_captures():
    f = jit(lambda x: x + 1)
    f(Tensor([1.0]))
    with no_grad():
        f(Tensor([1.0]))
        f(Tensor([1.0]))
    assert f.captures == 2
    assert f.why == "expected a call with derivatives, got one without derivatives"


def test_other_objects_are_other_captures():
    @dataclass
    class Scale:
        by: float

    f = jit(lambda x, scale: x * scale.by)
    two, three = Scale(2), Scale(3)
    x = Tensor([1.0])
    assert [f(x, s).item() for s in (two, three, two, three)] == [2, 3, 2, 3]
    assert f.captures == 2
    assert f.why == "an argument is another object than before"


def test_structures_go_in_and_out():
    class Pair(NamedTuple):
        left: Tensor
        right: object

    @dataclass(frozen=True)
    class Record:
        value: Tensor
        name: str

    @jit
    def f(batch, pair, record, *rest, **options):
        total = batch["x"] + batch["y"][0] + pair.left + record.value + rest[0] + options["last"]
        return {"sum": total, "n": 3, "pair": Pair(total * 2, None), "record": record}, [total, "s"]

    def given(k):
        v = lambda n: Tensor([float(n * k)])
        batch = {"x": v(1), "y": [v(2), 7]}
        return (batch, Pair(v(4), "p"), Record(v(8), "name"), v(16)), {"last": v(32)}

    for k in (1, 2):
        args, options = given(k)
        first, second = f(*args, **options)
        assert first["sum"].item() == second[0].item() == 63 * k
        assert (first["n"], second[1], first["pair"].right) == (3, "s", None)
        assert isinstance(first["pair"], Pair)
        assert first["pair"].left.item() == 126 * k
        assert first["record"].value.item() == 8 * k
        assert first["record"].name == "name"
    assert f.captures == 1


def test_arrays_of_numpy_are_tensors():
    f = jit(lambda x: x.sum())
    assert f(np.ones((2, 3), np.float32)).item() == 6
    assert f(np.full((2, 3), 2, np.float32)).item() == 12
    assert f.captures == 1


def test_expressions_are_computed_before():
    f = jit(lambda x: x * 2)
    x = Tensor([1.0]) + 1
    assert f(x).item() == 4
    assert x.is_realized


def test_the_same_tensor_twice():
    f = jit(lambda x, y: x * 10 + y)
    x, y = Tensor([1.0]), Tensor([2.0])
    assert [f(x, x).item(), f(x, y).item(), f(y, y).item()] == [11, 12, 22]
    assert f.captures == 1


def test_an_argument_that_is_state_as_well():
    total = Tensor([1.0])

    @jit
    def step(x):
        total.assign(total * 10)
        return x + 0

    assert step(Tensor([5.0])).item() == 5
    assert step(total).item() == 10
    assert step(total).item() == 100
    assert total.item() == 1000
    assert step.captures == 1


def test_an_argument_that_is_assigned():
    @jit
    def grow(x):
        x.assign(x * 2)
        return x + 0

    a, b = Tensor([1.0]), Tensor([5.0])
    held = a.detach()
    assert [grow(a).item(), grow(b).item(), grow(a).item()] == [2, 10, 4]
    assert (a.item(), b.item(), held.item()) == (4, 10, 1)


class Layer:
    def __init__(self, scale):
        self.scale = Tensor([scale])
        self.calls = Tensor.zeros()

    @jit
    def apply(self, x):
        """Scale x."""
        self.calls.assign(self.calls + 1)
        return x * self.scale


def test_methods():
    two, three = Layer(2.0), Layer(3.0)
    x = Tensor([1.0])
    assert [layer.apply(x).item() for layer in (two, three, two)] == [2, 3, 2]
    assert (two.calls.item(), three.calls.item()) == (2, 1)
    assert Layer.apply.captures == 2
    assert Layer.apply.__doc__ == "Scale x."
    bound = jit(two.apply)
    assert bound(x).item() == 2
    assert bound(x).item() == 2
    assert two.calls.item() == 4


def test_captures_of_a_method_go_with_its_object():
    layer = Layer(2.0)
    apply = jit(Layer.apply.__wrapped__)
    assert apply(layer, Tensor([1.0])).item() == 2
    assert len(apply.programs()) == 1
    gone = ref(layer)
    del layer
    gc.collect()
    assert gone() is None
    assert apply.programs() == []


def test_a_function_in_a_captured_function_is_a_part_of_it():
    inner = jit(lambda x: x + 1)
    outer = jit(lambda x: inner(x) * 2)
    assert outer(Tensor([1.0])).item() == 4
    assert (inner.captures, outer.captures) == (0, 1)


def test_what_is_returned_that_is_no_new_tensor():
    w = Tensor([1.0])

    @jit
    def f(x):
        w.assign(w + x)
        return w, x, None, "text"

    x = Tensor([2.0])
    found = f(x)
    assert found[0] is w
    assert found[1].tolist() == [2]
    assert found[2:] == (None, "text")
    assert f(x)[0] is w
    assert w.item() == 5
    assert jit(lambda: None)() is None
    assert jit(lambda: 3)() == 3


def test_results_are_new_arrays():
    f = jit(lambda x: x + 1)
    results = [f(Tensor([float(k)])) for k in range(3)]
    assert [r.item() for r in results] == [1, 2, 3]
    assert len({place(r) for r in results}) == 3
