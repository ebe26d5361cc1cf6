"""Families of workloads that sum up products: matrix products, convolution, attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grader.bench.workload import Array, Way, Workload
from week01_uops.node import UOp
from week03_loops import library


def _terms_of(exact: Any) -> Any:  # noqa: ANN401 - a function of the workload
    """Sizes of the terms of a sum of products: the same sum over absolute values."""
    return lambda _, *inputs: exact(*map(np.abs, inputs))


def gemm(
    name: str, m: int, n: int, k: int, *, a_turned: bool = False, b_turned: bool = False
) -> Workload:
    """Products a·b; a is stored as (k, m) or b as (n, k) if turned."""

    def product(module: Any, out: Any, a: Any, b: Any) -> Any:  # noqa: ANN401
        a, b = a.T if a_turned else a, b.T if b_turned else b
        return module.matmul(a, b, out=out)

    def build(a: UOp, b: UOp) -> UOp:
        a = library.transpose(a) if a_turned else a
        return library.linear(a, b) if b_turned else library.matmul(a, b)

    def tiny(_: Any, out: Any, a: Any, b: Any) -> Any:  # noqa: ANN401
        return (a.T if a_turned else a) @ (b.T if b_turned else b)

    def exact(a: Array, b: Array) -> Array:
        found: Array = product(np, None, a, b)
        return found

    shapes = ((k, m) if a_turned else (m, k), (n, k) if b_turned else (k, n))
    ways: dict[str, Way] = {"numpy": product, "torch": product, "tinygrad": tiny}
    return Workload(name, shapes, build, exact, ways, _terms_of(exact), terms=k)


def matmul(
    name: str, m: int, k: int, n: int, *, gated: bool = False, add: bool = False
) -> Workload:
    """A layer: x·w, x (1, m, k), w (k, n); silu(g)·u for x if gated; plus (1, m, n) if add."""

    def torch(t: Any, out: Any, *inputs: Any) -> Any:  # noqa: ANN401
        *x, w = inputs[:-1] if add else inputs
        left = t.nn.functional.silu(x[0]) * x[1] if gated else x[0]
        return t.add(t.matmul(left, w), inputs[-1], out=out) if add else t.matmul(left, w, out=out)

    def tiny(_: Any, out: Any, *inputs: Any) -> Any:  # noqa: ANN401
        *x, w = inputs[:-1] if add else inputs
        y = (x[0].silu() * x[1] if gated else x[0]) @ w
        return y + inputs[-1] if add else y

    def numpy(module: Any, out: Any, *inputs: Any) -> Any:  # noqa: ANN401
        *x, w = inputs[:-1] if add else inputs
        left = x[0] / (1 + module.exp(-x[0])) * x[1] if gated else x[0]
        y = module.matmul(left, w, out=out)
        return module.add(y, inputs[-1], out=out) if add else y

    def build(*inputs: UOp) -> UOp:
        *x, w = inputs[:-1] if add else inputs
        left = library.mul(library.silu(x[0]), x[1]) if gated else x[0]
        y = library.matmul(left, w)
        return library.add(y, inputs[-1]) if add else y

    def size(_: Array, *inputs: Array) -> Array:
        *x, w = map(np.abs, inputs[:-1] if add else inputs)
        found: Array = (x[0] * x[1] if gated else x[0]) @ w
        return found + np.abs(inputs[-1]) if add else found

    shapes = ((1, m, k),) * (2 if gated else 1) + ((k, n),) + (((1, m, n),) if add else ())
    ways: dict[str, Way] = {"numpy": numpy, "torch": torch, "tinygrad": tiny}
    exact = lambda *inputs: numpy(np, None, *inputs)
    return Workload(name, shapes, build, exact, ways, size, terms=k)


def conv(
    name: str,
    x: tuple[int, int, int, int],
    channels: int,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> Workload:
    """Convolution of NCHW images with OIHW weights."""

    def torch(t: Any, _: Any, x: Any, w: Any) -> Any:  # noqa: ANN401
        conv2d = t.nn.functional.conv2d
        return conv2d(x, w, stride=stride, padding=padding, groups=groups)

    def tiny(_: Any, out: Any, x: Any, w: Any) -> Any:  # noqa: ANN401
        return x.conv2d(w, stride=stride, padding=padding, groups=groups)

    def numpy(module: Any, out: Any, x: Any, w: Any) -> Any:  # noqa: ANN401
        images, inner, height, width = x.shape
        flat = x.reshape(images, inner, height * width)
        y = module.matmul(w[:, :, 0, 0], flat, out=None if out is None else out.reshape(flat.shape))
        return y.reshape(images, channels, height, width)

    def jax(module: Any, _: Any, x: Any, w: Any) -> Any:  # noqa: ANN401
        padded = [(padding, padding)] * 2
        call = module.lax.conv_general_dilated
        return call(x, w, (stride, stride), padded, feature_group_count=groups)

    def build(x: UOp, w: UOp) -> UOp:
        return library.conv(x, w, stride=stride, padding=padding, groups=groups)

    def exact(x: Array, w: Array) -> Array:
        return _convolve(x, w, stride, padding, groups)

    inner = x[1] // groups
    ways: dict[str, Way] = {"torch": torch, "tinygrad": tiny, "jax": jax}
    if kernel == stride == groups == 1 and channels == x[1]:
        ways["numpy"] = numpy
    shapes = (x, (channels, inner, kernel, kernel))
    terms = inner * kernel * kernel
    return Workload(name, shapes, build, exact, ways, _terms_of(exact), terms=terms)


def _convolve(x: Array, w: Array, stride: int, padding: int, groups: int) -> Array:
    """By its definition: a sum over the taps of the kernel."""
    images, channels = x.shape[:2]
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    height, width = ((size - w.shape[2]) // stride + 1 for size in x.shape[2:])
    x = x.reshape(images, groups, channels // groups, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    y = np.zeros((images, groups, w.shape[1], height, width))
    for i in range(w.shape[3]):
        for j in range(w.shape[4]):
            rows = slice(i, i + stride * height, stride)
            columns = slice(j, j + stride * width, stride)
            tap = x[:, :, :, rows, columns][:, :, :, :height, :width]
            flat = tap.reshape(*tap.shape[:3], height * width)
            y += (w[..., i, j] @ flat).reshape(y.shape)
    return y.reshape(images, groups * w.shape[1], height, width)


def attention(
    name: str,
    queries: tuple[int, int, int, int],
    *,
    groups: int | None = None,
    causal: bool = False,
    fused: bool = True,
) -> Workload:
    """softmax(q·kᵀ/√d)·v of (batch, heads, length, d); PyTorch fuses it, or not."""
    batch, heads, length, width = queries
    shared = groups is not None and groups != heads
    keys = (batch, groups or heads, length, width)

    def torch(t: Any, out: Any, q: Any, k: Any, v: Any) -> Any:  # noqa: ANN401
        if not fused:
            weights = t.softmax(t.matmul(q, k.transpose(-2, -1)) / math.sqrt(width), -1)
            return t.matmul(weights, v, out=out)
        call = t.nn.functional.scaled_dot_product_attention
        return call(q, k, v, is_causal=causal, enable_gqa=shared)

    def tiny(_: Any, out: Any, q: Any, k: Any, v: Any) -> Any:  # noqa: ANN401
        return q.scaled_dot_product_attention(k, v, is_causal=causal, enable_gqa=shared)

    def jax(module: Any, _: Any, *inputs: Any) -> Any:  # noqa: ANN401
        q, k, v = (x.swapaxes(1, 2) for x in inputs)
        return module.nn.dot_product_attention(q, k, v, is_causal=causal).swapaxes(1, 2)

    def numpy(module: Any, out: Any, q: Any, k: Any, v: Any) -> Any:  # noqa: ANN401
        grouped = q.reshape(batch, keys[1], heads // keys[1], length, width)
        scores = grouped @ k.swapaxes(-2, -1)[:, :, None]
        scores *= q.dtype.type(1 / math.sqrt(width))
        if causal:
            scores[..., ~module.tri(length, dtype=bool)] = -np.inf
        scores -= scores.max(-1, keepdims=True)
        module.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        return (scores @ v[:, :, None]).reshape(q.shape)

    def build(q: UOp, k: UOp, v: UOp) -> UOp:
        return library.attention(q, k, v, causal=causal)

    def exact(q: Array, k: Array, v: Array) -> Array:
        found: Array = numpy(np, None, q, k, v)
        return found

    def size(_: Array, q: Array, k: Array, v: Array) -> Array:
        return exact(q, k, np.abs(v))

    ways: dict[str, Way] = {"numpy": numpy, "torch": torch, "tinygrad": tiny, "jax": jax}
    shapes = (queries, keys, keys)
    useful = (length + 1) / (2 * length) if causal else 1.0
    terms = length + width
    return Workload(name, shapes, build, exact, ways, size, terms, useful=useful)
