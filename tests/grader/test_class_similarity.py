"""Which submissions resemble each other."""

import math
import random
import shutil
import subprocess

import pytest

from grader.classes.sample_class import SAMPLES, rename
from grader.classes.similarity import fingerprints, of_folder, pairs, summary, tokens

CODE = "int total(int *values, int count) { // adds\n  int sum = 0;\n" + "\n".join(
    f"  if (values[{k}] > {k}) sum += count * values[{k}] / {k + 1};" for k in range(30)
)


def test_names_numbers_and_comments_do_not_count():
    assert tokens('x = f(12, "a b") # note\n// more\n/* all */ y') == "n=n(0,s)n"
    other = CODE.replace("values", "v").replace("sum", "total_of_all").replace("// adds", "")
    assert fingerprints(other) == fingerprints(CODE) != set()


def test_what_is_long_enough_is_always_seen():
    rng = random.Random(0)
    noise = ["".join(rng.choice("+-*/<>=!&|^%(){}[];,") for _ in range(400)) for _ in range(2)]
    shared = "".join(rng.choice("+-*/<>=!&|^%(){}[];,.:?~") for _ in range(31))
    one, other = (fingerprints(f"{text[:200]} {shared} {text[200:]}") for text in noise)
    assert one & other
    assert not fingerprints(noise[0]) & fingerprints(noise[1])


def test_a_renamed_copy_is_found_and_another_program_is_not(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (SAMPLES / "javascript-week1").glob("*.js"):
        (copy / path.name).write_text(path.read_text())
    rename(copy, random.Random(1))
    original = (SAMPLES / "javascript-week1" / "simplify.js").read_text()
    assert (copy / "simplify.js").read_text() != original
    names = {"js": SAMPLES / "javascript-week1", "copy": copy, "c": SAMPLES / "c-week1"}
    sources = {name: of_folder(folder) for name, folder in names.items()}
    found = pairs(sources, {name: {} for name in sources}, 0.0)
    alike = {(p.first, p.second): p.source for p in found}
    assert alike[("js", "copy")] > 0.9
    assert alike[("js", "c")] < 0.5
    assert [p.printed for p in found] == [None] * len(found) != []


@pytest.mark.parametrize(
    ("name", "check", "says"),
    [
        ("c-week1", "gcc -std=c11 -fsyntax-only *.c", ""),
        (
            "javascript-week1",
            "node compiler.js verb",
            "this compiler knows the verb `simplify` only",
        ),
    ],
)
def test_a_renamed_copy_is_still_a_program(tmp_path, name, check, says):
    if shutil.which(check.split()[0]) is None:
        pytest.skip(f"needs {check.split()[0]}")
    shutil.copytree(SAMPLES / name, tmp_path / "copy", ignore=shutil.ignore_patterns("compiler"))
    rename(tmp_path / "copy", random.Random(0))
    done = subprocess.run(
        check, shell=True, cwd=tmp_path / "copy", capture_output=True, text=True, check=False
    )
    assert done.stderr.startswith(says)
    assert (done.stderr == "") == (says == "")


def test_agreement_on_what_everyone_prints_says_nothing():
    answers = {name: {"p": "same", "q": "same"} for name in "abcd"}
    answers["a"]["q"] = answers["b"]["q"] = "odd"
    found = pairs({name: set() for name in "abcd"}, answers, 0.5)
    by_names = {p.first + p.second: p.printed for p in found}
    assert by_names["ab"] == pytest.approx(1.0)
    assert set(by_names) == {"ab", "cd"}
    everyone = pairs({n: set() for n in "ab"}, {n: {"p": "x"} for n in "ab"}, 0.0)
    assert everyone == []


def test_few_are_no_pair():
    assert pairs({}, {}, 0.5) == pairs({"a": {1}}, {"a": {}}, 0.5) == []


def test_summary_leaves_out_the_rest():
    sources = {str(k): {1, 2, 3} for k in range(8)}
    found = pairs(sources, {name: {} for name in sources}, 0.9)
    assert len(found) == math.comb(8, 2)
    lines = list(summary(found, 2))
    assert lines == [
        "0 and 1: source 1.00, printed –",
        "0 and 2: source 1.00, printed –",
        "… 26 more pairs",
    ]
