"""BERT encoders (Devlin et al., 2019), such as the sentence encoders called MiniLM.

    h = LayerNorm(E[token] + P[position] + T[type])
    h = LayerNorm(h + Attention(h));   h = LayerNorm(h + gelu(h·F + f)·D + d)

Norms stand behind the sums. Every token looks at all tokens of its text. `embed` is what the
sentence-transformers library computes, mostly the mean over a text's tokens (Reimers and
Gurevych, "Sentence-BERT", 2019). Parameters have the names that they have in Hugging Face's
folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from week09_10_autodiff import nn
from week09_10_autodiff.hub import Config, HubError, read_config
from week09_10_autodiff.models.loading import initialize, load
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.tensor import Tensor

TYPES = ("bert",)
"""Values of `model_type` that this file is for."""

MEAN, FIRST = "mean", "cls"
"""How one vector comes of those of all tokens."""


@dataclass(frozen=True)
class BertConfig:
    """Sizes.

    Attributes:
        vocab_size: how many tokens there are.
        hidden_size: the width of the stream between the layers.
        num_hidden_layers: how many layers there are.
        num_attention_heads: how many heads each has.
        intermediate_size: the width within the feed-forward part.
        max_position_embeddings: the longest text.
        type_vocab_size: how many types of tokens there are: which text of a pair they are of.
        layer_norm_eps: what is added to a variance before its root is taken.
    """

    vocab_size: int = 30522
    hidden_size: int = 384
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 1536
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            width, heads = self.hidden_size, self.num_attention_heads
            raise ValueError(f"expected heads that divide {width}, got {heads}")

    @classmethod
    def of(cls, config: Config) -> BertConfig:
        """What a config.json says.

        Raises:
            HubError: a value is missing or wrong, or asks for what is not built here.
        """
        config.choice("model_type", TYPES, TYPES[0])
        config.choice("hidden_act", ("gelu",), "gelu")
        config.choice("position_embedding_type", ("absolute",), "absolute")
        width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
        if width % heads:
            raise HubError(f"{config.source}: expected heads that divide {width}, got {heads}")
        return cls(
            vocab_size=config.integer("vocab_size"),
            hidden_size=width,
            num_hidden_layers=config.integer("num_hidden_layers"),
            num_attention_heads=heads,
            intermediate_size=config.integer("intermediate_size"),
            max_position_embeddings=config.integer("max_position_embeddings", 512),
            type_vocab_size=config.integer("type_vocab_size", 2),
            layer_norm_eps=config.real("layer_norm_eps", 1e-12),
        )


class Embeddings(nn.Module):
    """Tokens, positions and types as vectors."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, tokens: Tensor, types: Tensor | None) -> Tensor:
        """Vectors (batch, t, width) of tokens and types (batch, t); without types, all are 0."""
        table = self.token_type_embeddings
        x = (
            self.word_embeddings(tokens).float()
            + self.position_embeddings.weight[: tokens.shape[1]]
        )
        y: Tensor = self.LayerNorm(x + (table.weight[0] if types is None else table(types)))
        return y


class SelfAttention(nn.Module):
    """Attention of heads to all tokens that a mask names."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map x (batch, t, width) to the same shape; the mask is (batch, 1, 1, t)."""
        batch, length, width = x.shape
        q, k, v = (
            linear(x).reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v, mask)
        return y.transpose(1, 2).reshape(batch, length, width)


class Added(nn.Module):
    """A linear map of one part, added to the stream and normed."""

    def __init__(self, config: BertConfig, inside: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inside, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, part: Tensor, stream: Tensor) -> Tensor:
        """LayerNorm(stream + part·W + b)."""
        y: Tensor = self.LayerNorm(self.dense(part) + stream)
        return y


class Attention(nn.Module):
    """Attention with what it is added to."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Added(config, config.hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map x (batch, t, width) to the same shape."""
        y: Tensor = self.output(self.self(x, mask), x)
        return y


class Intermediate(nn.Module):
    """The first half of the feed-forward part, gelu(x·F + f)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) → (…, inner)."""
        return F.gelu(self.dense(x))


class Layer(nn.Module):
    """Attention, then the feed-forward part."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Added(config, config.intermediate_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map x (batch, t, width) to the same shape."""
        x = self.attention(x, mask)
        y: Tensor = self.output(self.intermediate(x), x)
        return y


class Encoder(nn.Module):
    """The layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """An encoder, a `BertModel` without the pooler and without dropout.

    Attributes:
        config: its sizes.
    """

    PREFIX = "bert."
    """What names begin with in folders of models that do more."""
    IGNORED = (r"pooler\..*", r"embeddings\.position_ids", r"cls\..*")
    """Names of tensors that no sentence vector needs."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)

    @classmethod
    def from_config(cls, config: BertConfig | Mapping[str, Any], *, seed: int = 0) -> Bert:
        """A model with random weights, normal with a standard deviation of 0.02."""
        made = config if isinstance(config, BertConfig) else BertConfig.of(Config(config))
        return initialize(cls(made), seed)

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Bert:
        """The model in a Hugging Face folder, its weights mapped into memory, in eval mode.

        Raises:
            HubError, SafetensorsError, FileNotFoundError: the folder is not whole.
        """
        return load(cls(BertConfig.of(read_config(folder))), folder).eval()

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, types: Tensor | None = None
    ) -> Tensor:
        """The stream behind the last layer (batch, t, width).

        Args:
            tokens: (batch, t).
            mask: bool (batch, t), true for tokens and false for padding; None: all are tokens.
            types: (batch, t), which text of a pair each is of; None: all of the first.
        """
        x: Tensor = self.embeddings(tokens, types)
        seen = None if mask is None else mask.reshape(mask.shape[0], 1, 1, mask.shape[1])
        for layer in self.encoder.layer:
            x = layer(x, seen)
        return x

    def embed(
        self,
        tokens: Tensor,
        mask: Tensor,
        types: Tensor | None = None,
        *,
        pooling: str = MEAN,
        normalize: bool = True,
    ) -> Tensor:
        """A vector (batch, width) for each text: the mean over its tokens, or the first's.

        It is divided by its length if `normalize`.
        """
        x: Tensor = self(tokens, mask, types)
        weights = mask.unsqueeze(-1).float()
        mean = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        found = x[:, 0] if pooling == FIRST else mean
        if not normalize:
            return found
        return found / (found * found).sum(-1, keepdim=True).sqrt().clamp(min=1e-12)
