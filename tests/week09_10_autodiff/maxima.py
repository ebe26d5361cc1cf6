"""Pieces of softmax and its like, with the maximum that is subtracted for safety."""

from __future__ import annotations

from week03_loops import library as lib


def top(x, axis=1):
    return lib.reduce_max(x, axis, keepdim=True)


def powers(x, m=None):
    return lib.exp(lib.sub(x, top(x) if m is None else m))


def total(x, axis=1):
    return lib.reduce_sum(x, axis, keepdim=True)
