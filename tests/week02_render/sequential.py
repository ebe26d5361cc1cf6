"""A second interpreter of loops, one scalar and one iteration at a time, and random programs.

It knows int64 scalars, flat storage, LOAD, STORE, AFTER, a little arithmetic, RANGE, END, REDUCE
and STAGE over RANGEs. It shares nothing with the evaluator but the definition of open ranges.
"""

import functools
import random

from week01_uops import dtypes
from week01_uops.node import CONST, const, toposort
from week01_uops.ops import ADD, CMPLT, FLOORMOD, MAX, MUL, WHERE
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    OUTPUT,
    RANGE,
    STORE,
    AllocArg,
    StorageArg,
    index,
    loop,
    open_ranges,
)

UNDEFINED = dtypes.int64.wrap(0xA5A5A5A5A5A5A5A5)
VOID = dtypes.void


class Frame:
    """One iteration of one loop: what was computed in it."""

    def __init__(self, counter=None, value=None, inside=frozenset()):
        self.counter, self.value, self.inside = counter, value, inside
        self.cache = {}


class Sequential:
    def __init__(self):
        self.frames = [Frame()]
        self.memory = {}

    def storage(self, node):
        return self.memory.setdefault(node, [UNDEFINED] * node.size)

    def frame_of(self, node):
        """The innermost iteration that the node belongs to."""
        for frame in reversed(self.frames):
            if frame.counter in open_ranges(node) or node in frame.inside:
                return frame
        return self.frames[0]

    def get(self, node):
        cache = self.frame_of(node).cache
        if node not in cache:
            cache[node] = self.compute(node)
        return cache[node]

    def place(self, node):
        """Memory and element number; None if it is out of range."""
        if node.op is INDEX:
            memory, _ = self.place(node.src[0])
            at = self.get(node.src[1])
            return memory, at if 0 <= at < len(memory) else None
        if node.op is AFTER:
            found = self.place(node.src[0])
            for item in node.src[1:]:
                self.get(item)
            return found
        if node.op.closes:
            return self.get(node), 0
        return self.storage(node), 0

    def compute(self, node):
        src, op = node.src, node.op
        if node.place is not None and not op.closes:
            return self.place(node)
        if op is CONST:
            return node.arg.value
        if op is RANGE:
            return next(f.value for f in reversed(self.frames) if f.counter is node)
        if op in (LOAD, STORE):
            return self.access(node)
        if op is AFTER:
            first, *_ = [self.get(item) for item in src]
            return first
        if op.closes:
            return self.close(node)
        x = [self.get(item) for item in src]
        if op is WHERE:
            return x[1] if x[0] else x[2]
        wrap = dtypes.int64.wrap
        return {
            ADD: lambda a, b: wrap(a + b),
            MUL: lambda a, b: wrap(a * b),
            FLOORMOD: lambda a, b: a % b if b else a,
            CMPLT: lambda a, b: a < b,
            MAX: max,
        }[op](*x)

    def access(self, node):
        memory, at = self.place(node.src[0])
        rest = [self.get(item) for item in node.src[1:]]
        if node.op is STORE:
            if len(rest) == 1 or rest[1]:
                memory[at] = rest[0]
            return None
        if rest and not rest[0]:
            return rest[1] if len(rest) > 1 else 0
        return memory[at]

    def close(self, node):
        inside, *ranges = node.src
        found = []
        self.iterate(inside, ranges, placed(node), [], found)
        if node.op is END:
            return None
        if node.op.name == "STAGE":
            sizes = [item.arg.size for item in ranges]
            result = [UNDEFINED] * node.size
            for indices, value in found:
                number = 0
                for i, size in zip(indices, sizes, strict=True):
                    number = number * size + i
                result[number] = value
            return result
        total = {ADD: 0, MUL: 1, MAX: dtypes.int64.min}[node.arg.op]
        for _, value in found:
            total = combine(node.arg.op, total, value)
        return total

    def iterate(self, inside, ranges, placing, indices, found):
        """Compute what depends on no loop that is still to be opened; then open the next one."""
        order, direct = placing
        around = frozenset(f.counter for f in self.frames if f.counter is not None)
        for node in order:
            if open_ranges(node) <= around and node not in direct and node is not inside:
                self.get(node)
        if not ranges:
            found.append((indices, self.get(inside)))
            return
        first, *rest = ranges
        stop = min([first.arg.size, *(self.get(bound) for bound in first.src)])
        for value in range(stop):
            self.frames.append(Frame(first, value, frozenset() if rest else direct))
            self.iterate(inside, rest, placing, [*indices, value], found)
            self.frames.pop()


def combine(op, a, b):
    if op is MAX:
        return max(a, b)
    return dtypes.int64.wrap(a + b if op is ADD else a * b)


@functools.cache
def placed(closer):
    """The nodes around and in a loop in order, and those repeated in any case.

    These are what an END closes its loops around, joined by AFTER, and what waits for that.
    """
    inside, *ranges = closer.src
    direct = set()
    waiting = [inside] if inside.dtype is VOID else []
    while waiting:
        item = waiting.pop()
        direct.add(item)
        if item.op is AFTER:
            waiting += [s for s in item.src if s.dtype is VOID]
    for node in toposort((inside,)):
        if not node.op.closes and not direct.isdisjoint(node.src):
            direct.add(node)
    return toposort((*ranges, inside)), frozenset(direct)


def run(effect, outputs):
    machine = Sequential()
    machine.get(effect)
    return [machine.storage(node) for node in outputs]


SIZE = 5


class Program:
    """Statements in a total order: each waits for the one before it."""

    def __init__(self, seed, reduce=None, stage=None):
        self.random = random.Random(seed)
        self.counters = 0
        self.reduce, self.stage = reduce, stage
        shape = (SIZE,)
        self.outputs = [OUTPUT(arg=StorageArg(k, dtypes.int64, shape)) for k in range(2)]
        self.allocs = [ALLOC(arg=AllocArg(k, dtypes.int64, (SIZE if k else 1,))) for k in range(3)]
        start = None
        for output in self.outputs:
            for i in range(SIZE):
                target = AFTER(output, start) if start is not None else output
                start = STORE(index(target, const(i, dtypes.int64)), const(i * 7, dtypes.int64))
        self.effect = self.block(start, (), 3)

    def counter(self, bound=None):
        self.counters += 1
        return loop(self.counters, self.random.randint(1, 4), bound)

    def number(self):
        return const(self.random.randint(0, SIZE - 1), dtypes.int64)

    def at(self, ranges, size):
        """An index in [0, size) made of the ranges."""
        pick = self.random.random()
        if not ranges or pick < 0.15:
            node = self.number()
        elif pick < 0.6:
            node = self.random.choice(ranges)
        else:
            a, b = self.random.choice(ranges), self.random.choice((*ranges, self.number()))
            node = ADD(MUL(a, const(self.random.choice((1, 2, -1)), dtypes.int64)), b)
        return FLOORMOD(node, const(size, dtypes.int64))

    def place(self, before, ranges):
        base = self.random.choice((*self.outputs, *self.allocs, self.allocs[0]))
        waits = [before] if before is not None else []
        named = ranges if self.random.random() < 0.8 else ()
        return index(AFTER(base, *waits, *named), self.at(ranges, base.size))

    def gate(self, ranges):
        return CMPLT(self.at(ranges, SIZE), self.number())

    def value(self, before, ranges, depth=2):
        pick = self.random.random()
        if pick < 0.5:
            place = self.place(before, ranges)
            if self.random.random() < 0.3:
                return LOAD(place, self.gate(ranges), self.number())
            return LOAD(place)
        if pick < 0.6 and self.reduce is not None and depth:
            k = self.counter()
            x = self.value(before, (*ranges, k), 0)
            return self.reduce(self.random.choice((ADD, MUL, MAX)), x, 0, k)
        if pick < 0.7 and self.stage is not None and depth:
            k = self.counter()
            held = self.stage(self.value(before, (*ranges, k), 0), k)
            return LOAD(index(held, self.at(ranges, k.arg.size)))
        if not depth or pick < 0.8:
            return self.random.choice((*ranges, self.number()))
        op = self.random.choice((ADD, MUL, MAX))
        return op(self.value(before, ranges, depth - 1), self.value(before, ranges, depth - 1))

    def store(self, before, ranges):
        place = self.place(before, ranges)
        value = ADD(self.value(before, ranges), self.number())
        gate = (self.gate(ranges),) if self.random.random() < 0.2 else ()
        return STORE(place, value, *gate)

    def block(self, before, ranges, depth):
        """A few statements, the last of which waits for all."""
        effect = before
        for _ in range(self.random.randint(1, 3)):
            if depth and self.random.random() < 0.6:
                effect = self.loops(effect, ranges, depth)
            else:
                effect = self.store(effect, ranges)
        return effect

    def loops(self, before, ranges, depth):
        new = []
        for _ in range(self.random.randint(1, 2)):
            around = (*ranges, *new)
            bounded = around and self.random.random() < 0.2
            bound = ADD(self.random.choice(around), const(1, dtypes.int64)) if bounded else None
            new.append(self.counter(bound))
        inside = self.block(before, (*ranges, *new), depth - 1)
        return END(inside, *new)
