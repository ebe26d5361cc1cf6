"""Run a function in a forked child: a crash of compiled code is a failure like any other."""

import os
import pickle
import signal
from collections.abc import Callable
from typing import Any


def isolated(function: Callable[[], Any], seconds: int = 20) -> Any:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(function, writer, seconds)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise AssertionError(f"the child died of {signal.Signals(os.WTERMSIG(status)).name}")
    kind, value = pickle.loads(content)
    if kind == "error":
        raise AssertionError(value)
    return value


def _answer(function: Callable[[], Any], writer: int, seconds: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        answer = ("value", function())
    except BaseException as error:
        answer = ("error", f"{type(error).__name__}: {error}")
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(pickle.dumps(answer))
    os._exit(0)
