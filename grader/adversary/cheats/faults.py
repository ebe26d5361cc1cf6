"""Ways of failing that a grader may take for passing, or report as another fault."""

from __future__ import annotations

from collections.abc import Sequence

from grader.adversary.case import Cheat, Outcome
from grader.adversary.cheats.ways import SOFTMAX, asked, program, runs
from grader.verdict import Verdict

WEEK = 3
WRONG_PROGRAM = "uops 1\nx = MUL y y\nreturn x\n"
SINGLE = """
uops 1
x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
y = ADD x x
return y
""".lstrip()
OTHER_INPUTS = """
uops 1
x = PARAM : {"slot": 1, "dtype": "float32", "shape": [3, 1000]}
return x
"""


def _says(script: str, claim: str, text: str = SOFTMAX, **arguments: object) -> Outcome:
    command: Sequence[str] = ("sh", "-c", script)
    return asked({}, command, claim, text, week=WEEK, **arguments)()  # type: ignore[arg-type]


def _after_a_hang() -> Outcome:
    """A timeout, and then another question to the same submission, which must be judged."""
    script = "text=$(cat); case $text in *'[3, 1000]'*) sleep 60;; esac; printf '%s\\n' \"$text\""
    first = _says(script, "accepts", SOFTMAX, seconds=0.5)
    then = _says(script, "accepts", SINGLE)
    return then if first.verdict == Verdict.TIMEOUT else first


CHEATS = (
    Cheat(
        "crash-when-done",
        WEEK,
        "has the right results, and then crashes",
        Verdict.CRASH,
        runs(program("compute(x, y); abort();")),
    ),
    Cheat(
        "exit-when-done",
        WEEK,
        "has the right results, and then ends the process with exit status 0",
        Verdict.CRASH,
        runs(program("compute(x, y); exit(0);")),
    ),
    Cheat(
        "null",
        WEEK,
        "writes to address 0",
        Verdict.CRASH,
        runs(program("*(volatile int *)0 = 1;")),
    ),
    Cheat(
        "hangs-first",
        WEEK,
        "hangs once; what is asked after that is judged: a control, which must pass",
        Verdict.OK,
        _after_a_hang,
    ),
    Cheat(
        "no-c",
        WEEK,
        "a compiler that prints words in the place of C",
        Verdict.COMPILE_ERROR,
        lambda: _says("echo all tests passed", "runs"),
    ),
    Cheat(
        "no-entry",
        WEEK,
        "a compiler that prints C without the function program",
        Verdict.COMPILE_ERROR,
        runs("int main(void) { return 0; }"),
    ),
    Cheat(
        "no-program",
        WEEK,
        "a compiler whose simplified program is none",
        Verdict.PROTOCOL,
        lambda: _says("echo ok", "simplifies"),
    ),
    Cheat(
        "no-text",
        WEEK,
        "a compiler that prints bytes that are no text",
        Verdict.PROTOCOL,
        lambda: _says("printf '\\377\\376'", "simplifies"),
    ),
    Cheat(
        "other-inputs",
        WEEK,
        "a compiler whose simplified program reads other inputs",
        Verdict.WRONG,
        lambda: _says(f"printf '%s' '{OTHER_INPUTS.strip()}\n'", "simplifies"),
    ),
    Cheat(
        "silent",
        WEEK,
        "a compiler that prints nothing, with exit status 0",
        Verdict.PROTOCOL,
        lambda: _says(":", "simplifies"),
    ),
    Cheat(
        "refuses-all",
        WEEK,
        "a compiler that refuses a right program",
        Verdict.REFUSED,
        lambda: _says("exit 1", "runs"),
    ),
    Cheat(
        "odd-status",
        WEEK,
        "a compiler that ends with an exit status that means nothing",
        Verdict.CRASH,
        lambda: _says("exit 7", "runs"),
    ),
    Cheat(
        "compiler-crashes",
        WEEK,
        "a compiler that dies of a signal",
        Verdict.CRASH,
        lambda: _says("kill -SEGV $$", "runs"),
    ),
    Cheat(
        "accepts-all",
        WEEK,
        "a compiler that takes a wrong program, with exit status 0",
        Verdict.ACCEPTED,
        lambda: _says("cat", "rejects", WRONG_PROGRAM, code="E3"),
    ),
)
