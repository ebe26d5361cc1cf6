"""Weeks 5 and 6 on the command line: schedule files, and each step as a diff of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from projects.uopc.cli import main

PROGRAMS = Path(__file__).parents[2] / "week03_loops" / "programs"
GEMM = PROGRAMS / "gemm.uop"


def uopc(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


BY_HAND = {
    "add_128x160": [
        {"step": "split", "range": 0, "by": 4, "into": [3, 4]},
        {"step": "split", "range": 1, "by": 16, "into": [5, 6]},
        {"step": "reorder", "order": [5, 3, 4, 6]},
        {"step": "stage", "slot": 1, "at": 5},
        {"step": "kind", "range": 4, "kind": "unroll"},
        {"step": "kind", "range": 6, "kind": "vector"},
    ]
}

ARRANGED = """\
def add_128x160(p0: float32[128, 160], p1: float32[96, 160], p2: float32[128, 96]):
  for i5 in 0..10:
    t0 = local float32[96, 16]
    for i7 in 0..96:
      for i8 in 0..16:
        t0[i7, i8] = p1[i7, i5*16 + i8]
    for i3 in 0..32:
      unroll i4 in 0..4:
        vector i6 in 0..16:
          p0[i3*4 + i4, i5*16 + i6] = Σ[i2 in 0..96] t0[i2, i6] * p2[i3*4 + i4, i2]

add_128x160(out0, in1, in0)
return out0
"""


@pytest.fixture
def by_hand(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(BY_HAND))
    return path


def test_a_given_schedule_is_carried_out(by_hand):
    said = uopc("compile", GEMM, "--schedule", by_hand, "--ir", "tile", "--as", "nest").stdout
    assert said == ARRANGED


def test_a_given_schedule_keeps_the_meaning(by_hand):
    said = uopc("compile", GEMM, "--schedule", by_hand, "--check", "-o", "/dev/null").stderr
    assert "keep the meaning" in said


def test_programs_run_with_given_schedules(by_hand):
    folder = by_hand.parent
    a, b = (np.random.default_rng(0).random(s, np.float32) for s in ((128, 96), (96, 160)))
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    inputs = ["-I", folder / "a.npy", "-I", folder / "b.npy", "-o", folder / "out.npz"]
    for more in (["--schedule", by_hand], ["--week", "5"], []):
        uopc("run", GEMM, *inputs, *more)
        np.testing.assert_allclose(np.load(folder / "out.npz")["0"], a @ b, rtol=1e-5)


def test_every_step_is_a_diff_of_its_own(by_hand):
    said = uopc(
        "compile", GEMM, "--schedule", by_hand, "--ir", "tile", "-vv", "-o", "/dev/null"
    ).stderr
    assert '6. kind range 6 kind "vector"\n' in said
    before, after = said.split("4. stage slot 1 at 5\n")[1].split("5. kind")[0].split("+", 1)
    assert "-" not in before
    assert "t0 = local float32[96, 16]" in after
    assert "for i3 in 0..32:" in said.split("1. split range 0 by 4")[1].split("2. split")[0]


def test_steps_of_the_default_schedule_say_why():
    said = uopc("compile", GEMM, "--ir", "tile", "-vv", "-o", "/dev/null").stderr
    steps = said.split("── schedule")[1]
    assert steps.count("because: ") >= 5
    assert "vector i" in steps


def test_the_default_schedule_can_be_written_changed_and_given_back(tmp_path):
    path = tmp_path / "s.json"
    tile = lambda *more: (
        uopc("compile", GEMM, "--week", 6, "--ir", "tile", "--as", "nest", *more).stdout
    )
    default = tile("--schedule-out", path)
    assert tile("--schedule", path) == default
    steps = json.loads(path.read_text())
    first = next(s for s in steps["add_128x160"] if s["step"] == "split" and s["range"] == 0)
    first["by"] = 2
    path.write_text(json.dumps(steps))
    assert f"for i{first['into'][0]} in 0..64:" in tile("--schedule", path)


def test_the_report_lists_each_kernels_schedule(by_hand):
    told = json.loads(uopc("compile", GEMM, "--schedule", by_hand, "--json").stdout)
    assert told["schedules"] == BY_HAND
    assert json.loads(uopc("compile", GEMM, "--week", "4", "--json").stdout)["schedules"] == {}


def test_the_tile_level_is_printed_as_uops():
    said = uopc("compile", GEMM, "--ir", "tile").stdout
    assert said.startswith("uops 1\n")
    assert '"kind": "vector"' in said


def test_lists_of_uops_can_be_asked_for(by_hand):
    said = uopc(
        "compile", GEMM, "--schedule", by_hand, "-vv", "--as", "uops", "--ir", "tile"
    ).stderr
    assert "+%" in said
    assert "for i" not in said


def test_verbose_counts_steps_by_sort():
    said = uopc("compile", GEMM, "-v", "-o", "/dev/null").stderr
    assert "split ×" in said
    assert "kind ×" in said


WRONG = {
    "no JSON": ("{", "expected JSON", "line 1"),
    "no object": ("[]", '{"kernel": [step, …]}', "got []"),
    "kernel": ('{"foo": []}', "add_128x160", "got foo"),
    "step": ('{"*": [{"step": "cut"}]}', "kernel *: step 1", '"cut"'),
    "step's type": ('{"*": [{"step": ["split"]}]}', "kernel *: step 1", "split, kind"),
    "key": ('{"*": [{"step": "split", "range": 0, "by": 2, "to": 3}]}', "step 1: split", '"to"'),
    "missing": ('{"*": [{"step": "split", "range": 0}]}', "step 1: split", "by is missing"),
    "range": ('{"*": [{"step": "split", "range": 9, "by": 2}]}', "0, 1, 2", "got 9"),
    "tile": (
        '{"*": [{"step": "split", "range": 0, "by": 2}, {"step": "split", "range": 1, "by": 999}]}',
        "step 2, split range 1 by 999",
        "1 to 160",
    ),
    "kind": ('{"*": [{"step": "kind", "range": 0, "kind": "gpu"}]}', "unroll, parallel", '"gpu"'),
    "order": ('{"*": [{"step": "reorder", "order": [0, 2]}]}', "step 1, reorder", "one nest"),
    "depth": ("[" * 100_000, "expected", "lists"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_schedules_get_a_sentence(kind, tmp_path):
    text, *words = WRONG[kind]
    (tmp_path / "s.json").write_text(text)
    said = uopc("compile", GEMM, "--schedule", tmp_path / "s.json", status=1).stderr
    assert said.startswith("uopc: ")
    assert said.count("\n") == 1
    for word in words:
        assert word in said


def test_files_that_are_not_there_or_no_text(tmp_path):
    said = uopc("compile", GEMM, "--schedule", tmp_path / "no.json", status=1).stderr
    assert "No such file" in said
    (tmp_path / "s.json").write_bytes(b"\xff\xfe{}")
    said = uopc("compile", GEMM, "--schedule", tmp_path / "s.json", status=1).stderr
    assert "UTF-8" in said


def test_earlier_weeks_have_no_schedules(by_hand):
    said = uopc("compile", GEMM, "--week", "4", "--schedule", by_hand, status=1).stderr
    assert "week 5" in said


def test_kernels_that_share_a_name_are_told_apart(tmp_path):
    text = """uops 1
a = PARAM : {"slot": 0, "dtype": "float32", "shape": [8, 4]}
b = PARAM : {"slot": 1, "dtype": "float32", "shape": [8, 6]}
s = REDUCE a : {"op": "ADD", "axes": 1}
t = REDUCE b : {"op": "ADD", "axes": 1}
e = EXP2 s
m = NEG t
return e m
"""
    (tmp_path / "p.uop").write_text(text)
    told = json.loads(uopc("compile", tmp_path / "p.uop", "--json").stdout)
    assert len(set(told["kernel_names"])) == told["kernels"] == len(told["schedules"])


def test_a_machine_that_is_none_is_told_in_a_sentence():
    code = "import sys; from projects.uopc.entry import main; sys.argv = ['uopc', '--help']; main()"
    for text, said in (("{", "JSON object"), ('{"cores": "x"}', "expected an integer")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "UOPS_MACHINE": text},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("uopc: $UOPS_MACHINE: ")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
