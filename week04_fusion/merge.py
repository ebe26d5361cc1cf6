"""Kernels over the same loops become one kernel.

    CALL(END(e, r…), …), CALL(END(f, r…), …)   →   CALL(END(AFTER(f, e), r…), …)

It is done in two cases. Side by side: neither waits for the other, and one reads nothing that the
other does not: sum and sum of squares of one array, not three products of one matrix with three
others. In a chain: the later one reads what the earlier one writes, each element in the very
iteration that has written it, and takes the value instead of loading it; or it replaces what the
earlier one reads, each element in the very iteration that reads it, after that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CALL, PARAM, CallArg, ParamArg
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, storage_of

Element = tuple[UOp, tuple[UOp, ...]]
"""A storage, and the indices of an element of it."""


@dataclass(frozen=True)
class Kernel:
    """What decides whether two CALLs may be one."""

    call: UOp
    loops: tuple[UOp, ...]
    read: frozenset[UOp]
    written: frozenset[UOp]
    waits: int


def merge_kernels(program: UOp, trace: Trace) -> UOp:
    """Merge pairs until none is left that may be."""
    while pairs := _Round(kernels_of(program), trace).run():
        merged = {pair: _merged(*pair) for pair in pairs}
        program = replace_calls(program, {c: new for pair, new in merged.items() for c in pair})
        trace.fired["merge"] += len(pairs)
    while dead := _without_dead(program):
        program = replace_calls(program, dead)
        trace.fired["drop dead store"] += len(dead)
    return program


class _Round:
    """A search for pairs, each kernel in one of them at most.

    Attributes:
        waits: for each kernel, the bits of those that run before it, pairs taken for one.
        users: those that run after it.
    """

    def __init__(self, kernels: list[Kernel], trace: Trace) -> None:
        self.kernels, self.trace = kernels, trace
        self.waits = [kernel.waits for kernel in kernels]
        self.users = [0] * len(kernels)
        for k, waits in enumerate(self.waits):
            for i in _bits(waits):
                self.users[i] |= 1 << k

    def run(self) -> list[tuple[UOp, UOp]]:
        """The pairs, the earlier kernel first."""
        pairs: list[tuple[UOp, UOp]] = []
        free: dict[tuple[UOp, ...], list[int]] = defaultdict(list)
        for j, later in enumerate(self.kernels):
            if not later.loops:
                continue
            others = free[later.loops]
            i = next((i for i in others if self._may_merge(i, j)), None)
            if i is None:
                others.append(j)
            else:
                others.remove(i)
                pairs.append((self.kernels[i].call, later.call))
                self._join(i, j)
        return pairs

    def _may_merge(self, i: int, j: int) -> bool:
        earlier, later = self.kernels[i], self.kernels[j]
        if self.waits[j] >> i & 1:
            return not self.users[i] & self.waits[j] and _is_chain(earlier, later)
        if self.waits[i] >> j & 1 or earlier.read.isdisjoint(later.read):
            return False
        if earlier.read <= later.read or later.read <= earlier.read:
            return True
        self.trace.decline("merge", "each reads storage that the other does not", later.call)
        return False

    def _join(self, i: int, j: int) -> None:
        """From now on whoever waits for one of two kernels waits for both, and for all before."""
        both = 1 << i | 1 << j
        before = (self.waits[i] | self.waits[j]) & ~both
        after = (self.users[i] | self.users[j]) & ~both
        for k in _bits(after):
            self.waits[k] |= before | both
        for k in _bits(before):
            self.users[k] |= after | both
        self.waits[i] = self.waits[j] = before
        self.users[i] = self.users[j] = after


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _is_chain(earlier: Kernel, later: Kernel) -> bool:
    """Whether the later kernel loads what the earlier one stores only where it is stored.

    The loops are to count elements, so that no other iteration stores to the same one.
    """
    stored = {
        (storage_of(earlier.call.src[1 + storage_of(n.src[0]).arg.slot]), n.src[0].src[1:])
        for n in earlier.call.src[0].toposort()
        if n.op is STORE and len(n.src) == 2 and storage_of(n.src[0]).op is PARAM
        if set(earlier.loops) <= set(n.src[0].src[1:])
    }
    if later.written & earlier.written or not _overwrites(earlier, later):
        return False
    loads = [n for n in later.call.src[0].toposort() if n.op is LOAD]
    for node in loads:
        base = storage_of(node.src[0])
        if base.op is PARAM:
            place = storage_of(later.call.src[1 + base.arg.slot])
            at = (place, node.src[0].src[1:])
            if place in earlier.written and (at not in stored or len(node.src) > 1):
                return False
    return True


def _overwrites(earlier: Kernel, later: Kernel) -> bool:
    """Whether the later kernel may store to what the earlier one reads.

    It may if both access each element in one iteration only: there, the load comes first.
    """
    loaded = _loaded(earlier.call) | _loaded(later.call)
    stored = {_element(later.call, n) for n in later.call.src[0].toposort() if n.op is STORE}
    for place in later.written & earlier.read:
        (at, *others) = {item for item in stored if item[0] is place}
        if others or not set(earlier.loops) <= set(at[1]):
            return False
        if any(item != at for item in loaded if item[0] is place):
            return False
    return True


def _element(call: UOp, access: UOp) -> Element:
    """What a LOAD or STORE in a CALL's body is about, in terms of the program's storage."""
    base, indices = _at(access)
    return storage_of(call.src[1 + base.arg.slot]) if base.op is PARAM else base, indices


def _loaded(call: UOp) -> set[Element]:
    return {_element(call, n) for n in call.src[0].toposort() if n.op is LOAD}


def kernels_of(program: UOp) -> list[Kernel]:
    """The CALLs in order; bit i of `waits` is set where kernel i has to run before.

    One without loops is among them, so that who waits for it waits for what it waits for.
    """
    found: list[Kernel] = []
    waits: dict[UOp, int] = {}
    for node in top_nodes(program):
        below = 0
        for source in node.src[1:] if node.op is CALL else node.src:
            below |= waits[source]
        if node.op is CALL:
            found.append(describe(node, below))
            below |= 1 << len(found) - 1
        waits[node] = below
    return found


def describe(call: UOp, waits: int) -> Kernel:
    """What a CALL reads and writes; `waits` as `kernels_of` finds it."""
    body, *arguments = call.src
    stores = [n for n in body.toposort() if n.op is STORE]
    written = {storage_of(n.src[0]).arg.slot for n in stores if storage_of(n.src[0]).op is PARAM}
    places = [storage_of(a) for a in arguments]
    return Kernel(
        call,
        body.src[1:] if body.op is END else (),
        frozenset(p for slot, p in enumerate(places) if slot not in written),
        frozenset(p for slot, p in enumerate(places) if slot in written),
        waits,
    )


def replace_calls(program: UOp, calls: Mapping[UOp, UOp | None]) -> UOp:
    """The program with CALLs exchanged; those mapped to None become the first that is not."""
    new = next(call for call in calls.values() if call is not None)
    target = {old: call if call is not None else new for old, call in calls.items()}

    def sources(node: UOp) -> tuple[UOp, ...]:
        node = target.get(node, node)
        return node.src[1:] if node.op is CALL else node.src

    done: dict[UOp, UOp] = {}
    for node in toposort((program,), sources):
        exchanged = target.get(node, node)
        done[node] = exchanged.with_src(tuple([done.get(s, s) for s in exchanged.src]))
    return done[program]


def _stores(effect: UOp) -> list[UOp]:
    """The effects that an AFTER of effects joins, first to last."""
    return [*_stores(effect.src[1]), effect.src[0]] if effect.op is AFTER else [effect]


def _joined(effects: list[UOp]) -> UOp:
    joined = effects[0]
    for effect in effects[1:]:
        joined = make(AFTER, (effect, joined))
    return joined


def _without_dead(program: UOp) -> dict[UOp, UOp | None]:
    """Kernels that fill a temporary which nobody reads → the kernels without that store."""
    calls = [node for node in top_nodes(program) if node.op is CALL]
    users = Counter(storage_of(a) for call in calls for a in call.src[1:])
    users.update(storage_of(output) for output in program.src)
    found: dict[UOp, UOp | None] = {}
    for call in calls:
        if call.src[0].op is END and call.src[0].src[0].op is AFTER:
            stores = _stores(call.src[0].src[0])
            alive = [s for s in stores if not _is_dead(s, call, users)]
            if 0 < len(alive) < len(stores):
                found[call] = _trimmed(call, alive)
    return found


def _is_dead(store: UOp, call: UOp, users: Counter[UOp]) -> bool:
    place = storage_of(store.src[0])
    storage = storage_of(call.src[1 + place.arg.slot]) if place.op is PARAM else place
    return storage.op is ALLOC and users[storage] == 1


def _trimmed(call: UOp, alive: list[UOp]) -> UOp:
    """The CALL with only these stores in its body, and only the arguments they need."""
    body = make(END, (_joined(alive), *call.src[0].src[1:]))
    return call_of(body, call.src[1:], call.arg)


def call_of(body: UOp, arguments: Sequence[UOp], arg: CallArg) -> UOp:
    """CALL of a body, with those of the arguments that it uses."""
    needed = sorted({n.arg.slot for n in body.toposort() if n.op is PARAM})
    whole = make(CALL, (body, *arguments[: needed[-1] + 1]), arg)
    slots = {storage_of(arguments[slot]): k for k, slot in enumerate(needed)}
    return make(CALL, (renumbered(whole, slots), *[arguments[slot] for slot in needed]), arg)


def _merged(first: UOp, second: UOp) -> UOp:
    """One CALL that does both: equal storage is one PARAM, written storage first."""
    storages: dict[UOp, dict[UOp, None]] = {}
    for call in (first, second):
        for argument in call.src[1:]:
            storages.setdefault(storage_of(argument), {})[argument] = None
    written = describe(first, 0).written | describe(second, 0).written
    places = sorted(storages, key=lambda place: place not in written)
    slots = {place: slot for slot, place in enumerate(places)}
    earlier, later = (renumbered(call, slots) for call in (first, second))
    later = substitute(later, _known_loads(earlier, later))
    later = _after_loads(earlier, later)
    effect = _joined([*_stores(earlier.src[0]), *_stores(later.src[0])])
    body = make(END, (effect, *earlier.src[1:]))
    names = [call.arg.name or "kernel" for call in (first, second)]
    arguments = [waiting(p, storages[p], {first, second}) for p in places]
    return call_of(body, arguments, CallArg("_".join(names)))


def _known_loads(earlier: UOp, later: UOp) -> dict[UOp, UOp]:
    """The values of the later body's loads that the earlier body has just stored."""
    stored = {_at(n): n.src[1] for n in earlier.toposort() if n.op is STORE}
    return {n: stored[_at(n)] for n in later.toposort() if n.op is LOAD and _at(n) in stored}


def _after_loads(earlier: UOp, later: UOp) -> UOp:
    """The later body; what it stores where the earlier one loads waits for that.

        LOAD(INDEX(p, i)), STORE(INDEX(p, i), x)   →   STORE(INDEX(AFTER(p, LOAD), i), x)

    It is so whatever rules make of x.
    """
    loads: dict[Element, list[UOp]] = defaultdict(list)
    for node in earlier.toposort():
        if node.op is LOAD:
            loads[_at(node)].append(node)
    waiting = {}
    for node in later.toposort():
        if node.op is STORE and _at(node) in loads:
            place, *indices = node.src[0].src
            place = make(INDEX, (make(AFTER, (place, *loads[_at(node)])), *indices))
            waiting[node] = node.with_src((place, *node.src[1:]))
    return substitute(later, waiting)


def _at(access: UOp) -> Element:
    """What a LOAD or STORE in a body is about."""
    return storage_of(access.src[0]), access.src[0].src[1:]


def waiting(place: UOp, arguments: dict[UOp, None], own: set[UOp]) -> UOp:
    """The storage, after all other kernels that any of the arguments waits for."""
    deps = dict.fromkeys(d for a in arguments if a.op is AFTER for d in a.src[1:] if d not in own)
    return make(AFTER, (place, *deps)) if deps else place


def renumbered(call: UOp, slots: dict[UOp, int]) -> UOp:
    """The body with its PARAMs numbered by storage."""
    body, *arguments = call.src
    replacements = {}
    for node in body.toposort():
        if node.op is PARAM:
            arg: ParamArg = node.arg
            slot = slots[storage_of(arguments[arg.slot])]
            replacements[node] = make(PARAM, (), ParamArg(slot, arg.dtype, arg.shape, arg.range))
    return substitute(body, replacements)
