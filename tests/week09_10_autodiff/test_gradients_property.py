"""Random expressions over the ops that have derivatives: equal to PyTorch's, once and twice."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.week09_10_autodiff.autograd import agree, normal, ours, same_program, theirs
from week01_uops.dtypes import float64
from week01_uops.ops import ADD, CMPLT, EXP2, LOG2, MAX, MUL, NEG, RECIP, WHERE, param
from week02_render.ops import INDEX, LOAD
from week03_loops import library as lib
from week03_loops.ops import expand, flip, pad, permute, reduce, reshape, shrink
from week04_fusion.ops import stage

SHAPES = [(2, 3), (3,), (2, 1), ()]
INPUTS = [param(k, float64, shape) for k, shape in enumerate(SHAPES)]


def _alike(x, y):
    """Both with the trailing axes that broadcast, or y put where x is."""
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    return y if all(1 in pair or len(set(pair)) == 1 for pair in pairs) else NEG(x)


def _tame(x):
    """A number between −1 and 1, so that no power gets out of hand."""
    return lib.tanh(x)


def _rows(x):
    """A matrix, whatever it was."""
    return reshape(x, (math.prod(x.shape[:1]), math.prod(x.shape[1:])))


def _picked(x):
    at = lib.cast(lib.lt(lib.arange(3), 1), lib.arange(1).dtype)
    return LOAD(INDEX(stage(_rows(x)), lib.mul(at, min(1, _rows(x).shape[0] - 1))))


UNARY = {
    "neg": NEG,
    "exp2": lambda x: EXP2(_tame(x)),
    "log2": lambda x: LOG2(lib.add(lib.square(x), 0.5)),
    "recip": lambda x: RECIP(lib.add(lib.square(x), 0.5)),
    "sqrt": lambda x: lib.sqrt(lib.add(lib.square(x), 0.5)),
    "square": lib.square,
    "scale": lambda x: MUL(x, -0.7),
    "step": lambda x: WHERE(CMPLT(x, 0.1), x, MUL(x, 0.5)),
    "softmax": lambda x: lib.softmax(_rows(x)),
    "log_softmax": lambda x: lib.log_softmax(_rows(x), 0),
    "sum": lambda x: reduce(ADD, x, min(1, len(x.shape))),
    "total": lambda x: lib.reduce_sum(x, keepdim=True),
    "product": lambda x: reduce(MUL, _tame(x), min(1, len(x.shape))),
    "maximum": lambda x: lib.reduce_max(_rows(x), 1),
    "minimum": lambda x: lib.reduce_min(x),
    "repeat": lambda x: expand(reshape(x, (1, *x.shape)), (2, *x.shape)),
    "turn": lambda x: permute(x, tuple(reversed(range(len(x.shape))))),
    "flip": lambda x: flip(x, tuple(range(len(x.shape)))[:1]),
    "pad": lambda x: pad(x, [(1, 0)] * len(x.shape)),
    "cut": lambda x: shrink(x, [(size // 2, size) for size in x.shape]),
    "flat": lambda x: reshape(x, (x.size,)),
    "scan": lambda x: lib.cumsum(reshape(x, (x.size,))),
    "pick": _picked,
}
BINARY = {"add": ADD, "mul": MUL, "max": MAX, "sub": lib.sub}


@st.composite
def expressions(draw):
    """A value made of the four inputs by a few ops, each of one or two values made before."""
    values = list(INPUTS)
    for _ in range(draw(st.integers(1, 8))):
        x = draw(st.sampled_from(values))
        if draw(st.booleans()):
            result = UNARY[draw(st.sampled_from(sorted(UNARY)))](x)
        else:
            other = _alike(x, draw(st.sampled_from(values)))
            result = BINARY[draw(st.sampled_from(sorted(BINARY)))](x, other)
        if result.size <= 40:
            values.append(result)
    return values[-1]


@settings(max_examples=150, deadline=None)
@given(expressions(), st.integers(0, 3))
def test_random_expressions(node, seed):
    arrays = [normal(*shape, seed=seed) for shape in SHAPES]
    function = lambda *_: node
    for times in (1, 2):
        wanted = theirs(same_program(function, arrays), arrays, times)
        if all(np.isfinite(array).all() and np.abs(array).max() < 1e6 for array in wanted):
            agree(ours(function, arrays, times), wanted, 1e-8)
