"""The training loop: steps, validations, samples, checkpoints, until the last step or a stop.

A run that is stopped in any way goes on from its newest checkpoint as if it had not been: batches,
dropout and learning rates depend on the seed and the step alone.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from week09_10_autodiff.training.batches import Batches, Pair
from week09_10_autodiff.training.config import MEASURED
from week09_10_autodiff.training.curves import draw
from week09_10_autodiff.training.learner import Learner
from week09_10_autodiff.training.log import Log
from week09_10_autodiff.training.optional import MissingLibraryError
from week09_10_autodiff.training.schedule import learning_rate
from week09_10_autodiff.training.workplace import Workplace

RECENT = 50
"""Steps whose time says how fast it goes."""


@dataclass(frozen=True)
class Told:
    """A step that was taken.

    Attributes:
        step: its number, from 1.
        steps: the last one's, if it is known.
        loss: mean of −ln p(next token).
        lr: the learning rate.
        norm: of all gradients, before they were clipped.
        speed: tokens a second, of the recent steps; None as long as all of them compiled.
        left: seconds until the last step; None if that is not known.
    """

    step: int
    steps: int | None
    loss: float
    lr: float
    norm: float
    speed: float | None
    left: float | None


class Listener(Protocol):
    """Someone who is told what happens."""

    def said(self, text: str) -> None:
        """Something worth a sentence."""

    def stepped(self, told: Told) -> None:
        """A step was taken."""

    def validated(self, step: int, loss: float) -> None:
        """The loss on what is not trained on."""

    def sampled(self, step: int, text: str) -> None:
        """What the model writes."""

    def saved(self, step: int) -> None:
        """A checkpoint was written."""


class DivergedError(Exception):
    """The loss or a gradient is no finite number any more; says where, and what to do."""


class Trainer:
    """A run: its place, its data, its model, and at which step it is.

    Attributes:
        step: steps that were taken.
        steps: how many there will be; None as long as that depends on a time to be measured.
    """

    def __init__(self, place: Workplace, listener: Listener, *, check_nan: bool = False) -> None:
        self.place, self.config, self.listener = place, place.config, listener
        self.check_nan = check_nan
        data, model = place.data(), self.config.model
        size = (self.config.run.batch, model.context)
        self.training = Batches(data.training, *size)
        self.validation = Batches(data.validation, *size, "validation")
        self.learner = Learner(self.config, place.tokenizer)
        self.step, self.steps = 0, self.config.run.steps or None
        self._restore()
        self.log = Log(place.log, self.step)
        self._times: deque[float] = deque(maxlen=RECENT)

    def _restore(self) -> None:
        """Go to the newest checkpoint, if there is one."""
        found = self.place.newest()
        if found is not None:
            self.step = found.step
            self.steps = self.steps or found.state["steps"]
            self.learner.load_state(found.state["learner"])

    def train(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end, or until `stopped` says so between two steps; whether it was the end.

        Raises:
            DivergedError: a loss or a gradient is not finite.
        """
        run = self.config.run
        while self.steps is None or self.step < self.steps:
            if stopped():
                self.save()
                return False
            self._take_step()
            last = self.step == self.steps
            if last or _due(self.step, run.evaluate_every):
                self.validate()
            if run.sample_tokens and (last or _due(self.step, run.sample_every)):
                self.sample()
            if last or _due(self.step, run.checkpoint_every):
                self.save()
        return True

    def _take_step(self) -> None:
        number, run = self.step + 1, self.config.run
        first = (number - 1) * run.accumulation
        batches = [self.training.drawn(run.seed, first + i) for i in range(run.accumulation)]
        lr = learning_rate(self.config.optimizer, number, self.steps)
        before = self.learner.state() if self.check_nan else None
        start = time.perf_counter()
        loss, norm = self.learner.step(batches, lr)
        seconds = time.perf_counter() - start
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._diverged(number, loss, norm, batches, lr, before)
        self.step = number
        self._measure(seconds)
        told = self._told(loss, lr, norm)
        record = {"loss": loss, "lr": lr, "norm": norm, "seconds": round(seconds, 6)}
        self.log.write("step", number, **record)
        self.listener.stepped(told)

    def _measure(self, seconds: float) -> None:
        """Keep the time of a step, but for those that compile, of which that is told."""
        if self.learner.compiled is not None:
            kernels, took = self.learner.compiled
            self.learner.compiled = None
            self.log.write("compiled", self.step, kernels=kernels, seconds=round(took, 3))
            self.listener.said(f"compiled {kernels} kernels in {took:.1f} s")
        else:
            self._times.append(seconds)
        if self.steps is None and self.step > MEASURED:
            left = self.config.run.minutes * 60 - sum(self._times)
            self.steps = self.step + max(1, round(left / statistics.median(self._times)))
            self.log.write("planned", self.step, steps=self.steps)

    def _told(self, loss: float, lr: float, norm: float) -> Told:
        if not self._times:
            return Told(self.step, self.steps, loss, lr, norm, None, None)
        mean = statistics.fmean(self._times)
        left = None if self.steps is None else (self.steps - self.step) * mean
        speed = self.config.tokens_a_step / mean
        return Told(self.step, self.steps, loss, lr, norm, speed, left)

    def _diverged(
        self,
        number: int,
        loss: float,
        norm: float,
        batches: list[Pair],
        lr: float,
        before: Mapping[str, Any] | None,
    ) -> None:
        what = f"loss is {loss}" if not math.isfinite(loss) else f"gradients' norm is {norm}"
        said = f"step {number}: the {what}"
        self.log.write("diverged", number, loss=loss, norm=norm)
        if before is None:
            command = f"uopc train --resume {self.place.folder} --check-nan"
            raise DivergedError(f"{said}; to see which operation it came from: {command}")
        self.learner.load_state(before)
        raise DivergedError(f"{said}; {self.learner.explain(batches, lr)}")

    def validate(self) -> float:
        """The mean loss over the validation's batches; logged and told."""
        pairs = self.validation.spread(self.config.run.evaluation_batches)
        loss = statistics.fmean(self.learner.loss(pair) for pair in pairs)
        self.log.write("validation", self.step, loss=loss)
        self.listener.validated(self.step, loss)
        return loss

    def sample(self) -> str:
        """A text that the model writes; logged and told."""
        run = self.config.run
        text = self.learner.sample(run.prompt, run.sample_tokens, run.seed)
        self.log.write("sample", self.step, text=text)
        self.listener.sampled(self.step, text)
        return text

    def save(self) -> None:
        """Write a checkpoint, the model's folder and the picture."""
        state = {"steps": self.steps, "learner": self.learner.state()}
        self.place.save(self.step, state)
        self.learner.export(self.place.model)
        self.listener.saved(self.step)
        model = self.config.model
        title = f"{model.kind}, {self.learner.parameters:,} parameters, {model.context} tokens"
        try:
            draw(self.place.log, self.place.picture, title)
        except MissingLibraryError as missing:
            self.listener.said(str(missing))


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
