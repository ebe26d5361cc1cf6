"""Who is measured: this compiler, and the libraries that do the same.

A contender that cannot take part raises AbsentError with the reason when it is made.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from grader.bench.workload import Answer, Answers, Array, Result, Way, Workload, result_of
from week01_uops.interface import Compiler
from week01_uops.ops import parameters
from week02_render.runtime import load
from week02_render.toolchain import Toolchain

EAGER = ("numpy", "torch")
"""Those whose faster one is the "best" to beat."""


ROOFLINE = "roofline"
"""The name of the contender that does what bounds a workload, and nothing else; see `ceiling`."""


class AbsentError(Exception):
    """A contender does not take part; says why."""


class Contender(Protocol):
    """Someone who computes a workload from arrays that the harness fills."""

    pids: Sequence[int]
    """Processes besides this one in which it computes."""
    overhead: float
    """Seconds that it takes to ask for no call."""

    def take(self) -> None:
        """Read the inputs, and forget earlier results."""

    def ready(self) -> None:
        """Get ready for calls that are timed."""

    def run(self, calls: int) -> None:
        """Compute so many times."""

    def result(self) -> Result:
        """Of the last call."""

    def fault(self, answer: Answer | Answers) -> str:
        """What is wrong with that; `answer` is right for the inputs that `take` read."""

    def close(self) -> None:
        """End what was started for it."""


class Here:
    """A contender in this process."""

    pids: Sequence[int] = ()
    overhead = 0.0

    def __init__(self, workload: Workload) -> None:
        self.outs = workload.results()
        self.out = self.outs[0]

    def take(self) -> None:
        """Make sure that nothing is left of earlier results."""
        for out in self.outs:
            out.fill(np.nan)

    def ready(self) -> None:
        """It always is."""
        return

    def result(self) -> Result:
        """Of the last call."""
        raise NotImplementedError

    def fault(self, answer: Answer | Answers) -> str:
        """What is wrong with that."""
        return answer.fault(self.result())

    def close(self) -> None:
        """There is nothing to end."""
        return


class Ours(Here):
    """A program of this compiler, called with pointers that are known beforehand."""

    def __init__(
        self,
        workload: Workload,
        inputs: list[Array],
        compiler: Compiler,
        toolchain: Toolchain | None = None,
    ) -> None:
        super().__init__(workload)
        program = workload.timed(compiler.grad)
        self._loaded = load(compiler.compile(program, "c"), program, toolchain=toolchain)
        read = {slot: inputs[slot] for slot in parameters(program)}
        self._call = self._loaded.bind(read, self.outs)

    def run(self, calls: int) -> None:
        """Call the compiled function."""
        call = self._call
        for _ in range(calls):
            call()

    def result(self) -> Result:
        """What the function wrote."""
        return result_of(self.outs)


class _Library(Here):
    """A function of a library, called on its own arrays."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload)
        self.inputs = inputs
        self.found: Any = None

    def call(self) -> Any:  # noqa: ANN401 - an array of the library
        raise NotImplementedError

    def run(self, calls: int) -> None:
        call = self.call
        for _ in range(calls):
            self.found = call()

    def result(self) -> Result:
        if isinstance(self.found, tuple):
            return tuple(np.asarray(array, np.float32) for array in self.found)
        return np.asarray(self.found, np.float32)


class NumPy(_Library):
    """NumPy, writing to a given array."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload, inputs)
        self.way = _way(workload, "numpy", "NumPy")

    def call(self) -> Any:  # noqa: ANN401
        """One result."""
        return self.way(np, self.out, *self.inputs)


class Torch(_Library):
    """PyTorch's eager functions, writing to a given tensor where they can."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload, inputs)
        self.torch = optional("torch")
        self.torch.set_num_threads(threads())
        self.inference = not workload.wrt
        self.way = _way(workload, "torch", "PyTorch")
        self.tensors = [self.torch.from_numpy(x) for x in inputs]
        self.tensor = self.torch.from_numpy(self.out)

    def call(self) -> Any:  # noqa: ANN401
        """One result."""
        return self.way(self.torch, self.tensor, *self.tensors)

    def run(self, calls: int) -> None:
        """Without what gradients need, unless they are asked for."""
        with self.torch.inference_mode(self.inference):
            super().run(calls)


class Compiled(Torch):
    """The same functions through torch.compile."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload, inputs)
        torch, way = self.torch, self.way
        importlib.import_module("torch._dynamo").reset()
        make = workload.ways.get("compile")
        self.compiled: Callable[..., Any]
        if make is not None:
            self.compiled = make(torch)
        else:
            whole = lambda *tensors: way(torch, None, *tensors)
            self.compiled = torch.compile(whole, dynamic=False)

    def call(self) -> Any:  # noqa: ANN401
        """One result."""
        return self.compiled(*self.tensors)


class Tinygrad(_Library):
    """tinygrad on the CPU, its schedule captured."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload, inputs)
        os.environ.setdefault("DEV", "CPU")
        self.tiny = optional("tinygrad")
        way = _way(workload, "tinygrad", "tinygrad")
        self.jit = self.tiny.TinyJit(lambda *xs: way(self.tiny, None, *xs).realize())
        self.take()
        for _ in range(3):
            self.run(1)

    def take(self) -> None:
        """Copy the inputs to its buffers."""
        self.tensors = [self.tiny.Tensor(x).realize() for x in self.inputs]

    def call(self) -> Any:  # noqa: ANN401
        """One result."""
        return self.jit(*self.tensors)

    def result(self) -> Array:
        """Copied back."""
        return np.asarray(self.found.numpy(), np.float32)


class _Functional:
    """`jax.numpy`, whose functions have no `out`."""

    def __init__(self, module: Any) -> None:  # noqa: ANN401
        self.module = module

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        function = getattr(self.module, name)
        return lambda *args, out=None, **options: function(*args, **options)


class Jax(_Library):
    """JAX, through XLA."""

    def __init__(self, workload: Workload, inputs: list[Array]) -> None:
        super().__init__(workload, inputs)
        self.jax = jax = optional("jax")
        way = workload.ways.get("jax")
        module: Any = jax
        if way is None:
            way, module = _way(workload, "numpy", "JAX"), _Functional(jax.numpy)
        self.jit = jax.jit(lambda *xs: way(module, None, *xs))

    def take(self) -> None:
        """Copy the inputs to its buffers."""
        self.arrays = [self.jax.numpy.array(x) for x in self.inputs]

    def call(self) -> Any:  # noqa: ANN401
        """One result, waited for."""
        return self.jit(*self.arrays).block_until_ready()


LIBRARIES: Mapping[str, Callable[[Workload, list[Array]], Contender]] = {
    "numpy": NumPy,
    "torch": Torch,
    "compile": Compiled,
    "tinygrad": Tinygrad,
    "jax": Jax,
}


def threads() -> int:
    """How many this process was given; else as many as there are cores."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def environment(count: int) -> dict[str, str]:
    """The environment of a process in which everybody uses so many threads."""
    given = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        given[f"{name}_NUM_THREADS"] = str(count)
    single = (
        "" if count > 1 else "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    return {**given, "CPU_COUNT": str(count), "THREADS": str(int(count > 1)), "XLA_FLAGS": single}


def _way(workload: Workload, name: str, shown: str) -> Way:
    if name not in workload.ways:
        raise AbsentError(f"{shown} has no function for it")
    return workload.ways[name]


def optional(name: str) -> Any:  # noqa: ANN401 - a module
    """An optional package.

    Raises:
        AbsentError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise AbsentError(f"{name} is not installed") from None
