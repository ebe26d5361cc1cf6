"""Texts as vectors, by an encoder in a Hugging Face folder.

    vectors = Embedder.from_folder("all-MiniLM-L6-v2").embed(["a cat", "a dog"])     # (2, 384)

What folders of the sentence-transformers library say of pooling, of normalization and of the
longest text is followed. Texts are sorted by length, so that those of a batch need little padding,
and sizes of batches are rounded up to few, so that few programs are compiled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from week09_10_autodiff.context import no_grad
from week09_10_autodiff.hub import HubError, optional_config
from week09_10_autodiff.jit import jit
from week09_10_autodiff.models import ENCODERS, class_of
from week09_10_autodiff.models.bert import FIRST, MEAN, Bert
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.tokenizing import Encoded, Tokenizer

BATCH = 32
"""Texts that are computed together."""

STEP = 16
"""Lengths are rounded up to multiples of it."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Pooling:
    """How one vector comes of those of all tokens.

    Attributes:
        mode: `mean` of all tokens, or `cls`, the first.
        normalize: vectors are divided by their lengths.
        longest: tokens that a text is cut off to; None: as many as the model has positions.
    """

    mode: str = MEAN
    normalize: bool = True
    longest: int | None = None

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Pooling:
        """What a folder says; without a word on it, means of length 1.

        Raises:
            HubError: of a pooling that is not built here.
        """
        pooling = optional_config(folder, "1_Pooling/config.json")
        modes = [key for key, chosen in pooling.items() if key in _MODES and chosen]
        modes += [
            key for key in pooling if key.startswith("pooling_mode_") and pooling[key] is True
        ]
        unknown = [key for key in modes if key not in _MODES]
        if unknown or len(set(modes)) > 1:
            wanted = f"one of {', '.join(_MODES)}"
            raise HubError(
                f"{pooling.source}: expected {wanted}, got {', '.join(sorted(set(modes)))}"
            )
        longest = optional_config(folder, "sentence_bert_config.json").get("max_seq_length")
        mode = _MODES[modes[0]] if modes else MEAN
        return cls(mode, _normalizes(Path(folder)), longest)


_MODES = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": FIRST}


def _normalizes(folder: Path) -> bool:
    """Whether modules.json lists a module that normalizes; true if there is no such file."""
    path = folder / "modules.json"
    if not path.is_file():
        return True
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        return any(str(module["type"]).endswith("Normalize") for module in modules)
    except (ValueError, TypeError, KeyError) as error:
        raise HubError(f"{path}: expected a list of modules with their types") from error


class Embedder:
    """An encoder and its tokenizer."""

    def __init__(self, model: Bert, tokenizer: Tokenizer, pooling: Pooling | None = None) -> None:
        self.model = model
        self.pooling = pooling or Pooling()
        most = model.config.max_position_embeddings
        self._tokenizer = tokenizer.truncate(min(self.pooling.longest or most, most))
        self._embed = jit(self._vectors)

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Embedder:
        """The encoder of a Hugging Face folder.

        Raises:
            HubError, SafetensorsError, FileNotFoundError: the folder is not whole, or holds
                another kind of model.
        """
        kind = class_of(folder, ENCODERS)
        tokenizer = Tokenizer.from_folder(folder)
        model: Bert = kind.from_folder(folder)
        return cls(model, tokenizer, Pooling.of(folder))

    @property
    def width(self) -> int:
        """The length of the vectors."""
        return self.model.config.hidden_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector (width) for each text.

        Raises:
            HubError: the tokenizer knows tokens that the model does not.
        """
        encoded = self._tokenizer.encode_all(texts)
        largest = max((max(text.ids, default=0) for text in encoded), default=0)
        if largest >= self.model.config.vocab_size:
            wanted = f"tokens in [0, {self.model.config.vocab_size}), the model's"
            raise HubError(f"expected {wanted}, got {largest}: is the tokenizer another model's?")
        found = np.empty((len(texts), self.width), np.float32)
        for chosen in _batches([len(text.ids) for text in encoded]):
            found[chosen] = self._of_batch([encoded[k] for k in chosen])
        return found

    def _of_batch(self, texts: Sequence[Encoded]) -> Vectors:
        rows = BATCH if len(texts) == BATCH else 1 << (len(texts) - 1).bit_length()
        longest = max(len(text.ids) for text in texts)
        most = self.model.config.max_position_embeddings
        length = min(-(-longest // STEP) * STEP, most)
        tokens, types = np.zeros((2, rows, length), np.int64)
        mask = np.zeros((rows, length), np.bool_)
        mask[len(texts) :, 0] = True  # a row of padding alone would be the mean of nothing
        for row, text in enumerate(texts):
            tokens[row, : len(text.ids)] = text.ids
            types[row, : len(text.ids)] = text.types
            mask[row, : len(text.ids)] = True
        with no_grad():
            vectors = self._embed(Tensor(tokens), Tensor(mask), Tensor(types))
            return np.asarray(vectors.numpy())[: len(texts)]

    def _vectors(self, tokens: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        how = self.pooling
        return self.model.embed(tokens, mask, types, pooling=how.mode, normalize=how.normalize)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts go together: shortest first, and in the order of the texts among equals."""
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    return (order[k : k + BATCH] for k in range(0, len(order), BATCH))
