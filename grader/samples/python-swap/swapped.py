"""The course's week-3 compiler with one pass exchanged, as a command.

The pass `loops` asks each op for one element by a table of rows; `movement.py` has other rows for
the movement ops, and `replace_pass` puts the pass that is made of them in the old one's place.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from movement import INDEX_MAPS

from week01_uops.errors import ProgramError
from week01_uops.interchange import ReadErrors, read, write
from week01_uops.reference import Reference
from week02_render import compiler as week02
from week02_render.lower import moved
from week03_loops import compiler as week03
from week03_loops.ops import OPS

ROWS = {**week03.ROWS, **{op: moved(of) for op, of in INDEX_MAPS.items()}}
CHAIN = week03.COMPILER.replace_pass("loops", week02.loops(ROWS, week03.LOOP))
COMPILER = Reference(CHAIN, week03.REFERENCE.renderers)
USAGE = "expected simplify, or compile --target c, each perhaps with --week N"


def answer(words: Sequence[str], text: bytes) -> tuple[int, str, str]:
    """The exit status, the output and the errors of one request."""
    verb, week = list(words), 3
    if len(verb) > 2 and verb[-2] == "--week" and verb[-1].isdecimal():
        week = min(week, int(verb[-1]))
        del verb[-2:]
    if verb not in (["simplify"], ["compile", "--target", "c"]):
        return 1, "", f"{USAGE}, got {' '.join(words)}\n"
    try:
        program = read(text, ops=OPS, week=week)
        if verb == ["simplify"]:
            return 0, write(COMPILER.simplify(program)), ""
        return 0, COMPILER.compile(program).source, ""
    except ReadErrors as errors:
        return 1, "", f"{errors}\n"
    except ProgramError as error:
        return 1, "", f"<stdin>:1:1: {error}\n"


def serve() -> None:
    """Answer requests until there are no more: a line of JSON and the program, each."""
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        program = sys.stdin.buffer.read(request["bytes"])
        status, *texts = answer(request["verb"], program)
        stdout, stderr = (text.encode("utf-8", "surrogatepass") for text in texts)
        head = {"status": status, "stdout": len(stdout), "stderr": len(stderr)}
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + stdout + stderr)
        sys.stdout.buffer.flush()


def main(words: Sequence[str]) -> int:
    """One request from the command line, or a server."""
    if list(words) == ["serve"]:
        serve()
        return 0
    status, stdout, stderr = answer(words, sys.stdin.buffer.read())
    sys.stdout.buffer.write(stdout.encode("utf-8", "surrogatepass"))
    sys.stderr.buffer.write(stderr.encode("utf-8", "surrogatepass"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
