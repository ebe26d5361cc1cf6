"""Recomputing: the same gradients bit by bit, less memory, whatever a function is made of."""

import re

import numpy as np
import pytest

from tests.week09_10_autodiff.against_torch import close, compiled, interpreted, normal
from week02_render.ops import AFTER, STORE
from week09_10_autodiff import nn, random
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.derivatives import grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional
from week09_10_autodiff.realize import canonical
from week09_10_autodiff.recompute import recompute
from week09_10_autodiff.tensor import Tensor

WIDTH, DEPTH = 8, 4


def plain(function, *args):
    return function(*args)


def weights(depth=DEPTH, width=WIDTH):
    return [
        Tensor(normal(width, width, seed=k) / 3, "float32", requires_grad=True)
        for k in range(depth)
    ]


def chain(call, x, parameters, block=lambda h, w: h + functional.gelu(h @ w)):
    for w in parameters:
        x = call(lambda h, w=w: block(h, w), x)
    return x.square().mean()


def derivatives(call, loss, x, parameters):
    for tensor in (x, *parameters):
        tensor.grad = None
    y = loss(call, x, parameters)
    y.backward()
    return [y, x.grad, *(w.grad for w in parameters)]


def compare(loss, x, parameters, exact=True):
    """Bit by bit where every op is computed as it stands, to rounding where it is compiled."""
    wanted = derivatives(plain, loss, x, parameters)
    got = derivatives(recompute, loss, x, parameters)
    for one, other in zip(interpreted(*got), interpreted(*wanted), strict=True):
        assert np.array_equal(one, other) or not exact
        close(one, other, 1e-5)
    for one, other in zip(compiled(*got), compiled(*wanted), strict=True):
        close(one, other, 2e-6)


def sample(*shape):
    return Tensor(normal(*shape), "float32", requires_grad=True)


def test_a_deep_chain_has_the_same_gradients():
    compare(chain, sample(5, WIDTH), weights())


def workspace(tensors):
    program, _ = canonical([t.node for t in tensors])
    source = REFERENCE.compile(program, "c").source
    return int(re.search(r"program_workspace\(void\)\s*{\s*return (\d+)", source)[1])


@pytest.mark.parametrize("order", [1, -1])
def test_a_deep_chain_needs_a_fraction_of_the_memory(order):
    """Of each block, 512 KiB, only what goes in is kept, 64 KiB, in whatever order it is asked."""

    def block(h, w):
        return h + functional.gelu(h @ w[0]) @ w[1]

    pairs = [
        (Tensor.ones(64, 256, requires_grad=True), Tensor.ones(256, 64, requires_grad=True))
        for _ in range(4)
    ]

    def loss(call, x, _):
        return chain(call, x, pairs, block)

    flat = [w for pair in pairs for w in pair][::order]
    sizes = [
        workspace(derivatives(call, loss, sample(256, 64), flat)) for call in (plain, recompute)
    ]
    assert sizes[1] < 0.35 * sizes[0]


def test_the_second_computation_waits_for_the_cotangent():
    x, (w,) = sample(5, WIDTH), weights(1)
    program, _ = canonical([t.node for t in derivatives(recompute, chain, x, [w])])
    order = program.toposort()
    waiting = [n for n in order if n.op is AFTER and any(d.op is STORE for d in n.src[1:])]
    assert waiting
    assert len(order) > len(
        canonical([t.node for t in derivatives(plain, chain, x, [w])])[0].toposort()
    )


def test_parameters_of_modules_get_their_gradients():
    block = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU())

    def loss(call, x, _):
        return call(block, x).square().sum()

    compare(loss, sample(3, WIDTH), list(block.parameters()))


def test_what_comes_from_around_the_function_counts():
    """A value that is not passed is computed again, and its derivatives are added further down."""

    def loss(call, x, parameters):
        scale = (parameters[1] * 2).exp()
        return call(lambda h: (h @ parameters[0]).tanh() @ scale, x).sum() + scale.mean()

    compare(loss, sample(3, WIDTH), weights(2), exact=False)


def test_several_arguments_that_depend_on_one_another():
    def loss(call, x, parameters):
        y = x @ parameters[0]
        return call(lambda a, b: (a * b).tanh() + a, x, y).sum() + y.mean()

    compare(loss, sample(3, WIDTH), weights(1))


def test_integers_go_in():
    index = Tensor([1, 0, 1])

    def loss(call, x, parameters):
        return call(lambda i, w: functional.embedding(i, w).tanh() * x, index, parameters[0]).sum()

    compare(loss, sample(3, WIDTH), weights(1))


def test_a_function_within_a_function():
    def loss(call, x, parameters):
        a, b = parameters
        inner = lambda h: (h @ a).tanh()
        return call(lambda h: call(inner, h).exp() @ b, x).sum()

    compare(loss, sample(3, WIDTH), weights(2))


def test_several_results():
    def loss(call, x, parameters):
        first, second = call(lambda h: ((h @ parameters[0]).tanh(), h.exp()), x)
        return (first * second).sum()

    compare(loss, sample(3, WIDTH), weights(1))


def test_random_numbers_are_the_same_again():
    def loss(call, x, parameters):
        random.manual_seed(3)
        return call(lambda h: functional.dropout((h @ parameters[0]).tanh(), 0.4), x).sum()

    compare(loss, sample(6, WIDTH), weights(1))


def test_second_derivatives():
    x, (w,) = sample(3, WIDTH), weights(1)

    def second(call):
        y = call(lambda h: (h @ w).tanh(), x).square().sum()
        return grad(grad(y, x).square().sum(), [x, w])

    for got, wanted in zip(
        interpreted(*second(recompute)), interpreted(*second(plain)), strict=True
    ):
        close(got, wanted, 1e-6)


def test_what_needs_no_gradient_is_left_as_it_is():
    x = Tensor([1.0, 2.0])
    assert recompute(lambda h: h * 2, x).node is (x * 2).node


def test_other_results_are_refused():
    with pytest.raises(TensorError, match="recompute: expected a function that gives tensors, got"):
        recompute(lambda h: 3, Tensor([1.0]))


def test_attention_of_long_texts_does_not_keep_its_weights(monkeypatch):
    """6 layers of 2 heads, 160 tokens, width 8: of each, 2·160² weights are not kept."""
    found = []
    for limit in (functional.LONG, 1000):
        monkeypatch.setattr(functional, "LONG", limit)
        x = normal(1, 2, 160, 8)
        start = Tensor(x, requires_grad=True)
        y = start
        for _ in range(6):
            y = y + functional.scaled_dot_product_attention(y, y, y, is_causal=True)
        (got,) = grad(y.square().sum(), [start])
        found.append((workspace([got]), got.numpy()))
    (less, short), (more, whole) = found
    assert less < 0.6 * more
    np.testing.assert_allclose(short, whole, rtol=1e-4, atol=1e-4)
