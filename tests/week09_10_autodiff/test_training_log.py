"""The log of a run, and its picture."""

import math
import re

import numpy as np
import pytest

from week09_10_autodiff.training.curves import draw, points, smoothed, thinned
from week09_10_autodiff.training.log import Log, read_log


@pytest.fixture
def log(tmp_path):
    made = Log(tmp_path / "log.jsonl")
    for step in range(1, 2001):
        made.write("step", step, loss=8 / step**0.2, lr=1e-3)
        if step % 500 == 0:
            made.write("validation", step, loss=8 / step**0.2 + 0.1)
    return made.path


def test_lines_are_objects_in_order(tmp_path):
    made = Log(tmp_path / "log.jsonl")
    made.write("step", 1, loss=2.5, text="é\n")
    assert list(read_log(made.path)) == [{"kind": "step", "step": 1, "loss": 2.5, "text": "é\n"}]
    made.write("step", 2, loss=math.nan)
    assert list(read_log(made.path))[1]["loss"] is None


def test_losses_are_kept_to_the_last_digit(tmp_path):
    made = Log(tmp_path / "log.jsonl")
    losses = np.random.default_rng(0).normal(size=50).astype(np.float32)
    for step, loss in enumerate(losses):
        made.write("step", step, loss=float(loss))
    np.testing.assert_array_equal(
        np.array([r["loss"] for r in read_log(made.path)], np.float32), losses
    )


def test_a_run_that_goes_on_removes_what_came_after_its_step(log):
    made = Log(log, after=1000)
    made.write("step", 1001, loss=1.0)
    records = list(read_log(log))
    assert records[-1] == {"kind": "step", "step": 1001, "loss": 1.0}
    assert [r["step"] for r in records if r["kind"] == "step"] == list(range(1, 1002))


def test_a_line_cut_off_by_a_crash_is_left_out(log):
    whole = log.read_text()
    log.write_text(whole + '{"kind": "step", "step": 20')
    assert list(read_log(log))[-1]["step"] == 2000
    Log(log, after=5000)
    assert log.read_text() == whole


def test_the_picture_is_small_and_light(log, tmp_path):
    pytest.importorskip("matplotlib")
    png, svg = draw(log, tmp_path / "loss", "a run")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert len(text) < 150_000
    assert "a run" in re.sub(r"<!--|-->", "", text)


def test_a_run_of_no_steps_has_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    Log(tmp_path / "log.jsonl")
    assert all(file.exists() for file in draw(tmp_path / "log.jsonl", tmp_path / "loss", "none"))


def test_points_leave_out_what_is_not_finite():
    records = [
        {"kind": "step", "step": 1, "loss": 2.0},
        {"kind": "step", "step": 2, "loss": None},
        {"kind": "validation", "step": 2, "loss": 3.0},
        {"kind": "sample", "step": 2, "text": "x"},
    ]
    steps, losses = points(records, "step")
    assert (steps.tolist(), losses.tolist()) == ([1.0], [2.0])


def test_thinning_keeps_means():
    steps, losses = thinned(np.arange(10.0), np.arange(10.0) * 2, 5)
    assert steps.tolist() == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert losses.tolist() == [1.0, 5.0, 9.0, 13.0, 17.0]
    assert len(thinned(np.arange(3.0), np.arange(3.0), 600)[0]) == 3


def test_running_means():
    assert smoothed(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1.0, 2.0, 4.0, 6.0]
