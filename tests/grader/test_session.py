"""The process that runs a week's spec tests ends with the grader that started it."""

import os
import subprocess
import sys
import time

from tests.grader.graders import commands


def test_a_killed_grader_leaves_nothing_behind(tmp_path):
    nap = f"78.{os.getpid()}"
    (tmp_path / "submission.toml").write_text(
        f'name = "S"\nlanguage = "sh"\nweeks = [1]\ncompiler = ["sh", "-c", "sleep {nap}"]\n'
    )
    command = [sys.executable, "-m", "grader", "--week", "1", "--submission", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path) as process:
        while nap not in commands():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    deadline = time.monotonic() + 60
    while nap in commands() or str(tmp_path) in commands():
        assert time.monotonic() < deadline
        time.sleep(0.05)
