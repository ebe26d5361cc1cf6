"""Run a program in a process of its own, under the sanitizers of the C compiler.

A small driver in C calls the program once, on arrays that are exactly as large as they should
be, so that AddressSanitizer sees every access outside them; UndefinedBehaviorSanitizer sees what C
leaves undefined. Where the compiler lacks a sanitizer, the other runs alone. A program rendered
with `checked=True` reports its own bounds, by kernel and node, before any of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from week01_uops.interface import Artifact
from week01_uops.node import UOp
from week02_render.arguments import Inputs, Signature
from week02_render.buffers import Array
from week02_render.cache import ObjectCache
from week02_render.runtime import CheckError
from week02_render.toolchain import SHARED, BuildError, Toolchain, excerpt, find_toolchain

DRIVER = """\
#include <stdio.h>
#include <stdlib.h>

void program(void *const *inputs, void *const *outputs, void *workspace);
size_t program_workspace(void) __attribute__((weak));
extern char program_error[] __attribute__((weak));

/* Bytes; of an input that does not exist, -1. */
static const long input_size[] = {INPUTS}, output_size[] = {OUTPUTS};
enum { INPUT_COUNT = sizeof input_size / sizeof *input_size - 1 };
enum { OUTPUT_COUNT = sizeof output_size / sizeof *output_size - 1 };

static void *allocate(long size) {
    void *data = NULL;
    if (size > 0 && posix_memalign(&data, 64, (size_t)size)) exit(4);
    return data;
}

static FILE *file(const char *kind, int number, const char *mode) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, number);
    FILE *opened = fopen(name, mode);
    if (!opened) exit(4);
    return opened;
}

int main(void) {
    void *inputs[INPUT_COUNT + 1], *outputs[OUTPUT_COUNT + 1];
    for (int k = 0; k < INPUT_COUNT; k++) {
        inputs[k] = allocate(input_size[k]);
        if (!inputs[k]) continue;
        FILE *from = file("in", k, "rb");
        if (fread(inputs[k], 1, (size_t)input_size[k], from) != (size_t)input_size[k]) exit(4);
        fclose(from);
    }
    for (int k = 0; k < OUTPUT_COUNT; k++) outputs[k] = allocate(output_size[k]);
    program(inputs, outputs, program_workspace ? allocate((long)program_workspace()) : NULL);
    if (program_error && program_error[0]) return fputs(program_error, stderr), 3;
    for (int k = 0; k < OUTPUT_COUNT; k++) {
        FILE *to = file("out", k, "wb");
        if (outputs[k]) fwrite(outputs[k], 1, (size_t)output_size[k], to);
        fclose(to);
    }
    return 0;
}
"""

UNDEFINED = "undefined,float-cast-overflow"
SANITIZERS = (f"address,{UNDEFINED}", UNDEFINED, "address")
"""What to ask the compiler for, best first."""

CHECK_FAILED = 3


class SanitizerError(Exception):
    """A sanitizer stopped the program; holds its report and the C lines that it is about."""


def run_sanitized(
    source: Artifact | str,
    program: UOp,
    inputs: Inputs,
    *,
    toolchain: Toolchain | None = None,
) -> list[Array]:
    """The outputs of a program compiled with sanitizers, from a process of its own.

    Raises:
        CheckError: a checked build met an index out of range.
        SanitizerError: the program reads or writes outside its arrays, does what C leaves
            undefined, or crashes.
        BuildError: the compiler rejected the source, or has no sanitizer.
    """
    text = source.source if isinstance(source, Artifact) else source
    signature = Signature.of(program)
    arrays = signature.arrays(inputs)
    with tempfile.TemporaryDirectory(prefix="uops-") as name:
        folder = Path(name)
        for slot, array in enumerate(arrays):
            if array is not None:
                (folder / f"in{slot}").write_bytes(array.tobytes())
        results = signature.results(None)
        driver = folder / "driver.c"
        driver.write_text(_driver(arrays, results), encoding="utf-8")
        _compile(text, driver, toolchain or find_toolchain())
        _run(text, folder)
        for number, result in enumerate(results):
            data = (folder / f"out{number}").read_bytes()
            result.reshape(-1)[...] = np.frombuffer(data, result.dtype)
    return results


def _driver(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> str:
    """The driver for arrays of these sizes; each list ends with a 0 that is not counted."""
    sizes = [str(-1 if array is None else array.nbytes) for array in inputs]
    text = DRIVER.replace("{INPUTS}", f"{{{', '.join([*sizes, '0'])}}}")
    sizes = [str(array.nbytes) for array in outputs]
    return text.replace("{OUTPUTS}", f"{{{', '.join([*sizes, '0'])}}}")


def _compile(text: str, driver: Path, toolchain: Toolchain) -> None:
    """The program and the driver as one executable, with the first sanitizers that work."""
    kept = [f for f in toolchain.flags if f not in (*SHARED, "-O2")]
    failure: BuildError | None = None
    for sanitizers in SANITIZERS:
        extra = (f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-O0", "-g")
        chain = replace(toolchain, flags=(*kept, *extra))
        try:
            return chain.compile(text, driver.with_name("program"), ObjectCache().failed, driver)
        except BuildError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _run(text: str, folder: Path) -> None:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": ""}
    done = subprocess.run(
        [str(folder / "program")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == CHECK_FAILED:
        raise CheckError(done.stderr)
    if done.returncode:
        raise SanitizerError(_report(text, done.returncode, done.stderr))


def _report(text: str, code: int, output: str) -> str:
    """The sanitizer's first lines, and the lines of the program that they name."""
    about = [line for line in output.splitlines() if line.strip("= ")][:12]
    lines = text.splitlines()
    found = dict.fromkeys(int(n) for n in re.findall(r"program\.c:(\d+)", output))
    shown = [line for number in list(found)[:3] for line in excerpt(lines, number)]
    head = f"the program was stopped (exit code {code})"
    return "\n".join([head, *(f"  {line}" for line in about), *shown])
