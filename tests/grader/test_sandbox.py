"""Every limit of the sandbox, each with a program that passes it."""

import signal
import sys
import textwrap
import time

import pytest

from grader import processes
from grader.sandbox import MIB, Limits, environment, run
from grader.sandbox.world import TOOLCHAINS
from grader.verdict import Verdict

QUICK = Limits(seconds=5.0)


def python(code: str, *, limits: Limits = QUICK, stdin: bytes = b""):
    return run([sys.executable, "-c", textwrap.dedent(code)], stdin, limits=limits)


def alive(marker: str) -> list[int]:
    found = []
    for process in processes.table():
        try:
            command = (processes.PROC / str(process.pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in command:
            found.append(process.pid)
    return found


def test_output_status_and_errors():
    ended = run(["sh", "-c", "cat; echo no >&2; exit 3"], b"text")
    assert (ended.verdict, ended.status) == (Verdict.OK, 3)
    assert (ended.stdout, ended.stderr) == (b"text", b"no\n")


def test_large_input_and_output():
    data = b"x" * (20 * MIB)
    assert run(["cat"], data, limits=Limits(output=30 * MIB)).stdout == data


def test_input_that_nobody_reads():
    assert run(["true"], b"x" * (4 * MIB)).status == 0


def test_wall_clock():
    start = time.monotonic()
    ended = run(["sleep", "60"], limits=Limits(seconds=0.3))
    assert ended.verdict is Verdict.TIMEOUT
    assert "0.3 s" in ended.note
    assert time.monotonic() - start < 30


def test_busy_loop():
    assert python("while True: pass", limits=Limits(seconds=0.5)).verdict is Verdict.TIMEOUT


def test_memory():
    code = """
    import time
    kept = [bytearray(b"x" * 2**20) for _ in range(400)]
    time.sleep(30)
    """
    ended = python(code, limits=Limits(seconds=20.0, memory=150 * MIB))
    assert ended.verdict is Verdict.MEMORY
    assert "150 MiB" in ended.note


def test_memory_of_children_counts():
    code = """
    import os, time
    for _ in range(4):
        if os.fork() == 0:
            kept = b"x" * (80 * 2**20)
            time.sleep(30)
    time.sleep(30)
    """
    assert python(code, limits=Limits(memory=200 * MIB)).verdict is Verdict.MEMORY


@pytest.mark.parametrize("descriptor", [1, 2])
def test_endless_output(descriptor):
    code = f"""
    import os
    while True: os.write({descriptor}, b"x" * 65536)
    """
    ended = python(code, limits=Limits(output=MIB, errors=MIB))
    assert ended.verdict is Verdict.OUTPUT
    assert len(ended.stdout) <= MIB
    assert len(ended.stderr) <= MIB


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGFPE])
def test_signal_has_its_name(number):
    ended = python(f"import os; os.kill(os.getpid(), {int(number)})")
    assert (ended.verdict, ended.note) == (Verdict.CRASH, number.name)


def test_no_core_file(tmp_path):
    run(["sh", "-c", "kill -SEGV $$"], cwd=tmp_path, writes=True)
    assert list(tmp_path.iterdir()) == []


def test_file_size(tmp_path):
    limits = Limits(file_size=MIB)
    ended = run(
        ["sh", "-c", "exec head -c 9000000 /dev/zero > big"],
        cwd=tmp_path,
        limits=limits,
        writes=True,
    )
    assert ended.verdict is Verdict.OUTPUT
    assert (tmp_path / "big").stat().st_size <= MIB


def test_grandchildren_are_ended():
    run(["sh", "-c", "sleep 98761 & (sleep 98762 &) ; exit 0"])
    assert not alive("98761")
    assert not alive("98762")


def test_children_that_leave_the_session_are_ended():
    code = """
    import os, subprocess
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            subprocess.run(["sleep", "98763"])
        os._exit(0)
    os.wait()
    """
    python(code)
    assert not alive("98763")


def test_children_that_hold_the_pipes_do_not_delay_the_end():
    start = time.monotonic()
    ended = run(["sh", "-c", "sleep 60 & echo done"])
    assert ended.stdout == b"done\n"
    assert time.monotonic() - start < 30


def test_children_of_a_run_that_timed_out_are_ended():
    run(["sh", "-c", "sleep 98764 & sleep 98765"], limits=Limits(seconds=0.3))
    assert not alive("98764")
    assert not alive("98765")


def test_fork_bomb():
    code = """
    import os
    while True: os.fork()
    """
    ended = python(code, limits=Limits(tasks=40))
    assert ended.verdict in (Verdict.CRASH, Verdict.MEMORY)  # forked memory is counted too
    assert "40 processes" in ended.note or "MiB" in ended.note


def test_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "seed")
    ended = python("import os; print(*sorted(os.environ))")
    known = {"HOME", "LANG", "LC_CTYPE", "PATH", "PWD", "TMPDIR", *TOOLCHAINS}
    assert set(ended.stdout.decode().split()) <= known
    assert "SECRET" not in environment("/nowhere")


def test_home_is_fresh_and_forgotten():
    first = python("import os; print(os.environ['HOME'], os.listdir(os.environ['HOME']))").stdout
    second = python("import os; print(os.environ['HOME'], os.listdir(os.environ['HOME']))").stdout
    assert first != second
    assert first.endswith(b"[]\n")


def test_no_inherited_descriptors(tmp_path):
    with (tmp_path / "secret").open("w") as file:
        file.fileno()
        ended = python("import os; print(sorted(os.listdir('/proc/self/fd')))")
    # 0, 1, 2 and the folder that is being listed.
    assert ended.stdout == b"['0', '1', '2', '3']\n"


def test_missing_program():
    ended = run(["no-such-program"])
    assert ended.verdict is Verdict.GRADER
    assert "no-such-program" in ended.note
