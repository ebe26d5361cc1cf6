"""Families of workloads that go through arrays once: elementwise, reductions, row by row."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.bench.workload import Array, Way, Workload
from week01_uops.node import Shape, UOp
from week03_loops import library

RMS_EPSILON, LAYER_EPSILON = 1e-6, 1e-5


def _erf(x: Array) -> Array:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))
    return np.asarray(torch.special.erf(torch.from_numpy(x)).numpy())


def _numpy_silu(module: Any, out: Any, x: Any, y: Any) -> Any:  # noqa: ANN401
    out = module.exp(-x, out=out)
    out += 1
    return module.multiply(x / out, y, out=out)


def _numpy_gelu_tanh(module: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
    inner = x * x
    inner *= 0.044715
    inner += 1
    inner *= x
    inner *= math.sqrt(2 / math.pi)
    module.tanh(inner, out=inner)
    inner += 1
    inner *= 0.5
    return module.multiply(inner, x, out=out)


def _torch_gelu(approximate: str) -> Way:
    def gelu(t: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
        if out is None:
            return t.nn.functional.gelu(x, approximate=approximate)
        return t.ops.aten.gelu.out(x, approximate=approximate, out=out)

    return gelu


def _elementwise() -> dict[str, Callable[[str, Shape], Workload]]:
    def relative(exact: Array, x: Array, *_: Array) -> Array:
        """A rounding of x is x·e^x: the argument's own units count."""
        size: Array = np.abs(exact) * (1 + np.abs(x))
        return size

    def argument(_: Array, x: Array) -> Array:
        size: Array = np.abs(x)
        return size

    def exp(name: str, shape: Shape) -> Workload:
        call = lambda module, out, x: module.exp(x, out=out)
        ways = {"numpy": call, "torch": call, "tinygrad": lambda _, out, x: x.exp()}
        return Workload(name, (shape,), library.exp, np.exp, ways, relative)

    def add(name: str, shape: Shape) -> Workload:
        call = lambda module, out, x, y: module.add(x, y, out=out)
        ways = {"numpy": call, "torch": call, "tinygrad": lambda _, out, x, y: x + y}
        size = lambda _, x, y: np.abs(x) + np.abs(y)
        return Workload(name, (shape, shape), library.add, np.add, ways, size, terms=1)

    def gelu(name: str, shape: Shape) -> Workload:
        exact = lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5)))
        jax = lambda module, out, x: module.nn.gelu(x, approximate=False)
        tiny = lambda _, out, x: 0.5 * x * (1 + (x * math.sqrt(0.5)).erf())
        ways = {"torch": _torch_gelu("none"), "jax": jax, "tinygrad": tiny}
        return Workload(name, (shape,), library.gelu, exact, ways, argument)

    def gelu_tanh(name: str, shape: Shape) -> Workload:
        exact = lambda x: _numpy_gelu_tanh(np, None, x)
        ways = {
            "numpy": _numpy_gelu_tanh,
            "torch": _torch_gelu("tanh"),
            "jax": lambda module, out, x: module.nn.gelu(x, approximate=True),
            "tinygrad": lambda _, out, x: x.gelu(),
        }
        return Workload(name, (shape,), library.gelu_tanh, exact, ways, argument)

    return {
        "exp": exp,
        "gelu": gelu,
        "gelu_tanh": gelu_tanh,
        "silu_mul": silu_mul,
        "add": add,
    }


def silu_mul(name: str, shape: Shape) -> Workload:
    """The gate of a SwiGLU layer: silu(x)·y."""

    def build(x: UOp, y: UOp) -> UOp:
        return library.mul(library.silu(x), y)

    def torch(t: Any, out: Any, x: Any, y: Any) -> Any:  # noqa: ANN401
        return t.mul(t.nn.functional.silu(x), y, out=out)

    exact = lambda x, y: x / (1 + np.exp(-x)) * y
    ways: dict[str, Way] = {
        "numpy": _numpy_silu,
        "torch": torch,
        "jax": lambda module, out, x, y: module.nn.silu(x) * y,
        "tinygrad": lambda _, out, x, y: x.silu() * y,
    }
    size = lambda exact, x, y: np.abs(exact) * (1 + np.abs(x))
    return Workload(name, (shape, shape), build, exact, ways, size)


ELEMENTWISE = _elementwise()
"""Elementwise families, by name."""


def reduction(name: str, kind: str, shape: Shape, axis: int | None) -> Workload:
    """One of sum, max, mean, var over an axis, or over all."""
    build = {
        "sum": library.reduce_sum,
        "max": library.reduce_max,
        "mean": library.mean,
        "var": library.var,
    }[kind]

    def numpy(module: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
        return getattr(module, kind)(x, axis=axis, out=out)

    def torch(t: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
        axes = tuple(range(x.ndim)) if axis is None else axis
        if kind == "var":
            return t.var(x, axes, correction=0, out=out)
        return getattr(t, "amax" if kind == "max" else kind)(x, axes, out=out)

    def tiny(_: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
        return x.var(axis, correction=0) if kind == "var" else getattr(x, kind)(axis)

    def exact(x: Array) -> Array:
        found: Array = numpy(np, None, x)
        return found

    count = math.prod(shape) if axis is None else shape[axis]
    ways: dict[str, Way] = {"numpy": numpy, "torch": torch, "tinygrad": tiny}
    terms = 0 if kind == "max" else count
    positive = kind != "max"
    return Workload(
        name, (shape,), lambda x: build(x, axis), exact, ways, terms=terms, positive=positive
    )


def softmax(name: str, shape: Shape) -> Workload:
    """Softmax over the last axis."""

    def numpy(module: Any, out: Any, x: Any) -> Any:  # noqa: ANN401
        out = module.subtract(x, x.max(-1, keepdims=True), out=out)
        module.exp(out, out=out)
        out /= out.sum(-1, keepdims=True)
        return out

    exact = lambda x: numpy(np, None, x)
    ways: dict[str, Way] = {
        "numpy": numpy,
        "torch": lambda t, out, x: t.softmax(x, -1, out=out),
        "jax": lambda module, out, x: module.nn.softmax(x),
        "tinygrad": lambda _, out, x: x.softmax(),
    }
    return Workload(name, (shape,), library.softmax, exact, ways, terms=shape[-1])


def rmsnorm(name: str, shape: Shape) -> Workload:
    """x/√(mean x² + ε)·weight over the last axis."""

    def build(x: UOp, weight: UOp) -> UOp:
        return library.rmsnorm(x, weight, epsilon=RMS_EPSILON)

    def torch(t: Any, _: Any, x: Any, weight: Any) -> Any:  # noqa: ANN401
        return t.nn.functional.rms_norm(x, weight.shape, weight, RMS_EPSILON)

    def numpy(module: Any, out: Any, x: Any, weight: Any) -> Any:  # noqa: ANN401
        squares = module.square(x, out=out).mean(-1, keepdims=True)
        return module.multiply(x / module.sqrt(squares + RMS_EPSILON), weight, out=out)

    def tiny(_: Any, out: Any, x: Any, weight: Any) -> Any:  # noqa: ANN401
        return x * (x.square().mean(-1, keepdim=True) + RMS_EPSILON).rsqrt() * weight

    exact = lambda x, weight: numpy(np, None, x, weight)
    ways: dict[str, Way] = {"numpy": numpy, "torch": torch, "tinygrad": tiny}
    return Workload(name, (shape, shape[-1:]), build, exact, ways, terms=shape[-1])


def layernorm(name: str, shape: Shape) -> Workload:
    """(x − μ)/√(σ² + ε)·weight + bias over the last axis."""

    def build(x: UOp, weight: UOp, bias: UOp) -> UOp:
        return library.layernorm(x, weight, bias, epsilon=LAYER_EPSILON)

    def torch(t: Any, _: Any, x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
        return t.nn.functional.layer_norm(x, weight.shape, weight, bias, LAYER_EPSILON)

    def numpy(module: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
        centred = module.subtract(x, x.mean(-1, keepdims=True), out=out)
        squares = module.square(centred).mean(-1, keepdims=True)
        centred /= module.sqrt(squares + LAYER_EPSILON)
        centred *= weight
        centred += bias
        return centred

    def jax(module: Any, _: Any, x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
        np_ = module.numpy
        scale = module.lax.rsqrt(np_.var(x, -1, keepdims=True) + LAYER_EPSILON)
        return (x - np_.mean(x, -1, keepdims=True)) * scale * weight + bias

    def tiny(_: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
        return x.layernorm(eps=LAYER_EPSILON) * weight + bias

    def size(exact: Array, x: Array, weight: Array, bias: Array) -> Array:
        """As large as the terms: near the mean they cancel."""
        return np.abs(exact) + np.abs(weight) + np.abs(bias)

    exact = lambda x, weight, bias: numpy(np, None, x, weight, bias)
    ways: dict[str, Way] = {"numpy": numpy, "torch": torch, "jax": jax, "tinygrad": tiny}
    last = shape[-1:]
    return Workload(name, (shape, last, last), build, exact, ways, size, terms=shape[-1])
