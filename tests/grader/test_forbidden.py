"""What a library needs and exports is read from its file, and refused where it must be."""

import shutil
import subprocess

import pytest

from grader import forbidden, run_c
from grader.run_c import RunError
from grader.verdict import Verdict

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


def linked(tmp_path, source, *flags):
    (tmp_path / "one.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "one.c", "-o", "one.so", *flags]
    subprocess.run(command, cwd=tmp_path, check=True)
    return (tmp_path / "one.so").read_bytes()


def test_names_of_a_library(tmp_path):
    source = "double exp(double); static void hidden(void) {} double program(double x)"
    found = forbidden.names(linked(tmp_path, source + "{ hidden(); return exp(x); }", "-lm"))
    assert {"libm.so.6", "libc.so.6"} >= found.libraries
    assert "exp" in found.needed
    assert "program" in found.exported
    assert "hidden" not in found.exported | found.needed


@pytest.mark.parametrize("data", [b"", b"MZ", b"\x7fELF\x01\x01" + bytes(100)])
def test_other_files_have_no_names(data):
    assert forbidden.names(data) == forbidden.Names()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("void cblas_dgemv(); void program(void) { cblas_dgemv(); }", "linear algebra"),
        ("void sgemm_(); void program(void) { sgemm_(); }", "linear algebra"),
        ("void *dlsym(); void program(void) { dlsym(); }", "loads other libraries"),
        ("void program(void) {} long read(void) { return 0; }", "defines read"),
        ("void program(void) {} void free(void *p) {}", "make it static"),
    ],
)
def test_what_is_refused(source, says):
    with pytest.raises(RunError) as caught:
        run_c.build(source)
    assert caught.value.verdict is Verdict.FORBIDDEN
    assert says in caught.value.sentence


@pytest.mark.parametrize(
    "source",
    [
        "#include <math.h>\nfloat program(float x) { return expf(x) + tanhf(x); }",
        "#include <stdlib.h>\n#include <string.h>\n"
        "void *program(void *x) { return memcpy(malloc(9), x, 9); }",
        "static long read(void) { return 0; } long program(void) { return read(); }",
        "static void gemm(float *x) { x[0] = 1; } void program(float *x) { gemm(x); }",
        "void gemm_tile(float *x) { x[0] = 1; } void program(float *x) { gemm_tile(x); }",
        "void program(int *x) {\n#pragma omp parallel for\nfor (int i = 0; i < 9; ++i) x[i] = i;}",
    ],
)
@pytest.mark.parametrize("sanitize", [False, True])
def test_what_is_not(source, sanitize):
    assert run_c.build(source, sanitize=sanitize)


def test_another_library(tmp_path):
    (tmp_path / "libother.so").write_bytes(linked(tmp_path, "int other(void) { return 1; }"))
    flags = ["-L.", "-lother", "-Wl,--no-as-needed"]
    library = linked(tmp_path, "int other(void); int program(void) { return other(); }", *flags)
    assert "needs the library libother.so" in forbidden.fault(library)
