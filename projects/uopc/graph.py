"""Pictures of programs, drawn by Graphviz."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from week01_uops.interchange import Namer
from week01_uops.node import CONST, UOp
from week01_uops.ops import RETURN
from week02_render.ops import STORAGE

COLOURS = {"storage": "#cfe8ff", "constant": "#eeeeee", "effect": "#ffd9cc", "result": "#d6f5d6"}


def _kind(node: UOp) -> str:
    if node.op in STORAGE:
        return "storage"
    if node.op is CONST:
        return "constant"
    if node.op is RETURN:
        return "result"
    return "effect" if node.dtype.kind == "void" else ""


def _label(node: UOp, name: str) -> str:
    lines = [f"{name} {node.op.name}" if name else "return"]
    if node.arg is not None and node.op.argument is not None:
        lines.append(json.dumps(node.op.argument.dump(node.arg), separators=(", ", ": ")))
    if node.dtype.kind != "void":
        lines.append(f"{node.dtype}{list(node.shape)}")
    return "\n".join(lines)


def dot_text(program: UOp) -> str:
    """The program in Graphviz's language: a box a node, edges from sources to users."""
    namer = Namer()
    namer.listing(program)
    order = program.toposort()
    numbers = {node: k for k, node in enumerate(order)}
    lines = ["digraph program {", '  node [shape=box, style=filled, fontname="monospace"];']
    for node, k in numbers.items():
        colour = COLOURS.get(_kind(node), "#ffffff")
        label = json.dumps(_label(node, namer.names.get(node, "")), ensure_ascii=False)
        lines.append(f'  n{k} [label={label}, fillcolor="{colour}"];')
        lines += [f"  n{numbers[s]} -> n{k};" for s in node.src]
    return "\n".join([*lines, "}", ""])


class GraphError(Exception):
    """A picture could not be drawn; the message says what is missing."""


def draw(program: UOp, output: Path) -> None:
    """Write a picture (svg, png, pdf), or with a name ending in .dot the text that makes it."""
    text = dot_text(program)
    kind = output.suffix.lstrip(".")
    if kind in ("dot", "gv"):
        output.write_text(text, encoding="utf-8")
        return
    if kind not in ("svg", "png", "pdf"):
        raise GraphError(f"expected a name ending in .svg, .png, .pdf or .dot, got {output.name}")
    if shutil.which("dot") is None:
        raise GraphError(
            "Graphviz is not installed, so no picture can be drawn: install the Debian package "
            f"graphviz, or write the text with -o {output.with_suffix('.dot').name}"
        )
    command = ["dot", f"-T{kind}", "-o", str(output)]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise GraphError(f"dot failed: {done.stderr.strip()}")
