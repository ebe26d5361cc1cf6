"""Answers that are made without computing, or with less precision than was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from grader import draws
from grader.adversary.case import Cheat, Outcome
from grader.adversary.cheats.ways import asked, program, runs
from grader.bench.rows import softmax
from grader.draws import Array
from grader.verdict import Verdict
from grader.weeks import read
from week01_uops.interchange import write

WEEK = 3
HIDDEN = write(softmax("softmax", (2, 7)).program)
"""Another size than the public one."""

ROUNDED = """
static float rounded(float x) {
    unsigned bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x8000) & 0xFFFF0000;
    memcpy(&x, &bits, 4);
    return x;
}
"""
DOUBLED = """
uops 1
x = PARAM : {"slot": 0, "dtype": "float64", "shape": [40]}
y = MUL x x
return y
"""
SINGLE = """
void program(void *const *in, void *const *out) {
    const double *x = in[0];
    for (int i = 0; i < 40; i++) ((double *)out[0])[i] = (float)x[i] * (float)x[i];
}
"""
PUBLIC = """
uops 1
x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
y = MUL x x
return y
"""


def _remembering() -> Outcome:
    """The answers for the inputs that follow from the public seed, which is 0."""
    tensor = read(PUBLIC.lstrip(), WEEK)
    known: list[Array] = [
        draws.draw(tensor, draws.generator(0, PUBLIC.lstrip(), number), special=number == 3)[0]
        for number in range(4)
    ]
    lines = [_line(x.tolist(), (x * x).tolist()) for x in known]
    body = "const int *x = in[0]; int *y = out[0];"
    source = "#include <string.h>\nvoid program(void *const *in, void *const *out) {"
    return runs(source + body + "".join(lines) + "}", PUBLIC.lstrip())()


def _line(given: Sequence[int], due: Sequence[int]) -> str:
    of = "(const int[]){%s}"
    inputs, outputs = (of % ", ".join(map(str, values)) for values in (given, due))
    return f"if (!memcmp(x, {inputs}, 16)) {{ memcpy(y, {outputs}, 16); return; }}\n"


CHEATS = (
    Cheat(
        "honest",
        WEEK,
        "computes what was asked for: a control, which must pass",
        Verdict.OK,
        runs(program("compute(x, y);")),
    ),
    Cheat(
        "zeros",
        WEEK,
        "returns zeros, which lie near results that are small",
        Verdict.WRONG,
        runs(program("memset(y, 0, sizeof(float) * N);")),
    ),
    Cheat(
        "constant",
        WEEK,
        "returns the mean of all right results",
        Verdict.WRONG,
        runs(program("for (int i = 0; i < N; i++) y[i] = 1.0f / C;")),
    ),
    Cheat(
        "echo",
        WEEK,
        "returns its input",
        Verdict.WRONG,
        runs(program("memcpy(y, x, sizeof(float) * N);")),
    ),
    Cheat(
        "untouched-output",
        WEEK,
        "writes nothing, so that what was there is the result",
        Verdict.WRONG,
        runs(program("")),
    ),
    Cheat(
        "previous-output",
        WEEK,
        "computes in the first call, and returns that result ever after",
        Verdict.WRONG,
        runs(
            program(
                "if (!calls++) compute(x, kept); memcpy(y, kept, sizeof kept);",
                "static int calls; static float kept[N];",
            )
        ),
    ),
    Cheat(
        "pointer-cache",
        WEEK,
        "takes an input that lies where the last one lay for the same input",
        Verdict.WRONG,
        runs(
            program(
                "if (x != seen) compute(x, kept); seen = x; memcpy(y, kept, sizeof kept);",
                "static const float *seen; static float kept[N];",
            )
        ),
    ),
    Cheat(
        "nan",
        WEEK,
        "returns NaN, for which every comparison is false",
        Verdict.WRONG,
        runs(program("for (int i = 0; i < N; i++) y[i] = NAN;")),
    ),
    Cheat(
        "public-shape",
        WEEK,
        "computes at the size of the public tests only",
        Verdict.WRONG,
        asked(
            {"right.c": program("compute(x, y);"), "other.c": program("")},
            ("sh", "-c", "if grep -q '\\[3, 1000\\]'; then cat right.c; else cat other.c; fi"),
            "runs",
            HIDDEN,
        ),
    ),
    Cheat(
        "public-seed",
        WEEK,
        "knows the answers for the inputs of the public seed by heart",
        Verdict.WRONG,
        _remembering,
    ),
    Cheat(
        "low-precision",
        WEEK,
        "rounds its results to bfloat16",
        Verdict.WRONG,
        runs(program("compute(x, y); for (int i = 0; i < N; i++) y[i] = rounded(y[i]);", ROUNDED)),
    ),
    Cheat(
        "lower-dtype",
        WEEK,
        "computes in float32 what the program says in float64",
        Verdict.WRONG,
        runs(SINGLE, DOUBLED.lstrip()),
    ),
)
