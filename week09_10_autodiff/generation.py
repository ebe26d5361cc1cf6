"""Text from a language model: the prompt in one pass, then a token at a time.

    text = TextGenerator.from_folder("TinyLlama-1.1B")
    for piece in text.stream("Once upon a time", 64, Sampling(temperature=0.8, seed=1)):
        print(piece, end="")

The prompt fills a cache of keys and values (`models.attention`), which each new token reads and
extends in place, so that a step costs one reading of the weights. Both steps are captured by
`jit`; lengths of prompts and caches are rounded up to few sizes, so that few programs are
compiled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from week01_uops.dtypes import float32, int64
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.hub import end_tokens
from week09_10_autodiff.jit import jit
from week09_10_autodiff.models import LANGUAGE_MODELS, LanguageModel, class_of
from week09_10_autodiff.models.attention import Cache, Next, Prompt
from week09_10_autodiff.sampling import Sampler, Sampling, Scores
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.tokenizing import TextStream, Tokenizer

SHORTEST_PROMPT = 16
"""Tokens; a shorter prompt is padded."""

SMALLEST_CACHE = 128
"""Tokens."""


class PromptError(ValueError):
    """There is nothing to go on from, or no room to go on."""


def rounded(count: int, least: int, most: int) -> int:
    """The least power of two that is `count` or more, within [least, most]."""
    return min(max(1 << max(count - 1, 0).bit_length(), least), most)


@dataclass
class Report:
    """What a generation took.

    Attributes:
        prompt, text: tokens that were read, and tokens that were made.
        preparing: seconds of compiling, or of finding programs that were compiled before.
        reading: seconds until the scores behind the prompt were known.
        writing: seconds of computing the tokens behind the first.
        reason: why it ended: `end` (the model said so), `limit`, or `context` (no more room).
    """

    prompt: int = 0
    text: int = 0
    preparing: float = 0.0
    reading: float = 0.0
    writing: float = 0.0
    reason: str = ""

    @property
    def reading_rate(self) -> float:
        """Tokens of the prompt a second."""
        return self.prompt / self.reading if self.reading else 0.0

    @property
    def writing_rate(self) -> float:
        """Tokens a second, of those behind the first, whose scores came with the prompt's."""
        return max(self.text - 1, 0) / self.writing if self.writing else 0.0


class Steps:
    """A model with a cache, and its two steps as captured programs.

    Attributes:
        model: the model.
        cache: what it has read.
    """

    def __init__(self, model: LanguageModel, capacity: int) -> None:
        self.model = model
        self.cache: Cache = model.cache(capacity)
        self._read = jit(self._scores_of_prompt)
        self._next = jit(self._scores_of_next)

    def prepare(self, prompt: int) -> None:
        """Compile what a prompt of so many tokens, and the tokens behind it, need."""
        with no_grad():
            self._read.prepare(*self._prompt([0] * prompt))
            self._next.prepare(*_position(0, 0))

    def read(self, prompt: Sequence[int]) -> Scores:
        """The scores (vocabulary) of the token behind a prompt, which the cache holds then."""
        with no_grad():
            return _scores(self._read(*self._prompt(prompt)))

    def next(self, token: int, position: int) -> Scores:
        """The scores of the token behind this one, before which there are `position` tokens."""
        with no_grad():
            return _scores(self._next(*_position(token, position)))

    def _prompt(self, prompt: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The prompt, padded, and where its last token is."""
        length = rounded(len(prompt), SHORTEST_PROMPT, self.cache.capacity)
        tokens = np.zeros((1, length), np.int64)
        tokens[0, : len(prompt)] = prompt
        return Tensor(tokens), Tensor(len(prompt) - 1, int64)

    def _scores_of_prompt(self, tokens: Tensor, last: Tensor) -> Tensor:
        with evaluating(self.model):
            hidden = self.model.hidden(tokens, Prompt(self.cache))
        return self.model.scores(hidden[0].index_select(0, last.reshape(1)))

    def _scores_of_next(self, token: Tensor, position: Tensor) -> Tensor:
        with evaluating(self.model):
            hidden = self.model.hidden(token, Next(self.cache, position))
        return self.model.scores(hidden[0])


@contextmanager
def evaluating(model: LanguageModel) -> Iterator[None]:
    """Nothing is dropped inside, even if the model is being trained."""
    before = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(before)


def _position(token: int, position: int) -> tuple[Tensor, Tensor]:
    return Tensor(np.full((1, 1), token, np.int64)), Tensor(position, int64)


def _scores(tensor: Tensor) -> Scores:
    return np.asarray(tensor.to(float32).numpy()).reshape(-1)


@dataclass
class TokenGenerator:
    """Tokens from a model; caches and programs are kept for the next prompt.

    Attributes:
        model: the model.
        ends: tokens that end a text; none of them is given out.
        report: of the last generation.
    """

    model: LanguageModel
    ends: Collection[int] = frozenset()
    report: Report = field(default_factory=Report)
    _steps: Steps | None = None

    def generate(
        self, prompt: Sequence[int], limit: int, sampling: Sampling | None = None
    ) -> Iterator[int]:
        """At most `limit` tokens that go on from a prompt, each as soon as it is known.

        Raises:
            PromptError: the prompt has no tokens, or as many as the model has positions.
        """
        most = self.model.context
        self._check(prompt, limit)
        sampler = Sampler(sampling or Sampling())
        report = self.report = Report(prompt=len(prompt))
        steps = self._prepared(len(prompt), min(len(prompt) + limit, most))
        start = time.perf_counter()
        token = sampler(steps.read(prompt))
        report.reading = time.perf_counter() - start
        for position in range(len(prompt), len(prompt) + limit):
            if token in self.ends:
                report.reason = "end"
                return
            report.text += 1
            yield token
            if report.text == limit or position == most:
                break
            start = time.perf_counter()
            token = sampler(steps.next(token, position))
            report.writing += time.perf_counter() - start
        report.reason = "limit" if report.text == limit else "context"

    def _check(self, prompt: Sequence[int], limit: int) -> None:
        context, vocabulary = self.model.context, self.model.vocabulary
        if limit < 1:
            raise PromptError(f"expected 1 token or more to be made, got {limit}")
        if not prompt:
            raise PromptError("expected a prompt of 1 token or more, got none")
        if len(prompt) > context:
            wanted = f"a prompt of at most {context} tokens, the model's context"
            raise PromptError(f"expected {wanted}, got {len(prompt)}")
        if not 0 <= min(prompt) <= max(prompt) < vocabulary:
            got = min(prompt) if min(prompt) < 0 else max(prompt)
            raise PromptError(f"expected tokens in [0, {vocabulary}), the model's, got {got}")

    def _prepared(self, prompt: int, total: int) -> Steps:
        """Steps whose cache has room for so many tokens, with all programs compiled."""
        start = time.perf_counter()
        capacity = rounded(total, SMALLEST_CACHE, self.model.context)
        if self._steps is None or self._steps.cache.capacity != capacity:
            self._steps = Steps(self.model, capacity)
        self._steps.prepare(prompt)
        self.report.preparing = time.perf_counter() - start
        return self._steps


class TextGenerator:
    """Text from the model and the tokenizer of a folder.

    Attributes:
        tokens: what makes the tokens.
        tokenizer: what makes text of them.
    """

    def __init__(self, tokens: TokenGenerator, tokenizer: Tokenizer) -> None:
        self.tokens = tokens
        self.tokenizer = tokenizer

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> TextGenerator:
        """The language model of a Hugging Face folder.

        Raises:
            HubError, SafetensorsError, FileNotFoundError: the folder is not whole, or holds
                another kind of model.
        """
        kind = class_of(folder, LANGUAGE_MODELS)
        tokenizer = Tokenizer.from_folder(folder)
        model: LanguageModel = kind.from_folder(folder)
        return cls(TokenGenerator(model, end_tokens(folder)), tokenizer)

    @property
    def report(self) -> Report:
        """Of the last generation."""
        return self.tokens.report

    def stream(self, prompt: str, limit: int, sampling: Sampling | None = None) -> Iterator[str]:
        """The text that goes on from a prompt, in pieces of whole characters.

        Raises:
            PromptError: the prompt has no tokens, or more than the model has positions.
        """
        stream = TextStream(self.tokenizer)
        ids = self.tokenizer.encode(prompt).ids
        for token in self.tokens.generate(ids, limit, sampling):
            if piece := stream.put(token):
                yield piece
        if piece := stream.end():
            yield piece
