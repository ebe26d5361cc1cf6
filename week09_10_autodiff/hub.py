"""Folders as Hugging Face publishes models: config.json, weights, tokenizer.json.

A folder holds

    config.json              the architecture and its sizes
    generation_config.json   at which tokens a text ends (optional)
    model.safetensors        the weights, or shards that model.safetensors.index.json names
    tokenizer.json           what `tokenizing` reads
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"


class HubError(ValueError):
    """A folder lacks something, or says something, that a model cannot be made of."""


class Config(Mapping[str, Any]):
    """A JSON object of settings whose values are checked as they are read.

    Attributes:
        source: where it comes from, for errors.
    """

    def __init__(self, values: Mapping[str, Any], source: str = "the config") -> None:
        self._values = dict(values)
        self.source = source

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - any JSON
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number ≥ 1; null counts as absent.

        Raises:
            HubError: it is absent and there is no default, or it is something else.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fault(key, "a whole number ≥ 1", value)
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A number; null counts as absent."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(key, "a number", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false; null counts as absent."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.fault(key, "true or false", value)
        return value

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of some words; null counts as absent."""
        value = self._value(key, default)
        if value not in known:
            raise self.fault(key, f"one of {', '.join(known)}", value)
        return str(value)

    def section(self, key: str) -> Config | None:
        """A JSON object within this one; None if it is absent or null."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.fault(key, "an object", value)
        return Config(value, f"{self.source}: {key}")

    def _value(self, key: str, default: Any) -> Any:  # noqa: ANN401 - any JSON
        value = self.get(key)
        if value is None and default is None:
            raise HubError(f"{self.source}: expected a value for {key!r}, found none")
        return default if value is None else value

    def fault(self, key: str, wanted: str, value: object) -> HubError:
        """The error of a value that is not what it has to be."""
        return HubError(f"{self.source}: expected {wanted} for {key!r}, got {json.dumps(value)}")


def read_config(folder: str | os.PathLike[str], name: str = CONFIG) -> Config:
    """The settings in a folder's config.json, or in another JSON file of it.

    Raises:
        HubError: there is no such folder or file, or it holds no JSON object.
    """
    path = Path(folder) / name
    if not path.parent.is_dir():
        raise HubError(f"expected a folder with a model, found none at {path.parent}")
    if not path.is_file():
        raise HubError(f"expected {name} in {path.parent}, found none")
    return _parsed(path)


def _parsed(path: Path) -> Config:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HubError(f"{path}: expected JSON, but {error}") from error
    if not isinstance(values, dict):
        raise HubError(f"{path}: expected a JSON object")
    return Config(values, str(path))


def optional_config(folder: str | os.PathLike[str], name: str) -> Config:
    """The settings in a file that need not be there; none if it is not."""
    path = Path(folder) / name
    return _parsed(path) if path.is_file() else Config({}, str(path))


def end_tokens(folder: str | os.PathLike[str]) -> frozenset[int]:
    """The tokens that end a text: `eos_token_id` of generation_config.json, else of config.json.

    Raises:
        HubError: it is no token and no list of tokens.
    """
    for name in (GENERATION_CONFIG, CONFIG):
        config = optional_config(folder, name)
        value = config.get("eos_token_id")
        if value is not None:
            tokens = value if isinstance(value, list) else [value]
            if any(isinstance(t, bool) or not isinstance(t, int) for t in tokens):
                raise config.fault("eos_token_id", "a token's number, or a list of such", value)
            return frozenset(tokens)
    return frozenset()
