"""Text to tokens and back, by the tokenizer.json of a folder and the tokenizers library."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from week09_10_autodiff.hub import HubError

FILE = "tokenizer.json"
UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What bytes that are no whole character decode to."""


def _library(path: Path) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module("tokenizers")
    except ImportError:
        said = f"expected the package tokenizers, to read {path}; it is not installed"
        raise HubError(f"{said}: pip install -e '.[models]'") from None


@dataclass(frozen=True)
class Encoded:
    """A text as a model takes it.

    Attributes:
        ids: its tokens, those that the tokenizer puts around every text included.
        types: of each token, which text of a pair it belongs to.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]


class Tokenizer:
    """Tokens of texts, and texts of tokens."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - tokenizers.Tokenizer, without types
        self._inner = inner
        inner.no_padding()
        inner.no_truncation()

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer of a folder.

        Raises:
            HubError: there is none, it cannot be read, or the library is not installed.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise HubError(f"expected {FILE} in {path.parent}, found none")
        library = _library(path)
        try:
            return cls(library.Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises nothing more special
            raise HubError(f"{path}: expected a tokenizer, but {error}") from error

    def truncate(self, most: int) -> Tokenizer:
        """From now on, cut texts off so that none has more tokens."""
        self._inner.enable_truncation(most)
        return self

    def encode(self, text: str) -> Encoded:
        """The tokens of a text."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Encoded]:
        """The tokens of each text."""
        found = self._inner.encode_batch(list(texts))
        return [Encoded(tuple(e.ids), tuple(e.type_ids)) for e in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; special ones have none."""
        return str(self._inner.decode(list(ids), skip_special_tokens=True))


class TextStream:
    """Text that grows token by token and never shows a part of a character.

        pieces = [stream.put(token) for token in tokens] + [stream.end()]
        "".join(pieces) == tokenizer.decode(tokens)

    A tokenizer may write a token in another way at the beginning of a text than within it, so each
    token is decoded together with those of the piece before it, of which the text is cut off.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._window: list[int] = []
        self._shown = 0

    def put(self, token: int) -> str:
        """The text that is complete now and was not before; "" within a character."""
        before = self._tokenizer.decode(self._window[: self._shown])
        self._window.append(token)
        text = self._tokenizer.decode(self._window)
        if text.endswith(UNFINISHED) or len(text) <= len(before):
            return ""
        del self._window[: self._shown]
        self._shown = len(self._window)
        return text[len(before) :]

    def end(self) -> str:
        """What is left, a part of a character included."""
        before = self._tokenizer.decode(self._window[: self._shown])
        text = self._tokenizer.decode(self._window)
        self._window, self._shown = [], 0
        return text[len(before) :]
