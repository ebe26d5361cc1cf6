import tempfile

import pytest

from week02_render.cache import ObjectCache
from week02_render.library import Library
from week02_render.runtime import build
from week02_render.toolchain import find_toolchain

SOURCE = """\
static int count;
int next(void) { return ++count; }
"""


@pytest.fixture
def content():
    return build(SOURCE, ObjectCache(), find_toolchain())


def test_each_has_static_variables_of_its_own(content):
    libraries = [Library(content) for _ in range(2)]
    first, second = (library.symbol("next", "int (*)(void)") for library in libraries)
    assert [first(), first(), second(), first()] == [1, 2, 1, 3]


def test_a_symbol_that_is_not_there(content):
    assert Library(content).symbol("previous", "int (*)(void)") is None


def test_what_is_no_elf_file():
    with pytest.raises(OSError, match=r"invalid ELF header|file too short"):
        Library(b"no such thing" * 100)


def test_without_a_temporary_directory(content, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", "/does/not/exist")
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path))
    library = Library(content)
    assert library.symbol("next", "int (*)(void)")() == 1
    assert not list(tmp_path.iterdir())
