"""GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).

    h = E[token] + P[position]
    h = h + Attention(LayerNorm(h));   h = h + gelu(LayerNorm(h)·F)·D;   logits = LayerNorm(h)·Eᵀ

Positions are learned, norms stand before what they feed, and the table of embeddings is the last
linear map as well. Parameters have the names that they have in Hugging Face's folders, where the
weights of linear maps are (in, out).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from week09_10_autodiff import nn
from week09_10_autodiff.hub import Config, HubError, read_config
from week09_10_autodiff.models.attention import ALONE, Attending, Cache
from week09_10_autodiff.models.loading import DEVIATION, initialize, load
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.tensor import Tensor

TYPES = ("gpt2",)
"""Values of `model_type` that this file is for."""

GELUS = ("gelu_new", "gelu_pytorch_tanh", "gelu")
"""Names of activations; the first two are one."""


@dataclass(frozen=True)
class GPT2Config:
    """Sizes and choices.

    Attributes:
        vocab_size: how many tokens there are.
        n_positions: the longest text.
        n_embd: the width of the stream between the layers.
        n_layer: how many layers there are.
        n_head: how many heads each has.
        n_inner: the width within the feed-forward part.
        layer_norm_epsilon: what is added to a variance before its root is taken.
        activation_function: one of `GELUS`.
        tie_word_embeddings: the table of embeddings is the last linear map as well.
        embd_pdrop, attn_pdrop, resid_pdrop: how likely in training an element is dropped of the
            embeddings, of the weights of attention, and of what is added to the stream.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5
    activation_function: str = GELUS[0]
    tie_word_embeddings: bool = True
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    resid_pdrop: float = 0.0

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"expected heads that divide {self.n_embd}, got {self.n_head}")
        if self.activation_function not in GELUS:
            wanted = ", ".join(GELUS)
            raise ValueError(f"expected one of {wanted}, got {self.activation_function!r}")

    @classmethod
    def of(cls, config: Config) -> GPT2Config:
        """What a config.json says.

        Raises:
            HubError: a value is missing or wrong, or asks for what is not built here.
        """
        config.choice("model_type", TYPES, TYPES[0])
        for key, usual in (
            ("scale_attn_weights", True),
            ("scale_attn_by_inverse_layer_idx", False),
        ):
            if config.flag(key, usual) is not usual:
                raise config.fault(key, str(usual).lower(), not usual)
        width, heads = config.integer("n_embd"), config.integer("n_head")
        if width % heads:
            raise HubError(f"{config.source}: expected heads that divide {width}, got {heads}")
        return cls(
            vocab_size=config.integer("vocab_size"),
            n_positions=config.integer("n_positions", 1024),
            n_embd=width,
            n_layer=config.integer("n_layer"),
            n_head=heads,
            n_inner=config.integer("n_inner", 4 * width),
            layer_norm_epsilon=config.real("layer_norm_epsilon", 1e-5),
            activation_function=config.choice("activation_function", GELUS, GELUS[0]),
            tie_word_embeddings=config.flag("tie_word_embeddings", True),
            embd_pdrop=config.real("embd_pdrop", 0.1),
            attn_pdrop=config.real("attn_pdrop", 0.1),
            resid_pdrop=config.real("resid_pdrop", 0.1),
        )


class Conv1D(nn.Module):
    """The affine map x·W + b, with W (in, out), as these folders keep it."""

    def __init__(self, inside: int, outside: int, deviation: float = DEVIATION) -> None:
        super().__init__()
        self.deviation = deviation
        self.weight = nn.Parameter(Tensor.zeros(inside, outside))
        self.bias = nn.Parameter(Tensor.zeros(outside))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (…, in) to (…, out)."""
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Attention of heads to all tokens so far."""

    def __init__(self, config: GPT2Config, layer: int) -> None:
        super().__init__()
        self.layer, self.heads, self.dropout = layer, config.n_head, config.attn_pdrop
        self.c_attn = Conv1D(config.n_embd, 3 * config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd, _before_sum(config))
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, attending: Attending) -> Tensor:
        """Map x (batch, t, width) to the same shape."""
        batch, length, width = x.shape
        split = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind()
        y = attending(self.layer, q, k, v, self.dropout if self.training else 0.0)
        y = self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        result: Tensor = self.resid_dropout(y)
        return result


class MLP(nn.Module):
    """The feed-forward part, gelu(x·F + f)·D + d."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.approximate = "none" if config.activation_function == "gelu" else "tanh"
        self.c_fc = Conv1D(config.n_embd, inner)
        self.c_proj = Conv1D(inner, config.n_embd, _before_sum(config))
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (…, width) to the same shape."""
        y = self.c_proj(F.gelu(self.c_fc(x), approximate=self.approximate))
        result: Tensor = self.dropout(y)
        return result


def _before_sum(config: GPT2Config) -> float:
    """0.02/√(2·layers): the deviation of what the stream is a sum of (section 2.3)."""
    return DEVIATION / math.sqrt(2 * config.n_layer)


class Block(nn.Module):
    """Attention, then the feed-forward part, each added to what came in."""

    def __init__(self, config: GPT2Config, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = Attention(config, layer)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, attending: Attending) -> Tensor:
        """Map x (batch, t, width) to the same shape."""
        x = x + self.attn(self.ln_1(x), attending)
        y: Tensor = x + self.mlp(self.ln_2(x))
        return y


class Stack(nn.Module):
    """Embeddings of tokens and positions, blocks and the last norm."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)


class GPT2(nn.Module):
    """A language model, a `GPT2LMHeadModel`.

    Attributes:
        config: its sizes and choices.
    """

    PREFIX = "transformer."
    """What the names in older folders lack."""
    IGNORED = (r".*\.attn\.(masked_)?bias",)
    """Names of tensors that are computed here."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.config = config
        self.transformer = Stack(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.transformer.wte.weight

    @classmethod
    def from_config(cls, config: GPT2Config | Mapping[str, Any], *, seed: int = 0) -> GPT2:
        """A model with random weights, as section 2.3 has them."""
        made = config if isinstance(config, GPT2Config) else GPT2Config.of(Config(config))
        return initialize(cls(made), seed)

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> GPT2:
        """The model in a Hugging Face folder, its weights mapped into memory, in eval mode.

        Raises:
            HubError, SafetensorsError, FileNotFoundError: the folder is not whole.
        """
        return load(cls(GPT2Config.of(read_config(folder))), folder).eval()

    @property
    def context(self) -> int:
        """Tokens of the longest text."""
        return self.config.n_positions

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return self.config.vocab_size

    def cache(self, capacity: int) -> Cache:
        """An empty cache for so many tokens."""
        c = self.config
        return Cache(c.n_layer, c.n_head, c.n_embd // c.n_head, capacity)

    def forward(self, tokens: Tensor) -> Tensor:
        """The scores of each next token (batch, t, vocabulary), for tokens (batch, t)."""
        return self.scores(self.hidden(tokens))

    def hidden(self, tokens: Tensor, attending: Attending = ALONE) -> Tensor:
        """The stream behind the last norm (batch, t, width)."""
        positions = attending.rows(self.transformer.wpe.weight, tokens.shape[1])
        x = self.transformer.drop(self.transformer.wte(tokens).float() + positions)
        for block in self.transformer.h:
            x = block(x, attending)
        y: Tensor = self.transformer.ln_f(x)
        return y

    def scores(self, hidden: Tensor) -> Tensor:
        """The scores of each next token (…, vocabulary) of the stream (…, width)."""
        y: Tensor = self.lm_head(hidden)
        return y
