"""The command `grader`.

Exit status: 0 if all tests ran and passed, 1 if not, 2 if the question makes no sense.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.table import Table

from grader import failures, gates, repro, sandbox
from grader.adversary.command import adversary
from grader.classes.command import class_
from grader.doctor import doctor
from grader.formats.commands import packages, points, schema
from grader.formats.outputs import Outputs, file_options
from grader.gates import GateResult
from grader.new import new
from grader.report import Screen, show
from grader.results import RunResult
from grader.session import Options, run_week, spec_tests
from grader.submission import Submission, SubmissionError, load
from grader.verdict import Verdict, clean
from grader.weeks import WEEKS, Week, week_of

CONSOLE = Console()
ERRORS = Console(stderr=True)
STATE = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of stored failures [default: $XDG_STATE_HOME/grader or .grader].",
)


def refuse(why: object) -> NoReturn:
    """End with one sentence and exit status 2."""
    text = why.args[0] if isinstance(why, KeyError) else why
    ERRORS.print(clean(f"grader: {text}"), markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--week", "numbers", type=int, multiple=True, help="This week; may be repeated.")
@click.option("--upto", type=int, help="All weeks up to this one.")
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    help="Judge the submission in this folder [default: the reference].",
)
@file_options
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@click.option("--no-shrink", is_flag=True, help="Do not look for smaller failing programs.")
@click.option("--timeout", type=click.FloatRange(min=0.01), help="Seconds for one answer.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Tests at a time.")
@click.option("--sanitize", is_flag=True, help="Build the emitted C with sanitizers.")
@click.option("--allow-skips", is_flag=True, help="Tests that are skipped may pass.")
@click.option("--no-gates", is_flag=True, help="Measure no speed.")
@click.option("--gate-rounds", type=click.IntRange(min=3), help="Rounds of measuring a gate.")
@click.option(
    "--sandbox",
    "wanted",
    type=click.Choice(sandbox.CHOICES),
    help="How far untrusted programs are closed off [default: $GRADER_SANDBOX or auto].",
)
@click.option(
    "--require-sandbox",
    "least",
    type=click.Choice(sandbox.LEVELS),
    help="Refuse to run with a weaker sandbox.",
)
@STATE
@click.pass_context
def main(
    context: click.Context,
    numbers: tuple[int, ...],
    upto: int | None,
    submission: Path | None,
    seed: int,
    no_shrink: bool,
    timeout: float | None,
    jobs: int,
    sanitize: bool,
    allow_skips: bool,
    no_gates: bool,
    gate_rounds: int | None,
    wanted: str | None,
    least: str | None,
    state: Path | None,
    outputs: Outputs,
) -> None:
    """Judge a compiler by the course's spec tests.

    Without options: the reference, in all weeks. `--week 3` runs the tests of week 3 alone,
    `--upto 3` those of weeks 1 to 3; `--submission DIR` judges a student's compiler, in the
    weeks that it names if no others are asked for. Weeks with gates are also measured, next to
    NumPy and PyTorch.
    """
    if context.invoked_subcommand is not None:
        if wanted or least:
            settle(wanted, least)
        return
    if (missing := outputs.missing_folder()) is not None:
        refuse(f"no folder {missing} for the file of results")
    run = RunResult(
        "the reference" if submission is None else submission.name,
        None if submission is None else str(submission),
        seed,
        settle(wanted, least),
        datetime.now(UTC).isoformat(timespec="seconds"),
        allow_skips,
    )
    weeks: list[Week] = []
    try:
        weeks = chosen_weeks(numbers, upto, None)
        student = None if submission is None else load(submission)
        weeks = chosen_weeks(numbers, upto, student)
        if student is not None:
            run.subject, run.submission = student.name, str(student.folder)
            student.prepare()
    except (SubmissionError, KeyError) as fault:
        outputs.refused(run, weeks, fault)
        refuse(fault)
    folder = None if student is None else student.folder
    options = Options(folder, seed, state, not no_shrink, timeout, jobs, sanitize)

    def gate_events(week: Week) -> Iterator[GateResult | str]:
        found = None if no_gates else gates.gates_of(week.package)
        if found is not None:
            yield from gates.run(
                week, found, submission=options.submission, seed=seed, rounds=gate_rounds
            )

    perform(run, weeks, options, outputs, gate_events)
    show(CONSOLE, run)
    sys.exit(0 if run.passed else 1)


def settle(wanted: str | None, least: str | None) -> str:
    """The sandbox for this run and what it starts; one that cannot be had is refused."""
    try:
        return sandbox.choose(wanted, least)
    except sandbox.SandboxError as fault:
        refuse(fault)


def chosen_weeks(
    numbers: Sequence[int], upto: int | None, student: Submission | None
) -> list[Week]:
    """The weeks asked for, in order; a KeyError or SubmissionError says why there are none."""
    if upto is not None:
        week_of(upto)
        numbers = [*numbers, *range(1, upto + 1)]
    elif not numbers:
        existing = [n for week in WEEKS for n in range(week.first, week.last + 1)]
        numbers = [n for n in existing if student is None or n in student.weeks]
    found = {week_of(number).first: week_of(number) for number in numbers}
    weeks = [found[first] for first in sorted(found)]
    if student is not None:
        for week in weeks:
            student.expect_named(week)
        if not weeks:
            done = ", ".join(map(str, student.weeks))
            why = f"{student.name} names the weeks {done}, of which none exists yet"
            raise SubmissionError(why)
    return weeks


def perform(
    run: RunResult,
    weeks: Sequence[Week],
    options: Options,
    outputs: Outputs,
    gate_events: Callable[[Week], Iterable[GateResult | str]],
) -> None:
    """Run the weeks one after the other; the results are written after every test and gate."""
    start = time.monotonic()
    screen = Screen(CONSOLE)

    def save() -> None:
        run.seconds = time.monotonic() - start
        outputs.write(run)

    with outputs.kept(run), screen.showing(run):
        for week in weeks:
            run.complete = False
            for result in run_week(week, options):
                if not run.weeks or run.weeks[-1] is not result:
                    run.weeks.append(result)
                screen.update(run, result)
                save()
            screen.end_week()
            for event in gate_events(week):
                if not isinstance(event, str):
                    run.weeks[-1].gates.append(event)
                screen.gate(run, event)
                save()
        run.complete = True
        save()


@main.command("list")
@STATE
def list_(state: Path | None) -> None:
    """Show the weeks and the stored failures."""
    weeks = Table("week", "package", "spec test files")
    for week in WEEKS:
        weeks.add_row(week.title, week.package, str(len(spec_tests(week))))
    CONSOLE.print(weeks)
    folder = failures.state_folder(state)
    stored = Table("id", "week", "verdict", "test", "compiler")
    for kept in failures.stored(folder):
        compiler = Path(kept["submission"]).name if kept["submission"] else "reference"
        stored.add_row(kept["id"], str(kept["week"]), kept["verdict"], kept["sentence"], compiler)
    if stored.row_count:
        CONSOLE.print(stored)
    else:
        CONSOLE.print(f"No stored failures in {folder}.", markup=False)


@main.command("repro")
@click.argument("name", metavar="ID")
@click.option("--timeout", type=click.FloatRange(min=0.01), help="Seconds for one answer.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write [default: repro-ID].",
)
@STATE
def repro_(name: str, timeout: float | None, to: Path | None, state: Path | None) -> None:
    """Write a stored failure to the folder repro-ID, and judge it again."""
    try:
        kept = failures.find(name, failures.state_folder(state))
        folder = to or Path(f"repro-{kept['id']}")
        repro.write_folder(kept, folder)
        outcomes = repro.again(kept, timeout)
    except (KeyError, SubmissionError, OSError) as fault:
        refuse(fault)
    CONSOLE.print(failures.text(kept), markup=False, highlight=False, soft_wrap=True)
    CONSOLE.print(f"\nwritten to {folder}/; judged again:", markup=False)
    for file, failure in outcomes:
        says = str(failure) if failure else str(Verdict.OK)
        CONSOLE.print(clean(f"{file}: {says}"), markup=False, highlight=False, soft_wrap=True)
    sys.exit(1 if any(failure for _, failure in outcomes) else 0)


main.add_command(class_)
main.add_command(new)
main.add_command(doctor)
main.add_command(schema)
main.add_command(points)
main.add_command(packages)
main.add_command(adversary)

if __name__ == "__main__":
    main()
