"""`uopc train`: a language model from a configuration, with what happens told in a terminal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from week09_10_autodiff.training.config import Config, load, to_toml
from week09_10_autodiff.training.loop import Told, Trainer
from week09_10_autodiff.training.settings import ConfigError
from week09_10_autodiff.training.workplace import Workplace

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

INTERVAL = 5.0
"""Seconds between lines where no terminal shows a bar."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    config: Path | None = None
    resume: Path | None = None
    steps: int | None = None
    out: Path | None = None
    threads: int | None = None
    check_nan: bool = False


OPTIONS = (
    click.argument("config", required=False, type=PATH),
    click.option("--resume", type=PATH, help="Go on with the run in this folder."),
    click.option("--steps", type=click.IntRange(1), help="So many, whatever the config says."),
    click.option("--out", type=PATH, help="The folder to write to."),
    click.option("--threads", type=click.IntRange(1), help="So many threads; all cores if absent."),
    click.option("--check-nan", is_flag=True, help="Name the operation that a NaN comes from."),
    click.option("--print-config", is_flag=True, help="Print the default config, and stop."),
)


def options(function: F) -> F:
    """The arguments of `run`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def run(*, print_config: bool, **given: Any) -> None:  # noqa: ANN401 - the fields of Wanted
    """Train, and say what happens; or print the default configuration."""
    if print_config:
        click.echo(to_toml(Config()), nl=False)
    else:
        train(Wanted(**given), Console())


def train(wanted: Wanted, console: Console) -> bool:
    """Train; whether it went on to the last step.

    Raises:
        ConfigError, CheckpointError, DivergedError, MissingLibraryError: with a sentence.
    """
    place = workplace(wanted)
    if place.config.run.threads:
        os.environ["OMP_NUM_THREADS"] = str(place.config.run.threads)
    with _told_to_stop() as stop, Screen(console) as screen:
        trainer = Trainer(place, screen, check_nan=wanted.check_nan)
        screen.begins(trainer)
        finished = trainer.train(lambda: stop.asked)
    if finished:
        console.print(
            f"done: {place.folder} holds the model, the log and the picture", soft_wrap=True
        )
        console.print(
            f"uopc generate {place.model} --prompt {place.config.run.prompt!r}", soft_wrap=True
        )
    else:
        console.print(f"stopped after step {trainer.step}, all saved; to go on:", soft_wrap=True)
        console.print(f"uopc train --resume {place.folder}", soft_wrap=True)
    return finished


def workplace(wanted: Wanted) -> Workplace:
    """The folder to work in: a new one, or that of the run to go on with.

    Raises:
        ConfigError: the words of the command line do not fit together, or the configuration is
            wrong.
    """
    if wanted.resume is not None:
        if wanted.config is not None or wanted.out is not None:
            raise ConfigError("expected --resume by itself: the run's folder has its configuration")
        place = Workplace.again(wanted.resume, wanted.steps)
        return replace(place, config=_with_threads(place.config, wanted.threads))
    config = Config() if wanted.config is None else load(wanted.config)
    run = config.run
    run = replace(run, steps=run.steps if wanted.steps is None else wanted.steps)
    run = replace(run, folder=run.folder if wanted.out is None else str(wanted.out))
    return Workplace.begin(_with_threads(replace(config, run=run), wanted.threads))


def _with_threads(config: Config, threads: int | None) -> Config:
    return config if threads is None else replace(config, run=replace(config.run, threads=threads))


@dataclass
class _Stop:
    asked: bool = False


@contextmanager
def _told_to_stop() -> Iterator[_Stop]:
    """Ctrl-C and SIGTERM ask to stop after the step; a second Ctrl-C ends at once."""
    stop = _Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.asked = True

    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class Screen:
    """A bar with the latest numbers in a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None))
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self.task = self.bar.add_task("reading the corpus", total=None)
        self._validation = ""
        self._last_line = 0.0

    def __enter__(self) -> Screen:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def begins(self, trainer: Trainer) -> None:
        """Say what is trained, and on what."""
        model, place = trainer.config.model, trainer.place
        tokens, held = len(trainer.training.tokens), len(trainer.validation.tokens)
        self.said(
            f"{model.kind} with {trainer.learner.parameters:,} parameters; {tokens:,} tokens to "
            f"train on, {held:,} to validate; {trainer.config.tokens_a_step:,} tokens a step; "
            f"everything goes to {place.folder}"
        )
        if trainer.step:
            self.said(f"going on after step {trainer.step}")
        self.bar.update(self.task, description="compiling")

    def said(self, text: str) -> None:
        """A sentence."""
        self.console.print(escape(text), highlight=False, soft_wrap=True)

    def stepped(self, told: Told) -> None:
        """A step was taken."""
        line = f"step {told.step}{'' if told.steps is None else f'/{told.steps}'}"
        line += f"  loss {told.loss:.4f}{self._validation}"
        if told.speed is not None:
            line += f"  {told.speed:,.0f} tokens/s"
        if told.left is not None:
            line += f"  {_duration(told.left)} left"
        self.bar.update(self.task, description=line, completed=told.step, total=told.steps)
        now = time.monotonic()
        last = told.step == told.steps
        if not self.console.is_terminal and (last or now - self._last_line >= INTERVAL):
            self._last_line = now
            self.said(line)

    def validated(self, step: int, loss: float) -> None:
        """The loss on what is not trained on."""
        self._validation = f" (validation {loss:.4f})"
        self.said(f"step {step}: validation loss {loss:.4f}")

    def sampled(self, step: int, text: str) -> None:
        """What the model writes."""
        self.said(f"step {step}: a sample")
        self.said("\n".join(f"    {line}" for line in text.splitlines()))

    def saved(self, step: int) -> None:
        """A checkpoint was written."""
        self.said(f"step {step}: saved")


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03, or 2:03."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
