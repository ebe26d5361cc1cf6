"""The processes of a grader at work, found from outside."""

from __future__ import annotations

from collections.abc import Iterator

from grader.processes import PROC, table


def workers(of: int) -> Iterator[int]:
    """Of a process's cluster, the workers that have a submission graded."""
    parents = {process.pid: process.parent for process in table()}
    for pid in parents:
        above = [pid]
        while above[-1] in parents:
            above.append(parents[above[-1]])
        warm = [b"grader.classes.warm" in command(number) for number in above[:3]]
        if warm == [True, True, False] and of in above[3:]:
            yield above[2]


def command(pid: int) -> bytes:
    """A process's words; empty if it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def commands() -> str:
    """The words of all processes, whichever number they have in a sandbox."""
    pids = (process.pid for process in table())
    return "\n".join(command(pid).decode("utf-8", "replace") for pid in pids)
