"""Kernels built by hand at loop level, compiled and run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from week01_uops.dtypes import DType
from week01_uops.node import Shape, UOp
from week01_uops.ops import CALL, param, parameters, program
from week02_render.ops import AFTER, END, OUTPUT, STORE, index, load, loop
from week02_render.render import render_c
from week02_render.runtime import LoadedProgram
from week02_render.runtime import load as load_program


class Launch(NamedTuple):
    """A kernel that writes PARAM 0, and the slots of the inputs behind PARAMs 1, 2, …"""

    body: UOp
    slots: tuple[int, ...]
    name: str | None = None


def out(slot: int, dtype: DType, shape: Shape) -> UOp:
    """OUTPUT `slot`."""
    return OUTPUT(arg={"slot": slot, "dtype": dtype, "shape": shape})


def elementwise(
    function: Callable[..., UOp], size: int, dtypes: Sequence[DType], result: DType
) -> UOp:
    """for i: p0[i] = function(p1[i], p2[i], …)."""
    i = loop(0, size)
    values = [load(index(param(k + 1, dtype, (size,)), i)) for k, dtype in enumerate(dtypes)]
    return END(STORE(index(param(0, result, (size,)), i), function(*values)), i)


def joined(inputs: dict[int, UOp], launches: Sequence[Launch]) -> UOp:
    """The program whose k-th output is written by the k-th launch."""
    results = []
    for slot, launch in enumerate(launches):
        used = parameters(launch.body)
        place = out(slot, used[0].dtype, used[0].shape)
        arguments = [inputs[k] for k in launch.slots[: max(used)]]
        call = CALL(launch.body, place, *arguments, arg={"name": launch.name or "kernel"})
        results.append(AFTER(place, call))
    return program(*results)


def loaded(whole: UOp, **options) -> LoadedProgram:
    """A program at loop level, rendered, compiled and loaded."""
    return load_program(render_c(whole), whole, **options)
