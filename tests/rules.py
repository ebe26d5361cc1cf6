"""Proof of rules by the evaluator: programs on which a rule fires mean the same without it."""

import numpy as np

from tests.programs.inputs import inputs_for, same
from week01_uops.node import UOp
from week01_uops.rewrite import Rules, Trace, rewrite
from week04_fusion.evaluate import evaluate


def check_rule(rules: Rules, name: str, program: UOp, seeds: int = 3) -> bool:
    """Rewrite with the one rule; the results agree. True if it fired."""
    row = next(rule for rule in rules if rule.name == name)
    trace = Trace()
    after = rewrite(program, Rules("one", (row,)), trace=trace)
    again = rewrite(after, Rules("one", (row,)))
    assert again is after, f"{name} is not idempotent"
    for before, new in zip(program.src, after.src, strict=True):
        assert (before.dtype, before.shape) == (new.dtype, new.shape)
    for seed in range(seeds):
        inputs = inputs_for(program, seed)
        with np.errstate(all="ignore"):
            expected, got = evaluate(program, inputs, state={}), evaluate(after, inputs, state={})
        for output, a, b in zip(program.src, expected, got, strict=True):
            assert same(output.dtype, a, b) is None, name
    return bool(trace.fired[name])
