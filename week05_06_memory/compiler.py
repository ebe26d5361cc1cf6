"""The compiler of weeks 5 and 6: week 4's, with loops arranged for the memory hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from week01_uops.calls import substitute
from week01_uops.node import UOp, make
from week01_uops.passes import Dialect, Pass, Pipeline, on_kernels
from week01_uops.reference import Reference
from week01_uops.rewrite import Trace
from week02_render import compiler as week02
from week02_render.compiler import indices
from week02_render.ops import ALLOC, LINEAR
from week03_loops import compiler as week03
from week04_fusion import compiler as week04
from week04_fusion import ops as week04_ops
from week04_fusion.fuse import fuse_with
from week04_fusion.ops import STAGE
from week04_fusion.stage import store_stages
from week05_06_memory.absorb import absorb
from week05_06_memory.bounds import bound_masks
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.expand import accumulate
from week05_06_memory.forward import forward
from week05_06_memory.inplace import hold_in_output
from week05_06_memory.layout import lay_out
from week05_06_memory.machine import Machine, detect
from week05_06_memory.numbers import larger, numbers
from week05_06_memory.onehot import ONE_HOT
from week05_06_memory.online import online
from week05_06_memory.ops import INTERNAL, OPS
from week05_06_memory.outside import take_outside
from week05_06_memory.overwrite import overwrite
from week05_06_memory.roots import ROOTS
from week05_06_memory.scatter import scatter
from week05_06_memory.schedule import Schedule
from week05_06_memory.scheduling import NONE, scheduled, unrolled
from week05_06_memory.share import share
from week05_06_memory.strips import hold_strips
from week05_06_memory.wide import WIDE_SUMS

DIALECT = Dialect("week05_06", OPS)
TENSOR = Dialect("week05_06 tensor level", (OPS | INTERNAL) - {LINEAR})
BYTES = 4
"""Of an element, as fusion takes it; half of the accesses to a temporary hit a cache."""

OURS = INTERNAL - week04_ops.INTERNAL
LOOP = week03.LOOP | {STAGE} | OURS
WIDER = {
    week04.TENSOR: TENSOR,
    week03.LOOP: LOOP,
    week02.LOOP: week02.LOOP | OURS,
    week02.KERNEL: week02.KERNEL | OURS,
}

RULES_OF_LOOPS = week03.RULES_OF_LOOPS + ONE_HOT + ROOTS
LAYOUT = Pass("layout", "tensor", lay_out, TENSOR, "order each temporary's axes as it is read")
ABSORB = Pass(
    "absorb", "loop", absorb(RULES_OF_LOOPS), LOOP, "make one-hot sums loads, with their masks"
)
OVERWRITE = Pass(
    "overwrite", "loop", on_kernels(overwrite), LOOP, "store nothing where what was there stays"
)
SCATTER = Pass("scatter", "loop", scatter, LOOP, "make one-hot sums over results scatter loops")
OUTSIDE = Pass("outside", "loop", on_kernels(take_outside), LOOP, "take common factors out of sums")
BOUNDS = Pass("bounds", "loop", on_kernels(bound_masks), LOOP, "end loops where a mask begins")
NUMBERS = Pass(
    "numbers", "loop", on_kernels(numbers), LOOP, "mark maxima of which a NaN may be lost"
)
TIDY = replace(indices(RULES_OF_LOOPS + WIDE_SUMS, LOOP), name="tidy")


def _stages(machine: Machine) -> Pass:
    def run(body: UOp, trace: Trace) -> UOp:
        stored = store_stages(hold_in_output(body, machine, trace), trace)
        allocs = [n for n in stored.toposort() if n.op is ALLOC and n.arg.addrspace is None]
        return substitute(
            stored, {n: make(ALLOC, (), replace(n.arg, addrspace="LOCAL")) for n in allocs}
        )

    about = "make each STAGE of a kernel local storage, or part of its output"
    return Pass("stages", "loop", on_kernels(run), LOOP, about)


UNROLL = Pass("unroll", "kernel", on_kernels(unrolled), LOOP, "copy what is unrolled")
ACCUMULATE = replace(week03.ACCUMULATE, run=on_kernels(accumulate), leaves=WIDER[week02.LOOP])
LARGER = Pass(
    "larger", "kernel", on_kernels(larger), ACCUMULATE.leaves, "compare once where nothing is NaN"
)


def pipeline_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Pipeline:
    """The passes for a machine; kernels named in `schedules` are arranged as these say."""
    blocks = Pass("online", "loop", online(machine), LOOP, "compute long rows in blocks")
    about = "take kernels into their readers, row by row"
    strips = Pass("strips", "loop", hold_strips(machine), LOOP, about)
    about = "compute once what two nests have in common"
    shared = Pass("share", "loop", share(machine), LOOP, about)
    arranged = scheduled(machine, schedules)
    about = "sum what a loop stores as it is stored"
    followed = Pass("forward", "kernel", forward(machine), ACCUMULATE.leaves, about)
    fused = replace(week04.FUSE, run=fuse_with(BYTES * machine.balance / 2))
    schedule = Pass("schedule", "tile", arranged, LOOP, "arrange each kernel's loops")
    return (
        week04.COMPILER.extend("week05_06", DIALECT, WIDER)
        .replace_pass("fuse", fused)
        .insert(LAYOUT, after="fuse")
        .insert(ABSORB, OVERWRITE, SCATTER, after="loops")
        .replace_pass("indices")
        .insert(indices(RULES_OF_LOOPS, LOOP), blocks, strips, shared, after="merge")
        .insert(OUTSIDE, BOUNDS, after="share")
        .insert(TIDY, NUMBERS, _stages(machine), schedule, UNROLL, after="plan")
        .replace_pass("accumulate", ACCUMULATE)
        .insert(LARGER, followed, after="accumulate")
    )


def compiler_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Reference:
    """The compiler for a machine, with given schedules by the name of their kernel."""
    return Reference(pipeline_for(machine, schedules), {"c": render_vector_c})


REFERENCE = compiler_for(detect())
COMPILER = REFERENCE.pipeline
