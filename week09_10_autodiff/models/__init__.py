"""Language models and encoders, and which of them a folder holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from week09_10_autodiff.hub import HubError, read_config
from week09_10_autodiff.models import bert, gpt2, llama
from week09_10_autodiff.models.attention import ALONE, Attending, Cache
from week09_10_autodiff.models.bert import Bert
from week09_10_autodiff.models.gpt2 import GPT2
from week09_10_autodiff.models.llama import Llama
from week09_10_autodiff.tensor import Tensor

__all__ = [
    "ENCODERS",
    "GPT2",
    "LANGUAGE_MODELS",
    "Bert",
    "LanguageModel",
    "Llama",
    "class_of",
    "load_encoder",
    "load_language_model",
]


class LanguageModel(Protocol):
    """A module that gives each token's successor scores."""

    training: bool

    def train(self, mode: bool = True) -> object:
        """Set whether elements are dropped."""

    @property
    def context(self) -> int:
        """Tokens of the longest text."""

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""

    def cache(self, capacity: int) -> Cache:
        """An empty cache for so many tokens."""

    def hidden(self, tokens: Tensor, attending: Attending = ALONE) -> Tensor:
        """The stream (batch, t, width) of tokens (batch, t), behind the last norm."""

    def scores(self, hidden: Tensor) -> Tensor:
        """The scores of all tokens (…, vocabulary), by the stream (…, width)."""


LANGUAGE_MODELS: Mapping[str, Any] = MappingProxyType(
    {**dict.fromkeys(gpt2.TYPES, GPT2), **dict.fromkeys(llama.TYPES, Llama)}
)
"""Classes by the `model_type` of a config.json."""

ENCODERS: Mapping[str, Any] = MappingProxyType(dict.fromkeys(bert.TYPES, Bert))
"""Classes by the `model_type` of a config.json."""


def load_language_model(folder: str | os.PathLike[str]) -> LanguageModel:
    """The language model in a Hugging Face folder.

    Raises:
        HubError, SafetensorsError, FileNotFoundError: the folder is not whole, or holds another
            kind of model.
    """
    model: LanguageModel = class_of(folder, LANGUAGE_MODELS).from_folder(folder)
    return model


def load_encoder(folder: str | os.PathLike[str]) -> Bert:
    """The encoder in a Hugging Face folder.

    Raises:
        HubError, SafetensorsError, FileNotFoundError: as `load_language_model`.
    """
    model: Bert = class_of(folder, ENCODERS).from_folder(folder)
    return model


def class_of(folder: str | os.PathLike[str], known: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The class, of some, whose model a folder holds.

    Raises:
        HubError: it holds none of them, or one whose weights are quantized.
    """
    config = read_config(folder)
    name = config.choice("model_type", tuple(known))
    if config.get("quantization_config") is not None:
        said = "no quantization_config: weights are float32, float16 or bfloat16"
        raise HubError(f"{config.source}: expected {said}")
    return known[name]
