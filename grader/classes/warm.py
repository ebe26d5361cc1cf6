"""`python -m grader.classes.warm SOCKET MANNER`: a process that forks one for each submission.

What is the same for all submissions is done once: the imports, pytest's collection of the week's
spec tests, and a rehearsal of these on the reference, so that the oracle knows its answers. A fork
finds all of it in its memory, has seen no other submission, and nothing that happens there comes
back.

A request on the socket is one byte with four descriptors: what becomes the fork's standard input,
where it tells, its standard error, and a pipe on which this process says the fork's number, and
when the fork has ended its wait status, a line each. The end of the socket is the end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from grader import known, session
from grader.classes import one
from grader.classes.task import Manner, Tell
from grader.session import Options
from grader.stream import Stream
from grader.submission import Submission
from grader.weeks import week_of

DESCRIPTORS = 4
REHEARSAL = 30.0
"""Seconds for the tests on the reference; where they take longer, the rest is not known before."""


def main() -> None:
    """Collect, rehearse, and fork until nobody asks any more."""
    manner = Manner(**json.loads(sys.argv[2]))
    asked = socket.socket(fileno=int(sys.argv[1]))
    options = Options(None, manner.seed, manner.state_folder, manner.shrink, manner.timeout)
    words = session.command(week_of(manner.week), options, plugins=["pytest_benchmark.plugin"])
    only = ["-k", manner.only] if manner.only else []
    sys.exit(pytest.main(["-s", *only, *words], plugins=[_Forking(asked)]))


class _Forking:
    """In the place of pytest's own loop over the tests."""

    def __init__(self, asked: socket.socket) -> None:
        self.asked = asked

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run them all once, then in each fork."""
        known.remember()
        end = time.monotonic() + REHEARSAL
        _run(session, lambda: time.monotonic() > end or _is_gone(self.asked))
        known.close()
        gc.collect()
        gc.freeze()
        serve(self.asked, partial(_graded, session))
        return True


def _run(session: pytest.Session, is_over: Callable[[], bool] = lambda: False) -> None:
    run = session.config.hook.pytest_runtest_protocol
    for item, following in pairwise([*session.items, None]):
        over = is_over()
        run(item=item, nextitem=None if over else following)
        if over:
            return


def _is_gone(asked: socket.socket) -> bool:
    """Whether there is nobody left who could ask."""
    try:
        return not asked.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def _graded(session: pytest.Session, descriptors: Sequence[int]) -> None:
    """In a fork: grade what is asked for on its standard input."""
    stdin, tells, stderr, report = descriptors
    os.close(report)
    with open(os.devnull, "wb") as nowhere:
        for old, new in ((stdin, 0), (nowhere.fileno(), 1), (stderr, 2)):
            os.dup2(old, new)
    with open(tells, "wb", buffering=0) as out:
        one.main(os.fdopen(0, "rb", closefd=False), out, partial(_tests, session))


def _tests(session: pytest.Session, student: Submission, tell: Tell) -> str:
    """Run the collected tests on a submission; why that is no good, or an empty text."""
    if not session.items:
        return "no tests were found"
    plugins, stream = session.config.pluginmanager, Stream(tell)
    plugin: Any = plugins.get_plugin("grader.plugin")
    session.config.stash[plugin.SUBMISSION] = student
    plugins.register(stream)
    stream.pytest_collection_finish(session)
    _run(session)
    return ""


def serve(asked: socket.socket, graded: Callable[[Sequence[int]], None]) -> None:
    """Fork for each request until the other end of the socket is gone."""
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.data is not None:
                    selector.unregister(key.fd)
                    key.data.report(key.fd)
                elif (found := _received(asked)) is None:
                    return
                else:
                    pid = os.fork()
                    if pid == 0:
                        _become(selector, found, graded)
                    fork = _Fork(pid, found)
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, fork)


def _received(asked: socket.socket) -> list[int] | None:
    flags = socket.MSG_CMSG_CLOEXEC
    message, found, *_ = socket.recv_fds(asked, 1, DESCRIPTORS, flags)
    return found if message else None


class _Fork:
    """One that runs, as seen from here."""

    def __init__(self, pid: int, descriptors: Sequence[int]) -> None:
        self.pid = pid
        *others, self.pipe = descriptors
        for descriptor in others:
            os.close(descriptor)
        self._say(pid)

    def report(self, descriptor: int) -> None:
        """It has ended."""
        os.close(descriptor)
        self._say(os.waitpid(self.pid, 0)[1])
        os.close(self.pipe)

    def _say(self, number: int) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.pipe, b"%d\n" % number)


def _become(
    selector: selectors.BaseSelector,
    descriptors: Sequence[int],
    graded: Callable[[Sequence[int]], None],
) -> None:
    """In a fork: let go of what belongs to others, do the work, end."""
    status = 1
    try:
        os.setsid()
        for descriptor in _theirs(selector):
            os.close(descriptor)
        selector.close()
        graded(descriptors)
        status = 0
    except BaseException as error:  # said to whoever asked; nothing goes on from here
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _theirs(selector: selectors.BaseSelector) -> Iterator[int]:
    for key in list(selector.get_map().values()):
        yield key.fd
        if key.data is not None:
            yield key.data.pipe


if __name__ == "__main__":
    main()
