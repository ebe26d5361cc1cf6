"""`grader new`: each language's folder builds and answers as the protocol wants it."""

import shutil

import pytest
from click.testing import CliRunner

from grader.case import DIAGNOSTIC
from grader.new import ALSO, LANGUAGES, TEMPLATES, NewError, language_of, new, write
from grader.sandbox import Limits
from grader.subject import judged
from grader.submission import load
from grader.verdict import Verdict

PROGRAM = 'uops 1\nx = CONST : {"value": 1, "dtype": "int8"}\nreturn x\n'
QUICK = ("c", "js", "python")


def test_every_language_has_a_template():
    assert {path.name for path in TEMPLATES.iterdir()} == set(LANGUAGES)
    assert set(ALSO.values()) <= set(LANGUAGES)


@pytest.mark.parametrize(
    "language",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.nightly) for name in LANGUAGES if name not in QUICK),
    ],
)
def test_it_builds_and_answers(tmp_path, language):
    written = write(tmp_path / "mine", language, 'A "quoted" name')
    assert all(path.is_file() for path in written)
    submission = load(tmp_path / "mine")
    assert (submission.name, submission.weeks) == ('A "quoted" name', (1,))
    assert language_of(submission.language) is LANGUAGES[language]
    missing = [tool for tool in LANGUAGES[language].tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    submission.prepare()
    subject = judged(submission, 10, Limits(seconds=60.0))
    for verb in (["simplify"], ["compile", "--target", "c"]):
        answer = subject.ask(verb, PROGRAM)
        assert (answer.verdict, answer.stdout) == (Verdict.REFUSED, "")
        size = len(PROGRAM.encode())
        says = f"<stdin>:1:1: E000 {verb[0]} of these {size} bytes is not implemented\n"
        assert answer.stderr == says
        assert DIAGNOSTIC.search(answer.stderr)
    unknown = subject.ask(["unheard-of"], PROGRAM)
    assert unknown.verdict is Verdict.REFUSED
    assert unknown.stderr == 'expected one of the verbs simplify, compile, got "unheard-of"\n'


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "compiler.js").write_text("mine")
    with pytest.raises(NewError, match=r"compiler\.js is there already; nothing was written"):
        write(tmp_path, "js", "Ada")
    assert [path.name for path in tmp_path.iterdir()] == ["compiler.js"]
    assert (tmp_path / "compiler.js").read_text() == "mine"


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    write(tmp_path, "javascript", "Ada")
    assert (tmp_path / "README.md").read_text() == "mine"
    assert load(tmp_path).name == "Ada"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{}/x", "--lang", "cobol"], f"expected one of the languages {', '.join(LANGUAGES)}"),
        (["{}/x", "--lang", "c", "--name", "a\nb"], "expected a name of printable characters"),
        (["{}/file/x", "--lang", "c"], "cannot be written"),
    ],
)
def test_faults_are_sentences(tmp_path, arguments, says):
    (tmp_path / "file").write_text("")
    run = CliRunner().invoke(new, [word.format(tmp_path) for word in arguments])
    assert run.exit_code == 2
    assert says in run.output
    assert len(run.output.splitlines()) == 1


def test_the_command_says_what_comes_next(tmp_path):
    run = CliRunner().invoke(new, [str(tmp_path / "mine"), "--lang", "c"])
    assert run.exit_code == 0
    *files, last = run.output.splitlines()
    assert files == [
        str(tmp_path / "mine" / name) for name in ("Makefile", "compiler.c", "submission.toml")
    ]
    assert last == f"next: grader doctor {tmp_path / 'mine'}"
