"""Every method of tensors: elements, shapes, dtypes and derivatives against PyTorch."""

import functools

import numpy as np
import pytest
import torch

import week09_10_autodiff as ours
from tests.week09_10_autodiff.tensor_cases import CASES
from week05_06_memory.evaluate import evaluate
from week09_10_autodiff.realize import canonical
from week09_10_autodiff.tensor import Tensor

TOGETHER = 12
"""So many cases are compiled as one program."""


def inputs(case):
    rng = np.random.default_rng(7)
    made = [
        rng.uniform(0.5, 2, s) if case.positive else rng.standard_normal(s) for s in case.shapes
    ]
    return [np.asarray(array) for array in made]


def outputs(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def weighted(results, constant):
    """Σ of the float results, each element with a weight of its own."""
    floats = [r for r in results if r.requires_grad]
    weights = [np.cos(np.arange(r.numel())).reshape(tuple(r.shape)) for r in floats]
    return sum((r * constant(w)).sum() for r, w in zip(floats, weights, strict=True))


def ours_of(case):
    """The results, and the derivatives with respect to the inputs."""
    xs = [Tensor(array, requires_grad=True) for array in inputs(case)]
    results = outputs(case.function(ours, *xs))
    if any(r.requires_grad for r in results):
        weighted(results, Tensor).backward()
    return results, [x.grad for x in xs]


def theirs_of(case):
    xs = [torch.tensor(array, requires_grad=True) for array in inputs(case)]
    results = outputs(case.function(torch, *xs))
    if any(r.requires_grad for r in results):
        weighted(results, torch.from_numpy).backward()
    return results, [x.grad for x in xs]


@functools.cache
def group(number):
    """The cases of a group, computed in one program."""
    names = list(CASES)[number * TOGETHER : (number + 1) * TOGETHER]
    found = {name: ours_of(CASES[name]) for name in names}
    tensors = [t for results, grads in found.values() for t in (*results, *grads) if t is not None]
    Tensor.realize(*tensors)
    return found


@pytest.mark.parametrize("name", CASES)
def test_elements_and_derivatives(name):
    results, grads = group(list(CASES).index(name) // TOGETHER)[name]
    wanted, wanted_grads = theirs_of(CASES[name])
    assert len(results) == len(wanted)
    for got, right in zip(results, wanted, strict=True):
        assert got.shape == tuple(right.shape)
        assert str(got.dtype) == str(right.dtype).removeprefix("torch.")
        np.testing.assert_allclose(got.numpy(), right.detach().numpy(), rtol=1e-9, atol=1e-12)
    for got, right in zip(grads, wanted_grads, strict=True):
        if right is None:
            assert got is None or not got.numpy().any()
        else:
            zero = np.zeros(right.shape) if got is None else got.numpy()
            np.testing.assert_allclose(zero, right.numpy(), rtol=1e-8, atol=1e-10)


PYTORCH_ALONE = {(f"einsum {n}", d) for n in ("trace", "sum") for d in ("int32", "uint8", "bool")}
"""What PyTorch sums as int64, but not where it multiplies as well."""

DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")


def dtypes_of(library, case, make):
    return [str(r.dtype).removeprefix("torch.") for r in outputs(case.function(library, *make))]


@pytest.mark.parametrize("name", CASES)
def test_dtypes(name):
    """Wherever PyTorch takes a dtype, the results have its dtypes."""
    case = CASES[name]
    for dtype in [d for d in DTYPES if (name, d) not in PYTORCH_ALONE]:
        theirs = [torch.ones(s, dtype=getattr(torch, dtype)) for s in case.shapes]
        try:
            wanted = dtypes_of(torch, case, theirs)
        except (RuntimeError, TypeError, NotImplementedError, IndexError):
            continue
        got = dtypes_of(ours, case, [Tensor.ones(s, dtype=dtype) for s in case.shapes])
        assert got == wanted, dtype


INTEGERS = {"int64": (-4, 5), "int32": (-4, 5), "uint8": (0, 5), "bool": (0, 2)}
HALVES = {"float16": 2e-2, "bfloat16": 1.6e-1}


def elements(case, dtype):
    """Whole numbers, or what a half holds exactly."""
    rng = np.random.default_rng(11)
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return [rng.integers(max(low, int(case.positive)), high, s) for s in case.shapes]
    return [rng.integers(1 if case.positive else -9, 10, s) / 8 for s in case.shapes]


@pytest.mark.parametrize("name", CASES)
def test_elements_of_other_dtypes(name):
    """Where PyTorch takes a dtype, the interpreter gives PyTorch's elements."""
    case = CASES[name]
    for dtype in [d for d in (*INTEGERS, *HALVES, "float32") if (name, d) not in PYTORCH_ALONE]:
        arrays = elements(case, dtype)
        theirs = [torch.tensor(a).to(getattr(torch, dtype)) for a in arrays]
        try:
            wanted = outputs(case.function(torch, *theirs))
        except (RuntimeError, TypeError, NotImplementedError, IndexError):
            continue
        got = outputs(case.function(ours, *[Tensor(a, dtype) for a in arrays]))
        program, inputs = canonical([x.node for x in got])
        values = evaluate(program, [storage.array for storage in inputs])
        for value, right in zip(values, wanted, strict=True):
            error = HALVES.get(str(right.dtype).removeprefix("torch."), 1e-5)
            wide = right.double().numpy()
            np.testing.assert_allclose(
                value.astype(np.float64), wide, rtol=error, atol=error, err_msg=dtype
            )
