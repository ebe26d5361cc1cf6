"""The command line: what it prints, and what it says when something is wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from projects.uopc.cli import main

PROGRAMS = Path(__file__).parents[2] / "week03_loops" / "programs"
GEMM = str(PROGRAMS / "gemm_bias_relu.uop")

ADDITION = """uops 1
a = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
b = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
zero = CONST : {"value": 0, "dtype": "float32"}
s = ADD a b
t = ADD s zero
return t
"""


def uopc(*arguments, text=None, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=text)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def addition(tmp_path):
    path = tmp_path / "addition.uop"
    path.write_text(ADDITION)
    np.save(tmp_path / "a.npy", np.arange(3, dtype=np.float32))
    np.save(tmp_path / "b.npy", np.full(3, 10, np.float32))
    return path


def arrays(addition):
    return ["--input", addition.parent / "a.npy", "--input", addition.parent / "b.npy"]


def test_check_is_silent_on_a_right_program():
    assert uopc("check", GEMM).output == ""


def test_simplify_reads_standard_input():
    assert "CONST" not in uopc("simplify", text=ADDITION).stdout


def test_fmt_is_idempotent_and_can_write_back(addition):
    once = uopc("fmt", addition).stdout
    assert uopc("fmt", text=once).stdout == once
    uopc("fmt", "-i", addition)
    assert addition.read_text() == once


def test_the_json_twin_is_json():
    twin = json.loads(uopc("fmt", "--json", text=ADDITION).stdout)
    assert twin["uops"] == 1


@pytest.mark.parametrize("command", [["eval"], ["run"], ["run", "--sanitize"]])
def test_programs_are_evaluated_and_run(addition, command):
    output = addition.parent / "out.npz"
    uopc(*command, addition, *arrays(addition), "-o", output)
    np.testing.assert_array_equal(np.load(output)["0"], [10, 11, 12])
    assert "10." in uopc(*command, addition, *arrays(addition)).stdout


def test_inputs_may_come_in_one_archive(addition):
    np.savez(addition.parent / "all.npz", **{"0": np.ones(3, "f4"), "2": np.ones(3, "f4")})
    assert "[2. 2. 2.]" in uopc("eval", addition, "-I", addition.parent / "all.npz").stdout


@pytest.mark.parametrize("level", ["tensor", "loop", "kernel", "source"])
def test_every_level_is_printed(level):
    text = uopc("compile", GEMM, "--ir", level).stdout
    assert {"tensor": "REDUCE", "loop": "RANGE", "kernel": "# kernel", "source": "void program"}[
        level
    ] in text


def test_verbose_names_every_pass_and_the_kernels():
    said = uopc("compile", GEMM, "-v", "-o", "/dev/null").stderr
    for name in ("inline", "simplify", "fuse", "kernels", "loops", "accumulate", "linearize"):
        assert name in said
    assert "kernels: 1" in said


def test_very_verbose_shows_diffs_and_reasons():
    said = uopc("compile", PROGRAMS / "attention.uop", "-vv", "-o", "/dev/null").stderr
    assert "+" in said
    assert "declined at" in said
    assert "evaluations of" in said


def test_check_evaluates_after_every_pass():
    said = uopc("compile", PROGRAMS / "softmax.uop", "--check", "-o", "/dev/null").stderr
    assert "keep the meaning" in said


def test_json_tells_kernels_passes_counts_and_times():
    told = json.loads(uopc("compile", GEMM, "--json").stdout)
    assert told["kernels"] == 1
    assert len(told["kernel_names"]) == 1
    assert {"name", "level", "seconds", "rules", "declined"} <= set(told["passes"][0])
    assert told["ops"]["CALL"] == 1
    assert "void program" in told["source"]


def test_graph_writes_dot_text(addition):
    uopc("graph", addition, "-o", addition.parent / "g.dot", "--level", "loop")
    assert "digraph" in (addition.parent / "g.dot").read_text()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graph_draws_a_picture(addition):
    uopc("graph", addition, "-o", addition.parent / "g.svg")
    assert "<svg" in (addition.parent / "g.svg").read_text()


WRONG = {
    "shapes": ("b = RESHAPE a : [2]", "E404", "expected 3 elements"),
    "dtypes": (
        'b = CONST : {"value": 1, "dtype": "int32"}\nc = ADD a b',
        "E401",
        "CAST one",
    ),
    "names": ("c = NEG q", "E201", "got q"),
    "ops": ("c = RELU a", "E301", "RELU"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_programs_get_a_code_and_a_sentence(kind):
    statement, code, words = WRONG[kind]
    head = 'uops 1\na = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}\n'
    said = uopc("compile", text=f"{head}{statement}\nreturn a\n", status=1).stderr
    assert said.startswith("<stdin>:")
    assert code in said
    assert words in said


def test_an_op_of_a_later_week_is_named():
    text = (
        'uops 1\na = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}\nb = STAGE a\nreturn b\n'
    )
    said = uopc("compile", "--week", "2", text=text, status=1).stderr
    assert "E302" in said
    assert "week 4" in said


def test_random_bytes_are_refused():
    noise = bytes(np.random.default_rng(0).integers(0, 256, 500, dtype=np.uint8))
    result = CliRunner().invoke(main, ["check"], input=noise)
    assert result.exit_code == 1
    assert "E103" in result.stderr


def test_a_missing_compiler_is_named(addition, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path / "cache"))
    said = uopc("run", addition, *arrays(addition), status=1).stderr
    assert "gcc" in said
    assert "clang" in said


def test_missing_and_wrong_inputs(addition):
    assert "slots 0, 2" in uopc("eval", addition, status=1).stderr
    np.save(addition.parent / "b.npy", np.zeros(3))
    for command in ("eval", "run"):
        said = uopc(command, addition, *arrays(addition), status=1).stderr
        assert "float32" in said
        assert "float64" in said


def test_files_that_are_not_there(tmp_path):
    said = uopc("check", tmp_path / "no.uop", status=1).stderr
    assert "No such file" in said


def test_an_index_out_of_range_is_reported_by_the_checked_build(tmp_path):
    text = """uops 1
a = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
i = PARAM : {"slot": 1, "dtype": "int64", "shape": []}
p = INDEX a i
v = LOAD p
return v
"""
    (tmp_path / "p.uop").write_text(text)
    np.save(tmp_path / "a.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "i.npy", np.array(5))
    inputs = ["-I", tmp_path / "a.npy", "-I", tmp_path / "i.npy"]
    for command in (["eval"], ["run", "--sanitize"]):
        said = uopc(*command, tmp_path / "p.uop", *inputs, status=1).stderr
        assert "5" in said
        assert "[0, 3)" in said


LOSS = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
w = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
p = MUL x w
q = MUL p x
y = REDUCE q : {"op": "ADD", "axes": 1}
return y
"""


def test_targets_and_verbs_of_later_weeks():
    assert "cuda" in uopc("compile", GEMM, "--target", "cuda", status=1).stderr
    assert "week 9" in uopc("grad", GEMM, "--wrt", "0", "--week", "8", status=1).stderr
    assert "numbers" in uopc("grad", GEMM, "--wrt", "x", status=1).stderr


def test_grad_prints_a_program_that_can_be_run(tmp_path):
    path = tmp_path / "loss.uop"
    path.write_text(uopc("grad", "--wrt", "2,0", text=LOSS).stdout)
    np.savez(
        tmp_path / "in.npz", **{"0": np.array([1, 2, 3], "f4"), "2": np.array([4, 5, 6], "f4")}
    )
    for command in ("eval", "run"):
        uopc(command, path, "-I", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
        with np.load(tmp_path / "out.npz") as found:
            np.testing.assert_array_equal(found["0"], [1, 4, 9])
            np.testing.assert_array_equal(found["1"], [8, 20, 36])


def test_grad_can_be_asked_again():
    """x³, 3·x², 6·x, 6."""
    text = 'uops 1\nx = PARAM : {"slot": 0, "dtype": "float64", "shape": []}\n'
    text += "q = MUL x x\nc = MUL q x\nreturn c\n"
    for _ in range(3):
        text = uopc("grad", "--wrt", "0", text=text).stdout
    assert uopc("eval", text=text).stdout.split()[-1] == "6."


@pytest.mark.parametrize(
    ("slots", "words"),
    [("1", "got slot 1"), ("0,0", "each slot once"), ("3", "slots [0, 2]")],
)
def test_grad_says_what_it_cannot_derive(slots, words):
    said = uopc("grad", "--wrt", slots, text=LOSS, status=1).stderr
    assert said.startswith("<program>:1:1: E416")
    assert words in said


def test_grad_of_what_is_no_loss():
    said = uopc("grad", GEMM, "--wrt", "0", status=1).stderr
    assert "E416" in said
    assert "a float scalar" in said
