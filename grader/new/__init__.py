"""`grader new`: a folder that can be handed in, with everything but the compiler.

Its program takes a verb and a program and answers, as the protocol wants it, that this is not
implemented. `templates/` holds a folder a language.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import click

TEMPLATES = Path(__file__).parent / "templates"
NAME = "{name}"


class NewError(Exception):
    """No folder was written; one sentence says why."""


@dataclass(frozen=True)
class Language:
    """What a language needs: programs on the PATH, and the Debian packages that hold them."""

    tools: tuple[str, ...]
    packages: tuple[str, ...]


LANGUAGES = {
    "c": Language(("make", "cc"), ("make", "gcc")),
    "cpp": Language(("make", "c++"), ("make", "g++")),
    "go": Language(("go",), ("golang-go",)),
    "java": Language(("javac", "java"), ("default-jdk-headless",)),
    "js": Language(("node",), ("nodejs",)),
    "ocaml": Language(("ocamlopt",), ("ocaml-nox",)),
    "python": Language(("python3",), ("python3",)),
    "rust": Language(("cargo",), ("cargo",)),
}
ALSO = {"c++": "cpp", "golang": "go", "javascript": "js", "py": "python"}


def language_of(word: str) -> Language | None:
    """What is known of the language that a `submission.toml` names."""
    word = word.lower()
    return LANGUAGES.get(ALSO.get(word, word))


def write(folder: Path, language: str, name: str) -> list[Path]:
    """Write a language's template; nothing is written if one of its files is there already."""
    key = ALSO.get(language.lower(), language.lower())
    if key not in LANGUAGES:
        raise NewError(f"expected one of the languages {', '.join(LANGUAGES)}, got {language}")
    if not name or not name.isprintable():
        raise NewError(f"expected a name of printable characters, got {name!r}")
    template = TEMPLATES / key
    files = [path for path in sorted(template.rglob("*")) if path.is_file()]
    found = {path: folder / path.relative_to(template) for path in files}
    for target in found.values():
        if target.exists() or target.is_symlink():
            raise NewError(f"{target} is there already; nothing was written")
    try:
        for path, target in found.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8")
            quoted = json.dumps(name, ensure_ascii=False)
            with target.open("x", encoding="utf-8") as file:
                file.write(text.replace(NAME, quoted) if path.suffix == ".toml" else text)
    except OSError as error:
        raise NewError(f"{error.filename} cannot be written: {error.strerror}") from None
    return list(found.values())


@click.command("new")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--lang", required=True, help=f"One of {', '.join(LANGUAGES)}.")
@click.option("--name", help="How reports name the submission [default: the folder's name].")
def new(folder: Path, lang: str, name: str | None) -> None:
    """Begin a submission in DIR: its files, and a program that answers "not implemented"."""
    try:
        written = write(folder, lang, folder.resolve().name if name is None else name)
    except NewError as fault:
        click.echo(f"grader: {fault}", err=True)
        sys.exit(2)
    for path in written:
        click.echo(str(path))
    click.echo(f"next: grader doctor {folder}")
