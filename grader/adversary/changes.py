"""How a mutant differs from the reference: another rule, another pass, another text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from grader.adversary.mutant import Change
from week01_uops.interface import Target
from week01_uops.node import UOp
from week01_uops.passes import Pass, PassFunction
from week01_uops.pattern import RightHandSide, Rule
from week01_uops.reference import Reference, Renderer
from week01_uops.rewrite import Rules, rewrite

NodeChange = Callable[[UOp], UOp]


def instead(name: str, run: PassFunction) -> Change:
    """Another function for a pass."""

    def change(reference: Reference) -> Reference:
        pipeline = reference.pipeline
        old = pipeline.passes[pipeline.index(name)]
        return replace(reference, pipeline=pipeline.replace_pass(name, replace(old, run=run)))

    return change


def without(name: str) -> Change:
    """The pass leaves everything as it is."""
    return instead(name, lambda program, trace: program)


def rewriting(name: str, rules: Rules) -> Change:
    """Another rule table for a pass on whole programs."""
    return instead(name, lambda program, trace: rewrite(program, rules, trace=trace))


def behind(name: str, change: NodeChange) -> Change:
    """The pass, and then a change of each node, sources first, kernel bodies included."""
    return _around(name, lambda old: lambda program, trace: each(old(program, trace), change))


def before(name: str, change: NodeChange) -> Change:
    """A change of each node, and then the pass."""
    return _around(name, lambda old: lambda program, trace: old(each(program, change), trace))


def _around(name: str, wrap: Callable[[PassFunction], PassFunction]) -> Change:
    def change(reference: Reference) -> Reference:
        pipeline = reference.pipeline
        old: Pass = pipeline.passes[pipeline.index(name)]
        return instead(name, wrap(old.run))(reference)

    return change


def each(program: UOp, change: NodeChange) -> UOp:
    """The program rebuilt from changed nodes."""
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        done[node] = change(node.with_src(tuple([done[s] for s in node.src])))
    return done[program]


def altered(rules: Rules, name: str, rhs: RightHandSide) -> Rules:
    """The table with another right-hand side of one rule."""
    if all(rule.name != name for rule in rules):
        raise KeyError(f"expected one of the rules of {rules.subject}, got {name}")
    rows = [replace(rule, rhs=rhs) if rule.name == name else rule for rule in rules]
    return Rules(rules.subject, tuple(rows))


def first(rule: Rule, rules: Rules) -> Rules:
    """The table with one more rule, which comes before all others."""
    return Rules("one more rule", (rule,)) + rules


def printing(change: Callable[[str], str]) -> Change:
    """Another C text, made of the right one."""

    def wrapped(render: Renderer) -> Renderer:
        return lambda program, *, checked=False: change(render(program, checked=checked))

    return lambda reference: replace(
        reference, renderers={t: wrapped(r) for t, r in reference.renderers.items()}
    )


def rendering(renderer: Renderer) -> Change:
    """Another renderer of C."""
    renderers: Mapping[Target, Renderer] = {"c": renderer}
    return lambda reference: replace(reference, renderers=renderers)
