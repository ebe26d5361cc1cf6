"""Errors of tensors, which name the line that asked for what cannot be."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from types import FrameType

from week01_uops.errors import ProgramError

OURS = ("week01_uops", "week02_render", "week03_loops", "week09_10_autodiff", "contextlib")
LONGEST = 80
_OTHER_NAME = re.compile(r"^\w+: ")
"""The library's name of a function, at the beginning of its errors."""


class TensorError(ValueError):
    """What was asked of a tensor cannot be; says what was expected, what came, and where.

    Attributes:
        where: the user's line, as "train.py:12: `x @ w`".
        reason: the sentence without the line.
    """

    def __init__(self, reason: str, where: str | None = None) -> None:
        self.reason = reason
        self.where = user_line() if where is None else where
        super().__init__(f"{reason} (at {self.where})" if self.where else reason)


class TensorIndexError(TensorError, IndexError):
    """An index lies outside its axis."""


class TensorTypeError(TensorError, TypeError):
    """An operand is of a type that no tensor is made of."""


def converted(error: Exception, name: str) -> TensorError:
    """The TensorError of a fault that the library found in the arguments of `name`."""
    message = str(error.args[0] if isinstance(error, ProgramError) else error)
    return TensorError(f"{name}: {_OTHER_NAME.sub('', message)}")


def user_line() -> str:
    """Where the user's code stands: "file.py:12: `expression`", or "" if there is none."""
    frame = _user_frame()
    if frame is None:
        return ""
    file = Path(frame.f_code.co_filename).name
    text = _expression(frame)
    return f"{file}:{frame.f_lineno}: `{text}`" if text else f"{file}:{frame.f_lineno}"


def _user_frame() -> FrameType | None:
    """The innermost frame outside these packages; their spec tests count as outside."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def _is_ours(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package in OURS and not rest.startswith("test_")


def _expression(frame: FrameType) -> str:
    """The source of the expression that a frame is computing, on one line."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None:
        return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    name, module = frame.f_code.co_filename, frame.f_globals
    lines = [linecache.getline(name, n, module).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]  # before the start is cut: they may be one line
    lines[0] = lines[0][start:]
    text = " ".join(b"".join(lines).decode(errors="replace").split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
