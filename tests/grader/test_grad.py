"""The claims about grad: its oracle is right, and what is wrong gets the right verdict."""

import sys

import numpy as np
import pytest
import torch

from grader.judge import Judge
from grader.plugin import CONFORMANCE
from grader.smaller import smaller
from grader.subject import SubprocessCompiler, reference
from grader.submission import load
from grader.tangents import NoDerivativeError, slopes, widened
from grader.verdict import SpecFailure, Verdict
from grader.weeks import ROOT, read, week_of
from tests.grader.compilers import judge
from tests.week09_10_autodiff.autograd import floats, normal, parameters_of, positive, same_program
from week01_uops.dtypes import float32, float64
from week01_uops.interface import Artifact
from week01_uops.node import const
from week01_uops.ops import ADD, LOG2, MAX, MUL, NEG, RECIP, WHERE, param, program
from week03_loops import library as lib
from week03_loops.ops import expand, reduce
from week09_10_autodiff.compiler import REFERENCE

PRODUCT = """
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
    w = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
    p = MUL x w
    q = MUL p x
    y = REDUCE q : {"op": "ADD", "axes": 1}
    return y
    """
TIES = """
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
    y = REDUCE x : {"op": "MAX", "axes": 1}
    return y
    """


class Changed:
    """The reference, with something done to what `grad` gives."""

    def __init__(self, change):
        self.change = change

    def simplify(self, program):
        return REFERENCE.simplify(program)

    def compile(self, program, target):
        return REFERENCE.compile(program, target)

    def grad(self, program, wrt):
        return self.change(REFERENCE.grad(program, wrt))


def failure(claim, *arguments, **options) -> SpecFailure:
    with pytest.raises(SpecFailure) as caught:
        claim(*arguments, **options)
    return caught.value


def student(code):
    """Claims about a Python program that is handed in for week 10."""
    return Judge(SubprocessCompiler([sys.executable, "-c", code], week=10), 10)


def wrong(change, text=PRODUCT, **options):
    found = failure(judge(Changed(change), 10).differentiates, text, **options)
    return found.verdict, found.sentence


def on_outputs(change):
    return lambda node: program(*map(change, node.src))


FUNCTIONS = {
    "sums of products": (lambda a, b: lib.matmul(a, b), normal(2, 3), normal(3, 2)),
    "functions": (lambda x: MUL(lib.exp(x), RECIP(lib.log(ADD(x, 2.0)))), positive(2, 3)),
    "softmax": (lib.softmax, normal(3, 4)),
    "layernorm": (lib.layernorm, normal(3, 4), normal(4), normal(4, seed=1)),
    "gelu": (lib.gelu, normal(3, 4)),
    "attention": (lib.attention, normal(2, 3, 2), normal(1, 3, 2), normal(1, 3, 2, seed=1)),
    "convolution": (lib.conv, normal(1, 2, 5), normal(3, 2, 2), normal(3)),
    "products": (lambda x: lib.reduce_prod(x, 1), normal(3, 4)),
    "pools": (lambda x: lib.max_pool(x, (2,)), normal(2, 6)),
    "look-ups": (lib.take, normal(4, 3), np.array([1, 1, 0])),
    "scans": (lib.cumprod, normal(5, 2)),
    "ties": (lambda x: MAX(reduce(MAX, x, 1), 1.0), np.array([[1.0, 2], [1, 3], [0, 3]])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_oracle_agrees_with_pytorch(name):
    """Forward mode by rows of its own, reverse mode by PyTorch's."""
    function, *arrays = FUNCTIONS[name]
    wrt = floats(arrays)

    def loss(*sources):
        y = function(*sources)
        return lib.reduce_sum(MUL(y, y))

    found = slopes(program(loss(*parameters_of(arrays))), wrt, dict(enumerate(arrays)))
    tensors = [torch.tensor(array, requires_grad=k in wrt) for k, array in enumerate(arrays)]
    wanted = torch.autograd.grad(same_program(loss, arrays)(*tensors), [tensors[k] for k in wrt])
    for slope, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(slope.value, right.numpy(), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(slope.strict, slope.value)
        assert (slope.size >= np.abs(slope.value) * (1 - 1e-9)).all()


def test_the_oracle_knows_what_may_be_nan():
    """0·∞ is 0 in one evaluation and NaN in the other."""
    x = param(0, float64, (2,))
    y = lib.reduce_sum(WHERE(lib.gt(x, 0), LOG2(x), const(1.0, float64)))
    (found,) = slopes(program(y), [0], {0: np.array([0.0, 1.0])})
    assert found.value[0] == 0
    assert np.isnan(found.strict[0])
    assert found.value[1] == found.strict[1] == pytest.approx(1 / np.log(2))


def test_nan_stays_with_the_element_that_has_it():
    """√x² at 0: the derivative by another element is not open for that."""
    x = param(0, float64, (3,))
    y = lib.reduce_sum(lib.sqrt(lib.square(x)))
    (found,) = slopes(program(y), [0], {0: np.array([0.0, 1.0, -2.0])})
    np.testing.assert_array_equal(np.isnan(found.strict), [True, False, False])
    np.testing.assert_allclose(found.value, [0, 1, -1])


def test_the_oracle_rounds_nothing():
    x = param(0, float32, (2,))
    node = program(lib.reduce_sum(lib.cast(lib.cast(x, float64), float32)))
    assert {n.dtype for n in widened(node).toposort()[:-1]} == {float64}


def test_the_oracle_refuses_what_it_does_not_know():
    text = (CONFORMANCE / "week09" / "wrong" / "stage-over-a-range.uop").read_bytes()
    with pytest.raises(NoDerivativeError, match="LOAD"):
        slopes(read(text, 10), [0], {0: np.zeros(3, np.float32)})


def test_the_reference_passes():
    right = judge(REFERENCE, 10)
    right.differentiates(PRODUCT, times=2, compiled=True)
    right.differentiates(PRODUCT, [1])
    right.differentiates(TIES, inputs={0: [2, 2, 1]})


def test_wrong_derivatives():
    double = on_outputs(lambda y: MUL(y, 2.0))
    assert wrong(double)[0] is Verdict.WRONG
    assert "grad changed the meaning" in wrong(double)[1]
    assert wrong(on_outputs(NEG))[0] is Verdict.WRONG
    assert wrong(lambda node: program(*reversed(node.src)))[0] is Verdict.WRONG
    nearly = on_outputs(lambda y: MUL(y, 1.0001))
    assert wrong(nearly)[0] is Verdict.WRONG


def test_a_wrong_second_derivative():
    """The first grad is right, the second is not."""
    count = [0]

    def second(node):
        count[0] += 1
        return on_outputs(lambda y: MUL(y, 3.0))(node) if count[0] > 1 else node

    assert wrong(second, times=2)[0] is Verdict.WRONG


def test_ties_that_one_element_takes():
    """All of the derivative to the first maximum is not what the format says."""
    first = const(1.0, float32)
    all_to_first = Changed(lambda _: program(lib.pad_with(expand(first, (1,)), [(0, 2)], 0.0)))
    found = failure(judge(all_to_first, 10).differentiates, TIES, inputs={0: [2, 2, 1]})
    assert found.verdict is Verdict.WRONG
    judge(all_to_first, 10).differentiates(TIES, inputs={0: [3, 2, 1]})


def test_numbers_where_there_are_none_and_nan_where_there_are_numbers():
    text = TIES.replace(
        'y = REDUCE x : {"op": "MAX", "axes": 1}', "r = RECIP x\n    y = REDUCE r : {}"
    )
    text = text.replace("{}", '{"op": "ADD", "axes": 1}')
    at_zero = {0: [0, 1, 2]}
    judge(REFERENCE, 10).differentiates(text, inputs=at_zero)
    finite = on_outputs(lambda y: MAX(MUL(y, 1.0), const(-1e30, float32)))
    assert wrong(finite, text, inputs=at_zero)[0] is Verdict.WRONG
    nan = on_outputs(lambda y: MUL(y, const(float("nan"), float32)))
    assert wrong(nan, text, inputs=at_zero)[0] is Verdict.WRONG


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: program(p.src[0]), "expected 2 output"),
        (on_outputs(lambda y: lib.cast(y, float64)), "expected float32"),
        (on_outputs(lambda y: lib.reduce_sum(y)), r"expected float32[3]"),
        (on_outputs(lambda y: ADD(y, param(5, float32))), "slot 5"),
    ],
)
def test_the_interface_of_derivatives(change, says):
    verdict, sentence = wrong(change)
    assert verdict is Verdict.WRONG
    assert says in sentence


def test_wrong_c_for_a_right_derivative():
    compiler = Changed(lambda p: p)
    compiler.compile = lambda program, target: Artifact(
        "void program(void *const *in, void *const *out) { (void)in; ((float *)out[0])[0] = 7; }"
    )
    found = failure(judge(compiler, 10).differentiates, PRODUCT, [0], compiled=True)
    assert found.verdict is Verdict.WRONG
    assert "compile" in found.sentence


def test_a_week_before_derivatives():
    found = failure(Judge(reference(week_of(7)), 8).differentiates, PRODUCT)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "week 9" in found.sentence


USAGE = {
    "a sentence": "sys.stderr.write(f'I know simplify, not {sys.argv[1]}'); sys.exit(1)",
    "another status": "sys.stderr.write(f'usage: simplify|compile, no {sys.argv[1]}'); sys.exit(2)",
    "nothing": "sys.exit(1)",
    "a traceback": "{'simplify': 0}[sys.argv[1]]",
}


@pytest.mark.parametrize("how", USAGE)
def test_a_submission_without_the_verb(how):
    """However it says so, the verdict is the same, of right and of wrong programs."""
    code = f"import sys\nif sys.argv[1] != 'simplify': {USAGE[how]}\n"
    handed_in = student(code)
    found = failure(handed_in.differentiates, PRODUCT)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "submission does not offer grad" in found.sentence
    refused = failure(handed_in.rejects, PRODUCT, "E416", verb="grad --wrt 5")
    assert refused.verdict is Verdict.UNSUPPORTED
    assert "does not offer grad" in refused.sentence


def test_a_verb_that_is_offered_and_fails():
    """A crash of grad alone is a crash, and a diagnostic a refusal."""
    crash = "import sys\nif sys.argv[1] == 'grad': raise SystemExit(3)\nsys.exit(1)\n"
    assert failure(student(crash).differentiates, PRODUCT).verdict is Verdict.CRASH
    refusal = "import sys\nsys.stderr.write('<stdin>:1:1: E416 no derivative\\n'); sys.exit(1)\n"
    assert failure(student(refusal).differentiates, PRODUCT).verdict is Verdict.REFUSED
    student(refusal).rejects(PRODUCT, "E416", verb="grad --wrt 5")


def test_a_sample_of_week_1_does_not_offer_grad():
    sample = load(ROOT / "grader" / "samples" / "c-week1")
    sample.prepare()
    subject = SubprocessCompiler(sample.compiler, sample.folder, 10, name=sample.name)
    found = failure(Judge(subject, 10).differentiates, PRODUCT)
    assert found.verdict is Verdict.UNSUPPORTED
    assert f"{sample.name} does not offer grad" in found.sentence


def without(name):
    """Leave out an op of one source, wherever it stands."""

    def change(root):
        done = {}
        for node in root.toposort():
            built = node.with_src(tuple(done[s] for s in node.src))
            done[node] = built.src[0] if node.op.name == name else built
        return done[root]

    return change


def test_failures_shrink():
    """A compiler that loses the EXP2 of a derivative: the smallest program shows it."""
    text = PRODUCT.replace("p = MUL x w", "e = EXP2 x\n    f = ADD e w\n    p = MUL f w")
    judged = judge(Changed(without("EXP2")), 10)
    found = failure(judged.differentiates, text)
    smaller(judged, found)
    evidence = found.evidence
    assert evidence.shrunk_check == "differentiates"
    assert "EXP2" in evidence.shrunk
    assert len(evidence.shrunk.splitlines()) < len(text.splitlines()) - 2
    again = failure(
        judged.check, evidence.shrunk_check, evidence.shrunk, **evidence.shrunk_arguments
    )
    assert again.verdict is Verdict.WRONG
