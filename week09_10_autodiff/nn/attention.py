"""Multi-head attention as a layer."""

from __future__ import annotations

from week01_uops.dtypes import float32
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional, init
from week09_10_autodiff.nn.layers import Linear, empty
from week09_10_autodiff.nn.module import Module
from week09_10_autodiff.promotion import DTypeLike
from week09_10_autodiff.tensor import Tensor


class MultiHeadAttention(Module):
    """Attention of several heads, each with its own part of the width (Vaswani et al., 2017).

    The parameters are called as those of torch.nn.MultiheadAttention: in_proj_weight holds the
    rows for queries, keys and values, one below the other.

    Args:
        embed_dim: the width of x.
        num_heads: heads of queries; they divide the width.
        dropout: of the attention weights, in training.
        bias: whether the projections add one.
        num_kv_heads: heads of keys and values, each shared by a group of query heads (Ainslie et
            al., 2023); as many as there are query heads unless given.
        causal: whether position i sees only positions up to i.
        dtype: of the parameters.
    """

    in_proj_bias: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        num_kv_heads: int | None = None,
        causal: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        groups = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads < 1 or embed_dim % num_heads or groups < 1 or num_heads % groups:
            wanted = f"num_heads that divide {embed_dim}, and num_kv_heads that divide num_heads"
            raise TensorError(f"MultiHeadAttention: expected {wanted}, got {num_heads}, {groups}")
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, groups
        self.head_dim, self.dropout, self.causal = embed_dim // num_heads, dropout, causal
        rows = embed_dim + 2 * groups * self.head_dim
        self.in_proj_weight = init.xavier_uniform_(empty(rows, embed_dim, dtype=dtype))
        self.in_proj_bias = empty(rows, dtype=dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self, x: Tensor, context: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        """x (N, t, e) → (N, t, e), looking at x itself or at a context (N, s, e).

        `attn_mask` broadcasts to (N, heads, t, s); see functional.scaled_dot_product_attention.
        """
        width, inner = self.embed_dim, self.num_kv_heads * self.head_dim
        if context is None:
            q, k, v = self._project(x, 0, width + 2 * inner).split([width, inner, inner], -1)
        else:
            q = self._project(x, 0, width)
            k, v = self._project(context, width, 2 * inner).split([inner, inner], -1)
        mixed = functional.scaled_dot_product_attention(
            self._heads(q),
            self._heads(k),
            self._heads(v),
            attn_mask,
            self.dropout if self.training else 0.0,
            self.causal,
        )
        projected: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return projected

    def _project(self, x: Tensor, start: int, length: int) -> Tensor:
        """x times rows of in_proj_weight."""
        bias = self.in_proj_bias
        part = None if bias is None else bias.narrow(0, start, length)
        return functional.linear(x, self.in_proj_weight.narrow(0, start, length), part)

    def _heads(self, x: Tensor) -> Tensor:
        """(N, t, h·d) → (N, h, t, d)."""
        return x.unflatten(-1, (x.shape[-1] // self.head_dim, self.head_dim)).transpose(1, 2)

    def extra_repr(self) -> str:
        """The sizes."""
        groups = "" if self.num_kv_heads == self.num_heads else f", {self.num_kv_heads} kv"
        return f"{self.embed_dim}, {self.num_heads} heads{groups}, causal={self.causal}"
