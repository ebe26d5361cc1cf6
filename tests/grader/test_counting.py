"""Loads, stores and bytes of C, counted: the same every time, and only if the program is right."""

import shutil

import pytest

from grader import counting
from grader.bench.rows import reduction
from grader.counting import UncountableError, count, moved
from grader.run_c import RunError
from grader.verdict import Verdict

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

SUM = reduction("sum", "sum", (64, 128), 1)
ROW = (
    "for (int r = 0; r < 64; r++) { float s = 0; for (int c = 0; c < 128; c++) s += x[128 * r + c];"
)


def made(body, before=""):
    head = "#include <string.h>\nvoid program(void *const *in, void *const *out) {"
    return f"{before}\n{head} const float *x = in[0]; float *y = out[0]; {body} }}"


def counts(body, before=""):
    return count(made(body, before), SUM, SUM.program)


@pytest.fixture(autouse=True, scope="module")
def _countable():
    if why := counting._why_not():
        pytest.skip(why)


def test_each_access_counts():
    found = counts(ROW + "y[r] = s; }")
    assert found.stores == 64
    assert 64 * 128 / 16 <= found.loads <= 64 * 128 + 2
    assert 4 * 64 * 129 <= found.bytes <= 4 * 64 * 129 + 16
    assert found.nests == 1


def test_what_is_kept_in_memory_counts_every_time():
    body = (
        "memset(y, 0, 64 * sizeof *y); volatile float *to = y;"
        "for (int r = 0; r < 64; r++) { for (int c = 0; c < 128; c++) to[r] += x[128 * r + c]; }"
    )
    found = counts(body)
    assert found.loads == pytest.approx(2 * 64 * 128, abs=2), "the store counts with its load"
    assert found.bytes == pytest.approx(4 * (2 * 64 * 128 + 64), abs=16)


def test_copies_count_on_both_sides():
    once = counts(ROW + "y[r] = s; }")
    body = f"memcpy(kept, x, sizeof kept); x = kept; {ROW} y[r] = s; }}"
    twice = counts(body, "static float kept[64 * 128];")
    assert twice.bytes - once.bytes == 2 * 4 * 64 * 128


def test_it_is_the_same_every_time():
    body = ROW + "y[r] = s; }"
    assert counts(body) == counts(body)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("", Verdict.WRONG),
        ("y[64] = 1;", Verdict.CRASH),
        ("undeclared;", Verdict.COMPILE_ERROR),
    ],
)
def test_only_a_right_program_is_counted(body, verdict):
    with pytest.raises(RunError) as caught:
        counts(body)
    assert caught.value.verdict is verdict


def test_a_program_cannot_tell_that_it_is_counted():
    test = "\n#if defined(__SANITIZE_ADDRESS__) || defined(program)\nreturn;\n#endif\n"
    assert counts(f"{test} {ROW} y[r] = s; }}").stores == 64


def test_a_compiler_that_cannot_count(monkeypatch):
    monkeypatch.setattr(counting, "FLAGS", ("--no-such-flag",))
    counting._why_not.cache_clear()
    try:
        with pytest.raises(UncountableError, match="not countable here: the C does not compile"):
            moved(None)
    finally:
        counting._why_not.cache_clear()
