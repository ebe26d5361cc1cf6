"""Families of derivatives: a loss over usual layers, and what it is derived by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.bench.derivative import Derivative, Input, Update, derivative
from grader.bench.rows import LAYER_EPSILON
from grader.bench.workload import Array, Result, Workload
from week01_uops.node import UOp
from week03_loops import library
from week03_loops.ops import reshape

MOMENTA = (0.9, 0.95)
RATE, DECAY, EPSILON, STEP = 3e-4, 0.1, 1e-8, 10
"""Of AdamW, in its tenth step."""


def cross_entropy(name: str, rows: int, classes: int) -> Derivative:
    """By the logits: (softmax − one-hot)/rows."""

    def build(logits: UOp, target: UOp) -> UOp:
        return library.cross_entropy(logits, target)

    def loss(t: Any, logits: Any, target: Any) -> Any:  # noqa: ANN401
        return t.nn.functional.cross_entropy(logits, target)

    def size(exact: Array, *_: Array) -> Array:
        """Of p, and of 1 from which it is taken at the target."""
        return np.where(exact < 0, 1 / max(rows, 1), np.abs(exact))

    inputs = [Input((rows, classes)), Input((rows,), below=classes)]
    return derivative(name, inputs, [0], build, loss, terms=classes, size=size)


def _weighted(y: UOp, weights: UOp) -> UOp:
    """A sum with weights, which are its cotangent: a scalar."""
    return library.reduce_sum(library.mul(y, weights))


def layernorm(name: str, rows: int, columns: int) -> Derivative:
    """By x: (g − mean g − x̂·mean(g·x̂))/σ, with g = weight·ȳ."""

    def build(x: UOp, weight: UOp, bias: UOp, bar: UOp) -> UOp:
        return _weighted(library.layernorm(x, weight, bias, epsilon=LAYER_EPSILON), bar)

    def loss(t: Any, x: Any, weight: Any, bias: Any, bar: Any) -> Any:  # noqa: ANN401
        y = t.nn.functional.layer_norm(x, weight.shape, weight, bias, LAYER_EPSILON)
        return (y * bar).sum()

    def size(_: Array, x: Array, weight: Array, __: Array, bar: Array) -> Array:
        """The same over absolute values; x̂ is off by a part of its own typical size, 1."""
        scale = np.sqrt(x.var(-1, keepdims=True) + LAYER_EPSILON)
        normal = 1 + np.abs(x - x.mean(-1, keepdims=True)) / scale
        g = np.abs(weight * bar)
        mean = g.mean(-1, keepdims=True)
        found: Array = (g + mean + normal * (g * normal).mean(-1, keepdims=True)) / scale
        return found

    last = Input((columns,))
    inputs = [Input((rows, columns)), last, last, Input((rows, columns))]
    return derivative(name, inputs, [0], build, loss, terms=columns, size=size)


def attention(name: str, queries: tuple[int, int, int, int]) -> Derivative:
    """By q, k and v of causal attention of (batch, heads, length, d)."""
    length, width = queries[-2:]
    scale = 1 / math.sqrt(width)

    def build(q: UOp, k: UOp, v: UOp, bar: UOp) -> UOp:
        return _weighted(library.attention(q, k, v, causal=True), bar)

    def loss(t: Any, q: Any, k: Any, v: Any, bar: Any) -> Any:  # noqa: ANN401
        y = t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (y * bar).sum()

    def size(_: Result, q: Array, k: Array, v: Array, bar: Array) -> Result:
        """The same sums over absolute values; with weights P, S̄ = P∘(ȳ·vᵀ − Σ ȳ·y)."""
        scores = np.where(np.tri(length, dtype=bool), q @ k.swapaxes(-2, -1) * scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        q, k, v, bar = (np.abs(x) for x in (q, k, v, bar))
        terms = bar @ v.swapaxes(-2, -1)
        terms += (bar * (weights @ v)).sum(-1, keepdims=True)
        terms *= weights * scale
        return terms @ k, terms.swapaxes(-2, -1) @ q, weights.swapaxes(-2, -1) @ bar

    useful = 3 * (length + 1) / (2 * length)
    terms = length + width
    inputs = [Input(queries)] * 4
    return derivative(name, inputs, [0, 1, 2], build, loss, terms=terms, size=size, useful=useful)


def perceptron(name: str, rows: int, width: int, hidden: int) -> Derivative:
    """By the first weight of two layers with gelu between them, under the mean square error."""

    def build(x: UOp, first: UOp, second: UOp, target: UOp) -> UOp:
        y = library.linear(library.gelu(library.linear(x, first)), second)
        return library.mean_square_error(y, target)

    def loss(t: Any, x: Any, first: Any, second: Any, target: Any) -> Any:  # noqa: ANN401
        f = t.nn.functional
        return f.mse_loss(f.linear(f.gelu(f.linear(x, first)), second), target)

    rows_of = Input((rows, width))
    up, down = _weight(hidden, width), _weight(width, hidden)
    terms = rows + 2 * (width + hidden)
    return derivative(name, [rows_of, up, down, rows_of], [1], build, loss, terms=terms)


def _weight(outer: int, inner: int) -> Input:
    """Of a layer whose results are as large as its inputs."""
    return Input((outer, inner), 1 / math.sqrt(max(inner, 1)))


def embedding(name: str, tokens: int, words: int, width: int) -> Derivative:
    """By a table of which rows are looked up, behind which there is a layer; costs go by tokens."""

    def build(table: UOp, token: UOp, weight: UOp, target: UOp) -> UOp:
        return library.mean_square_error(library.linear(library.take(table, token), weight), target)

    def loss(t: Any, table: Any, token: Any, weight: Any, target: Any) -> Any:  # noqa: ANN401
        f = t.nn.functional
        return f.mse_loss(f.linear(f.embedding(token, table), weight), target)

    inputs = [
        Input((words, width)),
        Input((tokens,), below=words),
        _weight(width, width),
        Input((tokens, width)),
    ]
    products = 2 * width / max(2 * width + words, 1)  # looking up is counted as a sum over words
    return derivative(name, inputs, [0], build, loss, terms=2 * width + tokens, useful=2 * products)


@dataclass(frozen=True)
class Sizes:
    """Of a small GPT."""

    batch: int
    length: int
    width: int
    heads: int
    words: int

    @property
    def rows(self) -> int:
        """Tokens in a batch."""
        return self.batch * self.length

    def terms(self, layers: int) -> float:
        """Lengths of all sums on the way to the loss and back, those over rows too."""
        layer = 8 * self.width + self.length + self.width // max(self.heads, 1) + 4 * self.width
        return 2 * (layers * layer + 2 * self.width + self.words) + self.rows

    def layer(self) -> list[Input]:
        """The weights of a layer, in the order that `_layer` takes them."""
        norm = [Input((self.width,), 1.0, positive=True), Input((self.width,), 0.1)]
        across = [_weight(3 * self.width, self.width), _weight(self.width, self.width)]
        deep = [_weight(4 * self.width, self.width), _weight(self.width, 4 * self.width)]
        return [*norm, *across, *norm, *deep]

    def head(self) -> list[Input]:
        """The weights behind the layers."""
        norm = [Input((self.width,), 1.0, positive=True), Input((self.width,), 0.1)]
        return [*norm, _weight(self.words, self.width)]

    def ids(self) -> Input:
        """A word for each place."""
        return Input((self.batch, self.length), below=self.words)


LAYER = 8
HEAD = 3
"""How many weights there are."""


def _layer(sizes: Sizes, x: UOp, weights: Sequence[UOp]) -> UOp:
    """A layer of GPT-2 (Radford et al., 2019) without the biases of its products."""
    norm1, bias1, across, out, norm2, bias2, up, down = weights
    normal = library.layernorm(x, norm1, bias1, epsilon=LAYER_EPSILON)
    shape = (sizes.batch, sizes.length, sizes.heads, sizes.width // sizes.heads)
    parts = library.split(library.linear(normal, across), -1, 3)
    q, k, v = (library.transpose(reshape(part, shape), 1, 2) for part in parts)
    mixed = library.transpose(library.attention(q, k, v, causal=True), 1, 2)
    x = library.add(x, library.linear(reshape(mixed, x.shape), out))
    normal = library.layernorm(x, norm2, bias2, epsilon=LAYER_EPSILON)
    deep = library.gelu(library.linear(normal, up))
    return library.add(x, library.linear(deep, down))


def _torch_layer(t: Any, sizes: Sizes, x: Any, weights: Sequence[Any]) -> Any:  # noqa: ANN401
    f = t.nn.functional
    norm1, bias1, across, out, norm2, bias2, up, down = weights
    normal = f.layer_norm(x, norm1.shape, norm1, bias1, LAYER_EPSILON)
    parts = f.linear(normal, across).chunk(3, -1)
    q, k, v = (part.unflatten(-1, (sizes.heads, -1)).transpose(1, 2) for part in parts)
    mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + f.linear(mixed.transpose(1, 2).flatten(2), out)
    normal = f.layer_norm(x, norm2.shape, norm2, bias2, LAYER_EPSILON)
    return x + f.linear(f.gelu(f.linear(normal, up)), down)


def _model(sizes: Sizes, x: UOp, weights: Sequence[UOp], targets: UOp) -> UOp:
    """Layers and the loss of the words that they predict."""
    *layers, norm, bias, head = weights
    for k in range(0, len(layers), LAYER):
        x = _layer(sizes, x, layers[k : k + LAYER])
    x = library.layernorm(x, norm, bias, epsilon=LAYER_EPSILON)
    return library.cross_entropy(library.linear(x, head), targets)


def _torch_model(t: Any, sizes: Sizes, x: Any, weights: Sequence[Any], targets: Any) -> Any:  # noqa: ANN401
    f = t.nn.functional
    *layers, norm, bias, head = weights
    for k in range(0, len(layers), LAYER):
        x = _torch_layer(t, sizes, x, layers[k : k + LAYER])
    logits = f.linear(f.layer_norm(x, norm.shape, norm, bias, LAYER_EPSILON), head)
    return f.cross_entropy(logits.flatten(0, 1), targets.flatten())


def stream(name: str, sizes: Sizes, layers: int) -> Derivative:
    """The loss of a GPT by the x that its layers begin with."""

    def build(x: UOp, *given: UOp) -> UOp:
        return _model(sizes, x, given[:-1], given[-1])

    def loss(t: Any, x: Any, *given: Any) -> Any:  # noqa: ANN401
        return _torch_model(t, sizes, x, given[:-1], given[-1])

    x = Input((sizes.batch, sizes.length, sizes.width))
    weights = [*(given for _ in range(layers) for given in sizes.layer()), *sizes.head()]
    inputs = [x, *weights, sizes.ids()]
    return derivative(name, inputs, [0], build, loss, terms=sizes.terms(layers))


def training(name: str, sizes: Sizes, layers: int = 1) -> Derivative:
    """A step of training: the loss of a GPT, and all weights and both momenta after AdamW.

    The inputs are the weights, a table of words first, both momenta, the words, and the targets.
    """
    weights = [Input((sizes.words, sizes.width))]
    weights += [given for _ in range(layers) for given in sizes.layer()] + sizes.head()
    count = len(weights)

    def build(*given: UOp) -> UOp:
        table, *rest = given[:count]
        return _model(sizes, library.take(table, given[-2]), rest, given[-1])

    def loss(t: Any, *given: Any) -> Any:  # noqa: ANN401
        table, *rest = given[:count]
        x = t.nn.functional.embedding(given[-2], table)
        return _torch_model(t, sizes, x, rest, given[-1])

    small = 1e-3  # about as large as the derivatives are
    first = [Input(given.shape, small) for given in weights]
    second = [Input(given.shape, small * small, positive=True) for given in weights]
    inputs = [*weights, *first, *second, sizes.ids(), sizes.ids()]
    return derivative(
        name,
        inputs,
        range(count),
        build,
        loss,
        terms=sizes.terms(layers),
        update=Update(_adamw, _torch_adamw),
        useful=3.0,
    )


def _adamw(loss: UOp, derivatives: Sequence[UOp], inputs: Sequence[UOp]) -> list[UOp]:
    """m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − r·(m̂/(√v̂ + ε) + d·w).

    Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
    """
    count, (b1, b2) = len(derivatives), MOMENTA
    add, mul = library.add, library.mul
    found: list[list[UOp]] = []
    for k, g in enumerate(derivatives):
        w, m, v = (inputs[k + part * count] for part in range(3))
        m = add(mul(m, b1), mul(g, 1 - b1))
        v = add(mul(v, b2), mul(library.square(g), 1 - b2))
        root = library.sqrt(mul(v, 1 / (1 - b2**STEP)))
        change = library.div(mul(m, RATE / (1 - b1**STEP)), add(root, EPSILON))
        found.append([library.sub(mul(w, 1 - RATE * DECAY), change), m, v])
    return [loss, *(part[k] for k in range(3) for part in found)]


def _torch_adamw(t: Any, loss: Any, derivatives: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    count, (b1, b2) = len(derivatives), MOMENTA
    w, m, v = (list(inputs[part * count : (part + 1) * count]) for part in range(3))
    m = t._foreach_mul(m, b1)
    t._foreach_add_(m, derivatives, alpha=1 - b1)
    v = t._foreach_mul(v, b2)
    t._foreach_addcmul_(v, derivatives, derivatives, 1 - b2)
    roots = t._foreach_sqrt(v)
    t._foreach_div_(roots, math.sqrt(1 - b2**STEP))
    t._foreach_add_(roots, EPSILON)
    w = t._foreach_mul(w, 1 - RATE * DECAY)
    t._foreach_addcdiv_(w, m, roots, -RATE / (1 - b1**STEP))
    return [loss, *w, *m, *v]


def odd_derivatives() -> list[Workload]:
    """The families at odd sizes, small enough to be run by anybody."""
    return list(_odd())


def _odd() -> Iterator[Workload]:
    for rows, columns in ((37, 101), (1, 3)):
        yield cross_entropy(f"grad.cross_entropy.{rows}x{columns}", rows, columns)
        yield layernorm(f"grad.layernorm.{rows}x{columns}", rows, columns)
    for queries in ((2, 3, 37, 5), (1, 1, 1, 3)):
        yield attention(f"grad.attention.{'x'.join(map(str, queries))}", queries)
    yield perceptron("grad.mlp.37x13x29", 37, 13, 29)
    yield embedding("grad.embedding.37x101x13", 37, 101, 13)
    sizes = Sizes(batch=2, length=7, width=12, heads=3, words=11)
    yield stream("grad.gpt.2x7x12", sizes, layers=2)
    yield training("train.gpt.2x7x12", sizes)
