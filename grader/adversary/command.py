"""`grader adversary`: whether every cheat and every mutant is caught, and no right compiler is."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console

CONSOLE = Console()
ERRORS = Console(stderr=True)
WIDE = 200
"""Characters of the table in a file."""
TABLE = "grader.adversary.table"
"""Imported when it is asked for: it takes the compilers of all weeks."""


@click.command()
@click.option("--only", "names", metavar="NAME", multiple=True, help="This one; may be repeated.")
@click.option("--full", is_flag=True, help="Search whole weeks, without the known killers.")
@click.option("--list", "listed", is_flag=True, help="Say what each is, and judge none.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write results."
)
def adversary(names: tuple[str, ...], full: bool, listed: bool, json_file: Path | None) -> None:
    """Judge what must fail: cheats, and mutants of the reference; and what must pass.

    A mutant is judged by a test that is known to kill it, and by all spec tests of its week if that
    one does not. Exit status 1 if one escaped, a right compiler failed, or one could not be judged.
    """
    table = import_module(TABLE)
    if table.cheats() is None:
        ERRORS.print("There are no cheats here; mutants and right compilers alone.")
    try:
        items = table.chosen(table.items(full=full), names)
    except KeyError as fault:
        raise click.UsageError(fault.args[0]) from None
    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise click.UsageError(f"no folder {json_file.resolve().parent} for the file of results")
    if listed:
        for item in items:
            text = f"{item.case.name}: {item.case.about}"
            CONSOLE.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    done = []
    for row in table.rows(items, json_file):
        done.append(row)
        line = f"{len(done)}/{len(items)} {row.name}: {row.state}, {row.got}, {row.seconds:g} s"
        ERRORS.print(line, markup=False, highlight=False, soft_wrap=True)
    console = CONSOLE if CONSOLE.is_terminal else Console(width=WIDE)
    console.print(table.table(done))
    CONSOLE.print(table.summary(done), markup=False, highlight=False)
    sys.exit(0 if all(row.ok for row in done) else 1)
