"""Random steps for a kernel's body: most of them make sense, some do not."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from week01_uops.node import UOp
from week01_uops.ops import PARAM
from week02_render.ops import KINDS, RANGE, open_ranges
from week03_loops.ops import REDUCE
from week05_06_memory import schedule
from week05_06_memory.nests import ScheduleError, closes
from week05_06_memory.schedule import STEPS, Schedule, Step
from week05_06_memory.widen import filled_in

Draw = Callable
MOST_COPIES = 16
"""Iterations of a loop that is unrolled, so that nothing takes long."""


class Body:
    """A kernel's body, and numbers to choose from."""

    def __init__(self, body: UOp, draw: Draw) -> None:
        self.root = body
        self.draw = draw
        nodes = body.toposort()
        self.loops = {n.arg.id: n for n in nodes if n.op is RANGE}
        self.closers = [n for n in nodes if closes(n)]
        self.slots = {n.arg.slot: len(n.shape) for n in nodes if n.op is PARAM}
        self.free = max(self.loops, default=-1) + 1

    def one_of(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def any_range(self) -> int:
        return self.one_of(self.loops or [0])

    def maybe(self) -> bool:
        return self.draw(st.booleans())

    def order_of(self, names):
        return tuple(self.draw(st.permutations(names)))


def split(body: Body) -> Step:
    name = body.any_range()
    size = body.loops[name].arg.size if body.loops else 1
    by = body.one_of([*[d for d in (2, 4, 8, 16, 3, 5) if d <= size], size, size + 1])
    into = (body.free, body.free + 1) if body.maybe() else None
    return schedule.Split(name, max(by, 1), into, body.one_of((None, None, "overlap", "cut")))


def kind(body: Body) -> Step:
    name = body.any_range()
    small = not body.loops or body.loops[name].arg.size <= MOST_COPIES
    return schedule.Kind(name, body.one_of(k for k in KINDS if k != "unroll" or small))


def reorder(body: Body) -> Step:
    names = [r.arg.id for r in body.one_of(body.closers).src[1:]] if body.closers else [0]
    return schedule.Reorder(body.order_of(names))


def join(body: Body) -> Step:
    names = [r.arg.id for r in body.one_of(body.closers).src[1:]] if body.closers else [0]
    at = body.draw(st.integers(0, max(len(names) - 2, 0)))
    pair = (names[at], names[min(at + 1, len(names) - 1)])
    return schedule.Join(*pair, body.free)


def stage(body: Body) -> Step:
    slot = body.one_of(body.slots or [0])
    at = body.any_range() if body.maybe() else None
    layout = body.order_of(range(body.slots.get(slot, 0))) if body.maybe() else None
    return schedule.Stage(slot, at, layout)


def hold(body: Body) -> Step:
    sums = [n for n in body.closers if n.op is REDUCE]
    names = [r.arg.id for r in body.one_of(sums).src[1:]] if sums else [body.any_range()]
    return schedule.Hold((body.one_of(names),))


def widen(body: Body) -> Step:
    filling = [n for n, item in body.loops.items() if filled_in(body.root, item)]
    return schedule.Widen(body.one_of(filling) if filling else body.any_range())


def loosen(body: Body) -> Step:
    bounds = [b for item in body.loops.values() for b in item.src]
    ending = sorted({r.arg.id for b in bounds for r in open_ranges(b)})
    return schedule.Loosen(body.one_of(ending) if ending else body.any_range())


def hoist(body: Body) -> Step:
    sums = [n for n in body.closers if n.op is REDUCE]
    if not sums:
        return schedule.Hoist(body.any_range(), ())
    total = body.one_of(sums)
    names = sorted({r.arg.id for r in open_ranges(total)})
    over = body.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return schedule.Hoist(body.one_of(r.arg.id for r in total.src[1:]), tuple(over))


MAKERS: dict[str, Callable[[Body], Step]] = {
    "split": split,
    "kind": kind,
    "reorder": reorder,
    "join": join,
    "stage": stage,
    "hold": hold,
    "widen": widen,
    "loosen": loosen,
    "hoist": hoist,
    "part": lambda body: schedule.Part(body.any_range(), body.one_of((2, 3))),
    "stream": lambda body: schedule.Stream(),
    "fetch": lambda body: schedule.Fetch(body.one_of(body.slots or [0]), body.any_range(), 16),
}
assert MAKERS.keys() == STEPS.keys()

OFTEN = ("split", "split", "kind", "kind", "kind", "reorder", "stage", "hold", "widen", *MAKERS)


def draw_steps(body: UOp, draw: Draw, most: int) -> tuple[Schedule, UOp]:
    """A schedule of at most so many steps, each of them done, and the body after it."""
    done: list[Step] = []
    if all(n.op is not RANGE for n in body.toposort()):
        most = 1
    for _ in range(draw(st.sampled_from((most, most // 2, 1)))):
        step = MAKERS[draw(st.sampled_from(OFTEN))](Body(body, draw))
        try:
            body = step.apply(body)
        except ScheduleError:
            continue
        done.append(step)
    return tuple(done), body
