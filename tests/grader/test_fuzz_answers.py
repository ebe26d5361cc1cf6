"""The grader judges ten thousand hostile answers: each has a verdict, soon, and leaves nothing.

An answer stands in for one of an honest conversation, and goes through what judges those of a
submission. The next submission, an honest one, is judged as it was before.
"""

import functools
import gc
import json
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from grader import failures, oracle, run_c, serve
from grader.judge import Judge
from grader.sandbox import MIB, Completed, Limits
from grader.serve import Server
from grader.shrink import Budget
from grader.smaller import smaller
from grader.subject import InProcess, SubprocessCompiler
from grader.verdict import SpecFailure, Verdict, clean
from grader.weeks import CONFORMANCE, OPS, week_of
from tests.grader import hostile_answers
from tests.grader.compilers import Conversation
from week01_uops.interchange import ReadErrors, from_json
from week01_uops.node import UOp

FEW, MANY = 200, 10_000
SECONDS = 0.3
"""Of processor time, for one program to be read or evaluated; ten times that for a whole check."""
LARGEST = 1024 * MIB
SCALARS = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 900]}
    y = PARAM : {"slot": 3, "dtype": "int32", "shape": []}
    c = CONST : {"value": 12, "dtype": "int32"}
    d = FLOORDIV x c
    e = MUL d c
    f = FLOORMOD x c
    g = ADD e f
    h = ADD g y
    return h d
    """
SIMPLER = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 900]}
    y = PARAM : {"slot": 3, "dtype": "int32", "shape": []}
    c = CONST : {"value": 12, "dtype": "int32"}
    d = FLOORDIV x c
    h = ADD x y
    return h d
    """
ARRAYS = """
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
    m = REDUCE x : {"op": "MAX", "axes": 1}
    n = NEG m
    d = ADD x n
    e = EXP2 d
    t = PERMUTE e : [1, 0]
    return t
    """
LOOPS = """
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5]}
    a = ALLOC : {"slot": 0, "dtype": "float32", "shape": [5]}
    r = RANGE : {"id": 0, "size": 5}
    p = INDEX x r
    v = LOAD p
    w = MUL v v
    q = INDEX a r
    s = STORE q w
    e = END s r
    f = AFTER a e
    return f
    """
LOSS = """
    x = PARAM : {"slot": 1, "dtype": "float32", "shape": [4]}
    y = MUL x x
    z = EXP2 y
    s = REDUCE z : {"op": "ADD", "axes": 1}
    return s
    """
QUESTIONS = {
    "accepts": (10, "accepts", SCALARS, {}),
    "simplifies": (10, "simplifies", SCALARS, {"to": SIMPLER, "at_most": 5, "without": ["MUL"]}),
    "keeps": (10, "keeps", SCALARS, {"ops": ["FLOORDIV"]}),
    "settles": (10, "settles", SCALARS, {}),
    "canonical": (10, "canonical", SCALARS, {}),
    "arrays": (10, "accepts", ARRAYS, {}),
    "loops": (10, "accepts", LOOPS, {}),
    "rejects": (10, "rejects", "return x", {"code": "E201", "line": 2}),
    "refused bytes": (10, "rejects", b"uops 1\n\xff\n", {"code": "E1", "raw": True}),
    "emits": (10, "emits", ARRAYS, {"kernels_at_most": 9, "workspace_at_most": 900}),
    "runs": (10, "runs", ARRAYS, {}),
    "grad": (10, "differentiates", LOSS, {}),
    "grad again": (10, "differentiates", LOSS, {"times": 2, "draws": 1}),
    "grad compiled": (10, "differentiates", LOSS, {"compiled": True, "draws": 1}),
    "values": (4, "conforms", str(CONFORMANCE / "week03/right/reduce-axes.uop"), {}),
    "errors": (1, "conforms", str(CONFORMANCE / "week01/wrong/several-errors.uop"), {}),
    "no derivative": (10, "conforms", str(CONFORMANCE / "week09/wrong/two-outputs.uop"), {}),
}
DECLARED = frozenset(Verdict) - {Verdict.OK, Verdict.GRADER}


@pytest.fixture(scope="module")
def conversations():
    """What an honest compiler says to each question."""
    found = {}
    for name, (week, claim, *_) in QUESTIONS.items():
        reference = week_of(4 if claim in ("emits", "runs") else week).reference()
        found[name] = Conversation(InProcess(reference, week))
    return found


@pytest.fixture
def without_gcc(monkeypatch):
    """Emitted C is not compiled: whatever it is, it does what the program says."""

    def run(library, program, calls, *_, **__):
        return [oracle.run(program, call) for call in calls]

    monkeypatch.setattr(run_c, "build", lambda source, **_: source[:4].encode())
    monkeypatch.setattr(run_c, "workspace", lambda *_, **__: 0)
    monkeypatch.setattr(run_c, "run", run)


def judged(name, compiler) -> SpecFailure | None:
    """How the question ends for a compiler; None if it passes."""
    week, claim, text, arguments = QUESTIONS[name]
    return caught(lambda: Judge(compiler, week, seconds=SECONDS).check(claim, text, **arguments))


def caught(check) -> SpecFailure | None:
    try:
        check()
    except SpecFailure as failure:
        return failure
    return None


def outcome(name: str, conversation: Conversation) -> SpecFailure | None:
    conversation.asked = 0
    return judged(name, conversation)


def is_told(failure: SpecFailure, judge: Judge, *, shrinks: bool) -> None:
    """A failure can be made smaller, kept, and shown."""
    assert failure.verdict in DECLARED, failure
    if shrinks:
        smaller(judge, failure, Budget(seconds=0.1, tries=3))
    kept = failures.record(failure, week=judge.week, seed=0, submission=None)
    assert json.loads(json.dumps(kept))["verdict"] == failure.verdict
    assert len(failures.text(kept)) < 60_000
    assert clean(failures.text(kept)) == failures.text(kept)


def resident(name: str) -> int:
    rows = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(row.split()[1] for row in rows if row.startswith(name)))


class Cost:
    """The processor time and the memory that a block takes."""

    def __enter__(self):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        self.start, self.before = time.process_time(), resident("VmRSS")
        return self

    def __exit__(self, *_):
        self.seconds = time.process_time() - self.start
        self.bytes = resident("VmHWM") - self.before


def fault_of(number: int, name: str, talk: Conversation, seen: Counter[str]) -> str:
    """What is wrong with how the grader took one hostile answer; empty if nothing is."""
    rng = random.Random(f"answer {number}")
    at = rng.randrange(len(talk.told))
    talk.instead = (at, hostile_answers.answer(rng, talk.told[at]))
    with Cost() as cost:
        try:
            failure = outcome(name, talk)
            if failure is not None:
                judge = Judge(talk, QUESTIONS[name][0], seconds=SECONDS)
                is_told(failure, judge, shrinks=rng.random() < 0.05)
        except Exception:  # whatever escapes is what is looked for
            return traceback.format_exc()
    verdict = Verdict.OK if failure is None else failure.verdict
    seen[verdict] += 1
    if cost.seconds > 10 * SECONDS or cost.bytes > LARGEST:
        return f"{cost.seconds:.1f} s and {cost.bytes // MIB} MiB: {failure}"
    if number % 20 == 0 or verdict in (Verdict.TIMEOUT, Verdict.MEMORY):
        talk.instead = (len(talk.told), talk.told[0])
        if found := outcome(name, talk):
            return f"afterwards an honest one: {found}"
    return ""


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_each_answer_has_a_verdict(count, conversations, without_gcc):
    names = list(QUESTIONS)
    for name in names:
        conversations[name].instead = None
        conversations[name].told.clear()
        assert outcome(name, conversations[name]) is None, name
    gc.collect()
    nodes = len(UOp._table)
    seen: Counter[str] = Counter()
    faults = []
    for number in range(count):
        name = names[number % len(names)]
        if fault := fault_of(number, name, conversations[name], seen):
            faults.append(f"{number}, {name}: {fault}")
    assert not faults, "\n".join((f"{len(faults)} of {count}", *faults[:20]))
    assert sum(seen.values()) == count
    print(dict(seen))  # noqa: T201 - shown with -rP
    assert len(seen) >= 8, seen
    gc.collect()
    assert len(UOp._table) < nodes + 1000


def parsed(data, rng):
    """What a server's process said, in pieces; no process is needed for that."""
    running = serve._Running.__new__(serve._Running)
    running.limits, running.answer = Limits(output=MIB, errors=MIB), bytearray()
    while data:
        size = rng.choice((1, 7, 100, len(data)))
        running.answer += data[:size]
        data = data[size:]
        try:
            found = running._parsed()
        except serve._NoAnswerError as fault:
            return fault
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_each_frame_of_a_server_is_an_answer_or_none(count):
    seen = set()
    for number in range(count):
        rng = random.Random(f"frame {number}")
        stdout, stderr = rng.randbytes(rng.randrange(50)), rng.randbytes(rng.randrange(9))
        data = hostile_answers.frame(rng, stdout, stderr)
        found = parsed(data, rng)
        if isinstance(found, serve._NoAnswerError):
            assert found.verdict in DECLARED
            assert len(found.note) < 1200
            seen.add(found.verdict)
        else:
            assert found is None or (found[0] in (0, 1) and len(found[1]) <= len(data))
            seen.add(found is None)
    assert {Verdict.PROTOCOL, Verdict.OUTPUT, Verdict.CRASH, True, False} <= seen


def code_of(twin: bytes) -> str:
    """The first code with which a twin is refused."""
    try:
        from_json(twin, ops=OPS, week=4)
    except ReadErrors as errors:
        return errors.diagnostics[0].code
    return "read"


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_each_twin_is_a_program_or_reports(count, conversations):
    reference = InProcess(week_of(4).reference(), 4)
    honest = [
        reference.ask(["simplify"], "uops 1\n" + text).stdout.encode() for text in (ARRAYS, LOOPS)
    ]
    seen = set()
    for number in range(count):
        rng = random.Random(f"twin {number}")
        data = hostile_answers.twin(rng, rng.choice(honest))
        if rng.random() < 0.8:
            data = rng.choice(hostile_answers.TEXT_CHANGES)(rng, data)
        seen.add(code_of(data))
    assert "read" in seen
    assert len(seen) > 5


# Processes ----------------------------------------------------------------------------------

PROCESSES = 25
SAYS = "cat out; cat err >&2; exit $(cat status)"


@pytest.mark.parametrize("count", [PROCESSES, pytest.param(400, marks=pytest.mark.nightly)])
def test_a_process_that_answers_so(count, conversations, without_gcc, tmp_path):
    """The same through the sandbox; and the next one, an honest compiler, passes."""
    names = list(QUESTIONS)
    for number in range(count):
        rng = random.Random(f"process {number}")
        name = names[number % len(names)]
        talk = conversations[name]
        talk.instead = None
        talk.told.clear()
        assert outcome(name, talk) is None
        given = hostile_answers.answer(rng, talk.told[0])
        for file, data in {"out": given.stdout, "err": given.stderr}.items():
            (tmp_path / file).write_bytes(data)
        (tmp_path / "status").write_text(str((given.status or 0) % 256))
        process = SubprocessCompiler(["sh", "-c", SAYS], tmp_path, QUESTIONS[name][0])
        failure = judged(name, process)
        assert failure is None or failure.verdict in DECLARED, failure


def asked(server: Server, seconds: float, verb: str) -> Completed:
    """The answer within so many seconds, of a new process or of one that runs."""
    server.limits = Limits(seconds=seconds)
    if server._running is not None:
        server._running.limits = server.limits
    return server.ask([verb], b"uops 1\n")


SERVES = """
import json, pathlib, sys
read, write = sys.stdin.buffer, sys.stdout.buffer
while line := read.readline():
    asked = json.loads(line)
    read.read(asked["bytes"])
    write.write(pathlib.Path("frames", asked["verb"][0]).read_bytes())
    write.flush()
"""


@pytest.mark.parametrize("count", [PROCESSES, pytest.param(400, marks=pytest.mark.nightly)])
def test_a_server_that_answers_so(count, tmp_path):
    """Each answer is that of its request alone: an honest one follows."""
    (tmp_path / "frames").mkdir()
    (tmp_path / "server.py").write_text(SERVES)
    good = b'{"status": 0, "stdout": 4, "stderr": 0}\ngood'
    (tmp_path / "frames" / "good").write_bytes(good)
    for number in range(count):
        rng = random.Random(f"frame {number}")
        data = hostile_answers.frame(rng, rng.randbytes(40), b"words")
        (tmp_path / "frames" / str(number)).write_bytes(data)
    server = Server([sys.executable, "server.py"], tmp_path)
    try:
        for number in range(count):
            run = asked(server, 0.3, str(number))
            assert run.verdict in DECLARED | {Verdict.OK}, (number, run)
            after = asked(server, 60.0, "good")
            if after.note == "the server wrote before it was asked":
                after = asked(server, 60.0, "good")
            assert after.stdout == b"good", (number, after)
    finally:
        server.close()


@pytest.mark.parametrize("count", [6, pytest.param(300, marks=pytest.mark.nightly)])
def test_odd_c_has_a_verdict(count):
    """Text that is damaged C goes to the compiler, and what that makes of it is run."""
    reference = InProcess(week_of(4).reference(), 4)
    honest = reference.ask(["compile", "--target", "c"], "uops 1\n" + ARRAYS).stdout.encode()
    for number in range(count):
        rng = random.Random(f"C {number}")
        talk = Conversation(reference)
        talk.told = [Completed(Verdict.OK, 0, hostile_answers.c_text(rng, honest), b"", 0.0)]
        talk.instead = (0, talk.told[0])
        judge = Judge(talk, 4, seconds=1.0)
        for claim, bounds in (("emits", {"workspace_at_most": 1 << 20}), ("runs", {})):
            failure = caught(functools.partial(judge.check, claim, ARRAYS, **bounds))
            assert failure is None or failure.verdict in DECLARED, failure
    talk.told = [Completed(Verdict.OK, 0, honest, b"", 0.0)]
    talk.instead = (1, talk.told[0])
    Judge(talk, 4).runs(ARRAYS, draws=1)


def test_memory_is_measured():
    """The peak of this process is what it takes."""
    with Cost() as cost:
        kept = np.ones(64 * MIB, np.uint8)
    assert cost.bytes >= kept.nbytes * 0.9
