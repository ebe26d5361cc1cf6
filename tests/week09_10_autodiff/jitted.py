"""Tensors and functions for tests of `jit`."""

import numpy as np

from week02_render.buffers import address
from week09_10_autodiff.jit import jit
from week09_10_autodiff.tensor import Tensor


def tensor(*shape, seed=0, requires_grad=False):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor(values, requires_grad=requires_grad)


def place(x):
    """Where the elements lie."""
    return address(x.storage().array)


def counter():
    """A tensor, and a captured function that adds to it and returns its double."""
    total = Tensor(np.zeros(3, np.float32))

    @jit
    def step(x):
        total.assign(total + x)
        return total * 2

    return total, step
