"""Where the command begins: compilers are made for this machine when their modules are imported."""

from __future__ import annotations

import importlib
import sys

from week05_06_memory.machine import MachineError


def main() -> None:
    """`uopc`; a machine that $UOPS_MACHINE does not describe well is told in a sentence."""
    try:
        cli = importlib.import_module("projects.uopc.cli")
    except MachineError as error:
        sys.exit(f"uopc: $UOPS_MACHINE: {error}")
    cli.main()
