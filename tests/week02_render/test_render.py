import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.week02_render.by_hand import (
    Launch,
    elementwise,
    joined,
    loaded,
    one_kernel,
    out,
    sum_of_rows,
)
from week01_uops.dtypes import (
    float32,
    int64,
)
from week01_uops.errors import CompilerError
from week01_uops.node import Op, Type, const
from week01_uops.ops import (
    ADD,
    CALL,
    CMPLT,
    MUL,
    NEG,
    param,
    program,
)
from week02_render.c_statements import C
from week02_render.c_types import ATOM, Term
from week02_render.ops import (
    AFTER,
    BUFFER,
    END,
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

N = 8
ZERO = const(0, int64)


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


def test_names_and_comments_survive_any_string():
    body = elementwise(NEG, N, (float32,), float32)
    for name in ["*/ int x; /*", "日本", "a\nb", "", "x" * 500, "if", '"', "\\"]:
        text = render_c(joined({0: param(0, float32, (N,))}, [Launch(body, (0,), name)]))
        assert re.search(r"static __attribute__\(\(noinline\)\) void k0\w*\(", text)
        assert text.isascii()
        assert max(map(len, text.splitlines())) < 160


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
