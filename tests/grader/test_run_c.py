"""Emitted C: what is right passes, and every way of being wrong has its own verdict."""

import shutil

import numpy as np
import pytest

from grader import run_c
from grader.loop_nests import kernels
from grader.verdict import SpecFailure, Verdict
from grader.weeks import read
from tests.grader.compilers import Printing, judge

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

DOUBLE = """
    a = PARAM : {"slot": 1, "dtype": "float32", "shape": [5]}
    z = CONST : {"value": 2, "dtype": "float32"}
    b = MUL a z
    return b
    """
RIGHT = """
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
void program(void *const *in, void *const *out) {
    float *a = in[1], *o = out[0];
    for (int i = 0; i < 5; i++) { o[i] = a[i] * 2; }
    %s
}
"""


def failure(source, text=DOUBLE, seconds=10.0, **options) -> SpecFailure:
    with pytest.raises(SpecFailure) as caught:
        judge(Printing(source), 2, seconds).runs(text, **options)
    return caught.value


def test_right():
    judge(Printing(RIGHT % ""), 2).runs(DOUBLE)


def test_absent_slots_are_null():
    judge(Printing(RIGHT % "if (in[0]) abort();"), 2).runs(DOUBLE)


def test_arrays_are_aligned():
    judge(Printing(RIGHT % "if ((size_t)a % 64 || (size_t)o % 64) abort();"), 2).runs(DOUBLE)


@pytest.mark.parametrize(
    ("more", "verdict", "says"),
    [
        ("o[2] = 1;", Verdict.WRONG, "output 0 at [2]"),
        ("o[5] = 1;", Verdict.CRASH, "write outside output 0, at byte 20 of 20"),
        ("o[-1] = 1;", Verdict.CRASH, "write outside output 0, at byte -4"),
        ("o[16] = 1;", Verdict.CRASH, "access outside output 0, at byte 64"),
        ("a[2] = 1;", Verdict.CRASH, "write to input 1, at byte 8"),
        ("((volatile float *)a)[16];", Verdict.CRASH, "access outside input 1"),
        ("*(volatile int *)0 = 1;", Verdict.CRASH, "SIGSEGV"),
        ("abort();", Verdict.CRASH, "SIGABRT"),
        ("exit(0);", Verdict.CRASH, "ended its process"),
        ("_exit(7);", Verdict.CRASH, "exit status 7"),
        ("undeclared;", Verdict.COMPILE_ERROR, "undeclared"),
        ("extern void cblas_sgemm(void); cblas_sgemm();", Verdict.FORBIDDEN, "cblas_sgemm"),
        ("extern void unheard_of(void); unheard_of();", Verdict.COMPILE_ERROR, "unheard_of"),
        ("for (;;) puts(RUBBISH);".replace("RUBBISH", '"' + "x" * 99 + '"'), Verdict.OUTPUT, "KiB"),
        ("for (;;) fork();", Verdict.CRASH, "processes"),
    ],
)
def test_verdicts(more, verdict, says):
    found = failure(RIGHT % more)
    assert found.verdict is verdict
    assert says in found.sentence


def test_endless_loop():
    assert failure(RIGHT % "for (;;);", seconds=0.4).verdict is Verdict.TIMEOUT


def test_no_entry():
    found = failure("int x;")
    assert (found.verdict, "program" in found.sentence) == (Verdict.COMPILE_ERROR, True)


def test_outputs_that_are_never_written():
    assert failure("void program(void *const *in, void *const *out) {}").verdict is Verdict.WRONG


def test_every_draw_has_fresh_contents():
    once = "static float kept[5]; static int full; if (!full++) memcpy(kept, o, 20);"
    assert failure(RIGHT % f"{once} memcpy(o, kept, 20);").verdict is Verdict.WRONG


def test_nan_is_no_wildcard():
    assert failure(RIGHT % "o[1] = 0.0f / 0.0f;", special=False).verdict is Verdict.WRONG


def test_zeros_do_not_pass():
    text = DOUBLE.replace('"value": 2', '"value": 1e-12')
    found = failure(RIGHT % "memset(o, 0, 20);", text)
    assert found.verdict is Verdict.WRONG


def test_given_inputs():
    judge(Printing(RIGHT % "if (a[4] != 5) abort();"), 2).runs(DOUBLE, {1: [1, 2, 3, 4, 5]})


def test_tolerance():
    off = RIGHT % "o[0] *= 1.001f;"
    judge(Printing(off), 2).runs(DOUBLE, special=False, tolerance=0.01)
    assert failure(off, special=False, tolerance=1e-4).verdict is Verdict.WRONG


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_every_dtype_travels(dtype):
    text = f"""
        a = PARAM : {{"slot": 0, "dtype": "{dtype}", "shape": [3, 1]}}
        b = PARAM : {{"slot": 1, "dtype": "{dtype}", "shape": []}}
        e = PARAM : {{"slot": 2, "dtype": "{dtype}", "shape": [0]}}
        return a b e a
        """
    size = {"bool": 1, "int8": 1, "uint64": 8, "float64": 8}.get(dtype, 2)
    source = f"""
        #include <string.h>
        void program(void *const *in, void *const *out) {{
            memcpy(out[0], in[0], {3 * size});
            memcpy(out[1], in[1], {size});
            memcpy(out[3], in[0], {3 * size});
        }}
        """
    judge(Printing(source), 2).runs(text)


def test_workspace_is_given_aligned_and_undefined():
    source = RIGHT.replace("void *const *out)", "void *const *out, void *work)")
    size = "size_t program_workspace(void) { return 100; }\n"
    body = "char *w = work; if ((size_t)w % 64 || !w[50]) abort(); memset(w, 0, 100);"
    judge(Printing((source % body).replace("void program", size + "void program")), 2).runs(DOUBLE)
    over = (source % "((char *)work)[100] = 0;").replace("void program", size + "void program")
    assert "outside workspace" in failure(over).sentence


def test_buffers_start_at_zero_in_every_draw():
    text = """
        a = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": []}
        v = LOAD b
        s = ADD v a
        e = STORE b s
        r = AFTER s e
        return r
        """
    source = """
        static int b;
        void program(void *const *in, void *const *out) { *(int *)out[0] = b += *(int *)in[0]; }
        """
    judge(Printing(source), 2).runs(text)


def test_openmp_works():
    source = (RIGHT % "").replace("for (int i", "\n#pragma omp parallel for\nfor (int i")
    judge(Printing(source), 2).runs(DOUBLE)


def test_failures_have_the_compilers_words():
    assert "undeclared" in failure(RIGHT % "oops;").evidence.stderr


def test_no_c_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    found = failure(RIGHT % "/* never built */;")
    assert (found.verdict, "no-such-compiler" in found.sentence) == (Verdict.GRADER, True)


def test_emits():
    right = judge(Printing(RIGHT % "// omp"), 2)
    right.emits(DOUBLE, kernels_at_most=1, contains=[r"\*\s*2"], without=["omp", "malloc"])
    for options in ({"kernels_at_most": 0}, {"contains": ["restrict"]}, {"without": ["for"]}):
        with pytest.raises(SpecFailure) as caught:
            right.emits(DOUBLE, **options)
        assert caught.value.verdict is Verdict.BOUND


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("void f() { g(); }", 0),
        ("void f() { for (;;) { for (;;) { a(); } } }", 1),
        ("void f() { for (;;) for (;;) { a(); } }", 1),
        ("void f() { for (;;) { a(); } for (;;) { b(); } }", 2),
        ("void f() { for (;;) { a(); } } void g() { if (x) { for (;;) { b(); } } }", 2),
        ("float f(int x) { for (;;) {} } void program() { for (;;) { f(1); } }", 1),
        ("void f() { for (;;) {} } void g() { f(); f(); } void program() { g(); for (;;) {} }", 2),
        ("void f(void) __attribute__((cold)) { for (;;) {} } void program() { f(); }", 1),
        (
            "int a[] = {1}; static __attribute__((noinline)) void f(int (*x)(int)) { for (;;) {} }",
            1,
        ),
    ],
)
def test_kernels(text, count):
    assert kernels(text) == count


def test_layout_names_every_slot():
    program = read("uops 1\n" + DOUBLE.replace("    ", ""), 2)
    layout = run_c.Layout.of(program)
    assert [node is None for node in layout.inputs] == [True, False]
    assert layout.plan(1, 2).split() == ["1", "2", "2", "1", "-1", "20", "20"]


def test_arrays_of_results_are_typed():
    library = run_c.build(RIGHT % "")
    program = read("uops 1\n" + DOUBLE.replace("    ", ""), 2)
    values = np.arange(5, dtype=np.float32)
    ((result,),) = run_c.run(library, program, [{1: values}])
    assert result.dtype == np.float32
    assert (result == 2 * values).all()
