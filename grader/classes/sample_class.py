"""`python -m grader.classes.sample_class DIR --count 500`: a class that never was.

Copies of the sample submissions with other names and comments, some right and some wrong in one
way each, some that break a reader, a build or a machine; as folders and as archives.
"""

from __future__ import annotations

import io
import random
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from grader.weeks import ROOT

SAMPLES = ROOT / "grader" / "samples"
HONEST = {
    "c-week1": "",
    "c-week2": "c-week1",
    "javascript-week1": "",
    "javascript-week3": "javascript-week1",
}
"""Right samples, and what each stands on."""
WRONG = (
    "wrong-constant-folding",
    "wrong-crashes",
    "wrong-floordiv-toward-zero",
    "wrong-prints-garbage",
)
SERVED = 0.95
SUFFIXES = (".c", ".h", ".js")
_PIECE = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|//[^\n]*|/\*.*?\*/)""", re.DOTALL
)
_DEFINED = re.compile(r"^(?:static\s[\w\s*]*?|function\s+)\b([a-z]\w{3,})\(", re.MULTILINE)
_TOP = re.compile(r"^(?=static |function )", re.MULTILINE)
WORDS = ("walk", "fold", "visit", "take", "merge", "apply", "carry", "scan", "reach", "probe")
REMARKS = ("the page says so", "see the lecture", "checked by hand", "slow, but right", "as agreed")


def rename(folder: Path, rng: random.Random) -> None:
    """Give some functions of all sources other names, and add remarks."""
    texts = {p: p.read_text() for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES}
    whole = "\n".join(texts.values())
    found = sorted(set(_DEFINED.findall(whole)))
    quoted = " ".join(part for part in _PIECE.split(whole)[1::2] if part[0] in "\"'`")
    kept = set(re.findall(r"\w+", quoted)) | set(re.findall(r"[.#<](\w+)", whole))
    free = [name for name in found if name not in kept]
    new = {
        name: f"{rng.choice(WORDS)}_{name}_{rng.randrange(1000)}"
        for name in free
        if rng.random() < 0.7
    }
    for path, text in texts.items():
        path.write_text(_remarked(_renamed(text, new), rng))


def _renamed(text: str, new: dict[str, str]) -> str:
    """Names outside of strings and comments replaced."""
    parts = _PIECE.split(text)
    words = re.compile(r"\b(" + "|".join(map(re.escape, new)) + r")\b") if new else None
    for k in range(0, len(parts), 2):
        if words is not None:
            parts[k] = words.sub(lambda match: new[match[1]], parts[k])
    return "".join(parts)


def _remarked(text: str, rng: random.Random) -> str:
    return _TOP.sub(lambda _: f"// {rng.choice(REMARKS)}\n" if rng.random() < 0.3 else "", text)


def honest(folder: Path, rng: random.Random) -> None:
    """A right submission."""
    name = rng.choice(tuple(HONEST))
    _copied(name, HONEST[name], folder)
    rename(folder, rng)
    serves(folder, rng)


def wrong(folder: Path, rng: random.Random) -> None:
    """A submission that is wrong in one way, with all that it needs inside."""
    _copied(rng.choice(WRONG), "javascript-week1", folder)
    rename(folder / "javascript-week1", rng)
    serves(folder, rng)


def _copied(name: str, needs: str, folder: Path) -> None:
    """A sample, with the one that it stands on inside of it."""
    _copy(name, folder)
    if needs:
        texts = [path for path in folder.iterdir() if path.suffix in (*SUFFIXES, ".toml")]
        for path in texts:
            inside = needs if path.suffix in (".toml", ".c", ".h") else f"./{needs}"
            _edit(path, f"../{needs}", inside)
        _copy(needs, folder / needs)


def serves(folder: Path, rng: random.Random) -> None:
    """Most whose language takes long to start have one process answer."""
    text = (folder / "submission.toml").read_text()
    if 'language = "javascript"' in text and "\nserve" not in text and rng.random() < SERVED:
        with (folder / "submission.toml").open("a") as file:
            file.write('serve = ["node", "compiler.js", "serve"]\n')


def _copy(name: str, folder: Path) -> None:
    shutil.copytree(SAMPLES / name, folder, ignore=shutil.ignore_patterns("compiler", ".gitignore"))


def _edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def hostile_toml(folder: Path, rng: random.Random) -> None:
    """A submission.toml that no parser likes."""
    honest(folder, rng)
    texts = ("x = " + "[" * 20_000, 'name = "', "name = 1\n", "\0", "[a]\n" * 60_000)
    (folder / "submission.toml").write_text(rng.choice(texts))


def no_toml(folder: Path, rng: random.Random) -> None:
    """A submission that forgot to say what it is."""
    honest(folder, rng)
    (folder / "submission.toml").unlink()


def wrong_week(folder: Path, rng: random.Random) -> None:
    """A submission for another week."""
    honest(folder, rng)
    path = folder / "submission.toml"
    path.write_text(re.sub(r"weeks = \[.*\]", "weeks = [2]", path.read_text()))


def reaches_out(folder: Path, rng: random.Random) -> None:
    """A submission that wants to read those of others."""
    honest(folder, rng)
    with (folder / "submission.toml").open("a") as file:
        file.write('requires = [".."]\n')


def broken_build(folder: Path, rng: random.Random) -> None:
    """A submission in C with an error in its source."""
    _copy("c-week1", folder)
    with (folder / "store.c").open("a") as file:
        file.write(f"int broken(void) {{ return {rng.randrange(100)} }}\n")


def hanging_build(folder: Path, rng: random.Random) -> None:
    """A submission whose build starts others and waits for ever."""
    _build(folder, "(sleep 1000 & sleep 1000) & sleep 1000", rng)


def forking_build(folder: Path, rng: random.Random) -> None:
    """A submission whose build multiplies."""
    _build(folder, "for i in 1 2 3; do (sleep 1000 & sleep 1000 &) & done; wait; sleep 1000", rng)


def _build(folder: Path, command: str, rng: random.Random) -> None:
    honest(folder, rng)
    (folder / "submission.toml").write_text(
        'name = "Waits"\nlanguage = "shell"\nweeks = [1]\n'
        f'build = ["sh", "-c", "{command}"]\ncompiler = ["cat"]\n[timeouts]\nbuild = 2\n'
    )


def echo(folder: Path, rng: random.Random) -> None:
    """A submission that hands its input back."""
    folder.mkdir()
    (folder / "submission.toml").write_text(
        f'name = "Echo {rng.randrange(1000)}"\nlanguage = "shell"\nweeks = [1]\n'
        'compiler = ["sh", "-c", "cat"]\n'
    )


@dataclass(frozen=True)
class Kind:
    """A way to be, and how often."""

    make: Callable[[Path, random.Random], None]
    share: int


KINDS = (
    Kind(honest, 60),
    Kind(wrong, 15),
    Kind(echo, 5),
    Kind(hostile_toml, 4),
    Kind(no_toml, 3),
    Kind(wrong_week, 2),
    Kind(reaches_out, 2),
    Kind(broken_build, 4),
    Kind(hanging_build, 2),
    Kind(forking_build, 1),
)


def hostile_archive(path: Path, rng: random.Random) -> Path:
    """An archive that must not be unpacked; its path."""
    kind = rng.randrange(5)
    if kind == 0:
        file = path.with_name(f"{path.name}.zip")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("zeros", bytes(64 << 20))
        return file
    file = path.with_name(f"{path.name}.tar.gz")
    with tarfile.open(file, "w:gz") as tar:
        member = tarfile.TarInfo(("", "../out", "/absolute", "a\nb", "link")[kind])
        if member.name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(member, io.BytesIO())
    return file


def packed(folder: Path, rng: random.Random) -> None:
    """A folder becomes an archive of it, as often as students hand in archives."""
    kind = rng.choice((None, None, "zip", "gztar"))
    if kind is not None:
        shutil.make_archive(str(folder), kind, folder.parent, folder.name)
        shutil.rmtree(folder)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--count", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def main(folder: Path, count: int, seed: int) -> None:
    """Write a synthetic class of week-1 submissions to FOLDER, which must not exist yet."""
    if folder.exists():
        raise click.ClickException(f"expected a folder that is not there yet, got {folder}")
    make(folder, count, seed)
    click.echo(f"{count} submissions in {folder}")


def make(folder: Path, count: int, seed: int = 0) -> None:
    """Write a class; the same for the same seed."""
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(count):
        place = folder / f"student{number:04}"
        if rng.random() < 0.02:
            hostile_archive(place, rng)
            continue
        (kind,) = rng.choices(KINDS, [kind.share for kind in KINDS])
        kind.make(place, rng)
        packed(place, rng)


if __name__ == "__main__":
    main()
