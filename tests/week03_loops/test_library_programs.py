import numpy as np
import pytest

from week01_uops.interchange import read
from week01_uops.ops import parameters
from week03_loops.evaluate import evaluate
from week03_loops.ops import OPS
from week03_loops.programs import FOLDER, SAMPLES, regenerate, text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_file_is_up_to_date(sample):
    path = FOLDER / f"{sample.name}.uop"
    message = "run python -m week03_loops.programs"
    assert path.read_text(encoding="utf-8") == text(sample), message


def test_every_file_is_of_a_sample():
    assert {path.stem for path in FOLDER.glob("*.uop")} == {sample.name for sample in SAMPLES}


def test_only_changed_files_are_written(tmp_path):
    assert len(regenerate(tmp_path)) == len(SAMPLES)
    (tmp_path / "gemm.uop").write_text("uops 1\n", encoding="utf-8")
    assert [path.name for path in regenerate(tmp_path)] == ["gemm.uop"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_file_runs(sample):
    path = FOLDER / f"{sample.name}.uop"
    program = read(path.read_bytes(), file=path.name, ops=OPS)
    assert program is sample.program()
    random = np.random.default_rng(0)
    inputs = {
        slot: random.integers(0, 10, x.shape).astype(x.dtype.numpy)
        if x.dtype.is_int
        else random.random(x.shape).astype(x.dtype.numpy)
        for slot, x in parameters(program).items()
    }
    for output, value in zip(program.src, evaluate(program, inputs), strict=True):
        assert value.shape == output.shape
        assert value.dtype == output.dtype.numpy
        assert np.isfinite(value.astype(np.float64)).all()
