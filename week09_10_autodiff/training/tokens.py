"""A corpus as tokens: byte-level BPE (Sennrich et al., 2016), in files that are memory-mapped.

Trained tokenizers and token files are kept in the user's cache under a hash of what they follow
from, and are moved into place when they are whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from week02_render.cache import cache_directory, content_key
from week09_10_autodiff.atomic import atomic_folder
from week09_10_autodiff.training.corpus import Corpus
from week09_10_autodiff.training.optional import library
from week09_10_autodiff.training.settings import ConfigError

END = "<|endoftext|>"
"""The token between documents; number 0."""

VERSION = "1"
"""Part of the names in the cache; changes when what is stored does."""

FILES = ("training.npy", "validation.npy")

Tokens = NDArray[np.uint16] | NDArray[np.uint32]


@dataclass(frozen=True)
class TokenData:
    """The tokens of a corpus.

    Attributes:
        tokenizer: the text of tokenizer.json.
        training, validation: tokens in a row, an END after each document.
    """

    tokenizer: str
    training: Tokens
    validation: Tokens

    def save(self, folder: Path) -> None:
        """Write the tokens to `FILES`."""
        for name, tokens in zip(FILES, (self.training, self.validation), strict=True):
            np.save(folder / name, tokens)


def tokenizer_of(text: str) -> Any:  # noqa: ANN401 - tokenizers.Tokenizer, which has no types
    """The tokenizer in the text of a tokenizer.json."""
    return library("tokenizers", "text and tokens", "models").Tokenizer.from_str(text)


def trained_tokenizer(corpus: Corpus, vocabulary: int) -> str:
    """A tokenizer.json of so many tokens, trained on the corpus's training texts.

    Raises:
        ConfigError: the texts do not give so many.
        MissingLibraryError: the package tokenizers is not installed.
    """
    tokenizers = library("tokenizers", "training a tokenizer", "models")
    key = content_key(VERSION, tokenizers.__version__, str(vocabulary), corpus.key)
    path = _cached("tokenizers", key) / "tokenizer.json"
    if path.exists():
        return path.read_text(encoding="utf-8")
    text = _train(tokenizers, corpus.training, vocabulary)
    _store(path.parent, lambda folder: _write_text(folder / path.name, text))
    return text


def _train(tokenizers: Any, texts: Sequence[str], vocabulary: int) -> str:  # noqa: ANN401
    """Byte-level BPE as GPT-2's: no text is unknown, and spaces belong to the next word."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = byte_level(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=sorted(byte_level.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    if made.get_vocab_size() != vocabulary:
        got = f"{made.get_vocab_size()} different ones in the corpus"
        raise ConfigError(f"[data] vocabulary: expected {vocabulary} tokens, got {got}")
    return str(made.to_str())


def tokenized(corpus: Corpus, tokenizer: str) -> TokenData:
    """The corpus in tokens, from the cache if they are there."""
    tool = tokenizer_of(tokenizer)
    dtype = np.uint16 if tool.get_vocab_size() <= 1 << 16 else np.uint32
    folder = _cached("tokens", content_key(VERSION, tokenizer, corpus.key))
    if not folder.exists():
        training = _encoded(tool, corpus.training, dtype)
        made = TokenData(tokenizer, training, _encoded(tool, corpus.validation, dtype))
        if not _store(folder, made.save):
            return made
    return TokenData(tokenizer, *(np.load(folder / name, mmap_mode="r") for name in FILES))


def _encoded(tool: Any, texts: Sequence[str], dtype: type) -> Tokens:  # noqa: ANN401
    """The tokens of each document and an END, in a row."""
    end = tool.token_to_id(END)
    if end is None:
        raise ConfigError(f"expected a tokenizer with the token {END}")
    parts = [[*encoding.ids, end] for encoding in tool.encode_batch_fast(list(texts))]
    joined: Tokens = np.concatenate([np.array(part, dtype) for part in parts])
    return joined


def _cached(kind: str, key: str) -> Path:
    return cache_directory() / kind / key[:32]


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _store(folder: Path, write: Callable[[Path], None]) -> bool:
    """Let `write` fill a folder, then move it into place; false where nothing can be written.

    If another process was first, its folder stays: it holds the same.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), atomic_folder(folder) as made:
            write(made)
    except OSError:
        return False
    return True
