"""Stream: results past the caches, where nothing of them is read."""

import pytest

from tests.week05_06_memory.bodies import agree, column_sums, copy, product, text
from week02_render.ops import STORE
from week05_06_memory.arrange import set_kind
from week05_06_memory.hoist import hoist
from week05_06_memory.nests import ScheduleError
from week05_06_memory.ops import STREAM
from week05_06_memory.split import split
from week05_06_memory.stream import stream


def test_results_are_streamed():
    body = copy(4, 16)
    after = stream(body)
    assert after.src[0].src[0].op is STREAM
    assert "# past the caches" in text(after)
    assert stream(after) is after
    agree(body, after, set_kind(after, 1, "vector"), stream(split(body, 1, 3)))


def test_temporaries_are_not():
    body = hoist(product(4, 3, 5), 2, (1,))
    stores = [n for n in stream(body).toposort() if n.op is STORE]
    assert sum(n.src[0].op is STREAM for n in stores) == 1
    agree(body, stream(body))


def test_what_is_read_again_is_not():
    with pytest.raises(ScheduleError, match="expected a kernel that reads nothing of what it wri"):
        stream(column_sums(3, 4))
