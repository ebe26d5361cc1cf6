"""submission.toml: what is read, and one clear sentence for what is wrong."""

import pytest

from grader import submission
from grader.submission import SubmissionError, load

GOOD = """
name = "Ada"
language = "C"
weeks = [2, 1]
compiler = ["./compiler"]
"""


@pytest.fixture
def folder(tmp_path):
    def make(text):
        (tmp_path / "submission.toml").write_text(text)
        return tmp_path

    return make


def test_good(folder):
    found = load(folder(GOOD))
    assert (found.name, found.language, found.weeks) == ("Ada", "C", (1, 2))
    assert (found.compiler, found.build, found.requires) == (("./compiler",), (), ())


def test_timeouts_and_build(folder):
    found = load(folder(GOOD + 'build = ["make"]\n[timeouts]\nverb = 3\nbuild = 7.5\n'))
    assert (found.seconds, found.build_seconds, found.build) == (3.0, 7.5, ("make",))


def test_serve(folder):
    assert load(folder(GOOD)).serve == ()
    assert load(folder(GOOD + 'serve = ["./compiler", "serve"]\n')).serve == ("./compiler", "serve")


def test_a_server_that_is_not_there(folder):
    text = GOOD.replace("./compiler", "sh") + 'serve = ["./gone"]\n'
    with pytest.raises(SubmissionError, match=r"expected a program \./gone, found none"):
        load(folder(text)).prepare()


def test_every_key_is_documented():
    for key in (*submission.KEYS, *submission.TIMEOUTS):
        assert f"\n{key} = " in submission.__doc__ or f"[{key}]" in submission.__doc__


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "Ada"', "", "expected name"),
        ('name = "Ada"', "name = 3", "got 3"),
        ("weeks = [2, 1]", "weeks = 1", "expected weeks"),
        ("weeks = [2, 1]", "weeks = [true]", "expected weeks"),
        ("weeks = [2, 1]", "weeks = [11]", "each 1 to 10"),
        ('["./compiler"]', "[]", "expected compiler"),
        ('["./compiler"]', '"./compiler"', "expected compiler"),
        ('["./compiler"]', '["./compiler\\u0000"]', "expected compiler"),
        ('language = "C"', 'language = "C"\nserve = "./compiler"', "expected serve"),
        ('language = "C"', 'languge = "C"', "got languge"),
        ('language = "C"', 'language = "C"\nrequires = ["../gone"]', "folder ../gone"),
        ('compiler = ["./compiler"]', 'compiler = ["x"]\n[timeouts]\nverb = 0', "timeouts.verb"),
        ('compiler = ["./compiler"]', 'compiler = ["x"]\n[timeouts]\nrun = 1', "got run"),
        ('name = "Ada"', "name = ", "not TOML"),
    ],
)
def test_faults(folder, old, new, says):
    with pytest.raises(SubmissionError, match=says):
        load(folder(GOOD.replace(old, new)))


def test_no_file(tmp_path):
    with pytest.raises(SubmissionError, match=r"submission\.toml"):
        load(tmp_path)


def test_no_folder(tmp_path):
    with pytest.raises(SubmissionError, match="no folder"):
        load(tmp_path / "gone")


def test_build_that_fails(folder):
    text = GOOD + 'build = ["sh", "-c", "echo broken part >&2; exit 4"]\n'
    with pytest.raises(SubmissionError, match=r"exit status 4\nbroken part"):
        load(folder(text)).prepare()


def test_build_that_hangs(folder):
    text = GOOD + 'build = ["sleep", "60"]\n[timeouts]\nbuild = 0.2\n'
    with pytest.raises(SubmissionError, match=r"more than 0\.2 s"):
        load(folder(text)).prepare()


def test_build_without_a_compiler(folder):
    with pytest.raises(SubmissionError, match="found none"):
        load(folder(GOOD)).prepare()


def test_build_makes_the_compiler(folder):
    text = GOOD + 'build = ["sh", "-c", "cp /bin/cat compiler"]\n'
    load(folder(text)).prepare()
