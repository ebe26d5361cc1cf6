"""submission.toml: what is read, and one clear sentence for what is wrong."""

import os
import random

import pytest

from grader import submission
from grader.submission import SubmissionError, load
from grader.verdict import clean
from tests.grader.hostile_answers import cut, drop, flip, number, put, repeat, word

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


DEEP = "[" * 8000
HOSTILE = {
    "deep": (f"x = {DEEP}", "is not TOML"),
    "deep tables": ("x = " + "{a = " * 1500, "is not TOML"),
    "deep keys": (f"{'a.' * 4000}b = 1", "is not TOML|the keys"),
    "decimal": (f"weeks = [{'9' * 7000}]", "is not TOML"),
    "hexadecimal": (
        GOOD.replace("[2, 1]", f"[0x{'f' * 7000}]"),
        "got a number of thousands of digits",
    ),
    "time": (f"{GOOD}[timeouts]\nverb = 0x{'f' * 7000}", "got a number of thousands of digits"),
    "not a time": (f"{GOOD}[timeouts]\nverb = nan", "got nan"),
    "endless": (f"{GOOD}[timeouts]\nverb = inf", "got inf"),
    "date": (GOOD.replace("[2, 1]", "[1979-05-27]"), "expected weeks"),
    "long": (GOOD + "#" * 100_000, "8 KiB at most"),
    "long name": (GOOD.replace("Ada", "A" * 5000), "expected name to be a short line"),
    "lines": (GOOD.replace("Ada", "A\\nB"), "expected name to be a short line"),
    "escapes": (GOOD.replace("Ada", "\\u001b[2J"), "expected name to be a short line"),
    "direction": (GOOD.replace("Ada", "\\u202eadA"), "expected name to be a short line"),
    "odd key": (GOOD + '"\\u001b[31m" = 1', "got \N{REPLACEMENT CHARACTER}.31m"),
    "long path": (f'{GOOD}requires = ["{"a" * 5000}"]', "which is missing"),
    "odd path": (f'{GOOD}requires = ["\\u001b"]', "which is missing"),
    "everything": (f'{GOOD}requires = ["/"]', "beside its own"),
    "above": (f'{GOOD}requires = [".."]', "beside its own"),
    "NUL": ("name = 'a\0b'", "is not TOML"),
    "twice": (GOOD + 'name = "Eve"', "is not TOML"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile(folder, kind):
    text, says = HOSTILE[kind]
    with pytest.raises(SubmissionError, match=says) as caught:
        load(folder(text))
    assert clean(str(caught.value)) == str(caught.value)
    assert len(str(caught.value)) < 1000
    assert load(folder(GOOD)).name == "Ada"


def refusal(folder) -> str:
    try:
        load(folder)
    except SubmissionError as error:
        return str(error)
    return ""


def test_damaged(tmp_path):
    """Whatever the bytes are, it is read, or one sentence says why not."""
    said = set()
    for seed in range(300):
        rng = random.Random(seed)
        data = GOOD.encode() * rng.choice((1, 1, 2)) + b'serve = ["x"]\n[timeouts]\nverb = 3\n'
        for _ in range(rng.randint(1, 3)):
            data = rng.choice((cut, drop, flip, number, put, repeat, word))(rng, data)
        (tmp_path / "submission.toml").write_bytes(data)
        said.add(refusal(tmp_path))
    assert "" in said
    assert len(said) > 30
    assert said == set(map(clean, said))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "other's"])
def test_no_ordinary_file(tmp_path, kind):
    path = tmp_path / "submission.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        targets = {"device": "/dev/zero", "loop": path, "other's": "/proc/self/mem"}
        path.symlink_to(targets[kind])
    with pytest.raises(SubmissionError, match=r"expected a file|cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    "words", [["x" * 7000], ["/"], ["/etc/passwd"], ["."], [""], ["a/" * 3000]]
)
def test_commands_that_are_none(folder, words):
    text = GOOD.replace('["./compiler"]', str(words).replace("'", '"'))
    with pytest.raises(SubmissionError, match="expected a program"):
        load(folder(text)).prepare()


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
