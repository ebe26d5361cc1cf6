"""Kernels as loop nests: what they say, and that every name means something where it stands."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from projects.uopc.cli import main
from projects.uopc.expressions import text_of
from week01_uops.dtypes import float32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, MAX, MUL, NEG, RECIP, WHERE, param
from week02_render.ops import index, load, loop

PROGRAMS = Path(__file__).parents[2] / "week03_loops" / "programs"


def nest(program, *arguments):
    path = str(PROGRAMS / f"{program}.uop")
    result = CliRunner().invoke(main, ["compile", path, "--as", "nest", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


SOFTMAX = """\
def max_add_64x256(p0: float32[64, 256], p1: float32[64, 256]):
  for i0 in 0..64:
    v0 = max[i2 in 0..256] p1[i0, i2]
    v1 = Σ[i3 in 0..256] exp2((p1[i0, i3] - v0) * 1.442695)
    v2 = 1 / v1
    for i1 in 0..256:
      p0[i0, i1] = exp2((p1[i0, i1] - v0) * 1.442695) * v2

max_add_64x256(out0, in0)
return out0
"""


def test_each_statement_stands_in_its_loop():
    assert nest("softmax", "--week", "4", "--ir", "loop") == SOFTMAX


I, J = loop(0, 8), loop(1, 4)
X, Y = (load(index(param(slot, float32, (8,)), I)) for slot in (0, 1))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ADD(X, NEG(Y)), "p0[i0] - p1[i0]"),
        (MUL(ADD(X, Y), Y), "(p0[i0] + p1[i0]) * p1[i0]"),
        (ADD(X, ADD(Y, X)), "p0[i0] + (p1[i0] + p0[i0])"),
        (MUL(X, RECIP(Y)), "p0[i0] * (1 / p1[i0])"),
        (MUL(ADD(X, Y), ADD(X, Y)), "(p0[i0] + p1[i0])²"),
        (ADD(MUL(I, const(4, int64)), J), "i0*4 + i1"),
        (NEG(MAX(MUL(I, const(-3, int64)), const(-5, int64))), "min(i0*3, 5)"),
        (ADD(J, NEG(MAX(NEG(I), const(-5, int64)))), "i1 + min(i0, 5)"),
        (NEG(MAX(I, J)), "-max(i0, i1)"),
        (WHERE(CMPLT(X, Y), X, Y), "p0[i0] if p0[i0] < p1[i0] else p1[i0]"),
    ],
)
def test_values_are_infix(node, text):
    assert text_of(node) == text


NAME = r"\b[ivts]\d+\b"


def undefined(text):
    """Names that are used where nothing has given them a meaning."""
    scopes = [(0, set())]
    wrong = []
    for line in filter(None, text.splitlines()):
        indent = len(line) - len(line.lstrip())
        if line.startswith("def "):
            scopes = [(0, set())]
        while scopes[-1][0] > indent:
            scopes.pop()
        if scopes[-1][0] < indent:
            scopes.append((indent, set()))
        known = set().union(*(names for _, names in scopes))
        opened = set(re.findall(r"(i\d+) in 0\.\.", line))
        made = re.match(rf"\s*({NAME}) =", line)
        made = {made[1]} if made else set()
        if line.rstrip().endswith(":") and opened:
            scopes.append((indent + 1, opened))
        wrong += [(n, line) for n in re.findall(NAME, line) if n not in known | opened | made]
        scopes = [(i, names | made if i == indent else names) for i, names in scopes]
    return wrong


@pytest.mark.parametrize("level", ["loop", "tile", "kernel"])
@pytest.mark.parametrize(
    "program", ["gemm_odd", "attention_causal", "layernorm", "cross_entropy", "conv_asymmetric"]
)
def test_names_are_used_where_they_are_known(program, level):
    text = nest(program, "--ir", level)
    assert " in 0.." in text
    assert undefined(text) == []


def test_the_check_of_names_finds_what_is_wrong():
    assert [n for n, _ in undefined(SOFTMAX.replace("v2 = 1 / v1", "v9 = 1 / v1"))] == ["v2"]
    assert [n for n, _ in undefined(SOFTMAX.replace("    v2", "      v2"))] == ["v2"]


def test_kinds_and_bounds_of_loops_are_told():
    text = nest("attention_causal", "--week", "6", "--ir", "loop")
    assert re.search(r"for i\d+ in 0\.\.min\(48, i\d+ \+ 1\):", text)
    assert re.search(r"vector i\d+ in 0\.\.\d+:", nest("gemm", "--ir", "tile"))


def test_programs_that_are_no_loops_are_refused_as_nests():
    path = str(PROGRAMS / "gemm.uop")
    result = CliRunner().invoke(main, ["compile", path, "--ir", "tensor", "--as", "nest"])
    assert result.exit_code == 1
    assert "loop, tile or kernel" in result.stderr


def test_gates_and_indices_are_written_out():
    assert "p1[p2[i0, i1], i2] if" in nest("embedding", "--ir", "loop")
