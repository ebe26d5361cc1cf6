"""What is trained, on what, how and for how long: the TOML file of `uopc train`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from week09_10_autodiff.training.settings import (
    ConfigError,
    expect_known,
    read_table,
    setting,
    table_lines,
)

STDLIB = "stdlib"
"""The corpus that every machine has."""

MEASURED = 10
"""Steps that are timed before `minutes` becomes a number of steps."""


@dataclass(frozen=True)
class ModelConfig:
    """The language model; its vocabulary is that of the data."""

    kind: str = setting("llama", "gpt or llama", choices=("gpt", "llama"))
    layers: int = setting(4, "blocks of attention and feed-forward layer", least=1)
    width: int = setting(256, "features of a token", least=1)
    heads: int = setting(8, "of attention; they divide the width", least=1)
    groups: int = setting(0, "heads of keys and values (llama); 0: as many as heads", least=0)
    hidden: int = setting(
        0, "of the feed-forward layer; 0: 4·width (gpt), about 8/3·width", least=0
    )
    context: int = setting(256, "tokens that the model sees", least=1)
    dropout: float = setting(0.0, "probability of a zero (gpt)", least=0, below=1)
    dtype: str = setting(
        "float32",
        "of matrices in products; the optimizer has them in float32",
        choices=("float32", "bfloat16"),
    )

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.groups or self.heads

    @property
    def inner(self) -> int:
        """Features inside the feed-forward layer; those of llama are a multiple of 32."""
        usual = 4 * self.width if self.kind == "gpt" else -(-8 * self.width // 96) * 32
        return self.hidden or usual

    def check(self) -> None:
        """ConfigError where two settings do not fit together."""
        wide = self.width % self.heads == 0 and (self.width // self.heads) % 2 == 0
        if not (wide or (self.kind == "gpt" and self.width % self.heads == 0)):
            what = "heads of a whole even number of features" if self.kind == "llama" else "heads"
            raise ConfigError(
                f"[model] heads: expected {what} that divide the width {self.width}, "
                f"got {self.heads}"
            )
        if self.heads % self.key_heads:
            raise ConfigError(
                f"[model] groups: expected a divisor of the {self.heads} heads, got {self.groups}"
            )
        if self.kind == "gpt" and self.key_heads != self.heads:
            raise ConfigError("[model] groups: expected 0 for a gpt; grouped heads are llama's")
        if self.kind == "llama" and self.dropout:
            raise ConfigError(f"[model] dropout: expected 0 for a llama, got {self.dropout}")


@dataclass(frozen=True)
class DataConfig:
    """The text, and the tokens that it is cut into."""

    corpus: str = setting(STDLIB, "the Python library's own source, or a file, or a folder")
    vocabulary: int = setting(4096, "tokens of the byte-level BPE", least=257, most=1 << 20)
    validation: float = setting(0.05, "part of the text that is not trained on", above=0, below=1)


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW, its learning rate over time, and clipping.

    Of step k the rate is lr·k/warmup first; then it falls along half a cosine to lr·final.
    """

    lr: float = setting(1e-3, "learning rate at its largest", above=0)
    betas: tuple[float, ...] = setting((0.9, 0.95), "of AdamW's two averages", least=0, below=1)
    eps: float = setting(1e-8, "added to AdamW's root", above=0)
    weight_decay: float = setting(0.1, "weight decay of matrices", least=0)
    warmup: int = setting(100, "steps in which the rate rises", least=0)
    final: float = setting(0.1, "part of lr at the end", least=0, most=1)
    clip: float = setting(1.0, "largest norm of the gradients; 0: any", least=0)


@dataclass(frozen=True)
class RunConfig:
    """How long, how often, from which seed."""

    steps: int = setting(0, "how many; 0: as many as fit in the minutes", least=0)
    minutes: float = setting(30.0, "how long, where no steps are given", above=0)
    batch: int = setting(8, "sequences in a batch", least=1)
    accumulation: int = setting(1, "batches in a step", least=1)
    seed: int = setting(0, "of weights, batches, dropout and samples", least=0, below=1 << 63)
    threads: int = setting(0, "to compute with; 0: all cores", least=0, most=4096)
    evaluate_every: int = setting(200, "steps between validations; 0: only at the end", least=0)
    evaluation_batches: int = setting(16, "batches in a validation", least=1)
    sample_every: int = setting(1000, "steps between samples; 0: only at the end", least=0)
    sample_tokens: int = setting(128, "tokens in a sample; 0: no samples", least=0)
    prompt: str = setting("def ", "how a sample begins")
    checkpoint_every: int = setting(500, "steps between checkpoints; 0: only at the end", least=0)
    folder: str = setting("run", "where everything is written")


@dataclass(frozen=True)
class Config:
    """All of it."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    run: RunConfig = field(default_factory=RunConfig)

    @property
    def tokens_a_step(self) -> int:
        """Tokens that one step predicts."""
        return self.run.batch * self.run.accumulation * self.model.context


TABLES: dict[str, type[Any]] = {
    "model": ModelConfig,
    "data": DataConfig,
    "optimizer": OptimizerConfig,
    "run": RunConfig,
}


def parse(text: str, name: str = "<config>") -> Config:
    """The configuration in a TOML text; what is not given has its default.

    Raises:
        ConfigError: no TOML, an unknown table or key, a wrong value; begins with the name.
    """
    try:
        return _from_tables(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ConfigError) as error:
        raise ConfigError(f"{name}: {error}") from None


def _from_tables(given: dict[str, Any]) -> Config:
    for key in given:
        expect_known(key, TABLES, "tables")
    parts = {
        name: read_table(kind, given.get(name, {}), f"[{name}]") for name, kind in TABLES.items()
    }
    made = Config(**parts)
    made.model.check()
    run, warmup = made.run, made.optimizer.warmup
    if not run.steps and warmup <= MEASURED:
        raise ConfigError(
            f"[optimizer] warmup: expected more than {MEASURED} steps where [run] gives minutes "
            f"(their time says how many steps there are), got {warmup}"
        )
    return made


def load(path: Path) -> Config:
    """The configuration in a file; a corpus that is a path is one from the file's folder.

    Raises:
        ConfigError: as `parse`, or it is not UTF-8.
        OSError: it cannot be read.
    """
    try:
        made = parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected TOML in UTF-8, got other bytes") from None
    if made.data.corpus == STDLIB:
        return made
    corpus = (path.parent / Path(made.data.corpus).expanduser()).resolve()
    return replace(made, data=replace(made.data, corpus=str(corpus)))


def to_toml(config: Config) -> str:
    """The file that `parse` reads as this configuration, with a remark on every key."""
    tables = [table_lines(item.name, getattr(config, item.name)) for item in fields(config)]
    return "\n\n".join("\n".join(lines) for lines in tables) + "\n"
