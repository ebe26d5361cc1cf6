"""Checkpoints: trees come back as they were, a kill leaves a whole one, damage is named."""

import os
import signal
import subprocess
import sys
import time
import warnings
from random import Random

import ml_dtypes
import numpy as np
import pytest

from week02_render.buffers import is_dense
from week09_10_autodiff import checkpoints, nn, random
from week09_10_autodiff.atomic import PREFIX, atomic_file, atomic_folder
from week09_10_autodiff.checkpoints import CheckpointError, load, save, steps
from week09_10_autodiff.data import DataLoader
from week09_10_autodiff.nn import functional
from week09_10_autodiff.optim import AdamW, StepLR
from week09_10_autodiff.tensor import Tensor

STATE = {
    "model": {"w": np.arange(32, dtype=np.float32).reshape(2, 16), "b": np.zeros(3, np.int8)},
    "optimizer": {"state": {0: {"m": np.ones(2)}}, "groups": [{"lr": 0.5, "names": ["w", "b"]}]},
    "half": np.ones((), ml_dtypes.bfloat16),
    "position": 12,
    "loss": float("inf"),
    "note": None,
    "flag": True,
}


def test_a_tree_comes_back_as_it_was(tmp_path):
    path = save(tmp_path / "run", 7, STATE)
    got = load(tmp_path / "run")
    assert (got.step, got.path) == (7, path)
    state = got.state
    assert state["model"]["w"].tobytes() == STATE["model"]["w"].tobytes()
    assert state["model"]["b"].dtype == np.int8
    assert state["half"].dtype == ml_dtypes.bfloat16
    assert state["half"].shape == ()
    assert (state["optimizer"]["state"]["0"]["m"] == 1).all()
    assert state["optimizer"]["groups"] == [{"lr": 0.5, "names": ["w", "b"]}]
    assert {k: state[k] for k in ("position", "loss", "note", "flag")} == {
        k: STATE[k] for k in ("position", "loss", "note", "flag")
    }
    assert is_dense(state["model"]["w"])


def test_names_that_meet_are_told_apart(tmp_path):
    save(tmp_path, 0, {"a": {"b": np.zeros(1)}, "a/b": np.ones(1)})
    state = load(tmp_path).state
    assert (state["a"]["b"][0], state["a/b"][0]) == (0, 1)


def test_the_newest_ones_are_kept(tmp_path):
    for step in (1, 2, 10, 100000000):
        save(tmp_path, step, {}, keep=2)
    assert steps(tmp_path) == [10, 100000000]
    assert load(tmp_path).step == 100000000
    assert load(tmp_path, step=10).step == 10
    with pytest.raises(CheckpointError, match=r"expected one of the steps \[10, 100000000\]"):
        load(tmp_path, step=3)


def test_a_step_is_saved_anew(tmp_path):
    save(tmp_path, 1, {"x": 1})
    save(tmp_path, 1, {"x": 2})
    assert load(tmp_path).state == {"x": 2}
    assert [item.name for item in tmp_path.iterdir()] == ["step-00000001"]


def test_what_cannot_be_saved_is_named_and_nothing_is_left(tmp_path):
    with pytest.raises(TypeError, match="a/1: expected a tensor, dict, list, number or string"):
        save(tmp_path, 1, {"a": [1, {1, 2}]})
    with pytest.raises(ValueError, match="expected to keep 1 checkpoint or more, got 0"):
        save(tmp_path, 1, {}, keep=0)
    assert not list(tmp_path.iterdir())


def test_none_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match=r"expected a whole checkpoint in .*, found none"):
        load(tmp_path / "nowhere")


def cut(path, count):
    path.write_bytes(path.read_bytes()[:-count])


def test_a_damaged_one_is_passed_over_with_a_warning_that_says_how(tmp_path):
    save(tmp_path, 1, STATE)
    newest = save(tmp_path, 2, STATE)
    size = (newest / "tensors.safetensors").stat().st_size
    cut(newest / "tensors.safetensors", 5)
    said = rf"step-00000002/tensors\.safetensors.*expected {size} bytes, got {size - 5}"
    with pytest.warns(UserWarning, match=said):
        assert load(tmp_path).step == 1
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path, step=2)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "tensors.safetensors").unlink(), r"tensors\.safetensors"),
        (lambda p: (p / "state.json").unlink(), r"state\.json"),
        (lambda p: cut(p / "state.json", 9), r"state\.json is damaged"),
        (lambda p: (p / "state.json").write_text("{}"), r"state\.json is damaged: 'format'"),
        (lambda p: (p / "state.json").write_text('{"format": 2}'), "expected format 1, got 2"),
        (lambda p: save_other(p), "model/w"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    damage(save(tmp_path, 1, STATE))
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def save_other(path):
    """The tensors of another state in place of the right ones."""
    other = save(path.parent / "other", 1, {"x": np.zeros(1)})
    os.replace(other / "tensors.safetensors", path / "tensors.safetensors")


def test_what_a_killed_writer_left_is_swept(tmp_path):
    left = tmp_path / f"{PREFIX}step-00000004-abc"
    left.mkdir()
    (left / "tensors.safetensors").write_bytes(b"half of")
    assert steps(tmp_path) == []
    save(tmp_path, 5, {})
    assert [item.name for item in tmp_path.iterdir()] == ["step-00000005"]


WRITER = """
import sys, numpy as np
from week09_10_autodiff import checkpoints, nn, random
folder, step = sys.argv[1], int(sys.argv[2])
while True:
    step += 1
    arrays = {f"x{i}": np.full((64, 64 + i), step, np.float32) for i in range(8)}
    checkpoints.save(folder, step, {"arrays": arrays, "position": step}, keep=2)
    sys.stdout.write("saved\\n")
    sys.stdout.flush()
"""


def test_a_writer_killed_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    choose = Random(0)
    last = 0
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            for _ in range(choose.randrange(1, 4)):
                assert writer.stdout.readline() == b"saved\n"
            time.sleep(choose.random() * 0.01)
            writer.send_signal(signal.SIGKILL)
            saved = last + 1  # at least: what it said
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = load(tmp_path)
        assert got.step >= saved
        assert got.state["position"] == got.step
        assert all((array == got.step).all() for array in got.state["arrays"].values())
        last = got.step


def test_a_file_is_whole_or_as_before(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("before")
    with pytest.raises(RuntimeError), atomic_file(target) as path:
        raise RuntimeError(path.write_text("half"))
    assert target.read_text() == "before"
    with atomic_file(target) as path:
        path.write_text("after")
        assert target.read_text() == "before"
    assert target.read_text() == "after"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_is_whole_or_not_there(tmp_path):
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "a"):
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with atomic_folder(tmp_path / "a") as path:
        (path / "x").write_text("1")
        assert not (tmp_path / "a").exists()
    with pytest.raises(FileExistsError, match="expected no folder"), atomic_folder(tmp_path / "a"):
        pass
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_a_tensor_is_read_from_the_mapped_file(tmp_path):
    save(tmp_path, 1, {"x": np.zeros((64, 64), np.float32)})
    x = load(tmp_path).state["x"]
    assert not x.flags.owndata
    assert x.flags.writeable
    assert checkpoints.TENSORS in os.listdir(tmp_path / "step-00000001")


# A training run


class Run:
    """A model with everything that decides how its training goes on."""

    def __init__(self):
        random.manual_seed(0)
        layers = (nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
        self.model = nn.Sequential(*layers)
        self.optimizer = AdamW(self.model.parameters(), lr=0.05)
        self.schedule = StepLR(self.optimizer, 2, 0.5)
        x = np.random.default_rng(0).standard_normal((24, 3)).astype(np.float32)
        self.loader = DataLoader((x, (x[:, 0] > 0).astype(np.int64)), 8, shuffle=True)
        self.step = 0

    def train(self, steps):
        losses = []
        for _ in range(steps):
            x, y = self.loader.batch(self.step)
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            losses.append(loss.item())
        return losses

    def save(self, folder):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": random.get_state(),
        }
        save(folder, self.step, state)

    def resume(self, folder):
        checkpoint = load(folder)
        self.model.load_state_dict(checkpoint.state["model"], assign=True)
        self.optimizer.load_state_dict(checkpoint.state["optimizer"])
        self.schedule.load_state_dict(checkpoint.state["schedule"])
        random.set_state(checkpoint.state["random"])
        self.step = checkpoint.step


def test_a_run_goes_on_bit_by_bit(tmp_path):
    first = Run()
    first.train(3)
    first.save(tmp_path)
    wanted = first.train(4)
    random.manual_seed(99)
    second = Run()
    second.train(1)
    second.resume(tmp_path)
    assert second.train(4) == wanted
    for (name, one), (_, other) in zip(
        first.model.state_dict().items(), second.model.state_dict().items(), strict=True
    ):
        assert (one.numpy() == other.numpy()).all(), name


def test_what_is_saved_stays_the_tensors_own(tmp_path):
    x = Tensor([1.0, 2.0])
    save(tmp_path, 1, {"x": x, "y": x * 2})
    assert not x.storage().shared
    assert load(tmp_path).state["y"].tolist() == [2, 4]
