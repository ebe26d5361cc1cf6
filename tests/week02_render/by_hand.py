"""Kernels built by hand at loop level, compiled and run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from week01_uops.dtypes import DType, float32, from_numpy
from week01_uops.node import Shape, UOp, const
from week01_uops.ops import ADD, CALL, param, parameters, program
from week02_render.ops import AFTER, ALLOC, END, LOAD, OUTPUT, STORE, index, load, loop
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


def one_kernel(body, *inputs):
    """A program of one kernel: PARAM 0 of the body is the output."""
    return joined(dict(enumerate(inputs)), [Launch(body, tuple(range(len(inputs))), "k")])


def run(body, *arrays, **options):
    """The result of a program of one kernel."""
    inputs = [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return loaded(one_kernel(body, *inputs), **options).run(arrays)[0]


def sum_of_rows(rows, columns, dtype=float32):
    """p0[i] = Σ_j p1[i, j], in a register."""
    i, j = loop(0, rows), loop(1, columns)
    total = ALLOC(arg={"slot": 0, "dtype": dtype, "shape": (), "addrspace": "REG"})
    start = STORE(AFTER(total, i), const(0.0, dtype))
    inside = AFTER(total, start, j)
    value = load(index(param(1, dtype, (rows, columns)), i, j))
    end = END(STORE(inside, ADD(LOAD(inside), value)), j)
    return END(STORE(index(param(0, dtype, (rows,)), i), LOAD(AFTER(total, end))), i)
