"""Expressions that mean the same with PyTorch and with tensors, for comparing both.

A case is a function of a library (its functions and constructors) and of tensors of the shapes
that it names; what it returns is one tensor or several.
"""

from dataclasses import dataclass

MATRIX = (3, 4)


@dataclass(frozen=True)
class Case:
    """A function (library, tensor, …), and the shapes of its tensors."""

    function: object
    shapes: tuple = (MATRIX,)
    positive: bool = False  # elements between ½ and 2


def unary(name, **options):
    return Case(lambda _, x: getattr(x, name)(), **options)


ELEMENTWISE = {
    "add": Case(lambda _, x, y: x + y, (MATRIX, (4,))),
    "add number": Case(lambda _, x: x + 2),
    "number add": Case(lambda _, x: 2.5 + x),
    "sub": Case(lambda _, x, y: x - y, (MATRIX, (3, 1))),
    "number sub": Case(lambda _, x: 1 - x),
    "mul": Case(lambda _, x, y: x * y, ((3, 1), (1, 4))),
    "div": Case(lambda _, x, y: x / y, (MATRIX, MATRIX), positive=True),
    "number div": Case(lambda _, x: 2 / x, positive=True),
    "floor_divide": Case(lambda _, x: x.detach() // 0.3),
    "remainder": Case(lambda _, x: x % 0.7),
    "remainder of negative": Case(lambda _, x: x % -0.7),
    "pow": Case(lambda _, x: x**3),
    "pow 0": Case(lambda _, x: x**0),
    "pow -2": Case(lambda _, x: x**-2, positive=True),
    "pow half": Case(lambda _, x: x**0.5, positive=True),
    "pow fraction": Case(lambda _, x: x**1.7, positive=True),
    "pow tensor": Case(lambda _, x, y: x**y, (MATRIX, MATRIX), positive=True),
    "number pow": Case(lambda _, x: 3.0**x),
    "methods": Case(
        lambda _, x, y: (x.add(y), x.sub(y), x.mul(y), x.div(y), x.pow(2), x.neg()),
        (MATRIX, MATRIX),
        positive=True,
    ),
    "neg": Case(lambda _, x: -x),
    "abs": unary("abs"),
    "sign": unary("sign"),
    "square": unary("square"),
    "reciprocal": unary("reciprocal", positive=True),
    "exp": unary("exp"),
    "exp2": unary("exp2"),
    "log": unary("log", positive=True),
    "log2": unary("log2", positive=True),
    "sqrt": unary("sqrt", positive=True),
    "rsqrt": unary("rsqrt", positive=True),
    "sin": Case(lambda _, x: (x * 5).sin()),
    "cos": Case(lambda _, x: (x * 5).cos()),
    "floor": unary("floor"),
    "ceil": unary("ceil"),
    "trunc": unary("trunc"),
    "round": Case(lambda _, x: (x * 4).round()),
    "relu": unary("relu"),
    "sigmoid": unary("sigmoid"),
    "tanh": unary("tanh"),
    "erf": unary("erf"),
    "clamp": Case(lambda _, x: x.clamp(-0.5, 0.5)),
    "clamp min": Case(lambda _, x: x.clamp(min=0.1)),
    "clip max": Case(lambda _, x: x.clip(max=0.1)),
    "maximum": Case(lambda m, x, y: m.maximum(x, y), (MATRIX, (4,))),
    "minimum": Case(lambda m, x, y: m.minimum(x, y), (MATRIX, (4,))),
    "where": Case(lambda m, x, y: m.where(x > y, x, y), (MATRIX, (3, 1))),
    "where numbers": Case(lambda m, x: m.where(x > 0, x, 0.0)),
    "method where": Case(lambda _, x, y: x.where(y > 0, y * 2), (MATRIX, MATRIX)),
    "masked_fill": Case(lambda _, x, y: x.masked_fill(y > 0, -1.5), (MATRIX, (4,))),
    "clone": unary("clone"),
    "double": Case(lambda _, x: x.double() * 2),
    "bool": Case(lambda _, x: x.bool()),
    "comparisons": Case(
        lambda _, x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, x == 0), (MATRIX, MATRIX)
    ),
    "logic": Case(
        lambda _, x, y: ((x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), ~(x > 0)),
        (MATRIX, MATRIX),
    ),
    "logical": Case(
        lambda _, x, y: (x.logical_and(y), x.logical_or(y), x.logical_xor(y), x.logical_not()),
        (MATRIX, MATRIX),
    ),
    "tests": Case(lambda _, x: (x.isnan(), x.isinf(), x.isfinite())),
}

REDUCTIONS = {
    "sum": unary("sum"),
    "sum dim": Case(lambda _, x: x.sum(1)),
    "sum dims keepdim": Case(lambda _, x: x.sum((0, -1), keepdim=True), ((2, 3, 4),)),
    "mean": unary("mean"),
    "mean dim": Case(lambda _, x: x.mean(-1, keepdim=True)),
    "prod": unary("prod"),
    "prod dim": Case(lambda _, x: x.prod(0)),
    "amax": Case(lambda _, x: x.amax(1)),
    "amin": Case(lambda _, x: x.amin((0, 1))),
    "max": unary("max"),
    "min": unary("min"),
    "var": unary("var"),
    "var dim": Case(lambda _, x: x.var(0, correction=0)),
    "std": Case(lambda _, x: x.std(-1)),
    "norm": unary("norm"),
    "norm 1": Case(lambda _, x: x.norm(1, 1)),
    "norm 3": Case(lambda _, x: x.norm(3.0, 0), positive=True),
    "norm inf": Case(lambda _, x: x.norm(float("inf"), 1)),
    "norm 0": Case(lambda _, x: x.norm(0, 1).detach()),
    "all": Case(lambda _, x: ((x > 0).all(), (x < 9).all(1))),
    "any": Case(lambda _, x: ((x > 9).any(), (x > 0).any(0, keepdim=True))),
    "softmax": Case(lambda _, x: x.softmax(-1)),
    "softmax 0": Case(lambda _, x: x.softmax(0)),
    "log_softmax": Case(lambda _, x: x.log_softmax(1)),
    "logsumexp": Case(lambda _, x: x.logsumexp(1)),
    "logsumexp keepdim": Case(lambda _, x: x.logsumexp((0, 1), keepdim=True)),
    "cumsum": Case(lambda _, x: x.cumsum(1)),
    "cumprod": Case(lambda _, x: x.cumprod(0)),
    "argmax": Case(lambda _, x: (x.argmax(), x.argmax(1), x.argmax(0, keepdim=True))),
    "argmin": Case(lambda _, x: (x.argmin(), x.argmin(-1), x.argmin(0, keepdim=True))),
}

PRODUCTS = {
    "matmul": Case(lambda _, x, y: x @ y, ((3, 4), (4, 5))),
    "matmul batch": Case(lambda _, x, y: x @ y, ((2, 1, 3, 4), (5, 4, 2))),
    "matmul vector": Case(lambda _, x, y: x @ y, ((3, 4), (4,))),
    "vector matmul": Case(lambda _, x, y: x.matmul(y), ((4,), (4, 3))),
    "dot": Case(lambda _, x, y: x.dot(y), ((4,), (4,))),
    "einsum": Case(lambda m, x, y: m.einsum("ij,kj->ik", x, y), ((3, 4), (2, 4))),
    "einsum implicit": Case(lambda m, x, y: m.einsum("ij,jk", x, y), ((3, 4), (4, 2))),
    "einsum dots": Case(lambda m, x, y: m.einsum("...ij,jk->...ik", x, y), ((2, 3, 4), (4, 2))),
    "einsum diagonal": Case(lambda m, x: m.einsum("ii->i", x), ((3, 3),)),
    "einsum trace": Case(lambda m, x: m.einsum("bii->b", x), ((2, 3, 3),)),
    "einsum three": Case(
        lambda m, x, y, z: m.einsum("ij,jk,kl->il", x, y, z), ((2, 3),) + ((3, 3),) * 2
    ),
    "einsum sum": Case(lambda m, x: m.einsum("ij->", x)),
}


def _distinct(library, x):
    """Equal elements made different: topk of PyTorch takes any of them."""
    return x * 32 + library.arange(12).reshape(MATRIX)


MOVEMENT = {
    "reshape": Case(lambda _, x: x.reshape(2, -1)),
    "reshape tuple": Case(lambda _, x: x.reshape((2, 6))),
    "view": Case(lambda _, x: x.view(12)),
    "flatten": Case(lambda _, x: x.flatten(1), ((2, 3, 4),)),
    "flatten scalar": Case(lambda _, x: x.flatten(), ((),)),
    "unflatten": Case(lambda _, x: x.unflatten(1, (2, -1))),
    "ravel": unary("ravel"),
    "permute": Case(lambda _, x: x.permute(2, 0, -2), ((2, 3, 4),)),
    "transpose": Case(lambda _, x: x.transpose(0, -1), ((2, 3, 4),)),
    "T": Case(lambda _, x: x.T),
    "mT": Case(lambda _, x: x.mT, ((2, 3, 4),)),
    "t": Case(lambda _, x: x.t()),
    "swapaxes": Case(lambda _, x: x.swapaxes(0, 2), ((2, 3, 4),)),
    "movedim": Case(lambda _, x: x.movedim(0, -1), ((2, 3, 4),)),
    "expand": Case(lambda _, x: x.expand(2, 3, 5), ((3, 1),)),
    "expand -1": Case(lambda _, x: x.expand(-1, 5), ((3, 1),)),
    "broadcast_to": Case(lambda _, x: x.broadcast_to((2, 3, 4))),
    "squeeze": Case(lambda _, x: x.squeeze(), ((1, 3, 1, 2),)),
    "squeeze dim": Case(lambda _, x: (x.squeeze(0), x.squeeze(1), x.squeeze((0, 2))), ((1, 3, 1),)),
    "unsqueeze": Case(lambda _, x: (x.unsqueeze(0), x.unsqueeze(-1))),
    "flip": Case(lambda _, x: (x.flip(0), x.flip((0, 1)))),
    "narrow": Case(lambda _, x: x.narrow(1, 1, 2)),
    "cat": Case(lambda m, x, y: m.cat([x, y, x], 1), (MATRIX, (3, 2))),
    "stack": Case(lambda m, x, y: (m.stack([x, y]), m.stack([x, y], -1)), (MATRIX, MATRIX)),
    "split": Case(lambda _, x: x.split(2, 1), ((3, 5),)),
    "split sizes": Case(lambda _, x: x.split([1, 4], 1), ((3, 5),)),
    "chunk": Case(lambda _, x: x.chunk(3, 1), ((3, 7),)),
    "unbind": Case(lambda _, x: x.unbind(1)),
    "repeat": Case(lambda _, x: x.repeat(2, 1, 3)),
    "tile": Case(lambda _, x: x.tile((2,))),
    "repeat_interleave": Case(lambda _, x: x.repeat_interleave(2, 1)),
    "roll": Case(lambda _, x: (x.roll(1, 1), x.roll((-1, 5), (0, 1)), x.roll(2))),
    "diagonal": Case(lambda _, x: (x.diagonal(), x.diagonal(1), x.diagonal(-1))),
    "diagonal dims": Case(lambda _, x: x.diagonal(0, 0, 2), ((2, 3, 4),)),
    "tril": Case(lambda _, x: (x.tril(), x.tril(-1), x.tril(1))),
    "triu": Case(lambda _, x: (x.triu(), x.triu(-1), x.triu(1))),
    "iteration": Case(lambda _, x: tuple(x)),
    "take": Case(lambda m, x: x.index_select(1, m.arange(2) * 2)),
    "gather": Case(lambda m, x: x.gather(1, m.arange(3).reshape(3, 1))),
    "index_add": Case(lambda m, x, y: x.index_add(0, m.arange(2) * 0 + 1, y), (MATRIX, (2, 4))),
    "scatter_add": Case(
        lambda m, x, y: x.scatter_add(1, (m.arange(6) * 5 % 4).reshape(3, 2), y), (MATRIX, (3, 2))
    ),
    "sort": Case(lambda _, x: (*x.sort(), *x.sort(0, descending=True))),
    "argsort": Case(lambda _, x: x.argsort(0)),
    "topk": Case(lambda m, x: _distinct(m, x).topk(2)),
    "topk least": Case(lambda m, x: _distinct(m, x).topk(1, 0, largest=False)),
}

INDEXING = {
    "integer": Case(lambda _, x: (x[0], x[-1], x[1, 2])),
    "slice": Case(lambda _, x: (x[1:], x[:, 1:3], x[::2, ::3], x[-2:])),
    "none": Case(lambda _, x: (x[None], x[:, None, 0], x[..., None])),
    "ellipsis": Case(lambda _, x: (x[..., 1], x[0, ...])),
    "list": Case(lambda _, x: (x[[0, 2]], x[:, [1, 0, 1]], x[[0, 1], [2, 3]])),
    "index tensor": Case(
        lambda m, x: (x[m.arange(2)], x[:, m.arange(4).reshape(2, 2)], x[m.arange(3) - 1])
    ),
    "index tensors": Case(lambda m, x: x[m.arange(2), m.arange(2) + 1]),
}

CASES = {**ELEMENTWISE, **REDUCTIONS, **PRODUCTS, **MOVEMENT, **INDEXING}
