"""`uopc generate`: text from a language model in a Hugging Face folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from week09_10_autodiff.generation import Report, TextGenerator
from week09_10_autodiff.sampling import Sampling

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.argument("folder", metavar="DIR", type=click.Path(path_type=Path)),
    click.option("--prompt", help="The text to go on from; standard input if absent."),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        default=128,
        show_default=True,
        help="So many tokens at most.",
    ),
    click.option(
        "--temperature",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="What scores are divided by before a token is drawn; 0: the likeliest.",
    ),
    click.option(
        "--top-k", type=click.IntRange(min=1), help="Draw among so many of the likeliest tokens."
    ),
    click.option(
        "--top-p",
        type=click.FloatRange(min=0, max=1, min_open=True),
        default=1.0,
        show_default=True,
        help="Draw among the fewest tokens that together are so likely.",
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Draw the same tokens each time."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end."),
)


def options(function: F) -> F:
    """The arguments of `run`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def run(
    folder: Path,
    prompt: str | None,
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float,
    seed: int | None,
    as_json: bool,
) -> None:
    """Print the text as it comes, and what it took on standard error; or all of it as JSON."""
    sampling = Sampling(temperature, top_k, top_p, seed)
    generator = TextGenerator.from_folder(folder)
    given = sys.stdin.read() if prompt is None else prompt
    pieces = []
    for piece in generator.stream(given, max_tokens, sampling):
        pieces.append(piece)
        if not as_json:
            click.echo(piece, nl=False)
            sys.stdout.flush()
    if as_json:
        told = {"prompt": given, "text": "".join(pieces), **as_data(generator.report)}
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        click.echo()
        click.echo(summary(generator.report), err=True)


def as_data(report: Report) -> dict[str, Any]:
    """A report as plain data."""
    return {
        "prompt_tokens": report.prompt,
        "tokens": report.text,
        "reason": report.reason,
        "compile_seconds": report.preparing,
        "prompt_seconds": report.reading,
        "seconds": report.writing,
        "prompt_tokens_per_second": report.reading_rate,
        "tokens_per_second": report.writing_rate,
    }


def summary(report: Report) -> str:
    """A report in a line."""
    reasons = {
        "end": "the model ended the text",
        "limit": "as many tokens as asked for",
        "context": "the model's context is full",
    }
    return (
        f"{report.text} tokens, {report.writing_rate:.1f} a second; a prompt of {report.prompt}, "
        f"{report.reading_rate:.1f} a second; compiled in {report.preparing:.1f} s; "
        f"ended: {reasons[report.reason]}"
    )
