"""`uopc`: check, format, evaluate, simplify, draw, compile and run programs.

With no FILE a command reads standard input, so that the reference is a submission like any other.
Faults of a program go to standard error, and the exit status is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
import numpy as np
from rich.console import Console

from projects.uopc import embedding, generating, training
from projects.uopc.checking import Checker
from projects.uopc.explaining import Explainer, explanation_json, machine_json
from projects.uopc.graph import GraphError, draw
from projects.uopc.inputs import InputError, load_inputs
from projects.uopc.nests import is_nest, program_lines
from projects.uopc.reports import Form, Reporter, as_json
from projects.uopc.schedules import read_schedules, schedules_text
from projects.uopc.show import Printer
from projects.uopc.weeks import LATEST, WEEKS, Week
from week01_uops.errors import CompilerError, ProgramError
from week01_uops.interchange import ReadErrors, read, to_json, write
from week01_uops.interface import Target, UnsupportedError
from week01_uops.node import UOp
from week01_uops.passes import Observer, verifier
from week02_render.places import OutOfBoundsError
from week02_render.runtime import CheckError, load
from week02_render.sanitize import SanitizerError, run_sanitized
from week02_render.toolchain import BuildError
from week05_06_memory.evaluate import evaluate
from week05_06_memory.explain import Explanation
from week05_06_memory.machine import detect
from week05_06_memory.scheduling import Arranged
from week09_10_autodiff.training.loop import DivergedError
from week09_10_autodiff.training.optional import MissingLibraryError

F = TypeVar("F", bound=Callable[..., Any])
EXPECTED = (
    *(CompilerError, UnsupportedError, GraphError, InputError),
    *(BuildError, CheckError, SanitizerError, OutOfBoundsError),
    *(DivergedError, MissingLibraryError),
    *(ValueError, TypeError),
)
"""Faults that are told in a sentence, without a traceback."""

LEVELS = ("tensor", "loop", "tile", "kernel", "source")

WIDE = 160
"""Columns of tables that are not shown in a terminal."""


def fail(message: str) -> None:
    """Print a fault and end with status 1."""
    click.echo(message, err=True)
    sys.exit(1)


def reports_faults(function: F) -> F:
    """A command whose faults become sentences on standard error and exit status 1."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return function(*args, **kwargs)
        except ReadErrors as error:
            fail(str(error))
        except ProgramError as error:
            fail(f"<program>:1:1: {error}" if not str(error).startswith("<") else str(error))
        except OSError as error:
            fail(f"uopc: {f'{error.filename}: {error.strerror}' if error.filename else error}")
        except EXPECTED as error:
            fail(f"uopc: {error}")

    return run  # type: ignore[return-value]


def source_file(function: F) -> F:
    """The FILE argument (standard input if absent) and the --week option."""
    function = click.argument("file", required=False, type=click.Path(path_type=Path))(function)
    return click.option(
        "--week",
        type=click.IntRange(1, LATEST),
        default=LATEST,
        show_default=True,
        help="Accept the ops of weeks 1 to N, and use week N's compiler.",
    )(function)


def read_file(file: Path | None, week: int) -> UOp:
    """The program in a file or on standard input."""
    content = sys.stdin.buffer.read() if file is None else file.read_bytes()
    name = "<stdin>" if file is None else str(file)
    return read(content, file=name, ops=WEEKS[LATEST].ops, week=week)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The reference compiler of the course, on programs in the UOp interchange format."""


@main.command()
@source_file
@reports_faults
def check(file: Path | None, week: int) -> None:
    """Report everything that is wrong with a program; silent if nothing is."""
    read_file(file, week)


@main.command()
@source_file
@click.option("-i", "--in-place", is_flag=True, help="Write the result back to FILE.")
@click.option("--json", "as_twin", is_flag=True, help="Print the JSON twin instead.")
@reports_faults
def fmt(file: Path | None, week: int, in_place: bool, as_twin: bool) -> None:
    """Print a program in canonical form."""
    program = read_file(file, week)
    text = json.dumps(to_json(program)) + "\n" if as_twin else write(program)
    if in_place and file is not None:
        file.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)


@main.command()
@source_file
@reports_faults
def simplify(file: Path | None, week: int) -> None:
    """Print an equal program, simpler."""
    click.echo(write(WEEKS[week].reference.simplify(read_file(file, week))), nl=False)


def schedule_option(function: F) -> F:
    """The file of given schedules."""
    return click.option(
        "--schedule",
        "schedule_file",
        type=click.Path(path_type=Path),
        help="Arrange the kernels named in this JSON file as it says.",
    )(function)


def inputs_option(function: F) -> F:
    """Arrays for the PARAMs."""
    return click.option(
        "--input",
        "-I",
        "inputs",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A .npy file for each PARAM, in the order of slots; or one .npz keyed by slot.",
    )(function)


def output_option(function: F) -> F:
    """Where the results go."""
    return click.option(
        "--output",
        "-o",
        "output",
        type=click.Path(path_type=Path),
        help="Write the outputs to this .npz (keys 0, 1, …) instead of printing them.",
    )(function)


def give(results: list[np.ndarray], output: Path | None) -> None:
    """Print arrays, or save them."""
    if output is not None:
        named: dict[str, Any] = {str(k): array for k, array in enumerate(results)}
        np.savez(output, **named)
        return
    for number, array in enumerate(results):
        click.echo(f"output {number}: {array.dtype}{list(array.shape)}")
        click.echo(np.array2string(array, threshold=200))


@main.command("eval")
@source_file
@inputs_option
@output_option
@reports_faults
def evaluate_command(
    file: Path | None, week: int, inputs: tuple[Path, ...], output: Path | None
) -> None:
    """Evaluate a program with the interpreter."""
    program = read_file(file, week)
    give(evaluate(program, load_inputs(program, inputs)), output)


@main.command()
@source_file
@inputs_option
@output_option
@schedule_option
@click.option("--sanitize", is_flag=True, help="Check bounds and undefined behaviour.")
@reports_faults
def run(
    file: Path | None,
    week: int,
    inputs: tuple[Path, ...],
    output: Path | None,
    schedule_file: Path | None,
    sanitize: bool,
) -> None:
    """Compile a program to C, and run it."""
    program = read_file(file, week)
    arrays = load_inputs(program, inputs)
    used = WEEKS[week].arranged(read_schedules(schedule_file))
    artifact = used.reference.compile(program, "c", checked=sanitize)
    if sanitize:
        give(run_sanitized(artifact, program, arrays), output)
    else:
        give(load(artifact, program).run(arrays), output)


@main.command()
@source_file
@click.option("-o", "output", required=True, type=click.Path(path_type=Path))
@click.option("--level", type=click.Choice(LEVELS[:-1]), help="Draw the program at this level.")
@reports_faults
def graph(file: Path | None, week: int, output: Path, level: str | None) -> None:
    """Draw a program as a picture: .svg, .png, .pdf, or the .dot text that makes one."""
    program = read_file(file, week)
    if level is not None:
        program = WEEKS[week].pipeline.run(program, until=level)
    draw(program, output)


@main.command()
@source_file
@click.option("--target", default="c", help="The language of the result: c.")
@click.option("--ir", type=click.Choice(LEVELS), default="source", help="The level to print.")
@click.option(
    "--as",
    "form",
    type=click.Choice(("nest", "uops")),
    help="Print loops as nests (the default of -vv) or as a list of uops (that of --ir).",
)
@schedule_option
@click.option(
    "--schedule-out",
    "schedule_output",
    type=click.Path(path_type=Path),
    help="Write the schedules that were used here, to be changed and given back.",
)
@click.option("-v", "verbose", count=True, help="Name every pass; -vv shows what each changed.")
@click.option("--check", "checked", is_flag=True, help="Evaluate after every pass and compare.")
@click.option("--json", "json_report", is_flag=True, help="Print kernels, passes, counts, times.")
@click.option("--sanitize", is_flag=True, help="Print the debug build: bounds are checked.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the result here.")
@reports_faults
def compile(  # noqa: A001 - the verb of the stable interface
    file: Path | None,
    week: int,
    target: str,
    ir: str,
    form: Form | None,
    schedule_file: Path | None,
    schedule_output: Path | None,
    verbose: int,
    checked: bool,
    json_report: bool,
    sanitize: bool,
    output: Path | None,
) -> None:
    """Compile a program, and print it at any level."""
    program = read_file(file, week)
    console = Console(stderr=True, highlight=False)
    reporter = Reporter(console, diffs=verbose > 1, form=form or "nest")
    observers: list[Observer] = [reporter]
    if checked:
        observers += [verifier, Checker(program)]
    used = WEEKS[week].arranged(read_schedules(schedule_file), reporter.arranged)
    if ir != "source":
        text = printed(used.pipeline.run(program, observers, until=ir), form or "uops")
    else:
        text = source(used, program, target, observers, sanitize)
    if schedule_output is not None:
        schedule_output.write_text(schedules_text(reporter.kernels), encoding="utf-8")
    if verbose:
        reporter.table()
    if checked:
        click.echo(f"checked: {len(reporter.steps)} passes keep the meaning", err=True)
    if json_report:
        told = as_json(reporter.steps, text if ir == "source" else None, reporter.kernels)
        text = json.dumps(told, indent=2) + "\n"
    if output is not None:
        output.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)


def printed(program: UOp, form: Form) -> str:
    """The text of a program at a level."""
    if form == "uops":
        return "\n".join(["uops 1", *Printer().lines(program), ""])
    if not is_nest(program):
        raise ValueError("expected a level of loops for --as nest: loop, tile or kernel")
    return "\n".join([*program_lines(program), ""])


def source(week: Week, program: UOp, target: str, observers: list[Observer], sanitize: bool) -> str:
    """The text that a program ends in."""
    if target not in get_args(Target):
        raise UnsupportedError(f"expected a target ({', '.join(get_args(Target))}), got {target}")
    return week.reference.compile(program, target, observers, checked=sanitize).source  # type: ignore[arg-type]


@main.command()
@source_file
@schedule_option
@click.option("--kernel", "kernel", help="Explain only the kernel of this name.")
@click.option("--json", "json_report", is_flag=True, help="Print plain data.")
@reports_faults
def explain(
    file: Path | None, week: int, schedule_file: Path | None, kernel: str | None, json_report: bool
) -> None:
    """Say what each loop is to each access, what bounds a kernel, and why it is arranged so."""
    program = read_file(file, week)
    kernels: list[Arranged] = []
    used = WEEKS[week]
    if not used.has_schedules:
        raise UnsupportedError(f"week {week} has no schedules to explain; they come in week 5")
    used.arranged(read_schedules(schedule_file), kernels.append).pipeline.run(program, until="tile")
    names = [done.kernel for done in kernels]
    if kernel is not None and kernel not in names:
        raise ValueError(f"expected the name of a kernel ({', '.join(names)}), got {kernel}")
    machine = detect()
    told = [Explanation(done, machine) for done in kernels if kernel in (None, done.kernel)]
    if json_report:
        report = {"machine": machine_json(machine), "kernels": [explanation_json(t) for t in told]}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    explainer = Explainer(console if console.is_terminal else Console(highlight=False, width=WIDE))
    explainer.start(machine)
    for item in told:
        explainer.kernel(item)


@main.command()
@source_file
@click.option("--wrt", required=True, help="PARAM slots, as in 0,2.")
@reports_faults
def grad(file: Path | None, week: int, wrt: str) -> None:
    """Print the program's derivatives (from week 9 on)."""
    if not all(slot.strip().isdecimal() for slot in wrt.split(",")):
        raise ValueError(f"expected slots as numbers, 0,2 say, got --wrt {wrt}")
    slots = [int(slot) for slot in wrt.split(",")]
    click.echo(write(WEEKS[week].reference.grad(read_file(file, week), slots)), nl=False)


@main.command()
@generating.options
@reports_faults
def generate(**given: Any) -> None:  # noqa: ANN401 - the arguments of run
    """Go on from a text, with the language model in a Hugging Face folder."""
    generating.run(**given)


@main.command()
@embedding.options
@reports_faults
def embed(**given: Any) -> None:  # noqa: ANN401 - the arguments of run
    """Print vectors of texts, the lines of FILE, by the encoder in a Hugging Face folder."""
    embedding.run(**given)


@main.command()
@training.options
@reports_faults
def train(**given: Any) -> None:  # noqa: ANN401 - the arguments of run
    """Train a language model; CONFIG is a TOML file, the default one if it is not given."""
    training.run(**given)


if __name__ == "__main__":
    main()
