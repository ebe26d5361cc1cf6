"""Damaged and malformed archives: taken in whole, or refused with a sentence."""

import bz2
import io
import lzma
import random
import stat
import struct
import tarfile
import time
from pathlib import Path

import pytest

from grader.classes.intake import take_in
from grader.classes.roster import Entry
from grader.classes.unpack import MIB, Refused
from tests.grader.hostile_answers import cut, drop, flip, put, repeat
from tests.grader.test_class_intake import link, refusal, tar, zipped

FILES = {
    "submission.toml": b'name = "Ada"\n',
    "src/run.py": b"print(1)\n" * 300,
    "src/a/b/c.txt": random.Random(0).randbytes(700),
    "empty": b"",
}


def good(folder: Path, kind: str) -> Path:
    path = folder / f"good.{kind}"
    if kind == "zip":
        return zipped(path, *FILES.items())
    with tarfile.open(path, f"w:{kind.partition('.')[2]}") as file:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o6755
            file.addfile(member, io.BytesIO(content))
        for name in ("link", "src/link"):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, f"{'../' * name.count('/')}empty"
            file.addfile(member)
    return path


def blocks(rng: random.Random, data: bytes) -> bytes:
    """Blocks of 512 bytes in another order, or a field of a header with another number."""
    found = [data[k : k + 512] for k in range(0, len(data), 512)]
    if rng.random() < 0.5 and len(found) > 1:
        k, other = rng.randrange(len(found)), rng.randrange(len(found))
        found[k], found[other] = found[other], found[k]
        return b"".join(found)
    start = 512 * rng.randrange(len(found)) + rng.choice((100, 108, 124, 136, 148, 156, 157))
    new = rng.choice((b"77777777777", b"\x80" + b"\xff" * 7, b"-1", b"\0" * 8, b"5", b"/etc/x"))
    return data[:start] + new + data[start + len(new) :]


def numbers(rng: random.Random, data: bytes) -> bytes:
    """Four bytes at an offset of their own become another number."""
    start = rng.randrange(max(1, len(data) - 4))
    value = rng.choice((0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(data)))
    return data[:start] + struct.pack("<I", value) + data[start + 4 :]


CHANGES = (cut, drop, flip, put, repeat, blocks, numbers, numbers)


def taken(path: Path, folder: Path) -> str:
    """The hash of what is taken in, or why nothing is."""
    try:
        return take_in(Entry("ada", str(path)), folder)
    except Refused as refused:
        return f"refused: {refused}"


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz", "tar.bz2"])
@pytest.mark.parametrize("count", [25, pytest.param(2000, marks=pytest.mark.nightly)])
def test_damaged(kind, count, tmp_path):
    honest = good(tmp_path, kind)
    data, folder = honest.read_bytes(), tmp_path / "taken" / "ada"
    right = taken(honest, folder)
    assert not right.startswith("refused")
    for number in range(count):
        rng = random.Random(f"{kind} {number}")
        damaged = data
        for _ in range(rng.choice((1, 1, 2, 5))):
            damaged = rng.choice(CHANGES)(rng, damaged)
        path = tmp_path / f"bad.{kind}"
        path.write_bytes(damaged)
        start = time.process_time()
        said = taken(path, folder)
        assert time.process_time() - start < 5.0
        assert len(said) < 400
        assert said.isprintable()
        expect_ordinary(tmp_path, folder, kept=not said.startswith("refused"))
    assert taken(honest, folder) == right


def expect_ordinary(whole: Path, folder: Path, *, kept: bool) -> None:
    """Nothing lies beside the folder, and in it nothing but files, folders and links inside."""
    assert {path.name.partition(".")[0] for path in whole.iterdir()} <= {"good", "bad", "taken"}
    assert [path.name for path in (whole / "taken").iterdir()] == ["ada"] * kept
    for path in folder.rglob("*"):
        status = path.lstat()
        assert stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
        assert stat.S_ISLNK(status.st_mode) or not status.st_mode & 0o7022
        assert path.resolve().is_relative_to(folder.resolve())


def test_compressed_bombs(tmp_path):
    zeros = io.BytesIO()
    with tarfile.open(fileobj=zeros, mode="w") as file:
        member = tarfile.TarInfo("zeros")
        member.size = 8 * MIB
        file.addfile(member, io.BytesIO(bytes(member.size)))
    for suffix, pack in (("xz", lzma.compress), ("bz2", bz2.compress)):
        path = tmp_path / f"a.tar.{suffix}"
        path.write_bytes(pack(zeros.getvalue()))
        assert "which its size does not allow" in refusal(tmp_path, path)


def test_a_sparse_file(tmp_path):
    fields = {"type": tarfile.GNUTYPE_SPARSE, "size": 0}
    path = tar(tmp_path / "a.tar.gz", ("holes", fields))
    assert refusal(tmp_path, path)


def test_sizes_that_are_none(tmp_path):
    for size in ("-1", "99999999999999999999", "1e9", "nan", "", "9" * 5000):
        path = tmp_path / "a.tar.gz"
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as file:
            member = tarfile.TarInfo("x")
            member.pax_headers = {"size": size}
            file.addfile(member)
        said = taken(path, tmp_path / "taken" / "ada")
        assert said.isprintable()


def test_headers_without_end(tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as file:
        for number in range(50):
            member = tarfile.TarInfo(f"x{number}")
            member.pax_headers = {"comment": "c" * 1_000_000}
            file.addfile(member)
    start = time.process_time()
    assert "which its size does not allow" in refusal(tmp_path, path)
    assert time.process_time() - start < 5.0


def test_a_password(tmp_path):
    path = zipped(tmp_path / "a.zip", ("x", "1"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    assert refusal(tmp_path, path) == "is protected by a password"


def test_members_that_overlap(tmp_path):
    """A zip of which every entry is the same megabytes is as large as all of them."""
    path = zipped(tmp_path / "a.zip", ("x000", bytes(MIB // 2)))
    data = path.read_bytes()
    at = data.index(b"PK\1\2")
    entry, end = data[at : data.index(b"PK\5\6")], data[data.index(b"PK\5\6") :]
    many = b"".join(entry.replace(b"x000", b"x%03d" % k) for k in range(900))
    end = bytearray(end)
    struct.pack_into("<HHII", end, 8, 900, 900, len(many), at)
    path.write_bytes(data[:at] + many + end)
    assert refusal(tmp_path, path)


NAMES = {
    "one name in two spellings": [("\u00e9", b"1"), ("e\u0301", b"2")],
    "upper and lower case": [("A", b"1"), ("a", b"2")],
    "dots and blanks": [("a.", b"1"), (" ", b"2"), ("...", b"3"), ("-rf", b"4"), ("~", b"5")],
    "names of programs": [("sh", b"1"), ("submission.toml", b""), ("PATH=x", b"2"), ("*", b"3")],
    "devices elsewhere": [("CON", b"1"), ("aux.txt", b"2"), ("NUL", b"3")],
    "a chain of links": [
        ("x", b"1"),
        *((f"l{k}", link(f"l{k - 1}" if k else "x")) for k in range(9)),
    ],
}


@pytest.mark.parametrize("kind", NAMES)
def test_odd_names_that_are_harmless(tmp_path, kind):
    path = tar(tmp_path / "a.tar.gz", *NAMES[kind])
    said = taken(path, tmp_path / "taken" / "ada")
    assert not said.startswith("refused"), said
    assert len(list((tmp_path / "taken" / "ada").iterdir())) == len(NAMES[kind])


BAD_NAMES = (
    "..",
    "../..",
    "a/../../b",
    "/",
    "//x",
    "\\\\host\\x",
    "a\tb",
    "\u202ex",
    "\x7f",
    "\u2028",
)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_odd_names(tmp_path, name):
    assert refusal(tmp_path, tar(tmp_path / "a.tar.gz", (name, b"1"))).isprintable()
