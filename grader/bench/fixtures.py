"""The pytest side: the fixture `contest`, one for each workload and each way of doing it.

`pytest week05_06_memory --benchmark-only` measures the suite of the week, which a module of tests
names `SUITE`; without that the compiler under judgement does the same families once, at odd sizes.
"""

from __future__ import annotations

from typing import Any

import pytest

from grader.bench.apart import Apart
from grader.bench.contenders import EAGER, LIBRARIES, AbsentError, Contender, Ours
from grader.bench.derivatives import odd_derivatives
from grader.bench.odd import odd
from grader.bench.suites import SUITES, Suite
from grader.bench.workload import Workload
from grader.judge import Judge
from grader.subject import InProcess

ODD: dict[str, Suite] = {"week5": odd, "week9": odd_derivatives}
"""The families of a suite, at odd sizes."""


class Contest:
    """One contender and what it must return."""

    def __init__(self, workload: Workload, name: str, judge: Judge) -> None:
        self.workload = workload
        self.name = name
        self.subject = judge.subject
        self.inputs = workload.arrays()

    def _contender(self) -> Contender:
        workload, compiler = self.workload, self.subject.compiler
        if self.name != "ours":
            return LIBRARIES[self.name](workload, self.inputs)
        if isinstance(self.subject, InProcess):
            return Ours(workload, self.inputs, compiler)
        program = workload.timed(compiler.grad)
        return Apart(workload, self.inputs, compiler.compile(program, "c").source)

    def run(self, benchmark: Any) -> None:  # noqa: ANN401 - a fixture of pytest-benchmark
        """Compute once, or as often as the benchmark likes, and check the last result."""
        drawn = self.workload.draw(0)
        for array, values in zip(self.inputs, drawn, strict=True):
            array[...] = values
        try:
            answer = self.workload.answer(drawn)
            contender = self._contender()
        except AbsentError as absent:
            pytest.skip(str(absent))
        benchmark.group = self.workload.name
        benchmark.extra_info |= {"flops": self.workload.flops, "bytes": self.workload.bytes}
        try:
            contender.take()
            benchmark(contender.run, 1)
            fault = contender.fault(answer)
        finally:
            contender.close()
        assert not fault, fault


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """`--benchmark-only` wins over the `--benchmark-disable` of the project's own options."""
    if config.getoption("benchmark_only", False):
        config.option.benchmark_enable = True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `contest` once for every workload and contender."""
    if "contest" not in metafunc.fixturenames:
        return
    measured = metafunc.config.getoption("benchmark_only", False)
    names = ("ours", *EAGER) if measured else ("ours",)
    name_of_suite = getattr(metafunc.module, "SUITE", "week5")
    suite = (SUITES if measured else ODD)[name_of_suite]
    cases = [(w, name) for w in suite() for name in names]
    ids = [f"{workload.name}-{name}" for workload, name in cases]
    metafunc.parametrize("contest", cases, ids=ids, indirect=True)


@pytest.fixture
def contest(request: pytest.FixtureRequest, judge: Judge) -> Contest:
    """A contender over arrays of its own."""
    workload, name = request.param
    return Contest(workload, name, judge)
