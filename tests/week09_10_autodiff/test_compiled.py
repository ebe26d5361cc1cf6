"""C text that is kept for other processes."""

from dataclasses import replace

import numpy as np
import pytest

from week01_uops.dtypes import float32
from week01_uops.ops import EXP2, MUL, param, program
from week02_render.runtime import load
from week05_06_memory.machine import detect
from week09_10_autodiff import compiled as module
from week09_10_autodiff.compiled import compiled
from week09_10_autodiff.compiler import REFERENCE

X = param(0, float32, (5, 7))
WHOLE = program(EXP2(MUL(X, 3.0)))


@pytest.fixture
def compiles(monkeypatch, tmp_path):
    """How often something was compiled, from an empty cache on."""
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path))
    found = []

    class Counting:
        def compile(self, whole, target):
            found.append(whole)
            return REFERENCE.compile(whole, target)

    monkeypatch.setattr(module, "REFERENCE", Counting())
    return found


def test_the_second_time_nothing_is_compiled(compiles):
    first = compiled(WHOLE)
    assert compiled(WHOLE) == first
    assert compiles == [WHOLE]
    x = np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7)
    (got,) = load(first, WHOLE).run([x])
    np.testing.assert_allclose(got, np.exp2(3 * x), rtol=1e-6)


def test_another_program_machine_or_compiler_is_another_text(compiles, monkeypatch):
    compiled(WHOLE)
    compiled(program(EXP2(MUL(X, 4.0))))
    larger = replace(detect(), l1=detect().l1 + 64)
    with monkeypatch.context() as patch:
        patch.setattr(module, "detect", lambda: larger)
        compiled(WHOLE)
    monkeypatch.setattr(module, "_fingerprint", lambda: "another compiler")
    compiled(WHOLE)
    assert len(compiles) == 4


def test_a_damaged_entry_is_compiled_anew(compiles, tmp_path):
    text = compiled(WHOLE)
    (entry,) = [p for p in tmp_path.rglob("*.so") if b"void program" in p.read_bytes()]
    entry.write_bytes(entry.read_bytes().replace(b"void program", b"void grogram"))
    assert compiled(WHOLE) == text
    assert len(compiles) == 2
