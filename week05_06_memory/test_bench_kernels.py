"""The kernels of these weeks, next to NumPy and PyTorch.

`OMP_NUM_THREADS=1 pytest week05_06_memory --benchmark-only` measures them, a group for each
kernel, everybody with one thread. Without that option the compiler's results alone are checked, at
odd sizes.
"""

import pytest


@pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")
def test_kernel(contest, benchmark):
    """The kernel's result is right."""
    contest.run(benchmark)
