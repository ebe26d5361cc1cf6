"""The command `grader class`.

Exit status: 0 if every submission has its verdict, 1 if for one of them the fault is ours, 2 if the
question makes no sense.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console

from grader.classes import outputs, similarity
from grader.classes.classroom import Classroom, timed
from grader.classes.cluster import Cluster, ClusterError
from grader.classes.grading import Backend, Local
from grader.classes.intake import folder_name
from grader.classes.roster import Entry, RosterError, read_roster, shown
from grader.classes.screen import Screen, summary
from grader.classes.store import Grade, Store, StoreError
from grader.classes.task import Manner, Outcome
from grader.weeks import week_of

CONSOLE = Console()


class QuestionError(click.ClickException):
    """A question that makes no sense."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """One sentence."""
        click.echo(f"grader: {self.message}", err=True, file=file)


@click.command("class")
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("--week", type=int, required=True, help="The week whose spec tests are run.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of results [default: class-week WEEK].",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Submissions at a time [default: cores].")
@click.option("--force", is_flag=True, help="Grade also what is graded already.")
@click.option("--cluster", metavar="KIND", help="On a cluster: local, slurm, pbs, sge, lsf, …")
@click.option("--workers", type=click.IntRange(min=1), help="Of the cluster [default: cores].")
@click.option("--only", metavar="EXPRESSION", default="", help="Some tests, as for pytest's -k.")
@click.option("--no-gates", is_flag=True, help="Measure no speed.")
@click.option("--gate-rounds", type=click.IntRange(min=3), help="Rounds of measuring a gate.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@click.option("--timeout", type=click.FloatRange(min=0.01), help="Seconds for one answer.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0.01),
    default=Manner.limit,
    show_default=True,
    help="Seconds for one submission.",
)
@click.option("--shrink", is_flag=True, help="Look for smaller failing programs.")
@click.option(
    "--alike",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="From here on two submissions are listed as similar.",
)
def class_(
    submissions: Path,
    week: int,
    out: Path | None,
    jobs: int | None,
    force: bool,
    cluster: str | None,
    workers: int | None,
    only: str,
    no_gates: bool,
    gate_rounds: int | None,
    seed: int,
    timeout: float | None,
    limit: float,
    shrink: bool,
    alike: float,
) -> None:
    """Grade a class: a folder of folders and archives, or a CSV file with name and source.

    A source is a folder, an archive or the URL of a git repository. Results are stored as soon as
    they are known; a run that was interrupted goes on where it was, and one that is repeated
    grades only what is new or changed.
    """
    try:
        package = week_of(week)
        entries = read_roster(submissions)
    except (KeyError, RosterError) as fault:
        raise QuestionError(str(fault.args[0])) from None
    folder = (out or Path(f"class-week{week}")).absolute()
    if folder.resolve().is_relative_to(submissions.resolve()):
        raise QuestionError(f"expected --out outside of {submissions}, got {folder}")
    manner = Manner(
        package.last,
        seed,
        only,
        not no_gates,
        gate_rounds,
        timeout,
        shrink,
        limit,
        str(folder / "state"),
    )
    cores = len(os.sched_getaffinity(0))

    def open_backend() -> Backend:
        return Cluster(cluster, workers or cores) if cluster else Local(jobs or cores, manner)

    try:
        store = Store(folder)
    except (StoreError, OSError) as fault:
        raise QuestionError(str(fault)) from None
    try:
        room = Classroom(entries, manner, store, folder, force)
        with Screen(CONSOLE).showing() as screen:
            pace = timed(lambda: room.grade(open_backend, screen))
        grades = store.grades(manner.week, [shown(entry.name) for entry in entries])
        for line in summary(grades, pace):
            CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)
        _leave(folder, entries, grades, store, manner, alike, package.title)
    except ClusterError as fault:
        raise QuestionError(str(fault)) from None
    finally:
        store.close()
    sys.exit(1 if any(grade.outcome is Outcome.GRADER for grade in grades) else 0)


def _leave(
    folder: Path,
    entries: Sequence[Entry],
    grades: Sequence[Grade],
    store: Store,
    manner: Manner,
    alike: float,
    title: str,
) -> None:
    """Write the files, and say what stands in them."""
    outputs.write_grades(folder / "grades.csv", grades)
    outputs.write_leaderboard(folder / "leaderboard.html", grades, f"Leaderboard, {title}")
    sources = {
        shown(entry.name): similarity.of_folder(place)
        for entry in entries
        if (place := folder / "submissions" / folder_name(entry.name)).is_dir()
    }
    answers = store.printed(manner.week, list(sources))
    pairs = similarity.pairs(sources, answers, alike)
    outputs.write_pairs(folder / "similarity.csv", pairs)
    for line in similarity.summary(pairs):
        CONSOLE.print(f"alike: {line}", markup=False, highlight=False, soft_wrap=True)
    written = ["grades.csv", "leaderboard.html", "similarity.csv", "class.sqlite"]
    try:
        written += [f.name for f in outputs.draw(folder, grades, f"Scores, {title}")]
    except outputs.NoPlotError as why:
        CONSOLE.print(str(why), markup=False, highlight=False, soft_wrap=True)
    CONSOLE.print(
        f"in {folder}: {', '.join(written)}", markup=False, highlight=False, soft_wrap=True
    )
