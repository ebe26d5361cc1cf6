"""Which products may be fused into a sum.

The format lets ADD of a MUL be rounded once (fma) only if that MUL has no other use in the
program; C compilers fuse wherever they can. A product with more uses is wrapped in KEEP, which
the renderer hides from the C compiler. The uses are counted in the program as it was handed in,
before rules drop a use, and fusion copies nodes and splits them over kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from week01_uops.node import Op, UOp, make
from week01_uops.ops import MUL, NEG
from week01_uops.pattern import Rule, any_of, var
from week01_uops.rewrite import Rules, Trace
from week02_render.ops import KEEP


def keep_products(transparent: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass MUL(a, b) with several uses → KEEP(MUL(a, b)), for floats.

    A use by a transparent op, which moves the product or changes its sign, counts as often as
    that op is used.
    """
    through = transparent | {NEG}

    def run(program: UOp, trace: Trace) -> UOp:
        uses = _count_uses(program, through)
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            new = node.with_src(tuple([done[s] for s in node.src]))
            shared = node.op is MUL and node.dtype.is_float and uses[node] > 1
            done[node] = make(KEEP, (new,)) if shared else new
        return done[program]

    return run


KEEPING = Rules(
    "products that must be rounded",
    (
        Rule(
            "keep_only_products",
            any_of({KEEP}, var("x")),
            lambda x: x if x.op is not MUL else None,
            proof="evaluator",
        ),
    ),
)
"""What simplifies to something else than a product needs no KEEP."""


def _count_uses(program: UOp, through: frozenset[Op]) -> Counter[UOp]:
    uses: Counter[UOp] = Counter()
    for node in reversed(program.toposort()):
        count = min(uses[node], 2) if node.op in through else 1
        for source in node.src:
            uses[source] += count
    return uses
