"""Derivatives of usual losses and a step of training, next to PyTorch.

`OMP_NUM_THREADS=1 pytest week09_10_autodiff --benchmark-only` measures them, a group for each,
everybody with one thread. Without that option the compiler's results alone are checked, at odd
sizes. What is timed is the program that the compiler's own `grad` makes.
"""

import pytest

SUITE = "week9"


@pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")
def test_kernel(contest, benchmark):
    """The results are right."""
    contest.run(benchmark)
