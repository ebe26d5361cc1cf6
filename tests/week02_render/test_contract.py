"""Products with several uses are kept out of fma; others are not."""

from tests.rules import check_rule
from week01_uops.dtypes import bool_, float32, int32
from week01_uops.node import const, make
from week01_uops.ops import ADD, MAX, MUL, NEG, WHERE, param, program
from week01_uops.rewrite import Trace
from week02_render.compiler import COMPILER, REFERENCE
from week02_render.contract import KEEPING, keep_products
from week02_render.ops import KEEP
from week03_loops.ops import MOVEMENT, reshape

A, B = param(0, float32, (4,)), param(1, float32, (4,))


def kept(whole, transparent=frozenset()):
    return sum(n.op is KEEP for n in keep_products(transparent)(whole, Trace()).toposort())


def test_a_product_of_one_use_may_be_fused():
    assert kept(program(ADD(MUL(A, B), A))) == 0


def test_a_product_that_also_feeds_a_maximum_may_not():
    product = MUL(A, B)
    assert kept(program(ADD(product, A), MAX(product, B))) == 1


def test_a_product_that_is_returned_too_may_not():
    product = MUL(A, B)
    assert kept(program(product, ADD(product, A))) == 1


def test_using_a_product_twice_in_one_sum_counts_twice():
    product = MUL(A, B)
    assert kept(program(ADD(product, product))) == 1


def test_moves_and_signs_are_looked_through():
    product = MUL(A, B)
    moved = reshape(product, (2, 2))
    assert kept(program(ADD(moved, moved), moved), MOVEMENT) == 1
    assert kept(program(ADD(NEG(product), A)), MOVEMENT) == 0
    assert kept(program(ADD(reshape(product, (2, 2)), 1.0)), MOVEMENT) == 0


def test_integers_need_no_care():
    x = param(0, int32, (4,))
    product = MUL(x, x)
    assert kept(program(ADD(product, x), product)) == 0


def test_uses_are_counted_in_the_program_as_handed_in():
    """WHERE(true, s, p) drops a use of p; the sum still may not round it away."""
    product = MUL(A, B)
    whole = program(WHERE(const(True, bool_), ADD(product, A), product))
    lowered = COMPILER.run(whole, until="tensor")
    assert sum(n.op is KEEP for n in lowered.toposort()) == 1
    assert not any(n.op is KEEP for n in REFERENCE.simplify(whole).toposort())


PROGRAMS = {"keep_only_products": program(make(KEEP, (ADD(A, B),)), make(KEEP, (MUL(A, B),)))}


def test_only_products_are_kept():
    assert check_rule(KEEPING, "keep_only_products", PROGRAMS["keep_only_products"])
    kept_product = program(make(KEEP, (MUL(A, B),)))
    assert not check_rule(KEEPING, "keep_only_products", kept_product)
