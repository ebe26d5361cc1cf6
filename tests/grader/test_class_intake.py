"""Taking in what strangers hand in: hostile archives and folders are refused with a sentence."""

import gzip
import io
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from grader.classes import intake, unpack
from grader.classes.intake import digest, take_in
from grader.classes.roster import Entry
from grader.classes.unpack import MIB, Refused


def refusal(tmp_path, source, name="ada"):
    with pytest.raises(Refused) as caught:
        take_in(Entry(name, str(source)), tmp_path / "taken" / "ada")
    assert not (tmp_path / "taken" / "ada").exists()
    assert list((tmp_path / "taken").iterdir()) == []
    return str(caught.value)


def tar(path, *members):
    """Members are a name, and the bytes of a file or the fields of a TarInfo."""
    with tarfile.open(path, "w:gz") as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
            else:
                for key, value in content.items():
                    setattr(member, key, value)
                file.addfile(member)
    return path


def zipped(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def link(target, kind=tarfile.SYMTYPE):
    return {"type": kind, "linkname": target}


TARS = {
    "dots": ([("../x", b"")], "holds a file outside of its folder, ../x"),
    "inner dots": ([("a/../b", b"")], "holds a file outside of its folder, a/../b"),
    "absolute": ([("/tmp/x", b"")], "holds a file with an absolute or foreign name, /tmp/x"),
    "drive": ([("C:x", b"")], "holds a file with an absolute or foreign name, C:x"),
    "newline": ([("a\nb", b"")], r"holds a file with an odd name, a\nb"),
    "not UTF-8": ([("a\udcff", b"")], r"holds a file with an odd name, a\udcff"),
    "escape": ([("a\x1b[2J", b"")], r"holds a file with an odd name, a\x1b[2J"),
    "long": ([("a" * 600, b"")], "holds a file with a long name"),
    "nested": ([("a/" * 40 + "x", b"")], "holds a file with a long name"),
    "link out": ([("l", link("../../x"))], "holds l, a link to a place outside"),
    "absolute link": ([("l", link("/etc/passwd"))], "holds l, a link to a place outside"),
    "hard link out": (
        [("l", link("../../x", tarfile.LNKTYPE))],
        "holds l, a link to a place outside",
    ),
    "hard link to nothing": ([("l", link("x", tarfile.LNKTYPE))], "holds l, a link to no file"),
    "link to nothing": ([("l", link("x"))], "holds l, a link to nothing"),
    "links in a ring": ([("l", link("m")), ("m", link("l"))], "a link to nothing"),
    "through a link": (
        [("d", {"type": tarfile.DIRTYPE}), ("l", link("d")), ("l/x", b"")],
        "holds l/x twice, or through a link",
    ),
    "over a link": ([("x", b"1"), ("l", link("x")), ("l", b"2")], "holds l twice"),
    "twice": ([("x", b"1"), ("x", b"2")], "holds x twice"),
    "device": ([("d", {"type": tarfile.CHRTYPE})], "holds d, which is no file, folder or link"),
    "pipe": ([("p", {"type": tarfile.FIFOTYPE})], "holds p, which is no file, folder or link"),
    "bomb": ([("zeros", bytes(8 * MIB))], "becomes more than 2 MiB, which its size does not allow"),
}


@pytest.mark.parametrize("kind", TARS)
def test_hostile_tar(tmp_path, kind):
    members, says = TARS[kind]
    assert says in refusal(tmp_path, tar(tmp_path / "ada.tar.gz", *members))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ada.tar.gz", "taken"]


def symlink_member():
    info = zipfile.ZipInfo("l")
    info.external_attr = 0o120777 << 16
    return info


ZIPS = {
    "dots": ([("../x", "")], "holds a file outside of its folder, ../x"),
    "absolute": ([("/x", "")], "holds a file with an absolute or foreign name, /x"),
    "backslash": ([("..\\x", "")], "holds a file with an absolute or foreign name"),
    "newline": ([("a\nb", "")], r"holds a file with an odd name, a\nb"),
    "link": ([(symlink_member(), "/etc")], "holds l, which is no file or folder"),
    "file as folder": ([("x", "1"), ("x/y", "2")], "holds x/y twice"),
    "bomb": ([("zeros", bytes(8 * MIB))], "becomes more than 1 MiB, which its size does not allow"),
}


@pytest.mark.parametrize("kind", ZIPS)
def test_hostile_zip(tmp_path, kind):
    members, says = ZIPS[kind]
    assert says in refusal(tmp_path, zipped(tmp_path / "ada.zip", *members))


def test_a_zip_that_lies_about_its_size(tmp_path):
    path = zipped(tmp_path / "ada.zip", ("zeros", bytes(8 * MIB)))
    data = path.read_bytes()
    size = (8 * MIB).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    assert "is no archive that can be read" in refusal(tmp_path, path)


def test_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack.Allowance, "files", 3)
    monkeypatch.setattr(unpack.Allowance.__init__, "__defaults__", (256 * MIB, 3, 100, 32, 512))
    members = [(f"f{k}", b"") for k in range(4)]
    assert refusal(tmp_path, tar(tmp_path / "a.tgz", *members)) == "holds more than 3 files"
    assert refusal(tmp_path, zipped(tmp_path / "a.zip", *members)) == "holds more than 3 files"


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_what_is_no_archive(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive at all" * 100)
    assert refusal(tmp_path, tmp_path / name).startswith("is no archive that can be read: ")


def test_half_an_archive(tmp_path):
    path = tar(tmp_path / "a.tar.gz", ("x", os.urandom(100_000)))
    path.write_bytes(path.read_bytes()[:50_000])
    assert refusal(tmp_path, path).startswith("is no archive that can be read: ")


def test_a_second_layer_stays_packed(tmp_path):
    inner = gzip.compress(bytes(8 * MIB))
    path = tar(tmp_path / "a.tar.gz", ("inner.gz", inner), ("x", b"1"))
    take_in(Entry("a", str(path)), tmp_path / "a")
    assert (tmp_path / "a" / "inner.gz").read_bytes() == inner


def submission(folder):
    (folder / "src").mkdir(parents=True)
    (folder / "submission.toml").write_text("x")
    (folder / "src" / "run").write_text("y")
    (folder / "src" / "run").chmod(0o755)
    (folder / "link").symlink_to("src/run")
    return folder


@pytest.mark.parametrize("kind", ["folder", "gztar", "tar", "inside", "git"])
def test_content_decides_not_its_wrapping(tmp_path, kind):
    folder = submission(tmp_path / "plain")
    (folder / ".git").mkdir()
    (folder / ".git" / "junk").write_text("other")
    expected = take_in(Entry("a", str(folder)), tmp_path / "expected")
    shutil.rmtree(folder / ".git")
    source = folder
    if kind in ("gztar", "tar"):
        source = shutil.make_archive(tmp_path / "made", kind, tmp_path, "plain")
    elif kind == "inside":
        source = tmp_path / "outer"
        shutil.copytree(folder, source / "a" / "b", symlinks=True)
    elif kind == "git":
        if shutil.which("git") is None:
            pytest.skip("needs git")
        git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *words], check=True)
        source = f"file://{folder}"
    got = take_in(Entry("a", str(source)), tmp_path / "got")
    assert got == expected == digest(tmp_path / "got")
    assert os.access(tmp_path / "got" / "src" / "run", os.X_OK)
    assert sorted(os.listdir(tmp_path / "got")) == ["link", "src", "submission.toml"]


def test_a_zip_is_taken_in(tmp_path):
    path = zipped(tmp_path / "a.zip", ("a/submission.toml", "x"), ("__MACOSX/._x", ""))
    take_in(Entry("a", str(path)), tmp_path / "a")
    assert os.listdir(tmp_path / "a") == ["submission.toml"]


@pytest.mark.parametrize("change", ["content", "name", "bit", "link"])
def test_every_change_changes_the_hash(tmp_path, change):
    folder = submission(tmp_path / "a")
    before = digest(folder)
    run = folder / "src" / "run"
    if change == "content":
        run.write_text("z")
    elif change == "name":
        run.rename(folder / "src" / "runs")
    elif change == "bit":
        run.chmod(0o644)
    else:
        (folder / "link").unlink()
        (folder / "link").symlink_to("submission.toml")
    assert digest(folder) != before


def test_hostile_folders(tmp_path):
    folder = submission(tmp_path / "a")
    (folder / "out").symlink_to("../secret")
    (tmp_path / "secret").write_text("s")
    assert refusal(tmp_path, folder) == "holds out, a link to a place outside"
    (folder / "out").unlink()
    os.mkfifo(folder / "pipe")
    assert refusal(tmp_path, folder) == "holds pipe, which is no file, folder or link"
    (folder / "pipe").unlink()
    (folder / "huge").touch()
    os.truncate(folder / "huge", 1 << 40)
    assert refusal(tmp_path, folder) == "holds more than 256 MiB"
    (folder / "huge").unlink()
    assert refusal(tmp_path, folder, "a\nb") == "has an odd name"


def test_sources_that_are_none(tmp_path, monkeypatch):
    (tmp_path / "a.rar").touch()
    assert "got a.rar" in refusal(tmp_path, tmp_path / "a.rar")
    assert "which does not exist" in refusal(tmp_path, tmp_path / "gone")
    if shutil.which("git") is None:
        pytest.skip("needs git")
    assert "cannot be cloned" in refusal(tmp_path, f"file://{tmp_path}/gone")
    assert "cannot be cloned" in refusal(tmp_path, "ext://sh -c touch% x")
    monkeypatch.setattr(intake, "CLONE_SECONDS", 0.0)
    assert "cannot be cloned" in refusal(tmp_path, f"file://{tmp_path}/gone")
