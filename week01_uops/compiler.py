"""Week 1's compiler: inline every CALL, then simplify."""

from __future__ import annotations

from week01_uops.calls import inline
from week01_uops.ops import CALL, OPS
from week01_uops.passes import Dialect, Pass, Pipeline, rules_pass
from week01_uops.reference import Reference
from week01_uops.simplify import SIMPLIFY

DIALECT = Dialect("week01", OPS)
INLINED = Dialect("week01 without CALL", OPS - {CALL})

INLINE = Pass("inline", "tensor", inline, INLINED, "put the body of each CALL in its place")
SIMPLIFIED = rules_pass("simplify", "tensor", SIMPLIFY, INLINED, "fold, cancel and bound")

COMPILER = Pipeline("week01", DIALECT, (INLINE, SIMPLIFIED))

REFERENCE = Reference(COMPILER, {})
