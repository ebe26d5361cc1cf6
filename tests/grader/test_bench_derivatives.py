"""Derivatives that are timed: they are right, wrong ones are seen, whoever made them."""

import numpy as np
import pytest

from grader import gates
from grader.bench.apart import Apart
from grader.bench.contenders import LIBRARIES, AbsentError, Ours
from grader.bench.derivative import Input, derivative
from grader.bench.derivatives import Sizes, cross_entropy, embedding, odd_derivatives, training
from grader.bench.suites import SUITES
from grader.bench.timing import Plan
from grader.bench.worker import Job, measure
from grader.run_c import RunError
from grader.weeks import evaluate, week_of
from tests.grader.compilers import ECHO, submission
from week01_uops import ops
from week01_uops.interchange import write
from week03_loops import library
from week09_10_autodiff.compiler import REFERENCE

torch = pytest.importorskip("torch")

ODD = {workload.name: workload for workload in odd_derivatives()}
SMALL = cross_entropy("small", 4, 5)
PLAN = Plan(rounds=1, budget=0)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Small arrays; threads that wait for each other would be all that takes time."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def parts(answer):
    return getattr(answer, "parts", (answer,))


def as_result(arrays):
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def exact(answer):
    return [part.exact.astype(np.float32) for part in parts(answer)]


@pytest.mark.parametrize("case", ODD)
def test_pytorch_gives_the_right_answer(case):
    workload = ODD[case]
    inputs = workload.draw(1)
    contender = LIBRARIES["torch"](workload, inputs)
    contender.take()
    contender.run(2)
    assert workload.answer(inputs).fault(contender.result()) == ""


@pytest.mark.parametrize("case", [name for name in ODD if "gpt" not in name])
def test_the_program_that_is_timed_means_the_right_answer(case):
    workload = ODD[case]
    inputs = workload.draw(2)
    program = workload.timed(REFERENCE.grad)
    assert tuple(node.shape for node in program.src) == workload.outputs
    got = evaluate(program, dict(enumerate(inputs)))
    assert workload.answer(inputs).fault(as_result([np.asarray(x) for x in got])) == ""


@pytest.mark.parametrize("case", ODD)
def test_wrong_derivatives_are_seen(case):
    workload = ODD[case]
    inputs = workload.draw(0)
    answer = workload.answer(inputs)
    right = exact(answer)
    assert answer.fault(as_result(right)) == ""
    for number, array in enumerate(right):
        if not array.any():  # of a softmax of one number
            continue
        for wrong in (np.zeros_like(array), array / 2, array * np.nan, -array):
            given = [*right[:number], wrong, *right[number + 1 :]]
            assert "wrong" in answer.fault(as_result(given)), number


def test_a_step_without_derivatives_is_seen():
    """What AdamW does to every weight with derivatives of zero, or of half the size."""
    workload = ODD["train.gpt.2x7x12"]
    inputs = workload.draw(0)
    answer = workload.answer(inputs)
    tensors = [
        torch.from_numpy(x.astype(np.float64) if x.dtype == np.float32 else x) for x in inputs
    ]
    count = len(workload.wrt)
    right = [torch.from_numpy(part.exact) for part in parts(answer)]
    momenta = right[1 + count : 1 + 2 * count]
    old = tensors[count : 2 * count]
    slopes = [(new - 0.9 * m) / 0.1 for new, m in zip(momenta, old, strict=True)]
    for factor, word in ((1.0, ""), (0.5, "output"), (0.0, "output")):
        scaled = [factor * slope for slope in slopes]
        step = workload.update.torch(torch, right[0], scaled, tensors)
        fault = answer.fault(tuple(x.numpy().astype(np.float32) for x in step))
        assert fault.startswith(word), fault
        assert bool(fault) is bool(word), fault


def test_each_result_of_a_step_is_checked():
    workload = ODD["train.gpt.2x7x12"]
    answer = workload.answer(workload.draw(3))
    right = exact(answer)
    assert len(right) == 1 + 3 * len(workload.wrt) == 37
    for number, array in enumerate(right):
        given = [*right[:number], array * np.float32(1.001), *right[number + 1 :]]
        assert answer.fault(tuple(given)).startswith(f"output {number}: ")


def test_a_wrong_number_of_results_is_seen():
    workload = ODD["grad.attention.2x3x37x5"]
    answer = workload.answer(workload.draw(0))
    right = exact(answer)
    assert answer.fault(tuple(right[:2])) == "expected 3 results, got 2"
    assert answer.fault(right[0]) == "expected 3 results, got 1"
    one = SMALL.answer(SMALL.draw(0))
    assert one.fault(tuple(right)) == "expected one result, got 3"


def test_draws_are_of_their_kinds():
    inputs = [Input((500,), below=3), Input((500,), 0.5, positive=True), Input((500,), 4.0)]
    loss = lambda t, *_: t.zeros(())
    workload = derivative("w", inputs, [2], lambda a, b, c: library.reduce_sum(c), loss, terms=1)
    numbers, positive, normal = workload.draw(0)
    assert [x.dtype for x in workload.arrays()] == [x.dtype for x in (numbers, positive, normal)]
    assert (numbers.dtype, set(numbers)) == (np.dtype(np.int64), {0, 1, 2})
    assert positive.min() >= 0.25
    assert positive.max() <= 0.5
    assert 3 < normal.std() < 5
    assert not np.array_equal(normal, workload.draw(1)[2])
    assert np.array_equal(normal, workload.draw(0)[2])
    assert workload.bytes == 500 * (8 + 4 + 4 + 4)


def test_words_that_do_not_occur_have_no_derivative():
    workload = embedding("e", 3, 7, 2)
    inputs = workload.draw(0)
    answer = workload.answer(inputs)
    absent = sorted(set(range(7)) - set(inputs[1].tolist()))
    got = answer.exact.astype(np.float32)
    got[absent[0], 1] = 1e-20
    assert f"element [{absent[0]}, 1]" in answer.fault(got)


class Grad:
    """The reference with another verb `grad`."""

    def __init__(self, change):
        self.change = change

    def grad(self, program, wrt):
        return self.change(REFERENCE.grad(program, wrt))

    def compile(self, program, target):
        return REFERENCE.compile(program, target)


def half(program):
    return ops.RETURN(*(library.mul(node, 0.5) for node in program.src))


def zeros(program):
    return ops.RETURN(*(library.full(0.0, node.dtype, node.shape) for node in program.src))


@pytest.mark.parametrize("change", [half, zeros])
def test_who_derives_wrongly_is_wrong(change):
    inputs = SMALL.draw(0)
    ours = Ours(SMALL, inputs, Grad(change))
    ours.take()
    ours.run(1)
    assert "(20 of 20 are wrong)" in SMALL.answer(inputs).fault(ours.result())


@pytest.mark.parametrize(
    "program",
    [
        ops.RETURN(ops.param(0, SMALL.dtypes[0], (5, 4))),
        ops.RETURN(*[ops.param(0, SMALL.dtypes[0], (4, 5))] * 2),
        ops.RETURN(ops.param(7, SMALL.dtypes[0], (4, 5))),
    ],
    ids=["shape", "count", "slot"],
)
def test_another_interface_is_refused(program):
    with pytest.raises(RunError, match="another interface"):
        SMALL.timed(lambda *_: program)


STUDENT = """
import sys
with open("derived" if sys.argv[1] == "grad" else "program.c") as file:
    print(file.read())
"""
NO_GRAD = """
import sys
if sys.argv[1] == "grad":
    sys.stderr.write("expected simplify or compile, got grad\\n")
    sys.exit(2)
"""


@pytest.fixture
def small_suite(monkeypatch):
    sizes = Sizes(batch=1, length=4, width=4, heads=2, words=5)
    found = [SMALL, embedding("look-up", 4, 6, 4), training("step", sizes, layers=0)]
    monkeypatch.setitem(SUITES, "week9", lambda: found)
    return {workload.name: workload for workload in found}


def job(folder):
    return Job("week9", (), ("numpy", "torch"), PLAN, week=10, submission=folder)


def test_the_reference_is_measured_in_a_process_of_its_own(small_suite):
    for workload in small_suite.values():
        row = measure(workload, job(None))
        assert row.correct, row.error
        assert row.ratio["torch"] > 0
        assert row.skipped == {"numpy": "NumPy has no function for it"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda program: program, ""),
        (half, "(20 of 20 are wrong)"),
        (zeros, "(20 of 20 are wrong)"),
    ],
    ids=["right", "half", "zeros"],
)
def test_a_submission_is_timed_on_its_own_derivatives(tmp_path, small_suite, change, says):
    folder = submission(tmp_path / "student", STUDENT, weeks=(9,))
    compiler = Grad(change)
    derived = compiler.grad(SMALL.program, SMALL.wrt)
    (folder / "derived").write_text(write(derived))
    (folder / "program.c").write_text(compiler.compile(SMALL.timed(compiler.grad), "c").source)
    row = measure(SMALL, job(str(folder)))
    assert row.error.endswith(says)
    assert row.correct is not bool(says), row.error


def test_integers_are_never_changed_before_a_call():
    source = """
        #include <stdint.h>
        #include <string.h>
        static int64_t kept[4];
        static int calls, changed;
        void program(void *const *in, void *const *out) {
            if (!calls++) memcpy(kept, in[1], sizeof kept);
            changed += memcmp(kept, in[1], sizeof kept) != 0;
            *(float *)out[0] = (float)(100 * changed + calls);
        }"""
    inputs = SMALL.draw(0)
    one = Apart(SMALL, inputs, source)
    try:
        one.take()
        one.run(50)
        assert one.result()[0, 0] == 50
    finally:
        one.close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (NO_GRAD, "grad: crash: exit status 2"),
        (ECHO, "grad printed a program of another interface"),
        ("print('return nothing')", "grad: "),
        ("import sys; sys.exit(1)", "grad: refused"),
    ],
)
def test_a_submission_without_derivatives_fails_and_says_why(tmp_path, small_suite, code, says):
    folder = submission(tmp_path / "student", code, weeks=(9,))
    row = measure(small_suite["small"], job(str(folder)))
    assert says in row.error
    assert not row.blameless
    gate = gates.Gate("small", 1, "best", (gates.Threshold(1.0, 1.0),))
    result = gates.judge(gate, row)
    assert (result.outcome, result.credit) == ("failed", 0.0)
    assert says in result.message


def test_without_pytorch_there_is_no_right_result(monkeypatch, small_suite):
    def absent(name):
        raise AbsentError(f"{name} is not installed")

    monkeypatch.setattr("grader.bench.derivative.optional", absent)
    row = measure(small_suite["small"], job(None))
    assert row.error == "no right result to compare with: torch is not installed"
    assert row.blameless


def test_the_gates_name_cases_of_the_suite_for_one_thread_and_two():
    found = gates.gates_of(week_of(9).package)
    assert found.suite == "week9"
    names = {workload.name for workload in SUITES["week9"]()}
    assert {gate.case for gate in found.gates if gate.threads == 1} == names
    assert {gate.threads for gate in found.gates} == {1, 2}


def test_pytorch_compiles_the_loss_and_the_step(small_suite):
    workload = small_suite["step"]
    compiled = []

    class Torch:
        """PyTorch, whose `compile` notes what it is asked for."""

        def __getattr__(self, name):
            return getattr(torch, name)

        def compile(self, function, **options):
            compiled.append(options)
            return function

    inputs = workload.draw(0)
    step = workload.ways["compile"](Torch())
    found = step(*map(torch.from_numpy, inputs))
    assert compiled == [{"dynamic": False}] * 2
    assert workload.answer(inputs).fault(tuple(x.numpy() for x in found)) == ""
