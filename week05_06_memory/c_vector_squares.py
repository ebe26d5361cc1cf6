"""Squares: as many vectors as each has lanes, which together fill rows of memory.

    LOAD(INDEX(p, s·v + u)) for u = 0 … n − 1, v : vector of n   →   n rows &p[s·r], transposed

    STORE(INDEX(p, s·v + u), x_u) for u = 0 … 3, v : vector of n   →   n pieces of 4 at &p[s·k]

Lane by lane, they would be n² scalars, or 4·n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

from week01_uops.linear import Linear
from week02_render.ops import open_ranges
from week05_06_memory.c_vector_types import SQUARES, is_vector, lanes_of

Square = tuple[int, ...]
"""The positions of its LOADs or STOREs, by offset."""

QUAD = 4
"""Neighbours that are stored at once, of vectors of a multiple of as many lanes."""


def squares(loads: Iterable[tuple[int, Hashable, Linear]]) -> Mapping[int, Square]:
    """Position → the square that the LOAD there belongs to.

    Args:
        loads: their positions, what those of one square have in common, and their offsets.
    """
    groups: dict[Hashable, dict[int, int]] = defaultdict(dict)
    sizes: dict[Hashable, int] = {}
    for position, shared, flat in loads:
        size = _lanes(flat)
        if size in SQUARES:
            key = (shared, frozenset(flat.terms.items()))
            groups[key][flat.constant] = position
            sizes[key] = size
    return {
        position: square
        for key, group in groups.items()
        for square in _runs(group, sizes[key])
        for position in square
    }


def quads(stores: Iterable[tuple[int, Hashable, Linear]]) -> Mapping[int, Square]:
    """Position → the four STOREs of neighbouring elements that the one there belongs to."""
    groups: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for position, shared, flat in stores:
        if _lanes(flat) in (8, 16):
            groups[shared, frozenset(flat.terms.items())][flat.constant] = position
    return {
        position: square
        for group in groups.values()
        for square in _runs(group, QUAD)
        for position in square
    }


def _lanes(flat: Linear) -> int:
    """The lanes of an offset that moves by a fixed step, which is not 1; else 0."""
    steps = [(t, c) for t, c in flat.terms.items() if any(map(is_vector, open_ranges(t)))]
    if len(steps) != 1:
        return 0
    (item, step) = steps[0]
    return lanes_of(item) if is_vector(item) and step != 1 else 0


def _runs(group: Mapping[int, int], size: int) -> Iterator[Square]:
    """Runs of `size` consecutive offsets."""
    rest = set(group)
    for first in sorted(group):
        run = range(first, first + size)
        if rest.issuperset(run):
            rest.difference_update(run)
            yield tuple([group[offset] for offset in run])
