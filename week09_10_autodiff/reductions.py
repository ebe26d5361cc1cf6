"""Reductions of tensors over axes, and what is made of them."""

from __future__ import annotations

import math
from typing import Self

from week01_uops.dtypes import bool_, int64
from week01_uops.node import UOp
from week01_uops.ops import EXP2, LOG2, MUL
from week03_loops import library as lib
from week03_loops.library.check import Axes, axes_of
from week03_loops.ops import reshape
from week09_10_autodiff.core import Core
from week09_10_autodiff.elementwise import floats
from week09_10_autodiff.promotion import DTypeLike, dtype_of


class Reductions(Core):
    """Reductions: over the axes `dim`, one or several or, if None, all; `keepdim` keeps size 1."""

    __slots__ = ()

    def sum(
        self, dim: Axes = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Self:
        """Σ x; bools and integers are summed as int64 unless a dtype is given."""
        wanted = self.dtype if self.dtype.is_float else int64
        wanted = wanted if dtype is None else dtype_of(dtype)
        return self._apply(
            "sum", lambda x: lib.reduce_sum(lib.cast(x, wanted), dim, keepdim=keepdim)
        )

    def prod(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """Π x; bools and integers are multiplied as int64."""
        wanted = self.dtype if self.dtype.is_float else int64
        return self._apply(
            "prod", lambda x: lib.reduce_prod(lib.cast(x, wanted), dim, keepdim=keepdim)
        )

    def max(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """The largest; NaN if there is one. Unlike PyTorch's, without the index: see `argmax`."""
        return self._apply("max", lib.reduce_max, axes=dim, keepdim=keepdim)

    def min(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """The smallest; NaN if there is one. Unlike PyTorch's, without the index: see `argmin`."""
        return self._apply("min", lib.reduce_min, axes=dim, keepdim=keepdim)

    def amax(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """The same as `max`."""
        return self.max(dim, keepdim)

    def amin(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """The same as `min`."""
        return self.min(dim, keepdim)

    def mean(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """Σ x / n of floats."""
        return self._apply("mean", lib.mean, axes=dim, keepdim=keepdim)

    def var(self, dim: Axes = None, keepdim: bool = False, *, correction: int = 1) -> Self:
        """Σ (x − mean)² / (n − correction) of floats."""
        return self._apply("var", lib.var, axes=dim, keepdim=keepdim, correction=correction)

    def std(self, dim: Axes = None, keepdim: bool = False, *, correction: int = 1) -> Self:
        """√ of `var`."""

        def deviation(x: UOp) -> UOp:
            return lib.sqrt(lib.var(x, dim, keepdim=keepdim, correction=correction))

        return self._apply("std", deviation)

    def norm(self, p: float = 2, dim: Axes = None, keepdim: bool = False) -> Self:
        """(Σ |x|^p)^(1/p); the largest |x| for p = inf, the number that are not 0 for p = 0."""
        return self._apply("norm", norm, p=p, axes=dim, keepdim=keepdim)

    def all(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """Whether none is 0."""
        return self._apply("all", lambda x: lib.reduce_prod(_truth(x), dim, keepdim=keepdim))

    def any(self, dim: Axes = None, keepdim: bool = False) -> Self:
        """Whether one is not 0."""
        return self._apply("any", lambda x: lib.reduce_max(_truth(x), dim, keepdim=keepdim))

    def softmax(self, dim: int = -1) -> Self:
        """e^x / Σ e^x along an axis."""
        return self._apply("softmax", lambda x: lib.softmax(floats(x), dim))

    def log_softmax(self, dim: int = -1) -> Self:
        """ln softmax(x) along an axis."""
        return self._apply("log_softmax", lambda x: lib.log_softmax(floats(x), dim))

    def logsumexp(self, dim: Axes = -1, keepdim: bool = False) -> Self:
        """ln Σ e^x over axes."""
        return self._apply("logsumexp", lambda x: logsumexp(floats(x), dim, keepdim))

    def cumsum(self, dim: int) -> Self:
        """Running sums along an axis; bools and integers as int64."""
        wanted = self.dtype if self.dtype.is_float else int64
        return self._apply("cumsum", lambda x: lib.cumsum(lib.cast(x, wanted), dim))

    def cumprod(self, dim: int) -> Self:
        """Running products along an axis; bools and integers as int64."""
        wanted = self.dtype if self.dtype.is_float else int64
        return self._apply("cumprod", lambda x: lib.cumprod(lib.cast(x, wanted), dim))

    def cummax(self, dim: int) -> Self:
        """Running maxima along an axis. Unlike PyTorch's, without the indices."""
        return self._apply("cummax", lib.cummax, axis=dim)


def _truth(x: UOp) -> UOp:
    return x if x.dtype is bool_ else lib.ne(x, 0)


def norm(x: UOp, p: float, axes: Axes, keepdim: bool) -> UOp:
    """(Σ |x|^p)^(1/p)."""
    size = lib.absolute(x)
    if p == math.inf:
        return lib.reduce_max(size, axes, keepdim=keepdim)
    if p == 0:
        return lib.reduce_sum(lib.cast(lib.ne(x, 0), x.dtype), axes, keepdim=keepdim)
    if p == 1:
        return lib.reduce_sum(size, axes, keepdim=keepdim)
    if p == 2:
        return lib.sqrt(lib.reduce_sum(lib.square(x), axes, keepdim=keepdim))
    return _root(lib.reduce_sum(_power(size, p), axes, keepdim=keepdim), p)


def _power(x: UOp, p: float) -> UOp:
    result: UOp = EXP2(MUL(LOG2(x), p))
    return result


def _root(x: UOp, p: float) -> UOp:
    return _power(x, 1 / p)


def logsumexp(x: UOp, axes: Axes, keepdim: bool) -> UOp:
    """ln Σ e^(x − m) + m, m the maximum where it is finite, so that nothing overflows."""
    top = lib.reduce_max(x, axes, keepdim=True)
    top = lib.where(lib.lt(lib.absolute(top), math.inf), top, 0)
    total = lib.log(lib.reduce_sum(lib.exp(lib.sub(x, top)), axes, keepdim=True))
    kept = lib.add(total, top)
    reduced = axes_of("logsumexp", axes, len(x.shape))
    shape = [s for a, s in enumerate(kept.shape) if keepdim or a not in reduced]
    return reshape(kept, shape)
