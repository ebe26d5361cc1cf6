"""Rules that take gates off: a LOAD whose gate is decided, and a WHERE that repeats a gate."""

from __future__ import annotations

from week01_uops.node import CONST, UOp, make
from week01_uops.ops import MUL, WHERE
from week01_uops.pattern import Rule, any_of, constant_var, var
from week01_uops.rewrite import Rules
from week02_render.ops import LOAD

g, h, p, x, z = var("g"), var("h"), var("p"), var("x"), constant_var("z")


def conjuncts(gate: UOp) -> set[UOp]:
    """The conditions that a gate is the conjunction of."""
    found: set[UOp] = set()
    stack = [gate]
    while stack:
        item = stack.pop()
        if item.op is MUL:
            stack += item.src
        else:
            found.add(item)
    return found


def _decided(p: UOp, g: UOp, x: UOp) -> UOp | None:
    """LOAD(p, true, x) → LOAD(p); LOAD(p, false, x) → x."""
    if g.interval == (1, 1):
        return make(LOAD, (p,))
    if g.interval == (0, 0) and not p.shape:
        return x
    return None


def _repeated(node: UOp, g: UOp, h: UOp, z: UOp) -> UOp | None:
    """WHERE(g, LOAD(p, h, 0), 0) → LOAD(p, h, 0) where h implies g."""
    loaded = node.src[1]
    same = loaded.src[2].op is CONST and loaded.src[2] is z
    return loaded if same and conjuncts(g) <= conjuncts(h) else None


GATES = Rules(
    "gates",
    (
        Rule("gate_decided", any_of({LOAD}, p, g, x), _decided, proof="evaluator"),
        Rule(
            "gate_repeated",
            any_of({WHERE}, g, any_of({LOAD}, p, h, x), z),
            _repeated,
            proof="evaluator",
        ),
    ),
)
