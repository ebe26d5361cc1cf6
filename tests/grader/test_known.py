"""What is found out once: the same results, for the same questions only, while asked to."""

import numpy as np
import pytest

from grader import known
from grader.oracle import expected
from grader.weeks import read

TEXT = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2]}
y = MUL x x
return y
"""


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(known, "_kept", {})
    monkeypatch.setattr(known, "_room", 0)


def counted(of):
    calls = []
    value = known.once("test", of, lambda: calls.append(1) or object())
    return value, len(calls)


def test_nothing_is_kept_unasked():
    assert counted((1,))[1] == counted((1,))[1] == 1


def test_what_is_kept_is_not_computed_again():
    known.remember()
    first, calls = counted((1, {0: np.zeros(2)}))
    known.close()
    assert counted((1, {0: np.zeros(2)})) == (first, 0)
    for other in ((1, {0: np.ones(2)}), (1, {0: np.zeros(2, np.float32)}), (1, {1: np.zeros(2)})):
        assert counted(other)[1] == counted(other)[1] == calls


def test_there_is_an_end_of_room():
    known.remember(room=known.SMALL + 100)
    assert [counted((number,))[1] for number in (1, 2, 1, 2)] == [1, 1, 0, 1]


def test_the_oracle_answers_the_same():
    inputs = {0: np.array([1.5, 3.0], np.float32)}
    before = expected(read(TEXT, 1), inputs)
    known.remember()
    first, again = (expected(read(TEXT, 1), inputs) for _ in range(2))
    assert again is first
    for one, other in zip(
        (*before.values, *before.allowed), (*first.values, *first.allowed), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="read-only"):
        first.values[0][0] = 0
