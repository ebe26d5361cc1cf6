"""`uopc embed`: texts as vectors, by an encoder in a Hugging Face folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from week09_10_autodiff.embedding import Embedder

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.argument("folder", metavar="DIR", type=click.Path(path_type=Path)),
    click.argument("file", required=False, type=click.Path(path_type=Path)),
    click.option("--text", "texts", multiple=True, help="A text; may be repeated."),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Write the vectors here: to a .npy file one row a text, else as printed.",
    ),
)


def options(function: F) -> F:
    """The arguments of `run`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def run(folder: Path, file: Path | None, texts: tuple[str, ...], output: Path | None) -> None:
    """Print a vector for each text, each line of FILE one, as a JSON list a line.

    Raises:
        ValueError: there are texts from two sides, or FILE is no text.
    """
    given = _texts(file, texts)
    vectors = Embedder.from_folder(folder).embed(given)
    if output is not None and output.suffix == ".npy":
        np.save(output, vectors)
        return
    lines = "".join(json.dumps([float(x) for x in row]) + "\n" for row in vectors)
    if output is None:
        click.echo(lines, nl=False)
    else:
        output.write_text(lines, encoding="utf-8")


def _texts(file: Path | None, texts: tuple[str, ...]) -> list[str]:
    if texts and file is not None:
        raise ValueError("expected either FILE or --text, got both")
    if texts:
        return list(texts)
    content = sys.stdin.buffer.read() if file is None else file.read_bytes()
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file or '<stdin>'}: expected text in UTF-8, but {error}") from None
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
