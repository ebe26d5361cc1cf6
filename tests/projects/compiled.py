"""Running a program through the compiler of weeks 1 to 4."""

from week02_render.runtime import load
from week04_fusion.compiler import REFERENCE


def run(program, inputs):
    """The one output of a compiled program; inputs by slot or in order of slots."""
    (result,) = load(REFERENCE.compile(program, "c"), program).run(inputs)
    return result
