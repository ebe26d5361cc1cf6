"""References for derivatives: PyTorch's autograd on the same program, and finite differences."""

from __future__ import annotations

import math

import numpy as np
import torch

from week01_uops.dtypes import from_numpy
from week01_uops.node import CONST, UOp
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    PARAM,
    RECIP,
    WHERE,
    param,
    program,
)
from week02_render.ops import INDEX, LOAD
from week03_loops.library import mul, reduce_sum
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, REDUCE, RESHAPE, SHRINK
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import STAGE
from week09_10_autodiff.gradients import gradient


def torch_dtype(dtype):
    return getattr(torch, dtype.name)


def _multiply(node, a, b):
    return torch.logical_and(a, b) if a.dtype is torch.bool else a * b


def _maximum(node, a, b):
    return torch.logical_or(a, b) if a.dtype is torch.bool else torch.maximum(a, b)


def _pad(node, x):
    flat = [n for pair in reversed(node.arg) for n in pair]
    return torch.nn.functional.pad(x, flat)


def _reduce(node, x):
    axes = node.arg.axes
    x = x.reshape(math.prod(x.shape[:axes]), *x.shape[axes:])
    if node.arg.op is MUL:
        return x.all(0) if x.dtype is torch.bool else x.prod(0)
    if node.arg.op is ADD:
        return x.sum(0, dtype=x.dtype)
    if not x.shape[0]:
        return torch.full(x.shape[1:], -math.inf, dtype=x.dtype)
    return x.any(0) if x.dtype is torch.bool else x.amax(0)


def _index(node, x, *indices):
    for axis in reversed(range(len(indices))):
        item = indices[axis].to(torch.int64)
        x = x.index_select(axis, item.reshape(-1))
        x = x if item.ndim else x.squeeze(axis)
    return x


def _load(node, x, gate=None, otherwise=None):
    if gate is None:
        return x
    return torch.where(gate, x, torch.zeros_like(x) if otherwise is None else otherwise)


MEANING = {
    CAST: lambda node, x: x.to(torch_dtype(node.dtype)),
    NEG: lambda node, x: -x,
    RECIP: lambda node, x: torch.reciprocal(x),
    EXP2: lambda node, x: torch.exp2(x),
    LOG2: lambda node, x: torch.log2(x),
    ADD: lambda node, a, b: a + b,
    MUL: _multiply,
    MAX: _maximum,
    FLOORDIV: lambda node, a, b: torch.div(a, b, rounding_mode="floor"),
    FLOORMOD: lambda node, a, b: torch.remainder(a, b),
    CMPLT: lambda node, a, b: a < b,
    CMPNE: lambda node, a, b: a != b,
    WHERE: lambda node, c, a, b: torch.where(c, a, b),
    RESHAPE: lambda node, x: x.reshape(node.arg),
    EXPAND: lambda node, x: x.expand(node.arg),
    PERMUTE: lambda node, x: x.permute(node.arg),
    FLIP: lambda node, x: x.flip(node.arg),
    PAD: _pad,
    SHRINK: lambda node, x: x[tuple(slice(start, end) for start, end in node.arg)],
    REDUCE: _reduce,
    INDEX: _index,
    LOAD: _load,
    STAGE: lambda node, x: x,
}


def in_torch(root: UOp, tensors):
    """The value of a node, computed by PyTorch op for op, for tensors by slot."""
    found = {}
    for node in root.toposort():
        if node.op is PARAM:
            found[node] = tensors[node.arg.slot]
        elif node.op is CONST:
            found[node] = torch.tensor(node.arg.value, dtype=torch_dtype(node.dtype))
        else:
            found[node] = MEANING[node.op](node, *(found[s] for s in node.src))
    return found[root]


def parameters_of(arrays):
    return [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]


def floats(arrays):
    return [k for k, array in enumerate(arrays) if array.dtype.kind == "f"]


def weights_for(shapes, seed=7):
    """Random numbers that a derivative of many elements is summed with."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)) for shape in shapes]


def ours(function, arrays, times=1):
    """The derivatives of ⟨w, f⟩ in all float arguments; `times` 2: of ⟨v, those⟩ again."""
    params = parameters_of(arrays)
    wrt = [params[k] for k in floats(arrays)]
    given = dict(enumerate(arrays))

    def weighted(node, seed):
        slot = len(given)
        (given[slot],) = weights_for([node.shape], seed)
        return reduce_sum(mul(node, param(slot, node.dtype, node.shape)))

    found = gradient(weighted(function(*params), 1), wrt)
    if times == 2:
        parts = [weighted(node, 2 + k) for k, node in enumerate(found)]
        total = parts[0]
        for part in parts[1:]:
            total = ADD(total, part)
        found = gradient(total, wrt)
    return [np.asarray(a) for a in evaluate(program(*found), given)]


def theirs(reference, arrays, times=1):
    """The same by PyTorch; `reference` is a function of tensors."""
    tensors = [torch.tensor(array) for array in arrays]
    wrt = [tensors[k].requires_grad_() for k in floats(arrays)]

    def weighted(value, seed):
        (weights,) = weights_for([tuple(value.shape)], seed)
        return (value * torch.tensor(weights)).sum()

    y = weighted(reference(*tensors), 1)
    again = times == 2
    found = _derived(y, wrt, again)
    if again:
        total = sum(weighted(value, 2 + k) for k, value in enumerate(found))
        found = _derived(total, wrt, False)
    return [value.numpy(force=True) for value in found]


def _derived(y, wrt, again):
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in wrt]
    found = torch.autograd.grad(y, wrt, create_graph=again, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wrt, found, strict=True)]


def same_program(function, arrays):
    """The function, as PyTorch computes it op for op."""
    node = function(*parameters_of(arrays))
    return lambda *tensors: in_torch(node, dict(enumerate(tensors)))


def differences(function, arrays, step=1e-6):
    """The derivatives of ⟨w, f⟩ by central differences."""
    node = program(function(*parameters_of(arrays)))
    (weights,) = weights_for([node.src[0].shape], 1)
    found = []
    for k in floats(arrays):
        slope = np.zeros(arrays[k].shape)
        for at in np.ndindex(*arrays[k].shape):
            sides = []
            for sign in (1, -1):
                moved = [array.copy() for array in arrays]
                moved[k][at] += sign * step
                sides.append(np.sum(np.asarray(evaluate(node, moved)[0]) * weights))
            slope[at] = (sides[0] - sides[1]) / (2 * step)
        found.append(slope)
    return found


def agree(got, wanted, relative=1e-9):
    """Equal within a part of the largest element; infinities and NaN in the same places."""
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        finite = np.abs(other[np.isfinite(other)])
        scale = finite.max(initial=1e-3)
        np.testing.assert_allclose(one, other, rtol=relative, atol=relative * scale)


def check(function, *arrays, reference=None, second=True, numeric=True):
    """Compare with PyTorch (op for op, and a reference), and with finite differences."""
    arrays = [np.asarray(array) for array in arrays]
    same = same_program(function, arrays)
    for times in (1, 2) if second else (1,):
        found = ours(function, arrays, times)
        agree(found, theirs(same, arrays, times))
        if reference is not None:
            agree(found, theirs(reference, arrays, times))
    if numeric:
        agree(ours(function, arrays), differences(function, arrays), 1e-6)


def normal(*shape, seed=0):
    """Standard normal float64 numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive(*shape, seed=0):
    """Numbers in [½, 2]."""
    return np.random.default_rng([seed, *shape]).uniform(0.5, 2.0, shape)
