"""The same function of tensors here and in PyTorch: values and gradients."""

from dataclasses import dataclass, field

import numpy as np
import torch

from week04_fusion.evaluate import evaluate
from week09_10_autodiff.realize import canonical
from week09_10_autodiff.tensor import Tensor

TOLERANCE = {"float64": 1e-9, "float32": 2e-5}


def interpreted(*tensors):
    """The values of tensors by the interpreter, nothing compiled."""
    program, storages = canonical([t.node for t in tensors])
    return [np.asarray(x) for x in evaluate(program, [s.array for s in storages])]


def compiled(*tensors):
    """The values of tensors by one compiled program."""
    tensors[0].realize(*tensors[1:])
    return [t.numpy() for t in tensors]


def close(got, wanted, tolerance):
    """Equal to within a part of the largest element, and where they are not finite."""
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    scale = np.abs(wanted, where=np.isfinite(wanted), out=np.zeros(wanted.shape)).max(initial=1.0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


@dataclass
class Case:
    """A function of arrays: integer and bool ones are given as they are, floats have gradients."""

    ours: object
    theirs: object
    arrays: tuple = field(default_factory=tuple)

    def check(self, dtype="float64", run=interpreted):
        arrays = [
            a.astype(dtype) if a.dtype.kind == "f" else a for a in map(np.asarray, self.arrays)
        ]
        mine = [Tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        yours = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y, wanted = self.ours(*mine), self.theirs(*yours)
        bar = np.random.default_rng(1).standard_normal(tuple(wanted.shape)).astype(dtype)
        y.backward(Tensor(bar))
        wanted.backward(torch.tensor(bar))
        grads = [m.grad for m in mine if m.requires_grad]
        values = run(y, *grads)
        close(values[0], wanted.detach().numpy(), TOLERANCE[dtype])
        for got, t in zip(values[1:], (t for t in yours if t.requires_grad), strict=True):
            close(got, t.grad.numpy(), TOLERANCE[dtype])


def normal(*shape, seed=0):
    """Standard normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)
