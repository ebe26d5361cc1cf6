"""Values as infix text: i0 is RANGE 0, p1 is PARAM 1, t0 is ALLOC 0.

ADD(LOAD(INDEX(p1, i0)), NEG(x))   →   p1[i0] - x
REDUCE(MUL(x, y), i2)              →   Σ[i2 in 0..96] x * y
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from week01_uops import ops as week01
from week01_uops.dtypes import bool_, int64
from week01_uops.interchange.writer import dump_argument
from week01_uops.node import CONST, Op, UOp, toposort
from week02_render import ops as week02
from week03_loops.ops import REDUCE
from week05_06_memory.ops import FETCH, SQRT, STREAM, TILE, kind_of

ATOM, UNARY, PRODUCT, SUM, ORDER, LOGIC, CHOICE, WHOLE = 7, 6, 5, 4, 3, 2, 1, 0
"""How strongly a text holds together; WHOLE reaches as far to the right as it can."""


class Term(NamedTuple):
    """The text of a value, and how strongly it holds together."""

    text: str
    level: int = ATOM


Terms = Mapping[UOp, Term]
Row = Callable[[UOp, Terms], Term]


def at(level: int, term: Term) -> str:
    """The text, in parentheses if it holds together less than asked for."""
    return term.text if term.level >= level else f"({term.text})"


def express(node: UOp, terms: Terms) -> Term:
    """The text of a node over those of its sources."""
    if node.op in TEXT:
        return TEXT[node.op](node, terms)
    return _function(node.op.name.lower())(node, terms)


def loop_text(item: UOp, terms: Terms) -> str:
    """The loop of a RANGE: its kind if it has one, its counter, its bounds."""
    size = str(item.arg.size)
    end = f"min({size}, {terms[item.src[0]].text})" if item.src else size
    kind = kind_of(item)
    return f"{'' if kind == 'loop' else kind + ' '}i{item.arg.id} in 0..{end}"


def _infix(operator: str, level: int) -> Row:
    def row(node: UOp, terms: Terms) -> Term:
        a, b = (terms[s] for s in node.src)
        return Term(f"{at(level, a)} {operator} {at(level + 1, b)}", level)

    return row


def _function(name: str) -> Row:
    return lambda node, terms: Term(f"{name}({', '.join(terms[s].text for s in node.src)})")


def _storage(letter: str) -> Row:
    return lambda node, terms: Term(f"{letter}{node.arg.slot}")


def _same(node: UOp, terms: Terms) -> Term:
    return terms[node.src[0]]


def _constant(node: UOp, terms: Terms) -> Term:
    text = str(dump_argument(CONST, node.arg)["value"]).lower()
    return Term(text, UNARY if text.startswith("-") else ATOM)


def _opposite(node: UOp, terms: Terms) -> Term | None:
    """−x where that is no more to write than x."""
    if node.op is week01.NEG:
        return None if _minimum(node, terms) else terms[node.src[0]]
    if node.op is CONST and terms[node].text.startswith("-"):
        return Term(terms[node].text[1:])
    if node.op is week01.MUL and (factor := _opposite(node.src[1], terms)) is not None:
        x = terms[node.src[0]]
        return x if factor.text == "1" else _product(node, x, factor)
    return None


def _product(node: UOp, a: Term, b: Term) -> Term:
    sign = "*" if node.dtype is int64 else " * "
    return Term(f"{at(PRODUCT, a)}{sign}{at(UNARY, b)}", PRODUCT)


def _add(node: UOp, terms: Terms) -> Term:
    for a, b in (node.src, node.src[::-1]):
        if (negative := _opposite(b, terms)) is not None:
            return Term(f"{at(SUM, terms[a])} - {at(PRODUCT, negative)}", SUM)
    a, b = node.src
    right = SUM if node.dtype is int64 else PRODUCT
    return Term(f"{at(SUM, terms[a])} + {at(right, terms[b])}", SUM)


def _logic(word: str, node: UOp, terms: Terms) -> Term:
    return Term(f" {word} ".join(at(ORDER, terms[s]) for s in node.src), LOGIC)


def _multiply(node: UOp, terms: Terms) -> Term:
    a, b = node.src
    if node.dtype is bool_:
        return _logic("and", node, terms)
    if a is b:
        return Term(f"{at(ATOM, terms[a])}²", UNARY)
    return _product(node, terms[a], terms[b])


def _minimum(node: UOp, terms: Terms) -> Term | None:
    """−max(−a, −b) as min(a, b)."""
    if node.src[0].op is not week01.MAX:
        return None
    parts = [part for s in node.src[0].src if (part := _opposite(s, terms)) is not None]
    return Term(f"min({parts[0].text}, {parts[1].text})") if len(parts) == 2 else None


def _negate(node: UOp, terms: Terms) -> Term:
    return _minimum(node, terms) or Term(f"-{at(ATOM, terms[node.src[0]])}", UNARY)


def _maximum(node: UOp, terms: Terms) -> Term:
    return _logic("or", node, terms) if node.dtype is bool_ else _function("max")(node, terms)


def _differ(node: UOp, terms: Terms) -> Term:
    a, b = node.src
    if node.src[0].dtype is bool_ and b.op is CONST and b.arg.value:
        return Term(f"not {at(ATOM, terms[a])}", LOGIC)
    return _infix("!=", ORDER)(node, terms)


def _cast(node: UOp, terms: Terms) -> Term:
    return Term(f"{node.dtype}({terms[node.src[0]].text})")


def _select(node: UOp, terms: Terms) -> Term:
    condition, a, b = (at(LOGIC, terms[s]) for s in node.src)
    return Term(f"{a} if {condition} else {b}", CHOICE)


def _load(node: UOp, terms: Terms) -> Term:
    place = terms[node.src[0]]
    if len(node.src) == 1:
        return place
    condition = at(LOGIC, terms[node.src[1]])
    other = at(LOGIC, terms[node.src[2]]) if len(node.src) > 2 else "0"
    return Term(f"{place.text} if {condition} else {other}", CHOICE)


def _index(node: UOp, terms: Terms) -> Term:
    place, *indices = (terms[s].text for s in node.src)
    return Term(f"{place}[{', '.join(indices)}]")


def _ahead(node: UOp, terms: Terms) -> Term:
    return Term(f"{terms[node.src[0]].text} and {node.arg.ahead} ahead")


def _tile(node: UOp, terms: Terms) -> Term:
    first = f"{at(PRODUCT, terms[node.src[0]])}*{node.arg.by}"
    return Term(f"min({first}, {node.arg.size - node.arg.by})")


SIGNS = {week01.ADD: "Σ", week01.MUL: "Π", week01.MAX: "max"}


def _reduce(node: UOp, terms: Terms) -> Term:
    x, *ranges = node.src
    loops = ", ".join(loop_text(r, terms) for r in ranges)
    return Term(f"{SIGNS[node.arg.op]}[{loops}] {at(PRODUCT, terms[x])}", WHOLE)


TEXT: Mapping[Op, Row] = {
    CONST: _constant,
    week01.PARAM: _storage("p"),
    week02.ALLOC: _storage("t"),
    week02.BUFFER: _storage("buffer"),
    week02.OUTPUT: _storage("out"),
    week02.WORKSPACE: lambda node, terms: Term(f"work{node.arg.offset}"),
    week02.RANGE: lambda node, terms: Term(f"i{node.arg.id}"),
    week02.AFTER: _same,
    week02.INDEX: _index,
    week02.LOAD: _load,
    STREAM: _same,
    FETCH: _ahead,
    REDUCE: _reduce,
    SQRT: _function("sqrt"),
    TILE: _tile,
    week01.ADD: _add,
    week01.MUL: _multiply,
    week01.MAX: _maximum,
    week01.NEG: _negate,
    week01.RECIP: lambda node, terms: Term(f"1 / {at(UNARY, terms[node.src[0]])}", PRODUCT),
    week01.CAST: _cast,
    week01.FLOORDIV: _infix("//", PRODUCT),
    week01.FLOORMOD: _infix("%", PRODUCT),
    week01.CMPLT: _infix("<", ORDER),
    week01.CMPNE: _differ,
    week01.WHERE: _select,
}
"""The text of each op; any other is written as a function."""


def text_of(node: UOp) -> str:
    """The text of a place or a value, whatever fills the storage that it reads."""
    terms: dict[UOp, Term] = {}
    for item in toposort((node,), lambda n: n.src[:1] if n.op is week02.AFTER else n.src):
        terms[item] = express(item, terms)
    return terms[node].text
