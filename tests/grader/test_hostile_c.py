"""Hostile C: what a compiler emits may do to the grader, and what the next program sees of it."""

import dataclasses
import os
import resource
import shutil
import signal

import pytest

from grader import run_c, sandbox
from grader.sandbox import MIB, Limits
from grader.verdict import Verdict
from tests.grader.compilers import Printing, judge
from tests.grader.test_fuzz_answers import caught
from tests.grader.test_run_c import DOUBLE
from tests.grader.test_sandbox_hostile import alive

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

INCLUDES = "".join(
    f"#include <{name}.h>\n"
    for name in (
        *("errno", "fcntl", "pthread", "setjmp", "signal", "stdio", "stdlib", "string", "unistd"),
        *("sys/mman", "sys/prctl", "sys/ptrace", "sys/resource", "sys/stat", "sys/wait"),
    )
)
PROGRAM = f"""#define _GNU_SOURCE
{INCLUDES}
%s
void program(void *const *in, void *const *out) {{
    float *a = in[1], *o = out[0];
    for (int i = 0; i < 5; i++) {{ o[i] = a[i] * 2; }}
    %s
}}
"""
OK, CRASH, TIMEOUT, MEMORY = Verdict.OK, Verdict.CRASH, Verdict.TIMEOUT, Verdict.MEMORY
ACTS = {
    "kills all": ("kill(-1, SIGKILL); kill(getppid(), SIGKILL); kill(0, SIGKILL);", {CRASH}),
    "stops itself": ("raise(SIGSTOP);", {TIMEOUT}),
    "stops all": ("kill(-1, SIGSTOP); kill(getppid(), SIGSTOP);", {OK, TIMEOUT}),
    "an alarm": ("alarm(1); for (;;) pause();", {CRASH, TIMEOUT}),
    "deaf to signals": (
        "sigset_t s; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, 0); for (;;) pause();",
        {TIMEOUT},
    ),
    "survives faults": (
        "for (int i = 1; i < 32; i++) signal(i, SIG_IGN); for (;;) *(volatile int *)0 = 1;",
        {CRASH, TIMEOUT},
    ),
    "an odd signal": ("raise(SIGRTMIN + 5);", {CRASH}),
    "endless recursion": ("extern int f(int); o[0] += f(1) * 0;", {CRASH, MEMORY}),
    "an exit handler": ("extern void stay(void); atexit(stay);", {OK, TIMEOUT}),
    "children": ("for (;;) fork();", {CRASH}),
    "threads": (
        "extern void *sleeps(void *); pthread_t t;"
        "for (;;) if (pthread_create(&t, 0, sleeps, 0)) usleep(1000);",
        {CRASH},
    ),
    "a child that stays": (
        "if (!fork()) { setsid(); if (!fork())"
        ' execl("/bin/sleep", "sleep", "97541", (char *)0); _exit(0); }',
        {OK},
    ),
    "writes to all descriptors": (
        'for (int d = 0; d < 512; d++) { write(d, "{\\"status\\": 0}\\n", 14); }',
        {OK, CRASH},
    ),
    "closes all descriptors": ("for (int d = 0; d < 512; d++) close(d);", {OK, CRASH}),
    "ten gigabytes": (
        "for (int i = 0; i < 160; i++) memset(malloc(1L << 26), 1, 1L << 26);",
        {MEMORY},
    ),
    "ten gigabytes at once": (
        "char *m = mmap(0, 10L << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);"
        "for (long i = 0; i < 10L << 30; i += 4096) m[i] = 1;",
        {MEMORY, CRASH},
    ),
    "ten gigabytes shared": (
        "char *m = mmap(0, 10L << 30, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);"
        "for (long i = 0; i < 10L << 30; i += 4096) m[i] = 1;",
        {MEMORY, CRASH},
    ),
    "more for itself": (
        "struct rlimit r = {1L << 40, 1L << 40};"
        "for (int i = 0; i < 16; i++) setrlimit(i, &r); for (;;) fork();",
        {CRASH},
    ),
    "traces its parent": (
        "ptrace(PTRACE_ATTACH, getppid(), 0, 0); ptrace(PTRACE_SEIZE, 1, 0, 0);",
        {OK, CRASH},
    ),
    "a deep folder": (
        'int here = open(".", O_RDONLY);'
        'for (int i = 0; i < 3000; i++) { mkdir("d", 0); chmod("d", 0700); chdir("d"); }'
        "fchdir(here); close(here);",
        {OK},
    ),
    "a locked folder": ('mkdir("d", 0700); close(creat("d/x", 0)); chmod("d", 0);', {OK}),
    "many files": (
        'char n[20]; for (int i = 0; i < 1000; i++) { sprintf(n, "%d", i); close(creat(n, 0)); }',
        {OK},
    ),
    "outputs by a link": ('symlink("/proc/kcore", "out.0"); _exit(0);', {CRASH}),
    "outputs of a device": ('symlink("/dev/zero", "out.0"); _exit(0);', {CRASH}),
    "outputs of a secret": ('symlink("/etc/shadow", "out.0"); _exit(0);', {CRASH}),
    "outputs by a pipe": ('mkfifo("out.0", 0600); _exit(0);', {CRASH}),
    "outputs in a folder": ('mkdir("out.0", 0700); _exit(0);', {CRASH}),
    "endless outputs": ('truncate("out.0", 1L << 40); _exit(0);', {CRASH, Verdict.OUTPUT}),
    "another plan": (
        'unlink("plan"); symlink("/dev/zero", "plan"); unlink("harness"); rmdir(".");',
        {OK},
    ),
}
HELPERS = """
int f(int x) { volatile char big[4096]; big[0] = (char)x; return f(x + 1) + big[0]; }
void stay(void) { for (;;) pause(); }
void *sleeps(void *x) { for (;;) pause(); return x; }
"""
LONG = {"a deep folder", "ten gigabytes at once", "ten gigabytes shared", "more for itself"}


def runs(source, seconds=1.0):
    claims = judge(Printing(source), 2)
    claims.limits = Limits(seconds=seconds, memory=400 * MIB, output=MIB, tasks=64)
    return caught(lambda: claims.runs(DOUBLE, draws=1, special=False))


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path, monkeypatch):
    """Afterwards an honest program passes, no process and no file is left, no limit has changed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limits = [resource.getrlimit(kind) for kind in range(16)]
    handlers = [signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)]
    descriptors = os.listdir("/proc/self/fd")
    yield
    assert runs(PROGRAM % ("", ""), 10.0) is None
    assert os.listdir(tmp_path) == []
    assert not alive("97541")
    assert limits == [resource.getrlimit(kind) for kind in range(16)]
    assert handlers == [
        signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    ]
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.nightly] * (k in LONG), id=k) for k in ACTS],
)
def test_what_it_does(kind):
    if sandbox.level() == "rlimit" and ("kill(" in ACTS[kind][0] or "ptrace" in ACTS[kind][0]):
        pytest.skip("rlimit cannot keep a program from signals to processes of the same user")
    code, verdicts = ACTS[kind]
    found = runs(PROGRAM % (HELPERS, code), 1.0 if TIMEOUT in verdicts else 8.0)
    assert (found.verdict if found else OK) in verdicts, found


TEXTS = {
    "endless include": '#include "/dev/zero"\n',
    "itself": "#include __FILE__\n",
    "a secret": '#include "/etc/shadow"\n',
    "macros": "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(x)))\n"
    "int a[] = {B(B(B(B(1,))))};\n",
    "repeated": 'asm(".rept 2000000000\\nnop\\n.endr");\n',
    "space": 'asm(".data\\n.space 1099511627776");\n',
    "array": "char big[400 << 20] = {1};\n",
    "bytes of a device": 'asm(".data\\n.incbin \\"/dev/zero\\"");\n',
    "deep": "int x = " + "(" * 200_000 + "1" + ")" * 200_000 + ";\n",
    "a huge name": f"int {'x' * 100_000}(void) {{ return undeclared; }}\n",
    "escapes": '#error "\x1b[2J\x9b \u202e"\n',
}


@pytest.mark.parametrize("kind", TEXTS)
def test_what_it_is(kind, monkeypatch):
    """The compiler's own limits hold, too."""
    if kind == "a secret" and sandbox.level() == "rlimit":
        pytest.skip("rlimit cannot keep a program from reading files of its user")
    quick = dataclasses.replace(run_c.BUILD, seconds=2.0, memory=600 * MIB)
    with monkeypatch.context() as patch:
        patch.setattr(run_c, "BUILD", quick)
        found = runs(TEXTS[kind] + PROGRAM % ("", ""))
    assert found is not None
    assert found.verdict is Verdict.COMPILE_ERROR, found
    assert "root:" not in found.evidence.stderr
    assert len(found.sentence) < 700


def test_names_of_any_bytes():
    """What is read from the library before it is loaded may be anything."""
    odd = 'asm(".globl \\"\\\\377\\\\376\\x1b\\"\\n\\"\\\\377\\\\376\\x1b\\":\\n");'
    found = runs(PROGRAM % (odd, ""))
    assert found is None or found.verdict in (Verdict.COMPILE_ERROR, Verdict.FORBIDDEN)
    long = "x" * 200_000
    found = runs(PROGRAM % (f"extern void {long}(void);", f"{long}();"))
    assert found.verdict is Verdict.COMPILE_ERROR
    assert len(found.sentence) < 700
