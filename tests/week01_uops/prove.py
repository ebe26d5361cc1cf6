"""Proofs of rewrite rules: a rule is fired on many small programs, and each result is checked.

By exhaustion: both sides are evaluated (`meaning`) on every assignment of the PARAMs, in integer
types of three to five bits and in a float of eight. By z3: both sides are translated to terms,
over words of 8 bits as bit-vectors, and over words of 64 bits as integers modulo 2^64, in which
division by constants is a matter of milliseconds; z3 is asked for a counterexample.

Programs come from a rule's pattern, every hole filled with a PARAM or with each constant
(`from_pattern`), or from a generator that knows what the rule is about.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator

import z3

from tests.week01_uops.meaning import (
    FLOAT8,
    INT3,
    INT4,
    UINT3,
    UINT4,
    UnspecifiedError,
    constants,
    difference,
)
from week01_uops import ops
from week01_uops.dtypes import DType, Value, bool_, float16
from week01_uops.errors import ProgramError
from week01_uops.node import CONST, Op, Shape, UOp, const
from week01_uops.ops import param
from week01_uops.pattern import Pattern, Rule
from week01_uops.rewrite import Rules, rewrite

SMALL = (bool_, INT3, UINT3, FLOAT8)
CASTABLE = (bool_, INT3, UINT3, INT4, UINT4, FLOAT8, float16)


def check(rule: Rule, programs: Iterable[UOp], judge: Callable[[UOp, UOp], str | None]) -> int:
    """Fire the rule at the root of each program; how often it did.

    Each result has the program's dtype and shape and, says the judge, its meaning; and the rule
    has a fixed point, which it leaves alone.
    """
    table, fired = Rules("the rule", (rule,)), 0
    for program in programs:
        found = table.apply(program)
        if found is None:
            continue
        after = found[0]
        assert (after.dtype, after.shape) == (program.dtype, program.shape), rule.name
        wrong = judge(program, after)
        assert wrong is None, f"{rule.name}: {text(program)} → {text(after)}: {wrong}"
        end = rewrite(program, table)
        assert rewrite(end, Rules("the rule again", (rule,))) is end, (
            f"{rule.name} on {text(program)}"
        )
        fired += 1
    return fired


def exhaustively(before: UOp, after: UOp) -> str | None:
    """A difference on some assignment, if there is any that is not left open by the format."""
    try:
        return difference(before, after)
    except UnspecifiedError:
        return None


def text(node: UOp) -> str:
    """A program on one line, for messages."""
    if node.op is CONST:
        return repr(node.arg)
    if node.op is ops.PARAM:
        return f"p{node.arg.slot}:{node.dtype}{list(node.interval) if node.dtype.is_int else ''}"
    return f"{node.op}({', '.join(map(text, node.src))})"


# Programs from patterns.


def from_pattern(
    rule: Rule, dtypes: tuple[DType, ...] = SMALL, shapes: tuple[Shape, ...] = ((),)
) -> Iterator[UOp]:
    """Every program that the pattern describes: holes of each dtype, constants of each value."""
    types = [*itertools.product(dtypes, shapes)]
    for root in choices(rule.pattern):
        holes = list(dict.fromkeys(hole for hole in names(root) if hole is not None))
        for chosen in itertools.product(types, repeat=len(holes)):
            yield from filled(root, dict(zip(holes, chosen, strict=True)), dtypes)


def choices(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern with one op for each of its nodes, and sources for those that name none."""
    if pattern.ops is None or pattern.ops == {CONST}:
        yield pattern
        return
    for op in sorted(pattern.ops, key=lambda op: op.name):
        sources = pattern.src
        if sources is None:
            sources = tuple(Pattern(name=f"{pattern.name}.{i}") for i in range(op.arity[0]))
        for src in itertools.product(*map(list, map(choices, sources))):
            yield Pattern(frozenset({op}), src, pattern.name, pattern.value, pattern.test)


def names(pattern: Pattern) -> Iterator[str | None]:
    """The names of the holes: variables and constants."""
    if pattern.ops is None or (pattern.ops == {CONST} and pattern.value is None):
        yield pattern.name
    for item in pattern.src or ():
        yield from names(item)


def is_constant(pattern: Pattern, name: str) -> bool:
    """Whether a hole may hold constants alone."""
    own = pattern.name == name and pattern.ops == {CONST}
    return own or any(is_constant(item, name) for item in pattern.src or ())


def filled(
    root: Pattern, types: dict[str, tuple[DType, Shape]], dtypes: tuple[DType, ...]
) -> Iterator[UOp]:
    """The programs with holes of these dtypes and shapes; none where they do not fit."""
    fixed = [name for name in types if is_constant(root, name)]
    if any(types[name][1] for name in fixed):
        return
    nodes = {name: param(i, *types[name]) for i, name in enumerate(types)}
    choices = [[const(v, types[name][0]) for v in constants(types[name][0])] for name in fixed]
    if not build(
        root, nodes | {name: some[-1] for name, some in zip(fixed, choices, strict=True)}, dtypes
    ):
        return
    for values in itertools.product(*choices):
        nodes.update(zip(fixed, values, strict=True))
        yield from build(root, nodes, dtypes)


def build(pattern: Pattern, nodes: dict[str, UOp], dtypes: tuple[DType, ...]) -> list[UOp]:
    """The nodes that a pattern describes, its holes given: several, for CAST has an argument."""
    if pattern.ops is None or pattern.ops == {CONST}:
        return [nodes[pattern.name]] if pattern.name in nodes else []
    (op,) = pattern.ops
    found = []
    literal = [item.value for item in pattern.src]
    sources = [
        [None] if item.value is not None else build(item, nodes, dtypes) for item in pattern.src
    ]
    for src in itertools.product(*sources):
        for arg in dtypes if op is ops.CAST else (None,):
            try:
                found.append(op(*with_literals(op, src, literal), arg=arg))
            except ProgramError:
                continue
    return found


def with_literals(op: Op, src: tuple, literal: list[Value | None]) -> list[UOp]:
    """The sources, literal numbers in the dtype of the others (a condition is a bool)."""
    dtype = next((node.dtype for node in reversed(src) if node is not None), bool_)
    condition = op is ops.WHERE and literal[0] is not None
    return [
        node if node is not None else const(value, bool_ if condition and i == 0 else dtype)
        for i, (node, value) in enumerate(zip(src, literal, strict=True))
    ]


# Programs about integers with ranges.


def integers(rng: random.Random, dtype: DType, count: int) -> list[UOp]:
    """PARAMs, most of them with a range."""
    nodes = []
    for slot in range(count):
        low = max(dtype.min, rng.choice((0, 0, 0, 1, -1, -3, dtype.min)))
        high = min(dtype.max, low + rng.choice((0, 1, 2, 3, 5, 7)))
        bounds = (low, high) if rng.random() < 0.8 else None
        nodes.append(param(slot, dtype, (), bounds))
    return nodes


def a_constant(rng: random.Random, dtype: DType) -> UOp:
    """Small ones and powers of two more often than others."""
    value = rng.choice(
        (0, 1, 2, 3, 4, 5, 6, 8, 12, -1, -2, -3, -4, rng.randint(dtype.min, dtype.max))
    )
    return const(dtype.wrap(value), dtype)


def a_sum(rng: random.Random, terms: list[UOp], depth: int = 2) -> UOp:
    """A sum of multiples of terms, of quotients and of remainders of such sums."""
    dtype = terms[0].dtype
    total = None
    for _ in range(rng.randint(1, 3)):
        term = rng.choice(terms)
        if depth and rng.random() < 0.5:
            op = rng.choice((ops.FLOORDIV, ops.FLOORMOD))
            term = op(
                a_sum(rng, terms, depth - 1), const(dtype.wrap(rng.choice((2, 3, 4, 6))), dtype)
            )
        if rng.random() < 0.6:
            term = ops.MUL(term, a_constant(rng, dtype))
        total = term if total is None else ops.ADD(total, term)
    return ops.ADD(total, a_constant(rng, dtype)) if rng.random() < 0.5 else total


def sums(op: Op, dtypes: tuple[DType, ...], number: int, seed: int = 0) -> Iterator[UOp]:
    """`op` over random sums; a divisor is a constant, now and then a PARAM."""
    rng = random.Random(f"{op} {seed}")
    for _ in range(number):
        dtype = rng.choice(dtypes)
        terms = integers(rng, dtype, rng.randint(1, 2 if dtype.bits > 4 else 3))
        x = a_sum(rng, terms)
        if op in (ops.FLOORDIV, ops.FLOORMOD, ops.MUL):
            yield op(x, a_constant(rng, dtype))
        elif op is ops.NEG:
            yield op(x)
        else:
            yield op(x, rng.choice((a_sum(rng, terms), a_constant(rng, dtype))))


# z3.


def by_z3(before: UOp, after: UOp) -> str | None:
    """A counterexample that z3 finds, as a sentence; None if it proves that there is none."""
    bits = next(n.dtype.bits for n in before.toposort() if n.dtype.is_int)
    theory = BitVectors(bits) if bits == 8 else Words(bits)
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    old, new = theory.term(before, solver), theory.term(after, solver)
    solver.add(old != new)
    answer = solver.check()
    assert answer != z3.unknown, f"z3 gives up: {text(before)} → {text(after)}"
    return None if answer == z3.unsat else str(solver.model())


class Theory:
    """How integers of one width, signed and unsigned, are written as terms."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def term(self, root: UOp, solver: z3.Solver) -> z3.ExprRef:
        """The term of an expression; the ranges of its PARAMs are told to the solver."""
        done: dict[UOp, z3.ExprRef] = {}
        for node in root.toposort():
            src = [done[source] for source in node.src]
            if node.op is ops.PARAM:
                done[node] = self.variable(node)
                low, high = node.interval
                solver.add(self.compare(node.dtype, self.value(low), done[node], strict=False))
                solver.add(self.compare(node.dtype, done[node], self.value(high), strict=False))
            elif node.op is CONST:
                boolean = node.dtype is bool_
                done[node] = z3.BoolVal(node.arg.value) if boolean else self.value(node.arg.value)
            else:
                done[node] = self.apply(node, src)
        return done[root]

    def apply(self, node: UOp, src: list[z3.ExprRef]) -> z3.ExprRef:
        """The row of the table for the node's op."""
        dtype = node.src[0].dtype
        if dtype is bool_ and node.op is not ops.WHERE:
            connective = {ops.MUL: z3.And, ops.MAX: z3.Or, ops.CMPNE: z3.Xor}
            return connective[node.op](*src)
        if node.op in (ops.FLOORDIV, ops.FLOORMOD):
            quotient, remainder = self.divide(node.dtype, *src)
            zero, result = (
                (self.value(0), quotient) if node.op is ops.FLOORDIV else (src[0], remainder)
            )
            return z3.If(src[1] == self.value(0), zero, result)
        table = {
            ops.ADD: lambda x, y: self.wrap(node.dtype, x + y),
            ops.MUL: lambda x, y: self.wrap(node.dtype, x * y),
            ops.NEG: lambda x: self.wrap(node.dtype, -x),
            ops.MAX: lambda x, y: z3.If(self.compare(dtype, x, y, strict=True), y, x),
            ops.CMPLT: lambda x, y: self.compare(dtype, x, y, strict=True),
            ops.CMPNE: lambda x, y: x != y,
            ops.WHERE: z3.If,
        }
        return table[node.op](*src)


class BitVectors(Theory):
    """Words as bit-vectors."""

    def variable(self, node: UOp) -> z3.ExprRef:
        return z3.BitVec(f"p{node.arg.slot}", self.bits)

    def value(self, value: int) -> z3.ExprRef:
        return z3.BitVecVal(value, self.bits)

    def wrap(self, dtype: DType, x: z3.ExprRef) -> z3.ExprRef:
        return x

    def compare(self, dtype: DType, x: z3.ExprRef, y: z3.ExprRef, *, strict: bool) -> z3.ExprRef:
        if dtype.kind == "int":
            return x < y if strict else x <= y
        return z3.ULT(x, y) if strict else z3.ULE(x, y)

    def divide(self, dtype: DType, x: z3.ExprRef, y: z3.ExprRef) -> tuple[z3.ExprRef, z3.ExprRef]:
        if dtype.kind == "uint":
            return z3.UDiv(x, y), z3.URem(x, y)
        rest = z3.SRem(x, y)  # of the sign of x
        down = z3.And(rest != 0, (rest < 0) != (y < 0))
        return z3.If(down, x / y - 1, x / y), z3.If(down, rest + y, rest)


class Words(Theory):
    """Words as integers, brought back into the dtype after each op."""

    def variable(self, node: UOp) -> z3.ExprRef:
        return z3.Int(f"p{node.arg.slot}")

    def value(self, value: int) -> z3.ExprRef:
        return z3.IntVal(value)

    def wrap(self, dtype: DType, x: z3.ExprRef) -> z3.ExprRef:
        return (x - dtype.min) % (1 << self.bits) + dtype.min

    def compare(self, dtype: DType, x: z3.ExprRef, y: z3.ExprRef, *, strict: bool) -> z3.ExprRef:
        return x < y if strict else x <= y

    def divide(self, dtype: DType, x: z3.ExprRef, y: z3.ExprRef) -> tuple[z3.ExprRef, z3.ExprRef]:
        # For y > 0, z3's quotient rounds down; x // y = (−x) // (−y).
        quotient = z3.If(y > 0, x / y, (-x) / (-y))
        return self.wrap(dtype, quotient), x - y * quotient
