"""Servers: many requests in one process; what one does wrong is told, and never a hang."""

import select
import sys
import textwrap

import pytest

from grader.sandbox import Limits
from grader.serve import Server, request
from grader.subject import STATE_LEAKS, ServedCompiler, SubprocessCompiler, judged
from grader.submission import Submission, load
from grader.verdict import Verdict

PROTOCOL = """
import json, os, sys, time, signal
count = 0
read, write = sys.stdin.buffer, sys.stdout.buffer

def reply(status, stdout=b"", stderr=b""):
    head = {"status": status, "stdout": len(stdout), "stderr": len(stderr)}
    put(json.dumps(head).encode() + b"\\n" + stdout + stderr)

def put(data):
    write.write(data)
    write.flush()

while line := read.readline():
    asked = json.loads(line)
    program = read.read(asked["bytes"])
    count += 1
    answer(asked["verb"], program)
"""
GOOD = """
def answer(verb, program):
    if verb == ["die"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    if verb == ["hang"]:
        time.sleep(60)
    reply(int(verb == ["refuse"]), b"%d %s" % (count, program), b"about " + program)
"""


def script(answer):
    before, loop = PROTOCOL.split("while line", 1)
    return before + textwrap.dedent(answer) + "\nwhile line" + loop


@pytest.fixture
def server(tmp_path):
    made = []

    def make(answer, **limits):
        code = tmp_path / "server.py"
        code.write_text(script(answer))
        limits = {"seconds": 10.0} | limits
        made.append(Server([sys.executable, str(code)], tmp_path, Limits(**limits)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_one_process_answers_many(server):
    one = server(GOOD)
    for number in range(1, 4):
        run = one.ask(["simplify"], b"x")
        assert (run.verdict, run.status) == (Verdict.OK, 0)
        assert (run.stdout, run.stderr) == (b"%d x" % number, b"about x")
    assert one.ask(["refuse"], b"").status == 1
    assert one.starts == 1


def test_large_programs_and_answers(server):
    program = b"line\n" * 200_000
    run = server(GOOD).ask(["simplify"], program)
    assert run.stdout == b"1 " + program
    assert run.stderr == b"about " + program[: 1 << 20]


@pytest.mark.parametrize(
    ("verb", "verdict", "says"),
    [("die", Verdict.CRASH, "SIGSEGV"), ("hang", Verdict.TIMEOUT, "more than 0.5 s")],
)
def test_a_fault_counts_for_its_request_alone(server, verb, verdict, says):
    one = server(GOOD, seconds=0.5 if verb == "hang" else 10.0)
    failed = one.ask([verb], b"x")
    assert (failed.verdict, failed.note) == (verdict, says)
    one.limits = Limits()
    assert one.ask(["simplify"], b"x").stdout == b"1 x"
    assert one.starts == 2


@pytest.mark.parametrize(
    ("answer", "verdict", "says"),
    [
        ("put(b'uops 1\\n')", Verdict.PROTOCOL, "answer to begin"),
        ("put(b'[' * 900 + b'\\n')", Verdict.PROTOCOL, "answer to begin"),
        ("put(b'x' * 5000)", Verdict.PROTOCOL, "answer to begin"),
        ("put(b'{\"status\": 0}\\n')", Verdict.PROTOCOL, "answer to begin"),
        (
            'put(b\'{"status": 0, "stdout": -1, "stderr": 0}\\n\')',
            Verdict.PROTOCOL,
            "answer to begin",
        ),
        (
            'put(b\'{"status": true, "stdout": 1, "stderr": 0}\\nx\')',
            Verdict.PROTOCOL,
            "answer to begin",
        ),
        (
            'put(b\'{"status": 0, "stdout": 1, "stderr": 0}\\nxyz\')',
            Verdict.PROTOCOL,
            "2 bytes more",
        ),
        (
            'put(b\'{"status": 0, "stdout": 9, "stderr": 0}\\nxyz\')',
            Verdict.TIMEOUT,
            "more than",
        ),
        (
            'put(b\'{"status": 0, "stdout": 1000000000000, "stderr": 0}\\n\')',
            Verdict.OUTPUT,
            "an answer of 1000000000000",
        ),
        ('put(b\'{"status": 3, "stdout": 0, "stderr": 0}\\n\')', Verdict.CRASH, "exit status 3"),
        ("pass", Verdict.TIMEOUT, "more than"),
        ("write.close(); os.close(1); time.sleep(60)", Verdict.TIMEOUT, "more than"),
        ("sys.exit(0)", Verdict.CRASH, "ended with exit status 0 instead"),
        ("os.write(2, b'!' * 4000); os._exit(1)", Verdict.OUTPUT, "from the server"),
        ("[b'x' * 3_000_000 for _ in range(100)] and time.sleep(60)", Verdict.MEMORY, "64 MiB"),
    ],
)
def test_hostile_answers(server, answer, verdict, says):
    limits = {"seconds": 0.7, "errors": 2000} if "!" in answer else {"seconds": 0.7}
    if verdict is Verdict.MEMORY:
        limits = {"seconds": 10.0, "memory": 64 << 20}
    elif verdict is not Verdict.TIMEOUT:
        limits["seconds"] = 10.0
    run = server(f"def answer(verb, program): {answer}", **limits).ask(["simplify"], b"x")
    assert run.verdict is verdict, run.note
    assert says in run.note


def test_an_answer_before_the_question(server):
    one = server("""
    def answer(verb, program):
        reply(0, program)
        time.sleep(0.3)
        reply(0, program)
    """)
    assert one.ask(["simplify"], b"x").verdict is Verdict.OK
    assert select.select([one._running.stdout], [], [], 10.0)[0]
    run = one.ask(["simplify"], b"x")
    assert (run.verdict, run.note) == (Verdict.PROTOCOL, "the server wrote before it was asked")
    assert one.ask(["simplify"], b"x").verdict is Verdict.OK


def test_a_server_that_is_no_program(tmp_path):
    run = Server(["./gone"], tmp_path).ask(["simplify"], b"")
    assert run.verdict in (Verdict.CRASH, Verdict.TIMEOUT)
    assert run.note


def test_request_form():
    assert request(["grad", "--wrt", "0"], "é".encode()) == (
        b'{"verb": ["grad", "--wrt", "0"], "bytes": 2}\n\xc3\xa9'
    )


ONCE = "import sys; sys.stdout.write(sys.stdin.read())"


def submission(tmp_path, answer):
    (tmp_path / "server.py").write_text(script(answer))
    command = (sys.executable, "-c", ONCE)
    serve = (sys.executable, "server.py")
    return Submission(tmp_path, "Ada", "python", (1,), command, serve=serve)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("def answer(verb, program): reply(0, program, b'a warning')", Verdict.OK),
        ("def answer(verb, program): reply(0, program * count)", Verdict.PROTOCOL),
        ("def answer(verb, program): reply(int(count > 1), program)", Verdict.PROTOCOL),
    ],
)
def test_state_that_leaks_is_found(tmp_path, answer, verdict):
    subject = judged(submission(tmp_path, answer), 1, Limits())
    assert isinstance(subject, ServedCompiler)
    subject.sampled = 1.0
    assert subject.ask(["simplify"], "x").verdict is Verdict.OK
    second = subject.ask(["simplify"], "x")
    assert second.verdict is verdict
    if verdict is not Verdict.OK:
        assert second.note == STATE_LEAKS
    subject.server.close()


def test_without_a_server_each_request_has_a_process(tmp_path):
    text = 'name = "Ada"\nlanguage = "x"\nweeks = [1]\ncompiler = ["cat"]\n'
    (tmp_path / "submission.toml").write_text(text)
    assert type(judged(load(tmp_path), 1, Limits())) is SubprocessCompiler
    (tmp_path / "submission.toml").write_text(text + 'serve = ["cat"]\n')
    assert load(tmp_path).serve == ("cat",)
    assert isinstance(judged(load(tmp_path), 1, Limits()), ServedCompiler)
