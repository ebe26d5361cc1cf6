import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from week01_uops.dtypes import float32
from week01_uops.ops import param, program
from week02_render.cache import ObjectCache
from week02_render.runtime import load
from week02_render.toolchain import BuildError, find_toolchain

COPY = program(param(0, float32, (4,)))
BROKEN = """\
int fine;
void program(void *const *inputs, void *const *outputs) {
    int *p = inputs[0];
    p[0] = missing + 1;
    return 3 +;
}
"""


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(
        BuildError, match="neither gcc nor clang is on PATH: install the Debian package gcc"
    ):
        load("", COPY)


def test_cc_is_honoured(monkeypatch, tmp_path):
    chosen = tmp_path / "my-cc"
    chosen.write_text(f'#!/bin/sh\nexec {shutil.which("gcc") or shutil.which("clang")} "$@"\n')
    chosen.chmod(chosen.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("CC", f"{chosen} -DEXTRA")
    chain = find_toolchain()
    assert chain.command == (str(chosen), "-DEXTRA")
    source = "#ifndef EXTRA\n#error no\n#endif\nvoid program(void *const *i, void *const *o) {}\n"
    load(source, COPY)


def test_cc_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="CC=no-such-compiler is not on PATH"):
        find_toolchain()


def test_cc_that_is_no_compiler(monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(BuildError, match="to be a C compiler"):
        find_toolchain()


def test_clang_where_there_is_no_gcc(monkeypatch, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("clang")
    (tmp_path / "clang").symlink_to(compiler)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert find_toolchain().command == (str(tmp_path / "clang"),)


def test_a_rejected_source_is_shown_and_kept(tmp_path):
    with pytest.raises(BuildError) as caught:
        load(BROKEN, COPY, cache=ObjectCache(tmp_path))
    text = str(caught.value)
    assert "line 4: " in text
    assert "missing" in text
    assert ">     4 |     p[0] = missing + 1;" in text
    assert "      3 |     int *p = inputs[0];" in text
    (kept,) = (tmp_path / "failed").iterdir()
    assert kept.read_text() == BROKEN
    assert f"rejected {kept}" in text
    assert os.devnull in text
    assert not list(Path(tmp_path).glob("objects/*/*"))


def test_a_link_error_is_shown(tmp_path):
    source = "void missing(void);\nvoid program(void *const *i, void *const *o) { missing(); }\n"
    chain = find_toolchain()
    flags = (*chain.flags, "-Wl,--no-undefined")
    with pytest.raises(BuildError, match="undefined reference"):
        load(source, COPY, cache=ObjectCache(tmp_path), toolchain=replace(chain, flags=flags))


def test_a_missing_function_is_named(tmp_path):
    source = "void missing(void);\nvoid program(void *const *i, void *const *o) { missing(); }\n"
    with pytest.raises(BuildError, match=r"cannot be loaded: .*undefined symbol: missing"):
        load(source, COPY, cache=ObjectCache(tmp_path))


def test_a_source_without_program(tmp_path):
    with pytest.raises(BuildError, match="expected the source to export `program`"):
        load("int x;\n", COPY, cache=ObjectCache(tmp_path))


def test_many_errors_are_counted(tmp_path):
    source = "".join(f"int f{k}(void) {{ return missing{k}; }}\n" for k in range(30))
    with pytest.raises(BuildError, match="and 25 more errors"):
        load(source, COPY, cache=ObjectCache(tmp_path))


def test_unusual_characters_in_errors(tmp_path):
    with pytest.raises(BuildError, match="line 1"):
        load('/* → */ int x = "é;\n', COPY, cache=ObjectCache(tmp_path))
