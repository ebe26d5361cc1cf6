"""`uopc explain`: roles, roofline, tiles and reasons."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from projects.uopc.cli import main

PROGRAMS = Path(__file__).parents[2] / "week03_loops" / "programs"
MACHINE = {
    "cores": 1,
    "vector_bytes": 64,
    "vector_registers": 32,
    "l1": 32 << 10,
    "l2": 1 << 20,
    "l3": 32 << 20,
    "line": 64,
    "balance": 4,
    "peak_flops": 1e11,
    "bandwidth": 2.5e10,
    "copy_bandwidth": 2e10,
}


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setenv("UOPS_MACHINE", json.dumps(MACHINE))


def explain(program, *arguments, status=0):
    result = CliRunner().invoke(
        main, ["explain", str(PROGRAMS / f"{program}.uop"), *map(str, arguments)]
    )
    assert result.exit_code == status, result.output
    return result


def kernels(program, *arguments):
    return json.loads(explain(program, "--json", *arguments).stdout)["kernels"]


def test_roles_are_told_by_access_and_loop():
    (told,) = kernels("gemm")
    (nest,) = told["nests"]
    assert [(r["range"], r["size"], r["role"]) for r in nest["loops"]] == [
        (0, 128, "result"),
        (1, 160, "result"),
        (2, 96, "reduction"),
    ]
    roles = {a["place"]: a["roles"] for a in nest["accesses"]}
    assert roles == {
        "p1[i2, i1]": {"0": "reuse", "1": "contiguous", "2": "strided"},
        "p2[i0, i2]": {"0": "strided", "1": "reuse", "2": "contiguous"},
        "p0[i0, i1]": {"0": "strided", "1": "contiguous", "2": None},
    }
    (b,) = [a for a in nest["accesses"] if a["place"] == "p1[i2, i1]"]
    assert b["strides"] == {"0": 0, "1": 1, "2": 160}


def test_work_and_roofline_are_counted():
    (told,) = kernels("gemm")
    assert told["operations"] == 2 * 128 * 160 * 96
    assert told["bytes_read"] == 4 * (128 * 96 + 96 * 160)
    assert told["bytes_written"] == 4 * 128 * 160
    assert told["bound"] == "compute"
    assert told["seconds"]["compute"] == pytest.approx(told["operations"] / 1e11)
    assert told["seconds"]["model"] > told["seconds"]["roofline"] > told["seconds"]["memory"]


def test_copies_are_bound_by_memory():
    (told,) = kernels("transpose")
    assert told["operations"] == 0
    assert told["bound"] == "memory"


def test_bounded_loops_count_their_mean():
    (causal,), (full,) = kernels("attention_causal"), kernels("attention")
    assert causal["operations"] / full["operations"] == pytest.approx(24.5 / 48, rel=0.02)


def test_every_step_has_a_reason():
    (told,) = kernels("attention")
    assert told["steps"]
    assert all(step["because"] for step in told["steps"])


@pytest.mark.parametrize("program", ["gemm", "gemm_odd", "softmax", "layernorm", "conv_asymmetric"])
def test_the_model_says_the_same_of_the_default_schedule_given(program, tmp_path):
    path = tmp_path / "s.json"
    arguments = ["compile", str(PROGRAMS / f"{program}.uop"), "--schedule-out", str(path)]
    assert CliRunner().invoke(main, [*arguments, "-o", "/dev/null"]).exit_code == 0
    (default,), (given,) = kernels(program), kernels(program, "--schedule", path)
    assert given["arranged"] == default["arranged"]
    assert given["seconds"]["model"] == pytest.approx(default["seconds"]["model"])


SPILLING = {
    "*": [
        {"step": "split", "range": 0, "by": 8, "into": [3, 4]},
        {"step": "split", "range": 1, "by": 80, "into": [5, 6]},
        {"step": "split", "range": 6, "by": 16, "into": [7, 8]},
        {"step": "reorder", "order": [5, 3, 4, 7, 8]},
        {"step": "kind", "range": 4, "kind": "unroll"},
        {"step": "kind", "range": 7, "kind": "unroll"},
        {"step": "kind", "range": 8, "kind": "vector"},
    ]
}


def test_a_changed_tile_shows_what_it_did(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SPILLING))
    (told,) = kernels("gemm", "--schedule", path)
    assert told["tiles"][0]["copies"] == {"0": 8, "1": 5}
    assert told["tiles"][0]["turn"] is None
    assert told["seconds"]["model"] is None
    assert "spilled" in explain("gemm", "--schedule", path).stdout
    path.write_text(json.dumps(SPILLING).replace('"by": 8,', '"by": 2,'))
    (told,) = kernels("gemm", "--schedule", path)
    assert told["tiles"][0]["turn"]["registers"] <= 32
    assert "of the default schedule" in explain("gemm", "--schedule", path).stdout


@pytest.mark.parametrize("program", ["gemm", "softmax", "attention", "conv"])
def test_it_reads_as_a_lesson(program):
    said = explain(program).stdout
    for part in (
        *("def ", "reuse", "contiguous", "Who moves with which loop"),
        *("The roofline", "operations a byte", "bound by", "The tiles", "registers"),
        *("The schedule", "As arranged", "vector i"),
    ):
        assert part in said


def test_one_kernel_can_be_asked_for():
    assert "━━ kernel add_128x160" in explain("gemm", "--kernel", "add_128x160").stdout
    assert "add_128x160" in explain("gemm", "--kernel", "foo", status=1).stderr


def test_earlier_weeks_have_nothing_to_explain():
    assert "week 5" in explain("gemm", "--week", "4", status=1).stderr
