"""A failure as a record: what the reports show, what is stored, and how it is found again.

Keys of a record (all JSON): id, test, sentence, week, submission (a folder or null), reference,
checked, sanitize (the options), seed, check, arguments, sent, verdict, message, program, verb,
command, result, stderr, difference (output, index, expected, got, count, total, note; or null),
inputs (by slot), expected, got (arrays), shrunk, shrunk_check, shrunk_arguments,
shrunk_difference, shrunk_result, and once stored, file (where the program lies).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.codec import encode
from grader.verdict import Difference, SpecFailure, clean, excerpt

Record = dict[str, Any]

LARGEST = 4 << 20
"""Bytes of arrays and of output that are stored with a failure; larger ones are left out."""


def record(failure: SpecFailure, *, week: int, seed: int, submission: Path | None) -> Record:
    """Everything about a failure; the test's name and sentence are added by the plugin."""
    evidence = failure.evidence
    arrays = [*evidence.inputs.values(), *evidence.expected, *evidence.got]
    keep = sum(array.nbytes for array in arrays) <= LARGEST
    kept: Record = {
        "week": week,
        "submission": None if submission is None else str(submission),
        "seed": seed,
        "check": evidence.check,
        "arguments": encode(dict(evidence.arguments)),
        "sent": encode(evidence.sent),
    }
    # The folder's name alone: wherever a class is graded, its failures are called the same.
    of = {**kept, "submission": submission and submission.name}
    digest = hashlib.sha256(json.dumps([of, str(failure.verdict)], sort_keys=True).encode())
    return kept | {
        "id": digest.hexdigest()[:8],
        "verdict": str(failure.verdict),
        "message": failure.sentence,
        "program": evidence.program,
        "verb": evidence.verb,
        "command": evidence.command,
        "result": evidence.result[:LARGEST],
        "stderr": evidence.stderr[:LARGEST],
        "difference": _plain(evidence.difference),
        "inputs": encode(dict(evidence.inputs)) if keep else None,
        "expected": encode(list(evidence.expected)) if keep else None,
        "got": encode(list(evidence.got)) if keep else None,
        "shrunk": evidence.shrunk,
        "shrunk_check": evidence.shrunk_check,
        "shrunk_arguments": encode(dict(evidence.shrunk_arguments)),
        "shrunk_difference": _plain(evidence.shrunk_difference),
        "shrunk_result": evidence.shrunk_result[:LARGEST],
    }


def _plain(difference: Difference | None) -> dict[str, Any] | None:
    return asdict(difference) if difference else None


def text(kept: Record, lines: int = 24) -> str:
    """The failure as a reader wants to see it, on a terminal too: clean."""
    return clean("\n".join(_parts(kept, lines)))


def _parts(kept: Record, lines: int) -> Iterator[str]:
    yield f"{kept['verdict']}: {kept['message']}"
    yield from _block("program", kept["program"], lines)
    printed, whose = kept["result"], ""
    if kept["shrunk"]:
        title = "smallest program found that fails in the same way"
        yield from _block(title, kept["shrunk"], lines)
        if kept["shrunk_difference"]:
            yield f"its first difference: {Difference(**kept['shrunk_difference'])}"
        printed, whose = kept["shrunk_result"], " for it"
    if kept["verdict"] in _PRINTED and printed:
        yield from _block(f"{kept['verb']} printed{whose}", printed, lines)
    if kept["stderr"]:
        yield from _block("standard error", kept["stderr"], 10)
    if kept["command"]:
        yield f"run: {kept['command']} < {kept.get('file', 'program.uop')}"
    yield f"again: grader repro {kept['id']}"


_PRINTED = {"wrong answer", "bound missed", "protocol error", "wrong program accepted"}


def _block(title: str, body: str, lines: int) -> Iterator[str]:
    yield f"{title}:"
    for line in excerpt(body, lines).splitlines():
        yield f"    {line}"


def state_folder(given: Path | None = None) -> Path:
    """Where failures are kept: as given, under XDG_STATE_HOME if it is set, else .grader here."""
    if given is not None:
        return given
    home = os.environ.get("XDG_STATE_HOME")
    return Path(home) / "grader" if home else Path(".grader")


def store(kept: Record, state: Path) -> Record:
    """Write a record and its program, whole or not at all; the record with the program's path."""
    folder = (state / "failures").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (ignore := state / ".gitignore").exists():
        ignore.write_text("*\n")
    sent = folder / f"{kept['id']}.uop"
    kept = kept | {"file": str(sent)}
    write_whole(sent, kept["program"])
    write_whole(folder / f"{kept['id']}.json", json.dumps(kept, indent=1))
    return kept


def write_whole(path: Path, content: str) -> None:
    """Put a file in place at once, so that no reader ever sees half of it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(content, encoding="utf-8", errors="surrogateescape")
    partial.replace(path)


def find(name: str, state: Path) -> Record:
    """The record whose id is, or starts with, `name`; a KeyError says what is wrong with it."""
    folder = state / "failures"
    found = sorted(p for p in folder.glob("*.json") if p.stem.startswith(name))
    if len(found) == 1:
        kept: Record = json.loads(found[0].read_text())
        return kept
    if found:
        raise KeyError(f"{name} could be {', '.join(p.stem for p in found)}")
    raise KeyError(f"no failure {name} in {folder}")


def stored(state: Path) -> Iterator[Record]:
    """All stored failures, the oldest first."""
    files = (state / "failures").glob("*.json")
    for path in sorted(files, key=lambda path: (path.stat().st_mtime, path.name)):
        kept: Record = json.loads(path.read_text())
        yield kept
