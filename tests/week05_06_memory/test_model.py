"""The cost model: loops that end early, and rows that a cache still holds."""

import re
from dataclasses import replace

import pytest

from tests.week05_06_memory.bodies import number, place, product, row_sums
from tests.week05_06_memory.test_fetch import centred
from week01_uops.dtypes import float32
from week01_uops.ops import ADD, EXP2, MUL, param, program
from week02_render.ops import END, STORE, load, loop
from week03_loops.library import matmul, softmax
from week03_loops.ops import reduce
from week05_06_memory.compiler import compiler_for
from week05_06_memory.machine import detect
from week05_06_memory.model import estimate
from week05_06_memory.roles import nests_of, touched_before
from week05_06_memory.tile import Tile, packing_cycles
from week05_06_memory.tiling import best_tiles

HALVES = {"vector_bytes": 64, "vector_registers": 32, "datapath": 32, "units": 1.0, "ports": 1.0}
CACHES = {"l1": 32 << 10, "l2": 1 << 20, "l3": 32 << 20, "line": 64}
MACHINE = replace(detect(), **HALVES, **CACHES)
TILE = Tile(None, 16, {})


@pytest.mark.parametrize("lanes", [1, 4, 7, 16, 64, 100])
@pytest.mark.parametrize(("size", "first"), [(64, 1), (64, 6), (37, 0), (1, 1)])
def test_tiles_of_a_loop_that_ends_early_are_the_mean_of_its_bounds(lanes, size, first):
    outer = loop(0, size - first + 1)
    inner = loop(1, size, ADD(outer, number(first)))
    bounds = range(first, size + 1)
    mean = sum(-(-bound // lanes) for bound in bounds) / len(bounds)
    tile = Tile(inner, lanes, {inner: 1})
    assert tile.turns(inner) == pytest.approx(max(mean, 1.0))
    whole = loop(1, size)
    assert Tile(whole, lanes, {whole: 1}).turns(whole) == tile.trips(inner)


def test_a_loop_that_ends_early_asks_for_smaller_tiles():
    def price(bound):
        """Of four accumulators, over that of one."""
        nest = next(nests_of(row_sums(64, 64, bound=bound)))
        (item,) = nest.summed
        one, four = (estimate(nest, Tile(item, 16, {item: n}), MACHINE).cycles for n in (1, 4))
        return four / one

    assert price(lambda i: ADD(i, number(1))) > 1.2 * price(None)


def test_rows_with_one_end_are_the_copies_of_a_loop_that_ends_early():
    """Further vectors of a row might lie past its end, those of other rows do not."""
    outer, row = loop(0, 16), loop(1, 4)

    def copies(item):
        at = (outer, row, item)
        value = EXP2(load(place(1, (16, 4, 256), *at)))
        body = END(STORE(place(0, (16, 4, 256), *at), value), *at)
        return best_tiles(next(nests_of(body)), MACHINE)[0].tile.copies

    ends = loop(2, 256, ADD(MUL(outer, number(16)), number(16)))
    assert copies(ends) == {row: 4, ends: 1}
    whole = loop(2, 256)
    assert copies(whole).keys() == {whole}
    by_row = loop(2, 256, ADD(MUL(row, number(64)), number(64)))
    assert copies(by_row).keys() == {by_row}


def test_what_an_earlier_nest_of_the_row_touched_is_known():
    nests = list(nests_of(centred(4, 64)))
    assert {s.arg.slot for s in touched_before(nests, 0)} == {1}
    assert touched_before(nests, len(nests) - 1) == frozenset()


def product_nest(m, k, n):
    return next(nests_of(product(m, k, n)))


def test_a_scalar_keeps_a_port_as_long_as_a_part_of_a_vector():
    nest = product_nest(64, 64, 64)
    rows, columns = nest.results
    tile = Tile(columns, 16, {columns: 1, rows: 5})
    halves = estimate(nest, tile, MACHINE)
    whole = estimate(nest, tile, replace(MACHINE, datapath=64))
    assert halves.loads == whole.loads == 6.0
    assert halves.inner < whole.inner


def test_the_turn_of_a_loop_hides_behind_arithmetic():
    nest = product_nest(64, 64, 64)
    rows, columns = nest.results
    apart = replace(MACHINE, behind=0.0)

    def hidden(tile):
        return estimate(nest, tile, MACHINE).inner - estimate(nest, tile, apart).inner

    assert hidden(Tile(columns, 16, {columns: 2, rows: 6})) == pytest.approx(MACHINE.behind)
    assert hidden(Tile(columns, 16, {columns: 1})) == 0.0  # a single sum waits for itself


def test_what_is_scattered_is_packed_as_often_as_it_is_not_read_again():
    """p0[i, j] = Σ p1[i, l]·p2[j, l]: the second operand is scattered along j."""

    def packing(rows):
        i, j, l = loop(0, rows), loop(1, 64), loop(2, 64)
        term = MUL(load(place(1, (rows, 64), i, l)), load(place(2, (64, 64), j, l)))
        nest = next(nests_of(END(STORE(place(0, (rows, 64), i, j), reduce(ADD, term, 0, l)), i, j)))
        return estimate(nest, Tile(j, 16, {j: 1, i: 4}), MACHINE).packing

    assert packing(64) == packing(256) == 64 * 64 / 16 * packing_cycles(TILE, scattered=True)
    assert packing(4) == 0.0  # read once, it is not packed
    columns = product_nest(64, 64, 64).results[1]
    assert estimate(product_nest(64, 64, 64), Tile(columns, 16, {columns: 1}), MACHINE).packing == 0


def test_rows_that_a_cache_holds_are_computed_in_whole_vectors():
    x = param(0, float32, (256, 16384))
    source = compiler_for(MACHINE).compile(program(softmax(x)), "c").source
    assert "exp2_f32x16(" in source
    assert "exp2_f32x8(" not in source.partition("/* k0")[2]


@pytest.mark.parametrize(("abreast", "rows"), [(0.95, 8), (1.25, 1)])
def test_rows_that_come_from_memory_stand_abreast_where_that_is_faster(abreast, rows):
    machine = replace(MACHINE, abreast=abreast, apart=1.25)
    x, y = param(0, float32, (4096, 4096)), param(1, float32, (4096, 1))
    source = compiler_for(machine).compile(program(matmul(x, y)), "c").source
    body = source.partition("/* k0")[2]
    sums = re.findall(r"p0\[[^]]*\] = r\d+;", body)
    assert len(sums) == rows
