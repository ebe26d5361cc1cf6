"""The least time that a machine needs: a program that takes less has not done the work."""

from __future__ import annotations

from week05_06_memory.machine import Machine

SAVED = 3.0
"""Algorithms that save operations (Strassen's, Winograd's) save less than this factor."""

UNSURE = 2.0
"""The bandwidth that was measured on one core is less than this factor off."""


def least_seconds(flops: float, moved: int, threads: int, machine: Machine) -> float:
    """For so many operations and bytes: the larger time of both, at the machine's peak rates.

    Of the bytes those count that its caches cannot hold from one call to the next.
    """
    computing = flops / (SAVED * machine.peak_flops)
    beyond = max(0, moved - threads * sum(machine.caches))
    return max(computing, beyond / (UNSURE * machine.bandwidth)) / threads
