"""The commands `grader schema`, `grader scale` and `grader package`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from grader import package
from grader.failures import write_whole
from grader.formats import scale
from grader.package import Package, PackageError
from grader.weeks import WEEKS, Week, week_of

SCHEMA = Path(__file__).parent / "results.schema.json"
Command = Callable[..., Any]

WEEK = click.option("--week", "numbers", type=int, multiple=True, help="This week; repeatable.")


def _weeks(numbers: tuple[int, ...]) -> list[Week]:
    """The weeks named, or all."""
    try:
        found = {week_of(number).first: week_of(number) for number in numbers}
    except KeyError as fault:
        raise click.UsageError(fault.args[0]) from None
    return [found[first] for first in sorted(found)] or list(WEEKS)


@click.command("schema")
def schema() -> None:
    """Print the JSON Schema of the file that --json writes."""
    click.echo(SCHEMA.read_text(encoding="utf-8"), nl=False)


@click.command("scale")
@WEEK
def points(numbers: tuple[int, ...]) -> None:
    """Show what each spec file, and the gates of each week, are worth."""
    table = Table("week", "item", "key")
    table.add_column("points", justify="right")
    weeks = _weeks(numbers)
    total = 0.0
    for week in weeks:
        for item in scale.items(package.unjudged(week)):
            table.add_row(week.title, item.title, item.key, f"{item.points:.3f}")
            total += item.points
        table.add_section()
    table.add_row("", "", "in all", f"{total:g}")
    Console().print(table)


def _options(default: str) -> Callable[[Command], Command]:
    """What all packages are asked for."""
    file = click.Path(path_type=Path, dir_okay=False)
    made = [
        WEEK,
        click.option(
            *("-o", "--to"),
            type=file,
            default=default,
            show_default=True,
            help="The file to write.",
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs."),
        click.option(
            "--seconds",
            type=click.IntRange(min=10),
            default=Package.seconds,
            show_default=True,
            help="After which a run ends with the results that it has.",
        ),
        click.option(
            "--apt", multiple=True, help="A Debian package that students need; repeatable."
        ),
        click.option("--no-gates", is_flag=True, help="Measure no speed."),
    ]

    def add(command: Command) -> Command:
        for option in reversed(made):
            command = option(command)
        return command

    return add


def _package(given: dict[str, Any]) -> Package:
    timed = not given["no_gates"]
    return Package(_weeks(given["numbers"]), given["seed"], given["seconds"], given["apt"], timed)


@click.group("package")
def packages() -> None:
    """Write what a platform needs to run the grader."""


@packages.command("gradescope")
@_options("autograder.zip")
def gradescope_(to: Path, **given: Any) -> None:  # noqa: ANN401 - as click passes them
    """Write Gradescope's autograder zip."""
    made = _package(given)
    try:
        package.write_gradescope(made, to)
    except PackageError as fault:
        raise click.UsageError(str(fault)) from None
    points_ = scale.most([i for week in made.weeks for i in scale.items(package.unjudged(week))])
    click.echo(f"{to}: {to.stat().st_size / 1e6:.1f} MB, worth {points_:g} points")


@packages.command("classroom")
@_options("classroom.yml")
@click.option("--repository", metavar="OWNER/NAME", required=True, help="Of the course.")
def classroom_(to: Path, repository: str, **given: Any) -> None:  # noqa: ANN401 - as click passes them
    """Write GitHub Classroom's workflow, .github/workflows/classroom.yml of a template."""
    made = _package(given)
    try:
        write_whole(to, package.workflow(made, repository))
    except OSError as fault:
        raise click.UsageError(f"cannot write {to}: {fault.strerror or fault}") from None
    click.echo(f"{to}: commit it as .github/workflows/classroom.yml of the assignment's template")
