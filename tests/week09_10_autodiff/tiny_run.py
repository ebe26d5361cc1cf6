"""A run small enough for a test: a model of some thousand parameters on a page of text."""

from dataclasses import replace
from pathlib import Path

from week09_10_autodiff.training.config import (
    Config,
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    RunConfig,
)
from week09_10_autodiff.training.log import read_log
from week09_10_autodiff.training.loop import Trainer
from week09_10_autodiff.training.workplace import Workplace

TEXT = "".join(f"def add_{i}(x):\n    return x + {i}\n\n" for i in range(200))


class Ear:
    """A listener that keeps all it is told."""

    def __init__(self):
        self.sentences, self.steps, self.validations = [], [], []
        self.samples, self.checkpoints = [], []

    def said(self, text):
        self.sentences.append(text)

    def stepped(self, told):
        self.steps.append(told)

    def validated(self, step, loss):
        self.validations.append((step, loss))

    def sampled(self, step, text):
        self.samples.append((step, text))

    def saved(self, step):
        self.checkpoints.append(step)


def tiny(folder: Path, kind: str = "llama", **run) -> Config:
    """A configuration of a run in a folder, on a text beside it."""
    corpus = folder.parent / "corpus.txt"
    corpus.write_text(TEXT)
    model = ModelConfig(kind=kind, layers=1, width=16, heads=2, context=16)
    chosen = {"steps": 6, "batch": 2, "evaluation_batches": 1, "sample_tokens": 0, **run}
    return Config(
        model,
        DataConfig(corpus=str(corpus), vocabulary=280),
        OptimizerConfig(lr=1e-2, warmup=2),
        RunConfig(folder=str(folder), **chosen),
    )


def begun(config: Config, **options) -> tuple[Trainer, Ear]:
    """A new run."""
    ear = Ear()
    return Trainer(Workplace.begin(config), ear, **options), ear


def losses(folder: Path) -> dict[int, float]:
    """The training losses of a log, by step."""
    records = read_log(folder / "log.jsonl")
    return {r["step"]: r["loss"] for r in records if r["kind"] == "step"}


def with_optimizer(config: Config, **values) -> Config:
    """The configuration with other settings of the optimizer."""
    return replace(config, optimizer=replace(config.optimizer, **values))
