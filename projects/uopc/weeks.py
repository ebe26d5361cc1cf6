"""The weeks that exist, and what each publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from week01_uops import compiler as week01
from week01_uops import ops as week01_ops
from week01_uops.node import Op
from week01_uops.passes import Pipeline
from week01_uops.reference import Reference
from week02_render import compiler as week02
from week02_render import ops as week02_ops
from week03_loops import compiler as week03
from week03_loops import ops as week03_ops
from week04_fusion import compiler as week04
from week04_fusion import ops as week04_ops


@dataclass(frozen=True)
class Week:
    """One week: the ops its programs may contain, its passes, its compiler."""

    number: int
    ops: frozenset[Op]
    pipeline: Pipeline
    reference: Reference


WEEKS: Mapping[int, Week] = MappingProxyType(
    {
        1: Week(1, week01_ops.OPS, week01.COMPILER, week01.REFERENCE),
        2: Week(2, week02_ops.OPS, week02.COMPILER, week02.REFERENCE),
        3: Week(3, week03_ops.OPS, week03.COMPILER, week03.REFERENCE),
        4: Week(4, week04_ops.OPS, week04.COMPILER, week04.REFERENCE),
    }
)
LATEST = max(WEEKS)
