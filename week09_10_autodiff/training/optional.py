"""Libraries that training can use, and that the course works without."""

from __future__ import annotations

import importlib
from typing import Any


class MissingLibraryError(RuntimeError):
    """A library is needed that is not installed; says which, what for, and how to get it."""


def library(name: str, purpose: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """The module of this name.

    Raises:
        MissingLibraryError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        why = f"expected the package {package} for {purpose}, which is not installed"
        raise MissingLibraryError(f"{why}: pip install -e '.[{extra}]'") from None
