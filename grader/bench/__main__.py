"""All measurements: python -m grader.bench."""

from __future__ import annotations

from pathlib import Path

import click

from grader.bench import cold, compare, compiling, rewrite, table, training
from grader.bench.contenders import LIBRARIES
from grader.bench.plots import NoPlotError, draw
from grader.bench.suites import SUITES
from grader.bench.timing import Plan
from week05_06_memory.machine import detect

PROGRAMS = {
    "rewrite": rewrite.main,
    "compiling": compiling.main,
    "cold": cold.main,
    "training": training.main,
}
TITLES = {
    "rewrite": "Rewriting of index expressions",
    "compiling": "Compiling a transformer block to C text",
    "cold": "A transformer block from its program to loaded code",
    "training": "Training a GPT",
}


def _threads(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    words = value.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise click.BadParameter(f"expected numbers of threads, 1,2, got {value}")
    return [int(word) for word in words]


def _against(_: click.Context, __: click.Parameter, value: str) -> list[str]:
    names = value.split(",")
    for name in names:
        if name not in LIBRARIES:
            raise click.BadParameter(f"expected some of {','.join(LIBRARIES)}, got {name}")
    return names


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--suite",
    "suites",
    multiple=True,
    type=click.Choice([*SUITES, *PROGRAMS]),
    default=("week5",),
    show_default=True,
    help="What to measure; may be repeated.",
)
@click.option("--threads", callback=_threads, default="1", show_default=True, help="Such as 1,2.")
@click.option(
    "--against",
    callback=_against,
    default="numpy,torch",
    show_default=True,
    help=f"Some of {','.join(LIBRARIES)}.",
)
@click.option("--only", default="", metavar="REGEX", help="Cases in whose names this is found.")
@click.option("--rounds", type=click.IntRange(min=1), default=Plan.rounds, show_default=True)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    default=Plan.budget,
    show_default=True,
    help="Seconds a case after which no round begins.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--plot", type=click.Path(path_type=Path, file_okay=False), help="Folder for PNG and SVG."
)
def main(
    suites: tuple[str, ...],
    threads: list[int],
    against: list[str],
    only: str,
    rounds: int,
    budget: float,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    """Measure the course's compiler side by side with libraries that do the same.

    A ratio is our time over theirs: below 1, this compiler is faster. The suites `rewrite` and
    `compiling` measure the compiler itself, next to tinygrad, `cold` next to torch.compile;
    `training` measures steps of training (`python -m grader.bench.training --help`).
    """
    console = table.console()
    for suite in suites:
        if suite in PROGRAMS:
            console.print(f"{TITLES[suite]} (below 1: this compiler is faster)")
            PROGRAMS[suite].main(args=[], standalone_mode=False)
            continue
        try:
            cases = compare.choose(suite, only)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        found = compare.Comparison(suite, threads, against)
        found.measure(cases, Plan(rounds, budget), console, json_file)
        found.show(console)
        if plot is not None:
            try:
                drawn = draw(found.rows, suite, detect(), plot)
            except NoPlotError as error:
                raise click.ClickException(str(error)) from None
            console.print(f"drawn: {', '.join(map(str, drawn))}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
