"""Rotary positions and scaled dot-product attention."""

from __future__ import annotations

import math

from week01_uops.dtypes import bool_
from week01_uops.node import UOp
from week01_uops.ops import NEG
from week03_loops.library.arithmetic import add, lt, mul, where
from week03_loops.library.check import expect, expect_float, expect_rank
from week03_loops.library.linear_algebra import matmul
from week03_loops.library.movement import transpose, unsqueeze
from week03_loops.library.normalization import softmax
from week03_loops.library.scan import arange, lower_triangle
from week03_loops.ops import flip, reshape


def rotary(x: UOp, cosine: UOp, sine: UOp) -> UOp:
    """Rotate each pair (x[i], x[i + d/2]) by its position's angle (Su et al., RoFormer, 2021).

    (a, b) → (a·cos − b·sin, b·cos + a·sin), a and b the halves of the last axis:
    x (…, t, d), tables (t, d/2) → (…, t, d). As in Llama and GPT-NeoX.
    """
    expect_rank("rotary", "x", x, 2, "(…, t, d) with an even d")
    width = x.shape[-1]
    expect(width % 2 == 0, "E404", f"rotary: expected an even last axis, got {width}", x)
    half = width // 2
    for name, table in (("a cosine", cosine), ("a sine", sine)):
        good = table.shape == (x.shape[-2], half)
        wanted = f"{name} of shape [{x.shape[-2]}, {half}]"
        expect(good, "E403", f"rotary: expected {wanted}, got {list(table.shape)}", table)
    pairs = reshape(x, (*x.shape[:-1], 2, half))
    swapped = flip(pairs, [len(pairs.shape) - 2])
    first = reshape(lt(arange(2), 1), (2, 1))
    turned = where(first, NEG(swapped), swapped)
    rotated = add(mul(pairs, unsqueeze(cosine, 1)), mul(turned, unsqueeze(sine, 1)))
    return reshape(rotated, x.shape)


def attention(
    q: UOp,
    k: UOp,
    v: UOp,
    *,
    mask: UOp | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> UOp:
    """softmax(q·kᵀ·scale + mask)·v (Vaswani et al., 2017), heads in groups.

    q (…, h, t, d), k (…, g, s, d), v (…, g, s, e), h a multiple of g → (…, h, t, e): each group
    of h/g query heads shares one head of k and v (Ainslie et al., 2023). The scale is 1/√d unless
    given. `causal` lets query i see the keys up to i + s − t, so that the last query sees all.
    A mask that broadcasts to (…, h, t, s) is added if it is a float; a bool one is true where a
    query may look. A row that may look nowhere is NaN.
    """
    expect_float("attention", q=q, k=k, v=v)
    _expect_heads(q, k, v)
    *batch, heads, queries, width = q.shape
    groups, keys = k.shape[-3:-1]
    grouped = (*batch, groups, heads // groups)
    scores = matmul(reshape(q, (*grouped, queries, width)), transpose(unsqueeze(k, -3)))
    scores = mul(scores, 1 / math.sqrt(max(width, 1)) if scale is None else scale)
    scores = _masked(reshape(scores, (*batch, heads, queries, keys)), mask, causal)
    weights = reshape(softmax(scores), (*grouped, queries, keys))
    return reshape(matmul(weights, unsqueeze(v, -3)), (*batch, heads, queries, v.shape[-1]))


def _masked(scores: UOp, mask: UOp | None, causal: bool) -> UOp:
    """−∞ where a query may not look, and the float mask added."""
    if mask is not None:
        good = mask.dtype in (bool_, scores.dtype)
        wanted = f"a mask of bool or {scores.dtype}"
        expect(good, "E402", f"attention: expected {wanted}, got {mask.dtype}", mask)
        masked = add(scores, mask) if mask.dtype.is_float else where(mask, scores, -math.inf)
        wanted = f"a mask that broadcasts to {list(scores.shape)}"
        good = masked.shape == scores.shape
        expect(good, "E403", f"attention: expected {wanted}, got {list(mask.shape)}", mask)
        scores = masked
    if not causal:
        return scores
    queries, keys = scores.shape[-2:]
    return where(lower_triangle(queries, keys, keys - queries), scores, -math.inf)


def _expect_heads(q: UOp, k: UOp, v: UOp) -> None:
    """E403 unless batches, keys, widths and groups of heads agree."""
    expect_rank("attention", "q", q, 3, "(…, h, t, d)")
    *batch, heads, _, width = q.shape
    good = len(k.shape) == len(q.shape) and list(k.shape[:-3]) == batch and k.shape[-1] == width
    wanted = f"k of shape {[*batch, 'g', 's', width]}"
    expect(good, "E403", f"attention: expected {wanted}, got {list(k.shape)}", k)
    good = v.shape[:-1] == k.shape[:-1]
    wanted = f"v of shape {[*k.shape[:-1], 'e']}"
    expect(good, "E403", f"attention: expected {wanted}, got {list(v.shape)}", v)
    groups = k.shape[-3]
    good = groups > 0 and heads % groups == 0
    expect(good, "E403", f"attention: expected heads of k that divide {heads}, got {groups}", k)
