"""One block of a Llama-style transformer (Touvron et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.models.slots import Shapes, params
from week01_uops.dtypes import DType, float32
from week01_uops.node import UOp
from week01_uops.ops import program
from week03_loops.library import add, attention, linear, mul, rmsnorm, rotary, silu, transpose
from week03_loops.ops import reshape


@dataclass(frozen=True)
class Transformer:
    """Sizes of a block: `groups` heads of keys and values serve all query heads."""

    batch: int = 2
    length: int = 64
    width: int = 256
    heads: int = 8
    groups: int = 8
    hidden: int = 688
    epsilon: float = 1e-6

    @property
    def head(self) -> int:
        """Width of one head."""
        return self.width // self.heads

    def shapes(self) -> Shapes:
        """Slots 0 x, 1–2 the rotary tables, 3 … the weights, each (out, in)."""
        shared = self.groups * self.head
        return {
            "x": (self.batch, self.length, self.width),
            "cosine": (self.length, self.head // 2),
            "sine": (self.length, self.head // 2),
            "attention_norm.weight": (self.width,),
            "query.weight": (self.width, self.width),
            "key.weight": (shared, self.width),
            "value.weight": (shared, self.width),
            "output.weight": (self.width, self.width),
            "feed_forward_norm.weight": (self.width,),
            "gate.weight": (self.hidden, self.width),
            "up.weight": (self.hidden, self.width),
            "down.weight": (self.width, self.hidden),
        }


def transformer_block(sizes: Transformer = Transformer(), dtype: DType = float32) -> UOp:
    """Compute h = x + Attention(RMSNorm(x)), y = h + SwiGLU(RMSNorm(h)) → y (batch, length, width).

    Attention is causal, with rotary positions; SwiGLU(z) = (silu(z·Gᵀ)·(z·Uᵀ))·Dᵀ.
    """
    p = params(sizes.shapes(), dtype)
    hidden = add(
        p["x"],
        _attend(rmsnorm(p["x"], p["attention_norm.weight"], epsilon=sizes.epsilon), p, sizes),
    )
    normal = rmsnorm(hidden, p["feed_forward_norm.weight"], epsilon=sizes.epsilon)
    gated = mul(silu(linear(normal, p["gate.weight"])), linear(normal, p["up.weight"]))
    return program(add(hidden, linear(gated, p["down.weight"])))


def _attend(x: UOp, p: dict[str, UOp], sizes: Transformer) -> UOp:
    """Attention of x (batch, length, width) to itself → the same shape."""

    def heads(weight: str) -> UOp:
        y = linear(x, p[weight])
        return transpose(reshape(y, (*y.shape[:-1], y.shape[-1] // sizes.head, sizes.head)), 1, 2)

    query = rotary(heads("query.weight"), p["cosine"], p["sine"])
    key = rotary(heads("key.weight"), p["cosine"], p["sine"])
    joined = transpose(attention(query, key, heads("value.weight"), causal=True), 1, 2)
    return linear(reshape(joined, x.shape), p["output.weight"])


def rotary_tables(
    length: int, width: int, base: float = 10000.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine and sine of position·base^(−2i/width), each (length, width/2)."""
    speeds = base ** (-2 * np.arange(width // 2) / width)
    angles = np.outer(np.arange(length), speeds)
    return np.cos(angles), np.sin(angles)
