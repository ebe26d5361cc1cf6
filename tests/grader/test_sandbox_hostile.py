"""Hostile programs: no crash of the grader, no hang, no escape, and a next run as any other."""

import os
import signal
import socket
import sys
import textwrap
from pathlib import Path

import pytest

from grader import processes
from grader.sandbox import LEVELS, MIB, VARIABLE, Limits, run, trouble
from grader.sandbox.landlock import stays_open
from grader.sandbox.world import remove
from grader.verdict import Verdict

QUICK = Limits(seconds=20.0, memory=200 * MIB, tasks=40)


@pytest.fixture(params=[level for level in LEVELS if level != "none"], autouse=True)
def level(request, monkeypatch):
    """Every level that works here; afterwards the sandbox still answers."""
    if why := trouble(request.param):
        pytest.skip(f"{request.param} does not work here: {why}")
    monkeypatch.setenv(VARIABLE, request.param)
    yield request.param
    assert run(["echo", "well"]).stdout == b"well\n"


def expect(level: str, what: str) -> None:
    """Skip where a level cannot do what the test is about."""
    if level == "rlimit":
        pytest.skip(f"rlimit cannot keep a program from {what}")


def expect_closed(level: str, words: str) -> None:
    """Skip where the kernel's Landlock is too old for what the test is about."""
    for gap in stays_open() if level == "landlock" else ():
        if words in gap:
            pytest.skip(f"with this kernel's Landlock {gap}")


def python(code: str, *arguments: object, limits: Limits = QUICK, **where):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return run(command, limits=limits, **where)


def alive(marker: str) -> bool:
    for process in processes.table():
        try:
            command = (processes.PROC / str(process.pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in command:
            return True
    return False


@pytest.fixture(autouse=True)
def _no_folder_is_left(tmp_path_factory, monkeypatch):
    """HOMEs are gone with their runs."""
    place = tmp_path_factory.mktemp("homes")
    place.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


def test_fork_bomb():
    ended = python("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass")
    assert ended.verdict in (Verdict.CRASH, Verdict.MEMORY)  # forked memory is counted too


def test_ten_gigabytes():
    code = "kept = []\nfor _ in range(160): kept.append(bytearray(b'x') * (64 << 20))"
    assert python(code).verdict is Verdict.MEMORY


def test_endless_output():
    assert run(["yes"], limits=Limits(output=MIB)).verdict is Verdict.OUTPUT


def test_endless_loop_in_an_exit_handler():
    code = "import atexit\n@atexit.register\ndef f():\n  while True: pass"
    assert python(code, limits=Limits(seconds=1.0)).verdict is Verdict.TIMEOUT


def test_a_child_in_an_exit_handler():
    code = """
    import atexit, subprocess
    atexit.register(subprocess.Popen, ["sleep", "97531"], start_new_session=True)
    """
    assert python(code).status == 0
    assert not alive("97531")


def test_a_daemon_that_leaves_the_session():
    code = """
    import os
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvpe("sleep", ["sleep", "97532"], {})
        os._exit(0)
    os.wait()
    """
    assert python(code).status == 0
    assert not alive("97532")


def test_signals_to_the_grader(level):
    expect(level, "signals to processes of the same user")
    expect_closed(level, "signals")
    got = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: got.append(number))
    code = """
    import os, signal, sys
    for pid in (int(sys.argv[1]), os.getppid(), -1):
        try: os.kill(pid, signal.SIGUSR1)
        except OSError: pass
    """
    try:
        python(code, os.getpid())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert got == []


def test_reading_a_home_and_the_state(level, tmp_path, monkeypatch):
    expect(level, "reading files of its user")
    place, home, state = (tmp_path / name for name in ("submission", "home", "state"))
    for folder in (place, home, state):
        folder.mkdir()
        (folder / "file").write_text(f"words of the {folder.name}")
    monkeypatch.setenv("HOME", str(home))
    code = """
    import sys
    for name in sys.argv[1:]:
        try: print(open(name).read())
        except OSError as error: print(error)
    """
    files = ["file", home / "file", "../state/file", f"/proc/{os.getpid()}/environ"]
    said = python(code, *files, cwd=place).stdout.decode()
    assert "words of the submission" in said
    assert "words of the home" not in said
    assert "words of the state" not in said
    assert VARIABLE not in said


def test_secrets_of_the_system(level):
    expect(level, "reading files of its user")
    secret = Path("/etc/shadow")
    if not secret.is_file() or secret.stat().st_mode & 0o004:
        pytest.skip(f"{secret} is no secret here")
    ended = run(["sh", "-c", f"cat /etc/passwd; ls /etc; cat {secret}"])
    assert ended.status == 1
    assert b"root:" in ended.stdout
    assert b"shadow\n" in ended.stdout
    assert b"Permission denied" in ended.stderr


def test_writing_and_deleting(level, tmp_path):
    expect(level, "writing where its user may")
    place = tmp_path / "submission"
    place.mkdir()
    kept = [place / "kept", tmp_path / "kept"]
    for path in kept:
        path.write_text("kept")
    code = """
    import os, shutil, sys
    for name in sys.argv[1:]:
        for act in (lambda: open(name, "a").write("more"), lambda: os.remove(name),
                    lambda: os.rename(name, name + "2"), lambda: os.symlink("x", name + "3"),
                    lambda: os.mkdir(name + "4"), lambda: shutil.rmtree(os.path.dirname(name))):
            try: act()
            except OSError: pass
    open(os.environ["HOME"] + "/mine", "w").write("allowed")
    """
    before = sorted(tmp_path.rglob("*"))
    assert python(code, *kept, cwd=place).status == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert [path.read_text() for path in kept] == ["kept", "kept"]


def test_cutting_files_elsewhere(level, tmp_path):
    expect(level, "writing where its user may")
    expect_closed(level, "cut to nothing")
    (tmp_path / "kept").write_text("kept")
    python("import os, sys; os.truncate(sys.argv[1], 0)", tmp_path / "kept", cwd=tmp_path)
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_build_writes_in_its_folder_and_nowhere_else(level, tmp_path):
    expect(level, "writing where its user may")
    place = tmp_path / "submission"
    place.mkdir()
    (place / "old").write_text("old")
    command = "echo new > made; echo new >> old; chmod +x old; mkdir -p a/b; echo x > ../escaped"
    run(["sh", "-c", command], cwd=place, writes=True)
    assert (place / "made").read_text() == "new\n"
    assert (place / "old").read_text() == "old" + "new\n"
    assert not (tmp_path / "escaped").exists()
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {os.getuid()}


def test_network(level):
    expect(level, "the network")
    expect_closed(level, "TCP")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
        ended = python(code, port)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert ended.status == 1


def test_descriptors_of_the_grader(tmp_path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        code = """
        import os
        for descriptor in range(3, 200):
            try: os.write(descriptor, b"words")
            except OSError: pass
        """
        assert python(code).status == 0
    assert (tmp_path / "open").read_text() == ""


def test_core_dump(tmp_path):
    code = "ulimit -c unlimited; kill -SEGV $$"
    ended = run(["sh", "-c", code], cwd=tmp_path, writes=True)
    assert ended.note == "SIGSEGV"
    assert list(tmp_path.iterdir()) == []


def test_a_file_larger_than_allowed(tmp_path):
    limits = Limits(file_size=MIB)
    command = ["sh", "-c", "exec head -c 9000000 /dev/zero > big"]
    ended = run(command, cwd=tmp_path, limits=limits, writes=True)
    assert ended.verdict is Verdict.OUTPUT
    assert (tmp_path / "big").stat().st_size == MIB


@pytest.mark.parametrize("deep", [0, pytest.param(2100, marks=pytest.mark.nightly)])
def test_folders_too_deep_for_a_path(level, tmp_path, deep):
    """What is left behind is given back and removed, however deep, and locked for its owner."""
    if level != next(name for name in reversed(LEVELS) if not trouble(name)):
        pytest.skip("as at the strongest level")
    code = """
    import os, sys
    here = os.getcwd()
    for place, depth in ((os.environ["HOME"], 1100), (here, int(sys.argv[1]))):
        os.chdir(place)
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        if depth: os.chmod(".", 0)
    """
    ended = python(code, deep, cwd=tmp_path, writes=True)
    assert (ended.verdict, ended.status) == (Verdict.OK, 0), ended
    remove(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_scratch_space_has_an_end(level):
    if level != "bwrap":
        pytest.skip(f"{level} has no scratch space of its own")
    code = """
    for n in range(9):
        with open(f"/tmp/{n}", "wb") as file: file.write(bytes(2 ** 19))
    """
    ended = python(code, limits=Limits(file_size=MIB))
    assert ended.status == 1
    assert b"No space left" in ended.stderr


def test_root_is_left_behind(level):
    if os.getuid() != 0 or level == "rlimit":
        pytest.skip("about root, which rlimit does not change")
    said = run(["sh", "-c", "id -u; grep CapEff /proc/self/status"]).stdout.split()
    assert said[-1] == b"0" * 16
    assert (said[0] == b"0") == (level == "landlock")


def test_private_folders_can_be_judged(tmp_path):
    place = tmp_path / "submission"
    place.mkdir(mode=0o700)
    (place / "program").write_text("#!/bin/sh\necho well\n")
    (place / "program").chmod(0o755)
    assert run(["./program"], cwd=place).stdout == b"well\n"


def test_processes_of_others_are_not_seen(level):
    if level != "bwrap":
        pytest.skip(f"{level} does not hide the list of processes")
    said = run(["sh", "-c", "echo /proc/[0-9]*"]).stdout.split()
    assert f"/proc/{os.getpid()}".encode() not in said
    assert len(said) < 5
    assert Path(f"/proc/{os.getpid()}").exists()
