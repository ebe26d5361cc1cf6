"""Answers that are short and cost much: each has its verdict, soon, in little memory."""

import re
import signal
import threading
import time

import pytest

from grader import cost
from grader.cost import CostError
from grader.loop_nests import code_only, kernels
from grader.sandbox import MIB
from grader.subject import Answer
from grader.verdict import SpecFailure, Verdict
from tests.grader.compilers import judge
from week01_uops.dtypes import int32
from week01_uops.ops import ADD, param, program

SECONDS = 0.3
SCALAR = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}\n'
TEST = f"uops 1\n{SCALAR}return x\n"
LOOP = 'r = REDUCE {} : {{"op": "MAX", "axes": 0}}\nreturn r\n'


def ranges(*sizes):
    return "".join(
        f'q{k} = RANGE : {{"id": {k}, "size": {size}}}\n' for k, size in enumerate(sizes)
    )


def over(*sizes, value="x"):
    counters = " ".join(f"q{k}" for k in range(len(sizes)))
    return ranges(*sizes) + LOOP.format(f"{value} {counters}")


def first_of(storage):
    return f"""{storage}
z = CONST : {{"value": 0, "dtype": "int64"}}
i = INDEX a z
s = STORE i x
b = AFTER a s
j = INDEX b z
l = LOAD j
return l
"""


def doubling(depth):
    rows = [
        'b = PARAM : {"slot": 0, "dtype": "int32", "shape": []}',
        "f0 = ADD b b",
    ]
    for k in range(1, depth):
        rows += [f"c{k} = CALL f{k - 1} b", f"d{k} = CALL f{k - 1} c{k}", f"f{k} = ADD c{k} d{k}"]
    return "\n".join((*rows, f"y = CALL f{depth - 1} x", "return y\n"))


HUGE = '{"slot": 0, "dtype": "int32", "shape": [100000000000]}'
ANSWERS = {
    "an axis": (
        'e = EXPAND x : [1000000000]\nr = REDUCE e : {"op": "MAX", "axes": 1}\nreturn r\n',
        "has a value of 1,000,000,000 elements",
    ),
    "padding": (
        "e = EXPAND x : [1]\np = PAD e : [[0, 99999999999]]\n"
        's = REDUCE p : {"op": "ADD", "axes": 1}\nreturn s\n',
        "has a value of 100,000,000,000 elements",
    ),
    "an ALLOC": (first_of(f"a = ALLOC : {HUGE}"), "has a value of 100,000,000,000 elements"),
    "a BUFFER": (first_of(f"a = BUFFER : {HUGE}"), "has a value of 100,000,000,000 elements"),
    "a STAGE": (
        ranges(10**11) + "a = STAGE x q0\n" + 'z = CONST : {"value": 0, "dtype": "int64"}\n'
        "i = INDEX a z\nl = LOAD i\nreturn l\n",
        "elements",
    ),
    "a loop": (over(10**12), "takes more than 0.3 s"),
    "a loop over what it counts": (
        ranges(10**12) + 'c = CAST q0 : "int32"\ns = ADD c x\n' + LOOP.format("s q0"),
        "takes more than 0.3 s",
    ),
    "loops in loops": (over(*[1000] * 20), "takes more than 0.3 s"),
    "turns of nothing": (over(1 << 47, 0), "takes more than 0.3 s"),
    "calls of calls": (doubling(60), "takes more than 0.3 s"),
    "a million lines": (
        "".join(
            f'x{k} = PARAM : {{"slot": {k}, "dtype": "int32", "shape": []}}\n'
            for k in range(100_000)
        )
        + "return x\n",
        "to read what simplify printed takes more than 0.3 s",
    ),
}


class Saying:
    """Answers all that it is asked with one text."""

    name = "saying"

    def __init__(self, text):
        self.text = text

    def ask(self, verb, text):
        return Answer(Verdict.OK, self.text, "")

    def command(self, verb):
        return ""


def judged(text, week=10):
    found = judge(None, week, SECONDS)
    found.subject = Saying(text)
    return found


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_has_a_verdict(kind):
    text, says = ANSWERS[kind]
    start, before = time.process_time(), cost._resident()
    with pytest.raises(SpecFailure) as caught:
        judged(f"uops 1\n{SCALAR}{text}").accepts(TEST)
    assert caught.value.verdict in (Verdict.TIMEOUT, Verdict.MEMORY)
    assert says in caught.value.sentence
    assert time.process_time() - start < 10 * SECONDS
    assert cost._resident() - before < 2 * cost.ROOM
    judged(TEST).accepts(TEST)


def test_what_is_made_little_by_little_counts():
    kept = []

    def fill():
        while True:
            kept.append(bytes(MIB) * 8)

    with pytest.raises(CostError, match="more than 64 MiB") as caught:
        cost.within(60.0, 64 * MIB, fill)
    assert caught.value.verdict is Verdict.MEMORY


def test_a_watch_ends_with_what_it_watches():
    assert cost.within(0.1, MIB, lambda: 7) == 7
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_other_threads_are_not_watched():
    found = []
    thread = threading.Thread(target=lambda: found.append(cost.within(0.0, 0, lambda: 7)))
    thread.start()
    thread.join()
    assert found == [7]


def test_large_programs_have_more_room():
    x = param(0, int32, (1 << 24,))
    assert cost.room(program(ADD(x, x))) > 4 * cost.ROOM
    assert cost.room(program(param(0, int32))) == cost.ROOM


@pytest.mark.parametrize(
    "text",
    ["'/*'+" * 30_000, '"\\' * 300_000, "'\\" * 300_000, "{" * 50_000 + "f(" * 50_000],
    ids=["comments", "strings", "characters", "braces"],
)
def test_odd_c_is_read_once(text):
    start = time.process_time()
    kernels(code_only(text))
    assert time.process_time() - start < 2.0


def test_characters_are_no_comments():
    assert re.sub(r"\s", "", code_only("a = '/*'; b = \"'\"; c = '\"'; /* ' */ d")) == (
        "a='';b=\"\";c='';d"
    )
