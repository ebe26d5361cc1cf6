"""The order of nodes is the same in every process."""

import subprocess
import sys

from week01_uops.dtypes import float32, int64
from week01_uops.ops import ADD, EXP2, MUL, NEG, param
from week01_uops.order import order

CODE = """
from week01_uops.dtypes import float32
from week01_uops.ops import ADD, EXP2, MUL, NEG, param
from week01_uops.order import order
x, y = param(0, float32), param(1, float32)
if {extra}:
    other = MUL(y, x)
nodes = [NEG(x), y, x, EXP2(y), MUL(x, y), ADD(EXP2(x), y), ADD(y, EXP2(x)), MUL(y, x)]
print([nodes.index(node) for node in sorted(nodes, key=order)])
"""


def run(extra: bool) -> str:
    command = [sys.executable, "-c", CODE.format(extra=extra)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_other_programs_and_hash_seeds_do_not_matter():
    assert len({run(False), run(True), run(False)}) == 1


def test_numbers_are_compared_as_numbers():
    slots = [param(slot, int64) for slot in (11, 2, 100, 1)]
    assert [n.arg.slot for n in sorted(slots, key=order)] == [1, 2, 11, 100]


def test_a_difference_far_below_counts():
    x, y = param(0, float32), param(1, float32)
    left, right = x, y
    for _ in range(2000):
        left, right = EXP2(ADD(left, 1.0)), EXP2(ADD(right, 1.0))
    assert order(left) != order(right)


def test_negations_come_last():
    x = param(0, float32)
    assert sorted([NEG(x), x, MUL(x, x)], key=order)[-1] is NEG(x)
