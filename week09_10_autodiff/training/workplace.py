"""The folder of a run.

run/config.toml      what was asked for
    log.jsonl        what happened
    tokenizer.json
    checkpoints/     the newest states
    model/           as a Hugging Face folder: config.json, model.safetensors, tokenizer.json
    loss.png, .svg   the picture
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from week09_10_autodiff import checkpoints
from week09_10_autodiff.atomic import atomic_file
from week09_10_autodiff.checkpoints import Checkpoint
from week09_10_autodiff.training.config import Config, load, to_toml
from week09_10_autodiff.training.corpus import read_corpus
from week09_10_autodiff.training.settings import ConfigError
from week09_10_autodiff.training.tokens import TokenData, tokenized, trained_tokenizer

CONFIG, LOG = "config.toml", "log.jsonl"


@dataclass(frozen=True)
class Workplace:
    """A folder and the configuration of the run in it."""

    folder: Path
    config: Config

    @classmethod
    def begin(cls, config: Config) -> Workplace:
        """A new run's folder, that of its configuration.

        Raises:
            ConfigError: a run began in it.
        """
        folder = Path(config.run.folder)
        if (folder / LOG).exists():
            raise ConfigError(
                f"expected a folder without a run, got {folder}; go on with "
                f"`uopc train --resume {folder}`, or choose another one with --out"
            )
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / CONFIG, to_toml(config))
        return cls(folder, config)

    @classmethod
    def again(cls, folder: Path, steps: int | None = None) -> Workplace:
        """The folder of a run that is to go on, perhaps to another number of steps.

        Raises:
            ConfigError: there is no run in it, or its configuration is wrong.
        """
        if not (folder / CONFIG).is_file():
            raise ConfigError(f"expected the folder of a run, with a {CONFIG}, got {folder}")
        config = load(folder / CONFIG)
        if steps is not None:
            config = replace(config, run=replace(config.run, steps=steps))
            _write(folder / CONFIG, to_toml(config))
        return cls(folder, config)

    @property
    def log(self) -> Path:
        """The file of the log."""
        return self.folder / LOG

    @property
    def model(self) -> Path:
        """The folder of the model."""
        return self.folder / "model"

    @property
    def picture(self) -> Path:
        """The picture's name without its ending."""
        return self.folder / "loss"

    @property
    def tokenizer(self) -> str:
        """The text of the run's tokenizer.json, once there are data."""
        return (self.folder / "tokenizer.json").read_text(encoding="utf-8")

    @property
    def _key(self) -> Path:
        return self.folder / "corpus.sha256"

    def data(self) -> TokenData:
        """The corpus in tokens, by the run's own tokenizer if there is one.

        Raises:
            ConfigError: the corpus is not there, or not the one that the run began with.
        """
        corpus, path = read_corpus(self.config.data), self.folder / "tokenizer.json"
        if not path.exists():
            tokenizer = trained_tokenizer(corpus, self.config.data.vocabulary)
            _write(self._key, corpus.key + "\n")
            _write(path, tokenizer)
        if self._key.read_text(encoding="utf-8").strip() != corpus.key:
            raise ConfigError(
                f"expected the corpus that the run in {self.folder} began with, "
                f"but {self.config.data.corpus} has changed since"
            )
        return tokenized(corpus, self.tokenizer)

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint."""
        checkpoints.save(self.folder / "checkpoints", step, state)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint; None if there is none yet.

        Raises:
            CheckpointError: none of those that there are can be read.
        """
        folder = self.folder / "checkpoints"
        return checkpoints.load(folder) if checkpoints.steps(folder) else None


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write_text(text, encoding="utf-8")
