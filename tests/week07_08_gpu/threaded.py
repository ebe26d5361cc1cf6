"""Compiled programs run with several numbers of threads, in a process of their own."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.programs.isolated import isolated
from week01_uops.node import UOp
from week02_render.library import ffi
from week02_render.runtime import load
from week02_render.toolchain import find_toolchain
from week05_06_memory.machine import Machine
from week07_08_gpu.compiler import compiler_for

ffi.cdef("void omp_set_num_threads(int);")

MACHINE = Machine(
    cores=2,
    vector_bytes=32,
    vector_registers=16,
    datapath=32,
    l1=32 << 10,
    l2=1 << 20,
    l3=0,
    line=64,
    balance=4.0,
    fork_cycles=1,
)
"""Where any work is worth threads."""

Arrays = list[np.ndarray]


def in_new_thread(function: Callable[[], Any]) -> Any:
    """What a function returns in a thread that has not used OpenMP.

    A forked child has none of the threads that its parent's OpenMP would wait for.
    """
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def run_with(
    counts: Sequence[int], text: str, program: UOp, inputs: object, seconds: int = 60
) -> list[Arrays]:
    """The outputs of a program for each number of threads."""

    def run() -> list[Arrays]:
        os.environ["OMP_WAIT_POLICY"] = "passive"  # there may be fewer cores than threads
        openmp = ffi.dlopen("libgomp.so.1")
        found = []
        for count in counts:
            openmp.omp_set_num_threads(count)
            found.append(load(text, program).run(inputs))
        return found

    return isolated(lambda: in_new_thread(run), seconds)


def run_serially(text: str, program: UOp, inputs: object) -> Arrays:
    """The outputs of a program that is compiled without OpenMP."""
    chain = find_toolchain()
    plain = replace(chain, flags=tuple(f for f in chain.flags if f != "-fopenmp"))
    return isolated(lambda: load(text, program, toolchain=plain).run(inputs))


def source(program: UOp, machine: Machine = MACHINE, **schedules: Any) -> str:
    """The C text for a machine."""
    return compiler_for(machine, schedules).compile(program, "c").source


def same(a: Arrays, b: Arrays) -> bool:
    """Whether two lists of arrays have the same bits."""
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))
