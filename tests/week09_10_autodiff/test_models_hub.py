import json

import pytest

from week09_10_autodiff.hub import Config, HubError, end_tokens, optional_config, read_config


@pytest.fixture
def folder(tmp_path):
    def write(name="config.json", **values):
        (tmp_path / name).write_text(json.dumps(values))
        return tmp_path

    return write


def test_values_of_their_types(folder):
    config = read_config(folder(a=3, b=0.5, c=True, d="x", e=None, f={"g": 1}))
    assert config.integer("a") == 3
    assert config.real("b") == 0.5
    assert config.real("a") == 3.0
    assert config.flag("c", False) is True
    assert config.choice("d", ("w", "x")) == "x"
    assert config.section("f").integer("g") == 1
    assert config.section("e") is None
    assert config.integer("e", 7) == config.integer("missing", 7) == 7


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda c: c.integer("missing"), "expected a value for 'missing', found none"),
        (lambda c: c.integer("half"), "expected a whole number ≥ 1 for 'half', got 0.5"),
        (lambda c: c.integer("zero"), "expected a whole number ≥ 1 for 'zero', got 0"),
        (lambda c: c.integer("yes"), "expected a whole number ≥ 1 for 'yes', got true"),
        (lambda c: c.real("word"), "expected a number for 'word', got \"w\""),
        (lambda c: c.flag("zero", True), "expected true or false for 'zero', got 0"),
        (lambda c: c.choice("word", ("x", "y")), "expected one of x, y for 'word', got \"w\""),
        (lambda c: c.section("half"), "expected an object for 'half', got 0.5"),
        (lambda c: c.section("inner").integer("a"), "inner: expected a value for 'a', found none"),
    ],
)
def test_wrong_values_are_named(folder, read, message):
    path = folder(half=0.5, zero=0, yes=True, word="w", inner={})
    with pytest.raises(HubError) as caught:
        read(read_config(path))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path / "config.json"))


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(HubError, match=f"expected config.json in {tmp_path}, found none"):
        read_config(tmp_path)
    with pytest.raises(HubError, match=r"expected a folder with a model, found none at .*nowhere"):
        read_config(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text('{"a": ')
    with pytest.raises(HubError, match=r"config.json: expected JSON, but "):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(HubError, match=r"config.json: expected a JSON object"):
        read_config(tmp_path)
    assert dict(optional_config(tmp_path, "generation_config.json")) == {}


def test_ends_are_those_of_the_generation_config_first(folder):
    assert end_tokens(folder()) == frozenset()
    assert end_tokens(folder(eos_token_id=2)) == {2}
    assert end_tokens(folder("generation_config.json", eos_token_id=[5, 6])) == {5, 6}
    with pytest.raises(HubError, match="a token's number, or a list of such for 'eos_token_id'"):
        end_tokens(folder("generation_config.json", eos_token_id="</s>"))


def test_a_config_need_not_come_from_a_file():
    with pytest.raises(HubError, match="the config: expected a value for 'a', found none"):
        Config({}).integer("a")
