"""Texts to train on: the standard library's own source, a folder, or a file.

A corpus is a list of documents in a fixed order, each for training or for validation. Which of
the two is decided by a hash of the document, so that it stays where it is when others are added.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from week09_10_autodiff.training.config import STDLIB, DataConfig
from week09_10_autodiff.training.settings import ConfigError

LEFT_OUT = frozenset(
    ("test", "tests", "idle_test", "idlelib", "turtledemo", "site-packages", "dist-packages")
)
"""Folders of the standard library that are no library."""


@dataclass(frozen=True)
class Corpus:
    """The texts for training and for validation."""

    training: tuple[str, ...]
    validation: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """A hash of all that is in it."""
        state = hashlib.sha256()
        for part in (self.training, self.validation):
            state.update(len(part).to_bytes(8, "little"))
            for text in part:
                data = text.encode()
                state.update(len(data).to_bytes(8, "little") + data)
        return state.hexdigest()


def read_corpus(config: DataConfig) -> Corpus:
    """The corpus that a configuration names.

    Raises:
        ConfigError: there is no such file or folder, or too little text in it.
    """
    if config.corpus == STDLIB:
        root = Path(sysconfig.get_paths()["stdlib"])
        return split(_texts(_files(root, LEFT_OUT, ".py")), config.validation)
    path = Path(config.corpus)
    if path.is_dir():
        return split(_texts(_files(path, frozenset(), "")), config.validation, str(path))
    if not path.is_file():
        raise ConfigError(f'[data] corpus: expected "{STDLIB}", a file or a folder, got {path}')
    return split(_texts([path]), config.validation, str(path))


def _files(root: Path, left_out: frozenset[str], suffix: str) -> Iterator[Path]:
    """Files below a folder in the order of their names; hidden ones and caches are left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in left_out and _is_shown(f))
        yield from (Path(folder, n) for n in sorted(names) if n.endswith(suffix) and _is_shown(n))


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def _texts(files: Iterator[Path] | list[Path]) -> list[str]:
    """What the files hold, but for those that hold no text in UTF-8 or nothing at all."""
    found = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (UnicodeDecodeError, PermissionError):
            continue
        if text.strip() and "\0" not in text:
            found.append(text)
    return found


def split(texts: list[str], part: float, name: str = STDLIB) -> Corpus:
    """Documents whose hash is below `part` are for validation; of a single one, its end.

    Raises:
        ConfigError: there is no text.
    """
    if not texts:
        raise ConfigError(f"[data] corpus: expected text in UTF-8, got none in {name}")
    if len(texts) == 1:
        cut = round(len(texts[0]) * (1 - part))
        return Corpus((texts[0][:cut],), (texts[0][cut:],))
    places = [_place(text) for text in texts]
    bound = max(part, min(places))
    held = tuple(t for t, p in zip(texts, places, strict=True) if p <= bound)
    return Corpus(tuple(t for t, p in zip(texts, places, strict=True) if p > bound), held)


def _place(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
