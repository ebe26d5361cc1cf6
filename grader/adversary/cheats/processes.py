"""Programs and compilers that abuse their process: time, memory, output, children, the network."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading

from grader.adversary.case import Cheat, Outcome
from grader.adversary.cheats.ways import SOFTMAX, Run, asked, closed_off, program, runs
from grader.sandbox import MIB
from grader.verdict import Verdict

WEEK = 3
LATER = """
static const float *x_;
static float *y_;
static void work(void) { compute(x_, y_); }
static void *later(void *none) { usleep(300000); work(); return none; }
"""
FORGED = (
    'const char *says = "{\\"verdict\\": \\"ok\\", \\"passed\\": true}\\n0\\n1\\nok\\n";'
    "for (int file = 0; file < 64; file++) if (file != 2 && write(file, says, strlen(says)) < 0) {}"
)
OWN_FILES = (
    "char name[16]; static float zeros[N]; for (int k = 0; k < 9; k++) {"
    'snprintf(name, sizeof name, "out.%d", k); FILE *file = fopen(name, "wb");'
    "if (file) { fwrite(zeros, sizeof zeros, 1, file); fclose(file); } } _exit(0);"
)
ASKS = """
#include <arpa/inet.h>
static int answered(void) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return !connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&there, sizeof there);
}
"""


def _network() -> Outcome:
    """Somebody outside has the right answer, and listens."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=_accept, args=(server,), daemon=True).start()
        port = str(server.getsockname()[1])
        return runs(program("if (answered()) compute(x, y);", ASKS.replace("PORT", port)))()


def _accept(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()


def _shell(script: str, seconds: float = 10.0) -> Run:
    command = ("sh", "-c", script)
    return asked({}, command, "runs", SOFTMAX, seconds=seconds, output=MIB)


CHEATS = (
    Cheat(
        "background-thread",
        WEEK,
        "leaves the work to a thread, and returns at once",
        Verdict.WRONG,
        runs(
            program(
                "x_ = x; y_ = y; pthread_t one; pthread_create(&one, 0, later, 0);"
                "pthread_detach(one);",
                LATER,
            )
        ),
    ),
    Cheat(
        "exit-handler",
        WEEK,
        "leaves the work to a function that is called when the process ends",
        Verdict.WRONG,
        runs(program("x_ = x; y_ = y; atexit(work);", LATER)),
    ),
    Cheat(
        "destructor",
        WEEK,
        "leaves the work to the destructor of its library",
        Verdict.WRONG,
        runs(
            program(
                "x_ = x; y_ = y;",
                LATER + "__attribute__((destructor)) static void last(void) { if (x_) work(); }",
            )
        ),
    ),
    Cheat(
        "forged-words",
        WEEK,
        "writes that it has passed to every file that is open",
        Verdict.WRONG,
        runs(program(FORGED)),
    ),
    Cheat(
        "forged-files",
        WEEK,
        "writes the files of outputs by itself, and ends the process",
        Verdict.WRONG,
        runs(program(OWN_FILES)),
    ),
    Cheat(
        "endless-loop",
        WEEK,
        "never returns",
        Verdict.TIMEOUT,
        runs(program("for (;;) usleep(1000);"), seconds=0.5),
    ),
    Cheat(
        "endless-output",
        WEEK,
        "prints without an end",
        Verdict.OUTPUT,
        runs(program("for (;;) puts(__FILE__ __FILE__ __FILE__ __FILE__);")),
    ),
    Cheat(
        "fork-bomb",
        WEEK,
        "starts processes without an end",
        Verdict.CRASH,
        runs(program("for (;;) fork();")),
    ),
    Cheat(
        "huge-allocation",
        WEEK,
        "takes all the memory that it can get",
        Verdict.MEMORY,
        runs(
            program("for (;;) memset(malloc(1 << 22), 1, 1 << 22);"),
            memory=256 * MIB,
        ),
    ),
    Cheat(
        "network",
        WEEK,
        "asks somebody else for the answer",
        Verdict.WRONG,
        closed_off(_network, "bwrap"),
    ),
    Cheat(
        "compiler-hangs",
        WEEK,
        "a compiler that never answers",
        Verdict.TIMEOUT,
        _shell("while :; do :; done", seconds=0.5),
    ),
    Cheat(
        "compiler-floods",
        WEEK,
        "a compiler that prints without an end",
        Verdict.OUTPUT,
        _shell("yes"),
    ),
    Cheat(
        "compiler-eats-memory",
        WEEK,
        "a compiler that takes all the memory that it can get",
        Verdict.MEMORY,
        asked(
            {"eat.py": "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (1 << 22))\n"},
            (sys.executable, "eat.py"),
            "runs",
            SOFTMAX,
            memory=256 * MIB,
        ),
    ),
)
