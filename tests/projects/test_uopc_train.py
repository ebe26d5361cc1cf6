"""`uopc train`, as a user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from projects.uopc.cli import main
from tests.week09_10_autodiff.tiny_run import losses, tiny, with_optimizer
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.training.config import Config, parse, to_toml

ROOT = Path(__file__).resolve().parents[2]


def uopc(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(to_toml(tiny(tmp_path / "run", steps=5)))
    return path


@contextmanager
def started(*arguments):
    """The command in a process of its own, which ends with the block."""
    words = [sys.executable, "-m", "projects.uopc.cli", "train", *map(str, arguments)]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, cwd=ROOT, env=environment, **output) as process:
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def wait_for_steps(folder, count):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if (folder / "log.jsonl").exists() and len(losses(folder)) >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"no {count} steps in {folder}")


def test_the_default_config_is_printed_and_read():
    assert parse(uopc("train", "--print-config").stdout) == Config()


def test_a_run_says_what_it_does(config, tmp_path, monkeypatch):
    monkeypatch.setattr(PROGRAMS, "_loaded", OrderedDict())  # no other test has compiled it
    text = uopc("train", config).stdout
    assert "parameters" in text
    assert "compiled" in text
    assert "step 5/5" in text
    assert "validation loss" in text
    flat = " ".join(text.split())
    assert f"uopc generate {tmp_path}/run/model" in flat.replace("/ ", "/")
    assert len(losses(tmp_path / "run")) == 5


def test_options_replace_what_the_config_says(config, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    uopc("train", config, "--steps", 2, "--out", tmp_path / "other", "--threads", 1)
    assert sorted(losses(tmp_path / "other")) == [1, 2]
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_what_is_wrong_is_said_in_a_sentence(config, tmp_path):
    config.write_text("[model]\nlayer = 3\n")
    said = uopc("train", config, status=1).stderr
    assert said.startswith(f"uopc: {config}: [model]: expected one of kind, layers")
    assert "did you mean layers?" in said
    assert "expected the folder of a run" in uopc("train", "--resume", tmp_path, status=1).stderr
    assert "No such file" in uopc("train", tmp_path / "none.toml", status=1).stderr
    both = uopc("train", config, "--resume", tmp_path, status=1).stderr
    assert "expected --resume by itself" in both


def test_a_killed_run_is_resumed_to_the_same_losses(tmp_path):
    """SIGKILL in the middle; what comes after is equal to the last digit."""
    files = {name: tmp_path / f"{name}.toml" for name in ("whole", "killed")}
    for name, file in files.items():
        made = tiny(tmp_path / name, steps=100_000, checkpoint_every=10, sample_every=0)
        file.write_text(to_toml(with_optimizer(made, warmup=100_000)))
    with started(files["killed"]):
        wait_for_steps(tmp_path / "killed", 25)
    steps = max(losses(tmp_path / "killed")) + 5
    uopc("train", "--resume", tmp_path / "killed", "--steps", steps)
    uopc("train", files["whole"], "--steps", steps)
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")
    assert sorted(losses(tmp_path / "killed")) == list(range(1, steps + 1))


def test_control_c_saves_and_says_how_to_go_on(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(to_toml(tiny(tmp_path / "run", steps=100_000, checkpoint_every=0)))
    with started(file) as process:
        wait_for_steps(tmp_path / "run", 3)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 0, text
    assert "uopc train --resume" in text
    saved = json.loads(next((tmp_path / "run/checkpoints").glob("*/state.json")).read_text())
    assert saved["step"] == max(losses(tmp_path / "run"))


def test_the_example_of_the_readme_learns():
    text = (ROOT / "README.md").read_text()
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "optim" in c)
    names = {}
    exec(code.replace("range(200)", "range(40)"), names)
    late = names["loss"].item()
    exec(code.replace("range(200)", "range(1)"), names)
    assert late < names["loss"].item() / 2
