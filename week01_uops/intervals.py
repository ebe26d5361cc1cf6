"""Interval arithmetic: bounds of an integer op's result from the bounds of its sources.

Each rule returns bounds in exact integers; where they leave the dtype, the op may wrap, and the
node falls back to the whole range of its dtype. An interval never says more than is true for
every input that respects the declared PARAM ranges.
"""

from __future__ import annotations

from week01_uops.node import Interval, UOp


def floordiv(x: int, y: int) -> int:
    """x FLOORDIV y on exact integers, with x FLOORDIV 0 = 0."""
    return x // y if y else 0


def floormod(x: int, y: int) -> int:
    """x FLOORMOD y on exact integers, with x FLOORMOD 0 = x."""
    return x % y if y else x


def negate(node: UOp) -> Interval:
    """−[lo, hi] = [−hi, −lo]."""
    low, high = node.src[0].interval
    return -high, -low


def add(node: UOp) -> Interval:
    """[a, b] + [c, d] = [a + c, b + d]."""
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    return a + c, b + d


def multiply(node: UOp) -> Interval:
    """The extremes lie at corners."""
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def maximum(node: UOp) -> Interval:
    """max([a, b], [c, d]) = [max(a, c), max(b, d)]."""
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    return max(a, c), max(b, d)


def quotient(node: UOp) -> Interval:
    """Monotone in x for a fixed sign of y; extremes at corners, and at y = ±1 and 0."""
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    divisors = {c, d} | {y for y in (-1, 0, 1) if c <= y <= d}
    corners = [floordiv(x, y) for x in (a, b) for y in divisors]
    return min(corners), max(corners)


def remainder(node: UOp) -> Interval:
    """In [0, y) for y > 0, (y, 0] for y < 0; x itself if 0 ≤ x < y always, or y = 0."""
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    if a >= 0 and b < c:
        return a, b
    low = min(0, c + 1, *([a] if c <= 0 <= d else []))
    high = max(0, d - 1, *([b] if c <= 0 <= d else []))
    if c > 0 and a // c == b // c and c == d:
        return a % c, b % c
    return (low, min(high, b)) if a >= 0 and c > 0 else (low, high)


def less(node: UOp) -> Interval:
    """Decided where the intervals do not overlap; floats never are."""
    if not node.src[0].dtype.is_int:
        return 0, 1
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    return int(b < c), int(a < d)


def differ(node: UOp) -> Interval:
    """Decided where the intervals do not overlap or both are one equal value."""
    if node.src[0].dtype.is_float:
        return 0, 1
    (a, b), (c, d) = node.src[0].interval, node.src[1].interval
    return int(b < c or d < a), int(not a == b == c == d)


def union(node: UOp) -> Interval:
    """Of WHERE: both sides, or the one that the condition always takes."""
    condition, (a, b), (c, d) = (s.interval for s in node.src)
    if condition == (1, 1):
        return a, b
    if condition == (0, 0):
        return c, d
    return min(a, c), max(b, d)


def same(node: UOp) -> Interval:
    """The source's: ops that move elements and invent none."""
    return node.src[0].interval


def cast(node: UOp) -> Interval:
    """The source's, where it is an integer that fits; x ≠ 0 for bool."""
    source = node.src[0]
    if source.dtype.is_float:
        return node.dtype.min, node.dtype.max
    low, high = source.interval
    if node.dtype.kind == "bool":
        return int(low > 0 or high < 0), int(not low == high == 0)
    return low, high
