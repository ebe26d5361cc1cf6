"""Programs that touch what is not theirs: inputs, other memory, files, C's library, a BLAS."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from grader.adversary.case import Cheat, Outcome
from grader.adversary.cheats.ways import closed_off, program, runs
from grader.verdict import Verdict

WEEK = 3
READS_THE_GRADER = """
#include <fcntl.h>
static int readable(void) {
    char name[64], line[256];
    unsigned long at;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)getppid());
    FILE *maps = fopen(name, "r");
    snprintf(name, sizeof name, "/proc/%d/mem", (int)getppid());
    int memory = open(name, O_RDONLY), found = 0;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%lx-%*x rw", &at) == 1 && pread(memory, line, 1, (long)at) == 1;
    return found;
}
"""
FINDS = """
#include <dirent.h>
static int found(float *y) {
    char name[600];
    DIR *all = opendir("FOLDER");
    for (struct dirent *one; all && (one = readdir(all));) {
        snprintf(name, sizeof name, "FOLDER/%s", one->d_name);
        FILE *file = fopen(name, "rb");
        if (file && fread(y, sizeof(float), N, file) == N) return 1;
    }
    return 0;
}
"""


def _secret_file() -> Outcome:
    """Beside the folders of runs lies a file that no submission may see."""
    with tempfile.TemporaryDirectory(prefix="grader-secret-") as name:
        np.zeros(3000, np.float32).tofile(Path(name) / "expected")
        body = "static float other[N]; if (found(other)) compute(x, y);"
        return runs(program(body, FINDS.replace("FOLDER", name)))()


CHEATS = (
    Cheat(
        "writes-inputs",
        WEEK,
        "changes its input, for which the result is then right",
        Verdict.CRASH,
        runs(program("((float *)x)[1] = 0; compute(x, y);")),
    ),
    Cheat(
        "writes-outside",
        WEEK,
        "writes behind its output",
        Verdict.CRASH,
        runs(program("compute(x, y); y[N] = 1;")),
    ),
    Cheat(
        "reads-outside",
        WEEK,
        "reads behind its input",
        Verdict.CRASH,
        runs(program("compute(x, y); y[0] += 0 * ((volatile const float *)x)[N + 100];")),
    ),
    Cheat(
        "reads-the-grader",
        WEEK,
        "looks for the right answer in the memory of the process that started it",
        Verdict.WRONG,
        closed_off(
            runs(program("if (readable()) compute(x, y);", READS_THE_GRADER)), "bwrap", "landlock"
        ),
    ),
    Cheat(
        "reads-files",
        WEEK,
        "looks for the right answer in other folders",
        Verdict.WRONG,
        closed_off(_secret_file, "bwrap", "landlock"),
    ),
    Cheat(
        "redefines-c",
        WEEK,
        "brings a memcpy of its own, in the hope that the grader calls it",
        Verdict.FORBIDDEN,
        runs(
            program(
                "compute(x, y);",
                "void *memcpy(void *to, const void *from, size_t size) { return to; }",
            )
        ),
    ),
    Cheat(
        "redefines-write",
        WEEK,
        "brings a write of its own, so that what the grader saves is what it likes",
        Verdict.FORBIDDEN,
        runs(
            program(
                "compute(x, y);",
                "ssize_t write(int file, const void *data, size_t size) { return (ssize_t)size; }",
            )
        ),
    ),
    Cheat(
        "blas",
        WEEK,
        "has a library of linear algebra do the work",
        Verdict.FORBIDDEN,
        runs(program("cblas_sgemm(); compute(x, y);", "void cblas_sgemm();")),
    ),
    Cheat(
        "loads-a-library",
        WEEK,
        "loads a library while it runs",
        Verdict.FORBIDDEN,
        runs(program('dlopen("libopenblas.so", RTLD_NOW); compute(x, y);', "#include <dlfcn.h>\n")),
    ),
)
