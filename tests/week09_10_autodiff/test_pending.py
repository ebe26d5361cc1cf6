"""What waits for the next step of an optimizer; and constants, which stay constants."""

from tests.week09_10_autodiff.against_torch import normal
from week09_10_autodiff import nn
from week09_10_autodiff.jit import jit
from week09_10_autodiff.pending import realize_all, realize_later
from week09_10_autodiff.realize import PROGRAMS, canonical
from week09_10_autodiff.tensor import Tensor


def test_what_waits_is_computed_in_one_program_with_the_rest():
    x = Tensor(normal(7))
    first, second, third = x.exp(), x.exp().sum(), x.exp() * 3
    realize_later(first, None, second)
    compiled = PROGRAMS.compiled
    realize_all([third])
    assert all(t.is_realized for t in (first, second, third))
    assert PROGRAMS.compiled <= compiled + 1


def test_nothing_waits_twice():
    layer = nn.BatchNorm1d(2)
    x = Tensor(normal(3, 2), "float32")
    layer(x)
    earlier = layer.running_mean.node
    assert not layer.running_mean.is_realized
    layer(x)
    assert layer.running_mean.node is not earlier
    assert layer.running_mean.is_realized


def test_what_nobody_has_any_more_is_not_computed():
    realize_all(())
    realize_later(Tensor(normal(123)).exp())
    compiled = PROGRAMS.compiled
    realize_all(())
    assert PROGRAMS.compiled == compiled


def test_nothing_waits_where_a_function_is_captured():
    layer = nn.BatchNorm1d(2)
    run = jit(lambda x: layer(x))
    run(Tensor(normal(3, 2), "float32"))
    assert layer.running_mean.is_realized
    assert layer.num_batches_tracked.item() == 1


def test_computed_constants_share_no_memory_and_are_no_inputs_of_other_programs():
    tensors = [Tensor.zeros(8), Tensor.zeros(8), Tensor.zeros(), Tensor.zeros()]
    tensors[0].realize(*tensors[1:])
    assert len({id(t.storage()) for t in tensors}) == 4
    fresh = Tensor.zeros(8) + Tensor.zeros() + Tensor([1.0])
    _, storages = canonical([fresh.node])
    assert len(storages) == 1
