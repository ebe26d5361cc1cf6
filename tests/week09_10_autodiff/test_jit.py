"""Captured functions: the same values as without, state in place, and reasons for new captures."""

import gc
from dataclasses import dataclass
from typing import NamedTuple
from weakref import ref

import numpy as np
import pytest

from week01_uops.dtypes import float64
from week02_render.buffers import address
from week09_10_autodiff import optim, random
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.jit import jit
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.tensor import Tensor


def tensor(*shape, seed=0, requires_grad=False):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor(values, requires_grad=requires_grad)


def place(x):
    return address(x.storage().array)


def counter():
    """A tensor, and a captured function that adds to it and returns its double."""
    total = Tensor(np.zeros(3, np.float32))

    @jit
    def step(x):
        total.assign(total + x)
        return total * 2

    return total, step


# Values and state -------------------------------------------------------------------------------


def test_values_are_those_of_the_function():
    w = tensor(3, 4)
    f = lambda x: (x @ w).relu().sum(1)
    captured = jit(f)
    for seed in range(3):
        x = tensor(5, 3, seed=seed)
        np.testing.assert_allclose(captured(x).numpy(), f(x).numpy(), rtol=1e-6)
    assert captured.captures == 1
    assert captured.why == "it was called for the first time"


def test_state_is_changed_where_it_lies():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    step(one)
    where = place(total)
    results = [step(one) for _ in range(3)]
    assert place(total) == where
    assert total.tolist() == [4, 4, 4]
    assert [r.tolist()[0] for r in results] == [4, 6, 8]


def test_further_calls_compile_nothing():
    _, step = counter()
    step(tensor(3))
    compiled = PROGRAMS.compiled
    for seed in range(4):
        step(tensor(3, seed=seed))
    assert PROGRAMS.compiled == compiled


def test_equal_functions_share_a_program():
    first, second = counter()[1], counter()[1]
    first(tensor(3))
    compiled = PROGRAMS.compiled
    assert second(tensor(3)).shape == (3,)
    assert PROGRAMS.compiled == compiled


def test_two_counters_keep_their_own_state():
    (a, step_a), (b, step_b) = counter(), counter()
    one = Tensor(np.ones(3, np.float32))
    for _ in range(2):
        step_a(one)
        step_b(one * 10)
    assert a.tolist() == [2] * 3
    assert b.tolist() == [20] * 3


def train(capture, steps=4):
    """The losses of a small network, trained with AdamW, and its parameters."""
    random.manual_seed(3)
    w, v = tensor(6, 16, seed=1, requires_grad=True), tensor(16, 2, seed=2, requires_grad=True)
    optimizer = optim.AdamW([w, v], lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        hidden = random.dropout((x @ w).tanh(), 0.1)
        loss = (hidden @ v - y).square().mean()
        loss.backward()
        optim.clip_grad_norm_([w, v], 0.5)
        optimizer.step()
        return loss.detach()

    step = capture(step)
    losses = []
    for seed in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 / (seed + 1)
        losses.append(step(tensor(8, 6, seed=seed + 10), tensor(8, 2, seed=seed + 20)).item())
    return losses, [p.numpy() for p in (w, v)], optimizer.steps.item(), step


def test_training_is_the_same_as_without():
    plain, want, _, _ = train(lambda f: f)
    losses, found, count, step = train(jit)
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert count == 4
    assert step.captures == 1


def test_state_that_is_made_by_the_first_call():
    made = {}

    @jit
    def mean(x):
        if "sum" not in made:
            made["sum"], made["count"] = Tensor.zeros(2), Tensor.zeros()
        made["sum"].assign(made["sum"] + x)
        made["count"].assign(made["count"] + 1)
        return made["sum"] / made["count"]

    results = [mean(Tensor([k, 2.0 * k])).tolist() for k in (1.0, 3.0, 5.0)]
    assert results == [[1, 2], [2, 4], [3, 6]]
    assert mean.captures == 1


def test_a_value_that_needs_the_whole_old_one():
    x = tensor(4, 4)
    want = x.numpy()

    @jit
    def square():
        x.assign(x @ x)

    for _ in range(2):
        square()
        want = want @ want
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-4)


def test_tensors_that_are_exchanged():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])

    @jit
    def exchange():
        old = a + 0
        a.assign(b)
        b.assign(old)

    exchange()
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])
    exchange()
    assert (a.tolist(), b.tolist()) == ([1, 2], [3, 4])


def test_several_assignments_count_from_the_first_to_the_last():
    x = Tensor([1.0])

    @jit
    def twice():
        x.assign(x + 1)
        x.assign(x * 10)
        return x + 0

    assert twice().tolist() == [20]
    assert twice().tolist() == [210]
    assert x.tolist() == [210]


# Who holds the old value keeps it ---------------------------------------------------------------


@pytest.mark.parametrize(
    "look",
    [
        lambda t: t.numpy(),
        lambda t: t * 1,
        lambda t: t.detach(),
        lambda t: Tensor(t),
        lambda t: t.T,
    ],
    ids=["numpy", "expression", "detach", "tensor", "transpose"],
)
@pytest.mark.parametrize("when", [0, 1, 2])
def test_old_values_stay(look, when):
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    for _ in range(when):
        step(one)
    held = look(total)
    step(one)
    step(one)
    assert total.tolist() == [when + 2] * 3
    assert np.asarray(held).tolist() == [when] * 3


def test_results_stay():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    first = step(one)
    lazy = first + total
    step(one)
    assert first.tolist() == [2] * 3
    assert lazy.tolist() == [3] * 3


def test_nothing_moves_without_a_reason():
    """Two functions that change the same tensors, and one that reads them, leave them in place."""
    total = Tensor(np.zeros(3, np.float32))

    @jit
    def add(x):
        total.assign(total + x)

    @jit
    def double():
        total.assign(total * 2)

    look = jit(lambda x: total + x)
    one = Tensor(np.ones(3, np.float32))
    add(one), double(), look(one)
    where = place(total)
    for _ in range(3):
        add(one), double()
        look(one)
    assert place(total) == where
    assert total.tolist() == [30] * 3


def test_a_tensor_over_foreign_memory_moves():
    array = np.ones(16, np.float32)
    x = Tensor.from_numpy(array)

    @jit
    def add():
        x.assign(x + 1)

    add()
    add()
    assert x.tolist() == [3] * 16
    assert array.tolist() == [1] * 16


def test_read_only_memory_is_left_alone():
    array = np.ones(64, np.float32)
    array.flags.writeable = False
    x = Tensor.from_numpy(array)
    jit(lambda: x.assign(x + 1))()
    assert x.tolist() == [2] * 64
    assert array[0] == 1


def test_tensors_that_were_one_are_two():
    a = Tensor([1.0, 2.0])
    b = a.detach()

    @jit
    def step():
        a.assign(a + b)
        return a + 0

    assert [step().tolist() for _ in range(3)] == [[2, 4], [3, 6], [4, 8]]
    assert b.tolist() == [1, 2]


def test_both_of_two_tensors_that_were_one_are_changed():
    a = Tensor([1.0])
    b = a.detach()

    @jit
    def step():
        a.assign(a + 1)
        b.assign(b * 2)

    step()
    step()
    assert (a.item(), b.item()) == (3, 4)


# What else is read ------------------------------------------------------------------------------


def test_tensors_that_are_assigned_elsewhere_are_found_again():
    w, x = Tensor([1.0]), Tensor([10.0])
    f = jit(lambda x: x * w)
    assert f(x).item() == 10
    w.assign([3.0])
    assert f(x).item() == 30
    w.assign(w + 1)
    assert f(x).item() == 40
    assert f.captures == 1


def test_state_that_is_assigned_elsewhere_is_found_again():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    step(one)
    total.assign([10.0, 20.0, 30.0])
    assert step(one).tolist() == [22, 42, 62]
    assert step.captures == 1


def test_tensors_that_were_one_and_differ_later_are_captured_again():
    a = Tensor([1.0])
    b = a.detach()
    f = jit(lambda x: a * x + b)
    assert f(Tensor([10.0])).item() == 11
    b.assign([5.0])
    assert f(Tensor([10.0])).item() == 15
    assert f.captures == 2
    assert f.why == "two tensors float32[1] that had one value have two by now"


def test_a_tensor_that_is_not_computed_yet_is_computed_once():
    random.manual_seed(0)
    w = random.rand(4)
    f = jit(lambda x: x + w)
    first = f(Tensor.zeros(4))
    assert w.is_realized
    assert first.tolist() == f(Tensor.zeros(4)).tolist() == w.tolist()


# Arguments --------------------------------------------------------------------------------------


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


# Methods and results ----------------------------------------------------------------------------


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


# Gradients --------------------------------------------------------------------------------------


def test_gradients_that_are_left_are_results():
    w = Tensor([3.0], requires_grad=True)

    @jit
    def backward(x):
        (x * w * w).sum().backward()

    backward(Tensor([1.0]))
    assert w.grad.item() == 6
    backward(Tensor([10.0]))
    assert w.grad.item() == 66
    w.grad = None
    backward(Tensor([1.0]))
    backward(Tensor([1.0]))
    assert w.grad.item() == 12
    assert backward.captures == 2
    assert backward.why == "a tensor float32[1] had no gradient and has one"


def test_gradients_that_are_there_are_inputs():
    w = Tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)
    step = jit(optimizer.step)
    for k in (1.0, 2.0):
        optimizer.zero_grad()
        (w * k).sum().backward()
        step()
        assert w.grad.item() == k
    assert w.item() == 0
    assert step.captures == 1
    optimizer.zero_grad()
    step()
    assert step.why == "a tensor float32[1] had a gradient and has none"


def test_gradients_of_what_was_changed_are_gone():
    w = Tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)

    @jit
    def step():
        (w * 1).sum().backward()
        optimizer.step()

    step()
    assert w.grad is None
    step()
    assert w.item() == 1
    assert w.requires_grad
    assert w.is_leaf


def test_derivatives_with_respect_to_a_variable_after_steps_in_place():
    w = Tensor([3.0], requires_grad=True)

    @jit
    def step():
        with no_grad():
            w.assign(w + 1)

    step()
    step()
    (w * w).sum().backward()
    assert w.grad.item() == 10


# Faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "look",
    [lambda t: t.item(), lambda t: t.numpy(), lambda t: t.tolist(), lambda t: bool(t), float],
)
def test_elements_cannot_be_looked_at(look):
    f = jit(lambda x: look(x * 2))
    with pytest.raises(TensorError, match=r"while jit captures .*test_jit\.py:"):
        f(Tensor([1.0]))


def test_a_fault_inside_leaves_everything_as_it_was():
    random.manual_seed(5)
    w = Tensor([3.0], requires_grad=True)
    w.grad = Tensor([7.0])
    total = Tensor([1.0])
    wrong = [True]

    @jit
    def step(x):
        total.assign(total + x)
        w.grad = None
        (w * x + random.rand(1)).sum().backward()
        w.assign(w * 2)
        if wrong[0]:
            raise KeyError("no")
        return total + 0

    before = w.node, total.node
    with pytest.raises(KeyError):
        step(Tensor([1.0]))
    assert (w.node, total.node) == before
    assert w.grad.item() == 7
    assert random.get_state() == {"seed": 5, "position": 0}
    assert step.captures == 0
    wrong[0] = False
    assert step(Tensor([1.0])).item() == 2
    assert w.item() == 6


def test_a_tensor_that_leaks_out_of_a_capture_says_so():
    leaked = []

    @jit
    def f(x):
        leaked.append(x * 2)
        return x

    f(Tensor([1.0]))
    with pytest.raises(TensorError, match="expected tensors whose elements are known"):
        leaked[0].numpy()
    g = jit(lambda x: x + leaked[0])
    with pytest.raises(TensorError, match="return what is to be used outside"):
        g(Tensor([1.0]))


def test_wrong_calls_are_python_s_own_errors():
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        jit(lambda x: x)()


# Random numbers ---------------------------------------------------------------------------------


def test_random_numbers_are_those_without():
    def draw():
        return [
            random.rand(5),
            random.randn(2, 2),
            random.randint(0, 10, (4,)),
            random.randperm(6),
            random.rand(3, dtype=float64),
        ]

    random.manual_seed(11)
    want = [[x.tolist() for x in draw()] for _ in range(3)]
    state = random.get_state()
    random.manual_seed(11)
    captured = jit(draw)
    assert [[x.tolist() for x in captured()] for _ in range(3)] == want
    assert random.get_state() == state
    random.manual_seed(11)
    assert [x.tolist() for x in captured()] == want[0]
    assert captured.captures == 1


# Memory -----------------------------------------------------------------------------------------


def test_nothing_outlives_the_function():
    storages = []

    def use():
        w, total = tensor(64), tensor(64)
        step = jit(lambda x: total.assign(total + x * w))
        step(tensor(64))
        storages.extend(ref(x.storage()) for x in (w, total))

    use()
    gc.collect()
    assert [s() for s in storages] == [None, None]
