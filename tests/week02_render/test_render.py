import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, elementwise, joined, loaded, out
from week01_uops.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    from_numpy,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint64,
)
from week01_uops.errors import CompilerError
from week01_uops.node import Op, Type, const, make
from week01_uops.ops import (
    ADD,
    CALL,
    CAST,
    CMPLT,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    MUL,
    NEG,
    WHERE,
    param,
    program,
)
from week02_render.buffers import dense
from week02_render.c_statements import C
from week02_render.c_types import ATOM, Term
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    LINEAR,
    LOAD,
    STORE,
    WORKSPACE,
    index,
    load,
    loop,
)
from week02_render.render import render_c
from week02_render.runtime import CheckError
from week02_render.runtime import load as load_program
from week02_render.toolchain import Toolchain, find_toolchain
from week03_loops.ops import SHRINK

N = 8
ZERO = const(0, int64)


def one_kernel(body, *inputs):
    """A program of one kernel: PARAM 0 of the body is the output."""
    return joined(dict(enumerate(inputs)), [Launch(body, tuple(range(len(inputs))), "k")])


def run(body, *arrays, **options):
    inputs = [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return loaded(one_kernel(body, *inputs), **options).run(arrays)[0]


X = np.linspace(-2, 2, N, dtype=np.float32)


def test_text_of_a_simple_kernel():
    body = elementwise(lambda a, b: ADD(MUL(a, a), b), N, (float32, float32), float32)
    text = render_c(joined({0: param(0, float32, (N,)), 1: param(1, float32, (N,))},
                           [Launch(body, (0, 1), "square + b")]))  # fmt: skip
    assert (
        text
        == """\
#include <stddef.h>
#include <stdint.h>

/* k0_square_b: p1 float32[8], p2 float32[8] -> p0 float32[8] */
static __attribute__((noinline)) void k0_square_b(
    float *restrict p0,
    const float *restrict p1,
    const float *restrict p2)
{
    for (int64_t i0 = 0; i0 < 8; i0++) {
        float x0 = p1[i0];
        float x1 = p2[i0];
        p0[i0] = x0 * x0 + x1;
    }
}

void program(void *const *inputs, void *const *outputs) {
    k0_square_b(outputs[0], inputs[0], inputs[1]);
}
"""
    )


def sum_of_rows(rows, columns, dtype=float32):
    i, j = loop(0, rows), loop(1, columns)
    total = ALLOC(arg={"slot": 0, "dtype": dtype, "shape": (), "addrspace": "REG"})
    start = STORE(AFTER(total, i), const(0.0, dtype))
    inside = AFTER(total, start, j)
    value = load(index(param(1, dtype, (rows, columns)), i, j))
    end = END(STORE(inside, ADD(LOAD(inside), value)), j)
    return END(STORE(index(param(0, dtype, (rows,)), i), LOAD(AFTER(total, end))), i)


def test_an_accumulator_is_read_in_the_sum():
    text = render_c(one_kernel(sum_of_rows(3, 5), param(0, float32, (3, 5))))
    assert "r0 = r0 + x0;" in text
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert np.array_equal(run(sum_of_rows(3, 5), x), x.sum(1))


def test_an_accumulator_of_halves_rounds_each_sum():
    x = np.full((1, 4096), 1, float16.numpy)
    assert run(sum_of_rows(1, 4096, float16), x)[0] == 2048


def test_a_register_changed_before_its_use_is_read_before():
    """x = LOAD r; STORE r; … x: the old value."""
    total = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    start = STORE(total, const(1.0, float32))
    old = LOAD(AFTER(total, start))
    change = STORE(AFTER(total, start), ADD(old, const(1.0, float32)))
    new = LOAD(AFTER(total, change))
    i = loop(0, 1)
    body = END(
        STORE(index(param(0, float32, (1,)), i), ADD(MUL(old, const(10.0, float32)), new)), i
    )
    assert run(body)[0] == 12


def test_a_register_changed_in_between_is_read_before():
    """y = LOAD r; STORE r; p0[0] = −y: the order of a LINEAR stands."""
    r = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    place = index(param(0, float32, (1,)), ZERO)
    start, old = STORE(r, const(1.0, float32)), LOAD(r)
    change = STORE(r, const(2.0, float32))
    nodes = (r, ZERO, place.src[0], place, start.src[1], start, old, NEG(old), change.src[1])
    body = make(LINEAR, (*nodes, change, STORE(place, NEG(old))))
    assert run(body)[0] == -1


def test_a_variable_first_stored_in_a_loop_or_under_a_gate_is_declared_before():
    """The last of x; and 1 if the gate is true."""
    r = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    i = loop(0, N)
    last = END(STORE(r, load(index(param(1, float32, (N,)), i))), i)
    body = STORE(index(param(0, float32, (1,)), ZERO), LOAD(AFTER(r, last)))
    assert run(body, X)[0] == X[-1]
    gated = STORE(r, const(1.0, float32), CMPLT(LOAD(param(1, float32)), const(3.0, float32)))
    body = STORE(index(param(0, float32, (1,)), ZERO), LOAD(AFTER(r, gated)))
    assert run(body, np.float32(2))[0] == 1


def test_gated_loads_and_stores():
    i = loop(0, N)
    shifted = ADD(i, const(-3, int64))
    gate = CMPLT(const(-1, int64), shifted)
    value = LOAD(index(param(1, float32, (N,)), shifted), gate, const(9.0, float32))
    body = END(STORE(index(param(0, float32, (N,)), i), value), i)
    assert np.array_equal(run(body, X), np.concatenate([[9, 9, 9], X[:-3]]).astype(np.float32))
    small = CMPLT(i, const(2, int64))
    body = END(STORE(index(param(0, float32, (N,)), i), const(1.0, float32), small), i)
    result = np.full(N, 5, np.float32)
    whole = one_kernel(body)
    given = loaded(whole).run([], out=[dense(result, float32)])[0]
    assert np.array_equal(given, [1, 1, 5, 5, 5, 5, 5, 5])


@pytest.mark.parametrize(
    ("dtype", "limit"), [(int64, 3), (int8, -5), (uint8, 200), (uint64, 2**63 + 5), (int32, 8)]
)
def test_a_bound_ends_a_loop(dtype, limit):
    i = loop(0, N, LOAD(param(1, dtype)))
    j = loop(1, N)
    clear = END(STORE(index(param(0, float32, (N,)), j), const(0.0, float32)), j)
    place = AFTER(param(0, float32, (N,)), clear)
    body = END(STORE(index(place, i), const(1.0, float32)), i)
    whole = one_kernel(body, param(0, dtype))
    result = loaded(whole).run([np.array(limit, dtype.numpy)])[0]
    assert result.sum() == min(max(limit, 0), N)


def test_a_triangular_loop():
    i = loop(0, 4)
    j = loop(1, 4, ADD(i, const(1, int64)))
    place = param(0, int64, (4, 4))
    zeros = END(STORE(index(place, loop(2, 4), loop(3, 4)), ZERO), loop(2, 4), loop(3, 4))
    body = END(STORE(index(AFTER(place, zeros), i, j), const(1, int64)), i, j)
    text = render_c(one_kernel(body))
    assert "int64_t x0 = i2 + 1;" in text
    assert np.array_equal(run(body), np.tri(4, dtype=int))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_arrays_are_not_touched(shape):
    ranges = [loop(k, size) for k, size in enumerate(shape)]
    body = END(
        STORE(
            index(param(0, float32, shape), *ranges), load(index(param(1, float32, shape), *ranges))
        ),
        *ranges,
    )
    assert run(body, np.zeros(shape, np.float32)).shape == shape


def test_loads_of_empty_storage_read_nothing():
    """Out of an empty loop, a load may stand where the loop does not reach; its pointer is null."""
    body = elementwise(lambda: load(index(param(1, float32, (0,)), ZERO)), 3, (), float32)
    whole = one_kernel(body, param(0, float32, (0,)))
    assert np.array_equal(loaded(whole).run([np.zeros(0, np.float32)])[0], np.zeros(3))


def test_slots_with_gaps():
    body = elementwise(NEG, N, (float32,), float32)
    place = out(0, float32, (N,))
    whole = program(AFTER(place, CALL(body, place, param(3, float32, (N,)))))
    assert np.array_equal(loaded(whole).run({3: X})[0], -X)


def test_equal_bodies_are_one_function():
    body = elementwise(NEG, N, (float32,), float32)
    inputs = {k: param(k, float32, (N,)) for k in range(3)}
    text = render_c(joined(inputs, [Launch(body, (k,), f"n{k}") for k in range(3)]))
    assert text.count("static __attribute__((noinline)) void") == 1
    assert text.count("    k0_n0(") == 3


def test_restrict_goes_where_arguments_share_storage():
    i = loop(0, N)
    body = END(
        STORE(
            index(param(0, float32, (N,)), i),
            ADD(load(index(param(1, float32, (N,)), i)), load(index(param(2, float32, (N,)), i))),
        ),
        i,
    )
    place, x = out(0, float32, (N,)), param(0, float32, (N,))
    first = CALL(body, place, x, x)
    apart = render_c(program(AFTER(place, first)))
    assert "restrict p0" in apart
    assert "restrict p1" in apart
    shared = render_c(program(AFTER(place, CALL(body, place, x, AFTER(place, first)))))
    assert "alias_f32 *p0" in shared
    assert "const float *restrict p1" in shared
    assert "const alias_f32 *p2" in shared


def workspace(offset, size):
    return WORKSPACE(arg={"offset": offset, "dtype": float32, "shape": (size,)})


@pytest.mark.parametrize(("offset", "overlaps"), [(0, True), (28, True), (32, False), (64, False)])
def test_restrict_goes_where_workspaces_overlap(offset, overlaps):
    body = elementwise(NEG, 8, (float32,), float32)
    call = CALL(body, workspace(0, 8), workspace(offset, 8))
    text = render_c(program(AFTER(out(0, float32, (8,)), call)))
    assert ("restrict" in text) is not overlaps


def test_workspace():
    body = elementwise(NEG, N, (float32,), float32)
    place, scratch = out(0, float32, (N,)), workspace(64, N)
    first = CALL(body, scratch, param(0, float32, (N,)))
    whole = program(AFTER(place, CALL(body, place, AFTER(scratch, first))))
    text = render_c(whole)
    assert "size_t program_workspace(void) {\n    return 96;" in text
    assert np.array_equal(loaded(whole).run([X])[0], X)


def test_a_buffer_keeps_its_contents_and_belongs_to_one_program():
    """The k-th call gives k·x."""
    buffer = BUFFER(arg={"slot": 0, "dtype": float32, "shape": (N,)})
    i = loop(0, N)
    kept, x, result = (param(k, float32, (N,)) for k in range(3))
    update = STORE(index(kept, i), ADD(load(index(kept, i)), load(index(x, i))))
    copy = STORE(index(result, i), LOAD(index(AFTER(kept, update), i)))
    place = out(0, float32, (N,))
    whole = program(AFTER(place, CALL(END(copy, i), buffer, param(0, float32, (N,)), place)))
    first, second = loaded(whole), loaded(whole)
    for k in range(1, 4):
        assert np.array_equal(first.run([X])[0], k * X)
    assert np.array_equal(second.run([X])[0], X)


@pytest.mark.parametrize(
    ("space", "dtype"), [("LOCAL", float32), ("REG", float16), ("LOCAL", bfloat16), (None, bool_)]
)
def test_local_arrays(space, dtype):
    """Reversed through an array inside the kernel."""
    array = ALLOC(
        arg={"slot": 0, "dtype": dtype, "shape": (4,), **({"addrspace": space} if space else {})}
    )
    i, j = loop(0, 4), loop(1, 4)
    fill = END(STORE(index(array, i), load(index(param(1, dtype, (4,)), i))), i)
    back = LOAD(index(AFTER(array, fill), ADD(const(3, int64), NEG(j))))
    body = END(STORE(index(param(0, dtype, (4,)), j), back), j)
    given = np.array([0, 1, 1, 0]).astype(dtype.numpy) * np.array(1, dtype.numpy)
    given[0] = 1
    assert np.array_equal(run(body, given), given[::-1])


def test_a_large_local_array_is_refused():
    array = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (1 << 15,)})
    body = STORE(index(array, ZERO), const(1.0, float32))
    place = out(0, float32, (1,))
    with pytest.raises(CompilerError, match="at most 65536 bytes"):
        render_c(program(AFTER(place, CALL(body))))


def test_scalars_and_storage_read_as_a_value():
    body = STORE(param(0, float32), MUL(LOAD(param(1, float32)), param(2, float32)))
    whole = one_kernel(body, param(0, float32), param(1, float32))
    assert loaded(whole).run([np.float32(3), np.float32(4)])[0] == 12


def test_indices_of_other_dtypes_are_widened():
    size = 300
    table = np.arange(size * size, dtype=np.float32).reshape(size, size)
    i = loop(0, 4)
    row = load(index(param(2, int16, (4,)), i))
    body = END(
        STORE(
            index(param(0, float32, (4,)), i),
            load(index(param(1, float32, (size, size)), row, row)),
        ),
        i,
    )
    rows = np.array([0, 150, 298, 299], np.int16)
    whole = one_kernel(body, param(0, float32, (size, size)), param(1, int16, (4,)))
    assert np.array_equal(loaded(whole).run([table, rows])[0], table[rows, rows])


def test_proven_indices_are_plain_and_others_wrap():
    i = loop(0, N)
    half = FLOORDIV(i, const(2, int64))
    known = END(
        STORE(index(param(0, float32, (N,)), i), load(index(param(1, float32, (N,)), half))), i
    )
    assert "p1[i0 / 2]" in render_c(one_kernel(known, param(0, float32, (N,))))
    data = load(index(param(1, int64, (N,)), i))
    free = END(
        STORE(index(param(0, int64, (N,)), i), ADD(FLOORMOD(data, const(3, int64)), data)), i
    )
    text = render_c(one_kernel(free, param(0, int64, (N,))))
    assert "floormod_i64(x0, 3L)" in text
    assert "(int64_t)((uint64_t)" in text


def test_names_and_comments_survive_any_string():
    body = elementwise(NEG, N, (float32,), float32)
    for name in ["*/ int x; /*", "日本", "a\nb", "", "x" * 500, "if", '"', "\\"]:
        text = render_c(joined({0: param(0, float32, (N,))}, [Launch(body, (0,), name)]))
        assert re.search(r"static __attribute__\(\(noinline\)\) void k0\w*\(", text)
        assert text.isascii()
        assert max(map(len, text.splitlines())) < 160


def test_expressions_stay_shallow():
    value = load(index(param(1, float32, (N,)), loop(0, N)))
    for k in range(3000):
        value = NEG(EXP2(value)) if k % 2 else ADD(value, const(0.5, float32))
    body = END(STORE(index(param(0, float32, (N,)), loop(0, N)), value), loop(0, N))
    assert max(map(len, render_c(one_kernel(body, param(0, float32, (N,)))).splitlines())) < 200


def test_a_value_used_in_an_inner_loop_is_computed_outside():
    i, j = loop(0, N), loop(1, N)
    x = EXP2(load(index(param(1, float32, (N,)), i)))
    body = END(STORE(index(param(0, float32, (N, N)), i, j), ADD(x, CAST(j, arg=float32))), i, j)
    text = render_c(one_kernel(body, param(0, float32, (N,))))
    assert text.index("exp2f") < text.index("int64_t i1")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            lambda: index(SHRINK(param(1, float32, (N,)), arg=((0, 4),)), ZERO),
            "expected storage behind INDEX and AFTER",
        ),
        (lambda: index(param(1, float32, (2, N)), ZERO), "one element"),
    ],
)
def test_other_places_are_refused(place, message):
    value = place()
    body = STORE(param(0, float32, value.shape), LOAD(value))
    with pytest.raises(CompilerError, match=message):
        render_c(
            program(
                AFTER(
                    out(0, float32, value.shape),
                    CALL(body, out(0, float32, value.shape), param(0, float32, param_shape(body))),
                )
            )
        )


def param_shape(body):
    return next(n.shape for n in body.toposort() if n.op.name == "PARAM" and n.arg.slot == 1)


def test_an_unknown_op_is_named():
    strange = Op("STRANGE", 9, (1, 1), lambda src, arg: Type(src[0].dtype))
    body = elementwise(strange, N, (float32,), float32)
    whole = one_kernel(body, param(0, float32, (N,)))
    with pytest.raises(CompilerError, match="k0_k: no C text for <STRANGE"):
        render_c(whole)
    function = "static float strange(float x) { return x + 1; }\n"
    text = {**C.text, strange: lambda node, terms: Term(f"strange({terms[0].text})", ATOM)}
    longer = replace(C, text=text, prelude={**C.prelude, "strange": function})
    source = render_c(whole, tables=longer)
    assert np.array_equal(load_program(source, whole).run([X])[0], X + 1)


def test_a_program_outside_kernels_is_refused():
    with pytest.raises(CompilerError, match="got <NEG"):
        render_c(program(NEG(param(0, float32))))
    with pytest.raises(CompilerError, match="RETURN"):
        render_c(NEG(param(0, float32)))


def gather(size):
    i = loop(0, 4)
    row = load(index(param(2, int64, (4,)), i))
    gate = CMPLT(row, const(100, int64))
    value = LOAD(index(param(1, float32, (size, 2)), row, const(1, int64)), gate)
    body = END(STORE(index(param(0, float32, (4,)), i), value), i)
    return one_kernel(body, param(0, float32, (size, 2)), param(1, int64, (4,)))


def test_a_checked_build_reports_the_first_index_out_of_range():
    whole = gather(3)
    checked = load_program(render_c(whole, checked=True), whole)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    fine = checked.run([table, np.array([0, 2, 1, 100])])[0]
    assert np.array_equal(fine, [1, 5, 3, 0])
    with pytest.raises(
        CheckError,
        match=r"k0_k: node %\d+: LOAD of p1, float32\[3, 2\]: axis 0: index 3 is outside \[0, 3\)",
    ):
        checked.run([table, np.array([0, 3, -1, 100])])
    assert np.array_equal(checked.run([table, np.array([0, 2, 1, 100])])[0], fine)


def test_compiles_without_warnings():
    """Under gcc's and clang's strict warnings, checked or not."""
    chain = find_toolchain()
    strict = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-pedantic", "-Wno-pedantic")
    chains = [replace(chain, flags=(*chain.flags, *strict))]
    if clang := shutil.which("clang"):
        flags = [f for f in chain.flags if f != "-fopenmp"]
        chains.append(Toolchain((clang,), "clang", (*flags, *strict)))
    for item in chains:
        for whole in (gather(3), one_kernel(sum_of_rows(3, 5), param(0, float32, (3, 5)))):
            for checked in (False, True):
                load_program(render_c(whole, checked=checked), whole, toolchain=item)


def test_where_and_casts_are_grouped():
    def function(a):
        one, zero = const(1.0, float32), const(0.0, float32)
        chosen = WHERE(CMPLT(a, zero), const(-1.0, float32), a)
        return ADD(chosen, CAST(CMPLT(a, one), arg=float32))

    expected = np.where(X < 0, -1, X) + (X < 1)
    result = run(elementwise(function, N, (float32,), float32), X)
    assert np.array_equal(result, expected.astype(np.float32))
