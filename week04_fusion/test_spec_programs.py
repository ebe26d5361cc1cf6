"""Deep and wide programs: without temporaries their cost would grow with every layer."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "week03_loops" / "programs"


def sample(name):
    return (PROGRAMS / f"{name}.uop").read_text()


class Text:
    """A program being written: each method appends statements and returns a name."""

    def __init__(self):
        self.lines = []
        self.slots = 0

    def op(self, op, *sources, arg=None):
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {op} {' '.join(sources)}" + (f" : {arg}" if arg else ""))
        return name

    def param(self, *shape):
        arg = f'{{"slot": {self.slots}, "dtype": "float32", "shape": {list(shape)}}}'
        self.slots += 1
        return self.op("PARAM", arg=arg)

    def const(self, value):
        return self.op("CONST", arg=f'{{"value": {value}, "dtype": "float32"}}')

    def reshape(self, x, *shape):
        return self.op("RESHAPE", x, arg=list(shape))

    def permute(self, x, *axes):
        return self.op("PERMUTE", x, arg=list(axes))

    def reduce(self, op, x, axes=1):
        return self.op("REDUCE", x, arg=f'{{"op": "{op}", "axes": {axes}}}')

    def matmul(self, x, w, m, k, n):
        """x[m, k] @ w[k, n]."""
        left = self.reshape(self.permute(x, 1, 0), k, m, 1)
        right = self.reshape(w, k, 1, n)
        return self.reduce("ADD", self.op("MUL", left, right))

    def rows(self, op, x, m, n):
        """Each row of x[m, n] reduced, with shape [m, 1]."""
        return self.reshape(self.reduce(op, self.permute(x, 1, 0)), m, 1)

    def softmax(self, x, m, n):
        """Of each row of x[m, n]."""
        d = self.op("ADD", x, self.op("NEG", self.rows("MAX", x, m, n)))
        e = self.op("EXP2", self.op("MUL", d, self.const(1.442695)))
        return self.op("MUL", e, self.op("RECIP", self.rows("ADD", e, m, n)))

    def layernorm(self, x, m, n):
        """Of each row of x[m, n], without gain and bias."""
        scale = self.const(1 / n)
        mean = self.op("MUL", self.rows("ADD", x, m, n), scale)
        d = self.op("ADD", x, self.op("NEG", mean))
        q = self.rows("ADD", self.op("MUL", d, d), m, n)
        v = self.op("ADD", self.op("MUL", q, scale), self.const(1e-5))
        half = self.op("MUL", self.op("LOG2", v), self.const(-0.5))
        return self.op("MUL", d, self.op("EXP2", half))

    def relu(self, x):
        return self.op("MAX", x, self.const(0))

    def done(self, *outputs):
        return "\n".join([*self.lines, "return " + " ".join(outputs)])


def convolution(text, x, channels, length):
    """Three taps over x[channels, length], all channels to all, padded to the same length."""
    padded = text.op("PAD", x, arg="[[0, 0], [1, 1]]")
    wide = length + 2
    view = text.reshape(padded, channels, 1, wide)
    view = text.op("EXPAND", view, arg=[channels, 4, wide])
    view = text.reshape(view, channels, 4 * wide)
    view = text.op("SHRINK", view, arg=[[0, channels], [0, 3 * (wide + 1)]])
    view = text.reshape(view, channels, 3, wide + 1)
    view = text.op("SHRINK", view, arg=[[0, channels], [0, 3], [0, length]])
    view = text.reshape(view, channels, 3, 1, length)
    weights = text.reshape(text.param(channels, 3, channels), channels, 3, channels, 1)
    return text.reduce("ADD", text.op("MUL", view, weights), axes=2)


def test_twelve_convolutions(judge):
    """Twelve convolutions, one on the other: 24 terms each, or 24^12 if none is stored."""
    text = Text()
    x = text.param(8, 30)
    for _ in range(12):
        y = convolution(text, x, 8, 30)
        x = text.op("MUL", text.relu(y), text.const(0.3))
    judge.runs(text.done(x), special=False, draws=1)


def test_ten_matrix_products(judge):
    """Ten matrix products in a chain."""
    text = Text()
    x = text.param(20, 20)
    for _ in range(10):
        x = text.op("MUL", text.matmul(x, text.param(20, 20), 20, 20, 20), text.const(0.2))
    judge.runs(text.done(x), special=False, draws=1)


def test_eight_softmaxes(judge):
    """Eight softmaxes with a matrix product between."""
    text = Text()
    x, w = text.param(12, 16), text.param(16, 16)
    for _ in range(8):
        x = text.softmax(text.matmul(x, w, 12, 16, 16), 12, 16)
    judge.runs(text.done(x), special=False, draws=1)


def test_twelve_layernorms(judge):
    """Twelve residual layer norms: rows are reduced twice in each."""
    text = Text()
    x = text.param(9, 33)
    for _ in range(12):
        x = text.op("ADD", text.layernorm(x, 9, 33), x)
    judge.runs(text.done(x), special=False, draws=1)


def test_twenty_running_sums(judge):
    """Twenty prefix sums, one of the other: a triangle of work each."""
    text = Text()
    x = text.param(16)
    for _ in range(20):
        view = text.op("PAD", x, arg="[[15, 0]]")
        view = text.op("EXPAND", view, arg=[17, 31])
        view = text.op("SHRINK", text.reshape(view, 17 * 31), arg=[[0, 512]])
        view = text.op("SHRINK", text.reshape(view, 16, 32), arg=[[0, 16], [0, 16]])
        x = text.op("MUL", text.reduce("ADD", view), text.const(0.125))
    judge.runs(text.done(x), special=False, draws=1)


def test_squares_of_a_matrix(judge):
    """A matrix squared six times: each square is used twice in the next."""
    text = Text()
    x = text.param(16, 16)
    for _ in range(6):
        x = text.op("MUL", text.matmul(x, x, 16, 16, 16), text.const(0.125))
    judge.runs(text.done(x), special=False, draws=1)


def test_dense_connections(judge):
    """Every layer reads all the layers before it."""
    text = Text()
    w, scale = text.param(10, 10), text.const(0.1)
    found = [text.param(10, 10)]
    for _ in range(9):
        total = found[0]
        for other in found[1:]:
            total = text.op("ADD", total, other)
        found.append(text.op("MUL", text.matmul(total, w, 10, 10, 10), scale))
    judge.runs(text.done(found[-1], found[4]), special=False, draws=1)


def test_expensive_elements_read_often(judge):
    """An exponential that every row of a product reads is computed once an element."""
    text = Text()
    x, w = text.param(64, 64), text.param(64, 64)
    for _ in range(6):
        w = text.op("EXP2", text.op("MUL", w, text.const(0.5)))
    judge.runs(text.done(text.matmul(x, w, 64, 64, 64)), special=False, draws=1)


# Layers and models --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention", "attention_causal", "attention_grouped"])
def test_attention(judge, name):
    """Attention: two matrix products around a softmax."""
    judge.runs(sample(name), draws=1)


@pytest.mark.parametrize(
    "name", ["swiglu", "cross_entropy", "residual_layernorm", "log_softmax", "batchnorm", "linear"]
)
def test_layer(judge, name):
    """Layers of which parts are stored between nests."""
    judge.runs(sample(name), draws=1)


def transformer_block(text, x, tokens, width):
    """Norm, one head of attention, residual; norm, two linear layers, residual."""
    h = text.layernorm(x, tokens, width)
    q, k, v = (text.matmul(h, text.param(width, width), tokens, width, width) for _ in range(3))
    scores = text.matmul(q, text.permute(k, 1, 0), tokens, width, tokens)
    weights = text.softmax(text.op("MUL", scores, text.const(0.05)), tokens, tokens)
    mixed = text.matmul(weights, v, tokens, tokens, width)
    out = text.matmul(mixed, text.param(width, width), tokens, width, width)
    x = text.op("ADD", x, text.op("MUL", out, text.const(0.1)))
    h = text.layernorm(x, tokens, width)
    h = text.relu(text.matmul(h, text.param(width, 2 * width), tokens, width, 2 * width))
    h = text.matmul(h, text.param(2 * width, width), tokens, 2 * width, width)
    return text.op("ADD", x, text.op("MUL", h, text.const(0.1)))


def test_transformer(judge):
    """Three transformer blocks and a softmax over the last token's logits."""
    text = Text()
    x = text.param(11, 16)
    for _ in range(3):
        x = transformer_block(text, x, 11, 16)
    last = text.op("SHRINK", text.layernorm(x, 11, 16), arg=[[10, 11], [0, 16]])
    logits = text.matmul(last, text.param(16, 29), 1, 16, 29)
    judge.runs(text.done(text.softmax(logits, 1, 29), x), special=False, draws=1)


def test_transformer_nests(judge):
    """A transformer block is at most 20 loop nests, and its temporaries share memory."""
    text = Text()
    x = transformer_block(text, text.param(32, 64), 32, 64)
    judge.emits(text.done(x), kernels_at_most=20, workspace_at_most=8 * 32 * 128 * 4)


def test_convolutional_network(judge):
    """Convolutions, ReLUs, pooling and a linear layer."""
    text = Text()
    x, length = text.param(4, 32), 32
    for _ in range(3):
        y = text.relu(convolution(text, x, 4, length))
        pairs = text.reshape(y, 4, length // 2, 2)
        x = text.reduce("MAX", text.permute(pairs, 2, 0, 1))
        length //= 2
    flat = text.reshape(x, 1, 4 * length)
    judge.runs(
        text.done(text.matmul(flat, text.param(4 * length, 10), 1, 4 * length, 10)),
        special=False,
        draws=2,
    )


def test_embedding_and_loss(judge):
    """Rows of a table, a linear layer, a log-softmax and the mean of the picked entries."""
    text = Text()
    table = text.param(13, 8)
    ids = text.op("PARAM", arg='{"slot": 90, "dtype": "int64", "shape": [6]}')
    h = text.op("LOAD", text.op("INDEX", table, ids))
    logits = text.matmul(h, text.permute(table, 1, 0), 6, 8, 13)
    p = text.softmax(logits, 6, 13)
    spread = text.reduce("MAX", p, axes=2)
    total = text.reduce("ADD", text.op("LOG2", p), axes=2)
    judge.runs(text.done(total, spread, h), special=False)


def test_gradient_step(judge):
    """One step of linear regression: prediction, error, gradient, new weights."""
    text = Text()
    x, w, y = text.param(30, 5), text.param(5, 1), text.param(30, 1)
    guess = text.matmul(x, w, 30, 5, 1)
    error = text.op("ADD", guess, text.op("NEG", y))
    gradient = text.matmul(text.permute(x, 1, 0), error, 5, 30, 1)
    new = text.op("ADD", w, text.op("MUL", gradient, text.const(-0.01)))
    loss = text.reduce("ADD", text.op("MUL", error, error), axes=2)
    judge.runs(text.done(new, loss), special=False)


def test_power_iteration(judge):
    """Ten steps of power iteration, each normalized by the largest entry."""
    text = Text()
    a, v = text.param(12, 12), text.param(12, 1)
    for _ in range(10):
        v = text.matmul(a, v, 12, 12, 1)
        square = text.reduce("MAX", text.op("MUL", v, v), axes=2)
        scale = text.op("EXP2", text.op("MUL", text.op("LOG2", square), text.const(-0.5)))
        v = text.op("MUL", v, scale)
    judge.runs(
        text.done(v),
        {0: [[1 + (r * 7 + c * 3) % 5 for c in range(12)] for r in range(12)], 1: [[1]] * 12},
    )


def test_loops_and_fusion(judge):
    """A hand-written loop between two fused parts."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 6]}
        e = EXP2 x
        m = REDUCE e : {"op": "ADD", "axes": 1}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [6]}
        i = RANGE : {"id": 0, "size": 6}
        one = CONST : {"value": 1, "dtype": "int64"}
        n = ADD i one
        k = RANGE n : {"id": 1, "size": 6}
        held = STAGE m
        p = INDEX held k
        v = LOAD p
        r = REDUCE v k : {"op": "ADD", "axes": 0}
        q = INDEX t i
        s = STORE q r
        loop = END s i
        d = AFTER t loop
        f = RECIP d
        a = MUL f m
        return a d
        """
    )
