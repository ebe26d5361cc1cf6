"""The rungs of the ladder are right, for several machines, and can be climbed from the shell."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from grader.bench import ladder
from grader.bench.contractions import gemm
from projects.uopc.schedules import read_schedules
from week05_06_memory.machine import detect
from week05_06_memory.schedule import Split

NARROW = replace(detect(), vector_bytes=16, vector_registers=16, datapath=16)


def test_a_rung_is_right_and_has_a_part_of_the_peak():
    (*_, packed, _plain) = ladder.rungs(NARROW)
    (share,) = ladder.measure(gemm("gemm", 70, 70, 70), [packed], detect(), ladder.Plan(1, 0.0))
    assert 0 < share < 2


def test_a_wrong_result_is_no_rung(monkeypatch):
    monkeypatch.setattr(ladder.Beside, "result", lambda self: self.out + 1)
    found = list(ladder.rungs(NARROW))[:1]
    with pytest.raises(ValueError, match=r"as written.*expected"):
        ladder.measure(gemm("gemm", 64, 64, 64), found, detect(), ladder.Plan(1, 0.0))


@pytest.mark.parametrize("machine", [detect(), NARROW], ids=["here", "narrow"])
def test_tiles_fit_the_registers(machine):
    last = list(ladder.rungs(machine))[-2]
    rows, columns, lanes = (s.by for s in [s for s in last.schedule if isinstance(s, Split)][:3])
    assert rows * columns // lanes + columns // lanes + 1 <= machine.vector_registers


def test_schedules_are_written_for_uopc(tmp_path):
    done = CliRunner().invoke(
        ladder.main, ["--size", "64", "--first", "8", "--rounds", "1", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0
    assert "vectorizer" in done.output
    assert (tmp_path / "gemm.uop").exists()
    for number, rung in enumerate(ladder.rungs(detect()), 1):
        assert read_schedules(tmp_path / f"rung{number}.json") == {"*": rung.schedule}
