"""What a loop stores and the next one sums is summed as it is stored.

    END(STORE(t[k], v(k)), k);   END(acc ← acc + LOAD(t[k']), k')
      →   END(STORE(t[k], v(k)); acc ← acc + v(k), k)

The two have equal loops, and each iteration of the second loads only what the same one of the first
has stored, so it may follow at once. It holds the accumulators in registers beside what the first
needs, and is joined where they fill a quarter of them at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.linear import value_of
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import PARAM
from week01_uops.passes import PassFunction, on_kernels
from week01_uops.rewrite import Trace
from week02_render.access import in_registers
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, open_ranges, storage_of
from week05_06_memory.c_vector_types import is_vector
from week05_06_memory.flat import flat
from week05_06_memory.machine import Machine
from week05_06_memory.nests import joined

Key = tuple[UOp, frozenset[tuple[UOp, int]], int]
"""Of an element: its storage, and its offset as a linear form."""


class Pair(NamedTuple):
    """Two nests of loops.

    Attributes:
        first: the END that stores.
        second: the END that sums.
        whole: what closes the lanes of the sums as well.
        loads: what the second loads of what the first stores.
    """

    first: UOp
    second: UOp
    whole: UOp
    loads: tuple[UOp, ...]

    def joined(self) -> Mapping[UOp, UOp] | None:
        """What takes the place of both; None if they have to stay apart."""
        lanes = [r for r in open_ranges(self.second) if is_vector(r)]
        same = _same_loops(self.first.src[1:], (*self.second.src[1:], *lanes))
        if same is None or open_ranges(self.first) != open_ranges(self.second).difference(lanes):
            return None
        stored = _stored(self.first.src[0], same)
        keys = {load: _key(load.src[0]) for load in self.loads}
        if not stored.keys() >= set(keys.values()):
            return None
        values = {load: stored[key].src[1] for load, key in keys.items()}
        sums = substitute(self.second.src[0], values)
        if self.first in toposort((sums,)):
            return None
        end = make(END, (joined(_in_turn(stored.values(), sums)), *self.second.src[1:]))
        whole = substitute(self.whole, {self.second: end})
        return None if self.first in toposort((whole,)) else {self.first: whole, self.whole: whole}


def forward(machine: Machine) -> PassFunction:
    """The pass that joins sums with the loops before them."""

    def run(body: UOp, trace: Trace) -> UOp:
        refused: set[UOp] = set()
        while (pair := _next(body, machine, refused)) is not None:
            found = pair.joined()
            if found is None:
                refused.add(pair.second)
            else:
                body = substitute(body, found)
                trace.fired["forward"] += 1
        return body

    return on_kernels(run)


def _next(body: UOp, machine: Machine, refused: set[UOp]) -> Pair | None:
    """Two nests of which the second sums what the first stores."""
    order = body.toposort()
    closing: dict[UOp, list[UOp]] = defaultdict(list)
    for node in order:
        for item in node.src[1:] if node.op is END else ():
            closing[item].append(node)
    for second in order:
        if second.op is not END or second in refused:
            continue
        sums = _effects(second.src[0])
        if len(sums) > machine.vector_registers // 4 or not all(map(_is_sum, sums)):
            continue
        inside = toposort((second.src[0],), lambda n: () if n.op is END else n.src)
        loads = [n for n in inside if n.op is LOAD and _filled(n)]
        first = {end for load in loads if (end := _filled(load))}
        lanes = [r for r in open_ranges(second) if is_vector(r)]
        wholes = closing[lanes[0]] if lanes else [second]
        if len(first) == len(wholes) == 1 and len(lanes) <= 1:
            return Pair(first.pop(), second, wholes[0], tuple(loads))
    return None


def _effects(effect: UOp) -> tuple[UOp, ...]:
    return effect.src if effect.op is AFTER else (effect,)


def _is_sum(effect: UOp) -> bool:
    """Whether an effect stores to a register."""
    return effect.op is STORE and in_registers(storage_of(effect.src[0]))


def _filled(load: UOp) -> UOp | None:
    """The END that a LOAD of an element waits for, and for nothing else."""
    place = load.src[0]
    if len(load.src) > 1 or place.op is not INDEX or place.src[0].op is not AFTER:
        return None
    storage, *after = place.src[0].src
    plain = storage.op in (PARAM, ALLOC) and len(after) == 1 and after[0].op is END
    return after[0] if plain else None


def _same_loops(first: tuple[UOp, ...], second: tuple[UOp, ...]) -> Mapping[UOp, UOp] | None:
    """The loops of the first, each with its like; lanes with lanes."""
    if len(first) != len(second):
        return None
    pairs = zip(sorted(first, key=is_vector), sorted(second, key=is_vector), strict=True)
    same = dict(pairs)
    alike = all(
        (a.arg.size, a.arg.kind, a.src) == (b.arg.size, b.arg.kind, b.src) for a, b in same.items()
    )
    return same if alike else None


def _stored(effect: UOp, same: Mapping[UOp, UOp]) -> Mapping[Key, UOp]:
    """The STOREs by their place, in the loops of the second; empty if there are others."""
    found: dict[Key, UOp] = {}
    for store in _effects(substitute(effect, same)):
        if store.op is not STORE or len(store.src) > 2 or store.src[0].op is not INDEX:
            return {}
        found[_key(store.src[0])] = store
    return found


def _key(place: UOp) -> Key:
    storage, *indices = place.src
    form = flat(storage.shape, [value_of(i) for i in indices])
    return storage_of(place), frozenset(form.terms.items()), form.constant


def _in_turn(stores: Iterable[UOp], sums: UOp) -> list[UOp]:
    """The STOREs, each with the sums behind it that need no later one: few values live."""
    found: list[UOp] = []
    left = [(s, set(toposort((s,)))) for s in _effects(sums)]
    waiting = {store.src[1] for store in stores}
    for store in stores:
        found.append(store)
        waiting.discard(store.src[1])
        found += [s for s, needs in left if waiting.isdisjoint(needs)]
        left = [(s, needs) for s, needs in left if not waiting.isdisjoint(needs)]
    return found
