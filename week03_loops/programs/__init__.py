"""Sample programs in the interchange format; `python -m week03_loops.programs` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from week01_uops.interchange import write
from week01_uops.node import UOp
from week01_uops.ops import parameters
from week03_loops.programs.samples import SAMPLES, Sample

__all__ = ["FOLDER", "SAMPLES", "Sample", "regenerate", "text"]

FOLDER = Path(__file__).parent


def text(sample: Sample) -> str:
    """The file of a sample: a comment that says what it is and its shapes, then the program."""
    program = sample.program()
    header, *statements = write(program).splitlines()
    lines = [header, f"# {sample.name}: {sample.about}", *_signature(program), *statements]
    return "\n".join(lines) + "\n"


def _signature(program: UOp) -> Iterator[str]:
    for slot, x in sorted(parameters(program).items()):
        yield f"# input {slot}: {x.dtype}{list(x.shape)}"
    for number, output in enumerate(program.src):
        yield f"# output {number}: {output.dtype}{list(output.shape)}"


def regenerate(folder: Path = FOLDER) -> list[Path]:
    """Write every sample to NAME.uop in a folder; the paths of those that changed."""
    changed = []
    for sample in SAMPLES:
        path = folder / f"{sample.name}.uop"
        new = text(sample)
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed
