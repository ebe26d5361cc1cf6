"""Every example of the syllabus is true: programs read, results are what the reference gives."""

import os
import re

import pytest

from grader.cli import main as grader
from grader.weeks import WEEKS as PACKAGES
from projects.uopc.cli import main as uopc
from tests.syllabus.blocks import (
    PAGES,
    ROOT,
    Block,
    blocks,
    derived,
    missing,
    parsed,
    renewed,
    week_of,
)
from week01_uops.interchange import ReadErrors, write

UPDATE = "UPDATE_EXAMPLES"


def every_block() -> list[Block]:
    if os.environ.get(UPDATE):
        for page in PAGES:
            fresh = page.with_suffix(f".{os.getpid()}")  # other processes may read or renew it, too
            fresh.write_text(renewed(page), encoding="utf-8")
            fresh.replace(page)
    return [block for page in PAGES for block in blocks(page)]


ALL = every_block()


def chosen(test):
    found = [block for block in ALL if test(block)]
    return pytest.mark.parametrize("block", found, ids=[block.name for block in found])


@chosen(lambda block: block.is_program)
def test_programs_read(block):
    program = parsed(block.text, block.week)
    assert write(parsed(write(program), block.week)) == write(program)


@chosen(lambda block: block.words[:2] == ("uops", "refused"))
def test_wrong_programs_are_refused(block):
    code, line = block.words[2], int(block.words[3])
    with pytest.raises(ReadErrors) as errors:
        parsed(block.text, block.week)
    found = [(item.code, item.line) for item in errors.value.diagnostics]
    assert any(got.startswith(code.rstrip("x")) and at == line for got, at in found), found


@chosen(lambda block: block.words == ("uops", "simplified"))
def test_simplified(block):
    assert write(parsed(block.text, block.week)) == "\n".join([*derived(block), ""])


@chosen(lambda block: block.is_derived and block.words != ("uops", "simplified"))
def test_derived(block):
    lacking = missing(block, derived(block))
    assert not lacking, "expected, in this order:\n" + "\n".join(lacking)


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "spec.md"], ids=lambda p: p.name)
def test_blocks_are_of_a_known_kind(page):
    """A block that nothing checks is one by intention: sh, toml, python, or text alone."""
    for block in blocks(page):
        free = block.words[0] in ("sh", "toml", "python", "json") or block.words == ("text",)
        refused = block.words[:2] == ("uops", "refused")
        assert block.is_program or block.is_derived or free or refused, block.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:week\d\d\w*|grader|projects|tests|syllabus)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
    assert_links(page, text)


def assert_links(page, text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^ {4}.*$|`[^`\n]*`", "", prose, flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("week", PACKAGES, ids=lambda week: week.title)
def test_a_page_names_every_spec_test(week):
    (page,) = [p for p in PAGES if p.name.startswith("week") and week_of(p) == week.first]
    text = page.read_text(encoding="utf-8")
    for file in week.folder.glob("test_spec_*.py"):
        assert f"`{file.name}`" in text, f"{page.name} does not say what {file.name} asks"


READMES = [week.folder / "README.md" for week in PACKAGES]


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_readmes_name_what_is_there(page):
    text = page.read_text(encoding="utf-8")
    names = {name for row in re.findall(r"^\|(.*?)\|", text, re.MULTILINE) for name in _names(row)}
    assert all((page.parent / name).exists() for name in names), names
    assert len(text.splitlines()) <= 40
    assert_links(page, text)


def _names(row):
    return re.findall(r"`([\w/.]+)`", row)


COMMANDS = [
    line.split("#")[0].split()
    for page in [*PAGES, *READMES]
    for line in page.read_text(encoding="utf-8").splitlines()
    if re.match(r"(uopc|grader) \S", line)
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_exist(words):
    command = {"uopc": uopc, "grader": grader}[words[0]]
    given = words[1:]
    while given and given[0] in getattr(command, "commands", ()):
        command = command.commands[given.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {"-vv"} if "-v" in known else set()
    assert {word for word in given if word.startswith("-")} <= known
