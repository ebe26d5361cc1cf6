"""Week 2's compiler: from elementwise programs with storage to one C translation unit."""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops import compiler as week01
from week01_uops.node import Op, UOp
from week01_uops.ops import ELEMENTWISE
from week01_uops.passes import Dialect, Pass, on_kernels, rules_pass
from week01_uops.reference import Reference
from week01_uops.rewrite import Rules, Trace, rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render.contract import KEEPING, keep_products
from week02_render.gates import GATES
from week02_render.kernels import place_temporaries, split_kernels, store_outputs
from week02_render.linearize import linearize
from week02_render.lower import ROWS, Row, lower_with
from week02_render.ops import INTERNAL, LINEAR, OPS
from week02_render.reads import await_reads, settle_reads
from week02_render.render import render_c

DIALECT = Dialect("week02", OPS)


def scalar_values(node: UOp) -> str | None:
    """A check of the loop level: inside a kernel, values are scalars."""
    if node.op in ELEMENTWISE and node.shape:
        return f"a value has shape {list(node.shape)}"
    return None


TENSOR = Dialect("week02 tensor level", (OPS | INTERNAL) - {LINEAR})
LOOP = Dialect("loop level", (OPS | INTERNAL) - {LINEAR}, (scalar_values,))
KERNEL = LOOP | {LINEAR}

KEEPS = Pass(
    "contract", "tensor", keep_products(frozenset()), TENSOR, "keep shared products out of fma"
)
SIMPLIFIED = rules_pass("simplify", "tensor", SIMPLIFY + KEEPING, TENSOR, "fold, cancel and bound")
ORDER = Pass(
    "order", "tensor", await_reads(frozenset()), TENSOR, "make writes wait for what is read before"
)
OUTPUTS = Pass("outputs", "tensor", store_outputs, TENSOR, "store each result in its OUTPUT")
READS = Pass(
    "reads", "tensor", settle_reads(frozenset()), TENSOR, "store what is read before it is written"
)
KERNELS = Pass("kernels", "loop", split_kernels, TENSOR, "make each effect the CALL of a kernel")
TEMPORARIES = Pass(
    "temporaries", "loop", place_temporaries, LOOP, "give each ALLOC a place in the workspace"
)
LINEARIZE = Pass("linearize", "kernel", on_kernels(linearize), KERNEL, "put nodes in order")


def loops(rows: Mapping[Op, Row], leaves: Dialect) -> Pass:
    """The pass that lowers shaped values to loops by a table of rows."""
    about = "ask every op for one element, in loops over what is stored"
    return Pass("loops", "loop", on_kernels(lower_with(rows)), leaves, about)


def indices(rules: Rules, leaves: Dialect) -> Pass:
    """The pass that simplifies kernel bodies by a rule table."""

    def run(body: UOp, trace: Trace) -> UOp:
        return rewrite(body, rules, trace=trace)

    return Pass("indices", "loop", on_kernels(run), leaves, "simplify indices, gates and loops")


INDICES = indices(SIMPLIFY + GATES, LOOP)

COMPILER = (
    week01.COMPILER.extend("week02", DIALECT, {week01.INLINED: TENSOR})
    .replace_pass("simplify", ORDER, KEEPS, SIMPLIFIED)
    .insert(
        OUTPUTS,
        READS,
        KERNELS,
        loops(ROWS, LOOP),
        TEMPORARIES,
        INDICES,
        LINEARIZE,
        after="simplify",
    )
)

REFERENCE = Reference(COMPILER, {"c": render_c})
