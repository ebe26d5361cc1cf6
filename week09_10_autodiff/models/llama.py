"""The Llama family: Llama 1 to 3, TinyLlama, Qwen2 and Qwen2.5 (Touvron et al., 2023).

    h = h + Attention(RMSNorm(h))
    h = h + (silu(x·G)·(x·U))·D, x = RMSNorm(h);   logits = RMSNorm(h)·E

Positions turn queries and keys (`rotary`), groups of query heads share one head of keys and
values (Ainslie et al., "GQA", 2023), and nothing has a bias, but for Qwen's queries, keys and
values. Parameters have the names that they have in Hugging Face's folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from week09_10_autodiff import nn
from week09_10_autodiff.hub import Config, HubError, read_config
from week09_10_autodiff.models.attention import ALONE, Attending, Cache
from week09_10_autodiff.models.loading import initialize, load
from week09_10_autodiff.models.rotary import Rotary, turned
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.tensor import Tensor

QWEN = "qwen2"
TYPES = ("llama", QWEN)
"""Values of `model_type` that this file is for."""


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes and choices.

    Attributes:
        vocab_size: how many tokens there are.
        hidden_size: the width of the stream between the layers.
        intermediate_size: the width within the feed-forward part.
        num_hidden_layers: how many layers there are.
        num_attention_heads, num_key_value_heads: heads of queries, and of keys and values.
        head_dim: the width of a head.
        max_position_embeddings: the longest text.
        rms_norm_eps: what is added to a mean square before its root is taken.
        rotary: how positions become angles.
        qkv_bias, o_bias, mlp_bias: where the linear maps add a bias.
        tie_word_embeddings: the table of embeddings is the last linear map as well.
    """

    vocab_size: int = 32000
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 22
    num_attention_heads: int = 32
    num_key_value_heads: int = 4
    head_dim: int = 64
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-5
    rotary: Rotary = field(default_factory=Rotary)
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        heads, groups = self.num_attention_heads, self.num_key_value_heads
        if heads % groups:
            raise ValueError(f"expected heads of keys that divide {heads}, got {groups}")
        if self.head_dim % 2:
            raise ValueError(f"expected an even width of heads, got {self.head_dim}")

    @classmethod
    def of(cls, config: Config) -> LlamaConfig:
        """What a config.json says.

        Raises:
            HubError: a value is missing or wrong, or asks for what is not built here.
        """
        kind = config.choice("model_type", TYPES, "llama")
        config.choice("hidden_act", ("silu",), "silu")
        if config.flag("use_sliding_window", False):
            raise config.fault("use_sliding_window", "false: windows are not supported,", True)
        hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
        if config.get("head_dim") is None and hidden % heads:
            raise HubError(f"{config.source}: expected heads that divide {hidden}, got {heads}")
        bias = config.flag("attention_bias", False)
        return cls(
            vocab_size=config.integer("vocab_size"),
            hidden_size=hidden,
            intermediate_size=config.integer("intermediate_size"),
            num_hidden_layers=config.integer("num_hidden_layers"),
            num_attention_heads=heads,
            num_key_value_heads=config.integer("num_key_value_heads", heads),
            head_dim=config.integer("head_dim", hidden // heads),
            max_position_embeddings=config.integer("max_position_embeddings", 2048),
            rms_norm_eps=config.real("rms_norm_eps", 1e-6),
            rotary=Rotary.of(config),
            qkv_bias=bias or kind == QWEN,
            o_bias=bias,
            mlp_bias=config.flag("mlp_bias", False),
            tie_word_embeddings=config.flag("tie_word_embeddings", False),
        )


class Attention(nn.Module):
    """Attention of heads whose queries and keys are turned by their positions."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.width = layer, config.head_dim
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=config.qkv_bias)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=config.qkv_bias)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=config.qkv_bias)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=config.o_bias)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], attending: Attending) -> Tensor:
        """Map x (batch, t, hidden) to the same shape; angles are cosines and sines (t, width/2)."""
        q, k, v = (self._heads(linear(x)) for linear in (self.q_proj, self.k_proj, self.v_proj))
        y = attending(self.layer, turned(q, *angles), turned(k, *angles), v)
        batch, heads, length, width = y.shape
        result: Tensor = self.o_proj(y.transpose(1, 2).reshape(batch, length, heads * width))
        return result

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, t, heads·width) → (batch, heads, t, width)."""
        batch, length, size = x.shape
        return x.reshape(batch, length, size // self.width, self.width).transpose(1, 2)


class MLP(nn.Module):
    """SwiGLU, (silu(x·G)·(x·U))·D (Shazeer, "GLU Variants", 2020)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        hidden, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(hidden, inner, bias=bias)
        self.up_proj = nn.Linear(hidden, inner, bias=bias)
        self.down_proj = nn.Linear(inner, hidden, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (…, hidden) to the same shape."""
        y: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return y


class Layer(nn.Module):
    """Attention, then SwiGLU, each added to what came in."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = Attention(config, layer)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], attending: Attending) -> Tensor:
        """Map x (batch, t, hidden) to the same shape."""
        x = x + self.self_attn(self.input_layernorm(x), angles, attending)
        y: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return y


class Stack(nn.Module):
    """Embeddings, layers and the last norm."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, n) for n in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)


class Llama(nn.Module):
    """A language model of the Llama family, a `LlamaForCausalLM` or `Qwen2ForCausalLM`.

    Attributes:
        config: its sizes and choices.
    """

    IGNORED = (r".*\.rotary_emb\.inv_freq",)
    """Names of tensors that are computed here."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Stack(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self._tables: tuple[Tensor, Tensor] | None = None

    @classmethod
    def from_config(cls, config: LlamaConfig | Mapping[str, Any], *, seed: int = 0) -> Llama:
        """A model with random weights, normal with a standard deviation of 0.02."""
        made = config if isinstance(config, LlamaConfig) else LlamaConfig.of(Config(config))
        return initialize(cls(made), seed)

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Llama:
        """The model in a Hugging Face folder, its weights mapped into memory, in eval mode.

        Raises:
            HubError, SafetensorsError, FileNotFoundError: the folder is not whole.
        """
        return load(cls(LlamaConfig.of(read_config(folder))), folder).eval()

    @property
    def context(self) -> int:
        """Tokens of the longest text."""
        return self.config.max_position_embeddings

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return self.config.vocab_size

    def cache(self, capacity: int) -> Cache:
        """An empty cache for so many tokens."""
        c = self.config
        return Cache(c.num_hidden_layers, c.num_key_value_heads, c.head_dim, capacity)

    def forward(self, tokens: Tensor) -> Tensor:
        """The scores of each next token (batch, t, vocabulary), for tokens (batch, t)."""
        return self.scores(self.hidden(tokens))

    def hidden(self, tokens: Tensor, attending: Attending = ALONE) -> Tensor:
        """The stream behind the last norm (batch, t, hidden)."""
        angles = self._angles(tokens.shape[1], attending)
        x = self.model.embed_tokens(tokens).float()
        for layer in self.model.layers:
            x = layer(x, angles, attending)
        y: Tensor = self.model.norm(x)
        return y

    def scores(self, hidden: Tensor) -> Tensor:
        """The scores of each next token (…, vocabulary) of the stream (…, hidden)."""
        y: Tensor = self.lm_head(hidden)
        return y

    def _angles(self, length: int, attending: Attending) -> tuple[Tensor, Tensor]:
        """Cosines and sines (t, width/2) of the positions of the tokens."""
        need = attending.reach(length)
        if self._tables is None or self._tables[0].shape[0] < need:
            cosines, sines = self.config.rotary.tables(need, self.config.head_dim)
            self._tables = Tensor(cosines), Tensor(sines)
        cosine, sine = (attending.rows(table, length) for table in self._tables)
        return cosine, sine
