"""How a cheat is judged: by a claim on what its compiler prints, or by the gate's timed process."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader import gates, sandbox
from grader.adversary.case import Outcome
from grader.bench.apart import LIMITS, Apart
from grader.bench.contractions import gemm
from grader.bench.row import Row
from grader.bench.rows import softmax
from grader.bench.timing import Measurement, Plan, Round
from grader.gates import Gate, Threshold
from grader.judge import Judge
from grader.run_c import RunError
from grader.sandbox import MIB, Limits
from grader.subject import SubprocessCompiler
from grader.verdict import SpecFailure, Verdict
from week01_uops.interchange import write

Run = Callable[[], Outcome]
SKIPPED = "skipped"
PRINT = ("sh", "-c", "cat program.c")

ROWS, COLUMNS = 3, 1000
SOFTMAX = write(softmax("softmax", (ROWS, COLUMNS)).program)
"""What most cheats are asked for; each result is about 0.001, where coarse bounds let 0 pass."""

HEAD = f"""
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum {{ R = {ROWS}, C = {COLUMNS}, N = {ROWS * COLUMNS} }};
static void compute(const float *x, float *y) {{
    for (int r = 0; r < R; r++, x += C, y += C) {{
        float most = x[0], sum = 0;
        for (int c = 1; c < C; c++) most = fmaxf(most, x[c]);
        for (int c = 0; c < C; c++) sum += y[c] = expf(x[c] - most);
        for (int c = 0; c < C; c++) y[c] /= sum;
    }}
}}
"""
CALL = "void program(void *const *in, void *const *out) {{ {} }}"


def program(body: str, before: str = "") -> str:
    """C whose `program` has this body; `x` is the input, `y` the output."""
    return HEAD + before + CALL.format(f"const float *x = in[0]; float *y = out[0]; {body}")


def runs(
    source: str, text: str = SOFTMAX, *, seconds: float = 10.0, memory: int = 2048 * MIB
) -> Run:
    """Judges a compiler that prints one C text, whatever it is asked."""
    return asked({"program.c": source}, PRINT, "runs", text, seconds=seconds, memory=memory)


def asked(
    files: dict[str, str],
    command: Sequence[str],
    claim: str,
    text: str | bytes,
    *,
    week: int = 3,
    seconds: float = 10.0,
    memory: int = 2048 * MIB,
    output: int = 64 * MIB,
    **arguments: object,
) -> Run:
    """Judges a folder with these files and a command that is asked, by a claim of `Judge`.

    The seed is the instructor's: no submission knows it.
    """

    def run() -> Outcome:
        limits = Limits(seconds=seconds, memory=memory, output=output)
        seed = random.SystemRandom().randrange(1, 1 << 31)
        with tempfile.TemporaryDirectory(prefix="grader-cheat-") as name:
            for file, content in files.items():
                (Path(name) / file).write_text(content, encoding="utf-8")
            judge = Judge(SubprocessCompiler(command, Path(name), week, limits), week, seed)
            judge.limits = replace(judge.limits, seconds=seconds, memory=memory)
            try:
                judge.check(claim, text, **arguments)
            except SpecFailure as failure:
                return Outcome(str(failure.verdict), failure.sentence)
        return Outcome(str(Verdict.OK), "every answer was right")

    return run


def closed_off(run: Run, *levels: str) -> Run:
    """The same where the sandbox closes a program off by one of these levels, else skipped."""

    def checked() -> Outcome:
        level = sandbox.level()
        if level in levels:
            return run()
        return Outcome(SKIPPED, f"needs a sandbox of level {' or '.join(levels)}, this is {level}")

    return checked


# Timed programs -----------------------------------------------------------------------------

SIZE = 96
PRODUCT = gemm("gemm", SIZE, SIZE, SIZE)
TIMED_HEAD = f"""
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum {{ S = {SIZE}, N = S * S }};
static void compute(const float *a, const float *b, float *y) {{
    memset(y, 0, N * sizeof *y);
    for (int i = 0; i < S; i++)
        for (int k = 0; k < S; k++)
            for (int j = 0; j < S; j++) y[i * S + j] += a[i * S + k] * b[k * S + j];
}}
"""
HONEST = "compute(a, b, y);"
GAIN = 0.1
"""The ratio to the honest program that a cheat would like to show."""


def timed_program(body: str, before: str = "") -> str:
    """C of a product y = a · b of square matrices whose `program` has this body."""
    pointers = "const float *a = in[0], *b = in[1]; float *y = out[0];"
    return TIMED_HEAD + before + CALL.format(f"{pointers} {body}")


def timed(source: str, *, seconds: float = 2.0) -> Run:
    """Judges C by the samples that a gate takes of it; how fast it is does not matter."""

    def run() -> Outcome:
        found = _measured({"ours": source}, seconds)
        if isinstance(found, Outcome):
            return found
        return Outcome(str(Verdict.OK), "every sample was right")

    return run


def gated(source: str, ratio: float = GAIN) -> Run:
    """Judges C by a gate: at most so many times the time of the honest program.

    What others did to the machine meanwhile, and how far the rounds are apart, is left out: a
    cheat gains more than that.
    """

    def run() -> Outcome:
        found = _measured({"ours": source, "honest": timed_program(HONEST)}, 2.0)
        if isinstance(found, Outcome):
            return found
        row = Row(PRODUCT.name, 1, PRODUCT.flops, PRODUCT.bytes)
        row.take(found)
        row.disturbed = False
        row.ratios = {name: [ratio] * gates.LEAST for name, ratio in row.ratio.items()}
        return _outcome(gates.judge(Gate("gemm", 1, "honest", (Threshold(ratio, 1.0),)), row))

    return run


def _measured(sources: Mapping[str, str], seconds: float) -> Sequence[Round] | Outcome:
    """Rounds, or what is wrong with ours."""
    inputs = PRODUCT.arrays()
    draws = [(drawn, PRODUCT.answer(drawn)) for drawn in map(PRODUCT.draw, range(2))]
    found = Measurement({}, inputs, draws)
    try:
        for name, source in sources.items():
            found.contenders[name] = Apart(PRODUCT, inputs, source, LIMITS.within(seconds))
        found.calibrate()
        rounds = found.rounds(Plan(rounds=2, budget=10))
    except RunError as error:
        return Outcome(str(error.verdict), error.sentence)
    finally:
        found.close()
    if fault := found.faults.get("ours"):
        verdict = fault.verdict if isinstance(fault, RunError) else Verdict.WRONG
        return Outcome(str(verdict), str(fault))
    return rounds


def _outcome(result: gates.GateResult) -> Outcome:
    if result.outcome == "passed":
        return Outcome(str(Verdict.OK), f"{result.ratio:.2g} times the honest program's time")
    told = result.message or f"{result.ratio:.2g} times the honest program's time: nothing gained"
    return Outcome(result.outcome, told)
