"""The configuration of `uopc train`: defaults, bounds, sentences."""

from dataclasses import replace

import pytest

from week09_10_autodiff.training import config
from week09_10_autodiff.training.config import Config, ModelConfig, OptimizerConfig, parse, to_toml
from week09_10_autodiff.training.schedule import learning_rate
from week09_10_autodiff.training.settings import ConfigError


def test_the_default_is_read_back_as_printed():
    assert parse(to_toml(Config())) == Config()
    assert parse("") == Config()


def test_every_key_has_a_remark_and_is_read():
    text = to_toml(Config())
    for line in text.splitlines():
        if "=" in line:
            assert line.split("#")[1].strip(), line


def test_texts_with_any_character_are_read_back():
    odd = 'class "A\\B":\n\té\x7f#'
    made = replace(Config(), run=replace(Config().run, prompt=odd))
    assert parse(to_toml(made)).run.prompt == odd


def test_given_values_replace_defaults():
    made = parse('[model]\nkind = "gpt"\nlayers = 2\n[run]\nminutes = 5\n[optimizer]\nlr = 1\n')
    assert (made.model.kind, made.model.layers, made.run.minutes) == ("gpt", 2, 5.0)
    assert isinstance(made.optimizer.lr, float)
    assert made.model.width == Config().model.width


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[modl]", "expected one of model, data, optimizer, run, got modl; did you mean model?"),
        ("[model]\nlayer = 3", "dropout, dtype, got layer; did you mean layers?"),
        ("[model]\nzzz = 3", "[model]: expected one of kind, layers,"),
        ("model = 3", "[model]: expected a table, got 3"),
        ("[model]\nlayers = 0", "[model] layers: expected a whole number ≥ 1, got 0"),
        ("[model]\nlayers = 1.5", "expected a whole number ≥ 1, got 1.5"),
        ("[model]\nlayers = true", "expected a whole number ≥ 1, got true"),
        ('[model]\nkind = "bert"', 'kind: expected "gpt" or "llama", got "bert"'),
        ("[model]\nkind = 1", 'kind: expected "gpt" or "llama", got 1'),
        ("[model]\ndropout = 1", "dropout: expected a number ≥ 0 and < 1, got 1"),
        ("[model]\nheads = 7", "divide the width 256, got 7"),
        ("[model]\ngroups = 3", "groups: expected a divisor of the 8 heads, got 3"),
        ('[model]\nkind = "gpt"\ngroups = 4', "groups: expected 0 for a gpt"),
        ("[model]\ndropout = 0.1", "dropout: expected 0 for a llama, got 0.1"),
        ("[model]\nwidth = 24", "even number of features that divide the width 24, got 8"),
        (
            "[optimizer]\nbetas = [0.9]",
            "betas: expected a list of 2 numbers ≥ 0 and < 1, got [0.9]",
        ),
        ("[optimizer]\nbetas = [0.9, 1.0]", "expected a list of 2 numbers"),
        ('[optimizer]\nlr = "fast"', 'lr: expected a number > 0, got "fast"'),
        ("[run]\nminutes = nan", "minutes: expected a number > 0, got nan"),
        ("[run]\nminutes = inf", "minutes: expected a number > 0, got inf"),
        ("[run]\nprompt = 3", "prompt: expected a text, got 3"),
        (
            "[optimizer]\nwarmup = 5",
            "warmup: expected more than 10 steps where [run] gives minutes",
        ),
        ("[run]\nsteps = 3\n[run]", "run.toml: "),
        ("steps", "run.toml: Expected '='"),
    ],
)
def test_what_is_wrong_is_said(text, said):
    with pytest.raises(ConfigError) as error:
        parse(text, "run.toml")
    assert str(error.value).startswith("run.toml: ")
    assert said in str(error.value)


def test_a_short_warmup_is_allowed_where_steps_are_given():
    assert parse("[run]\nsteps = 7\n[optimizer]\nwarmup = 0").optimizer.warmup == 0


def test_paths_are_from_the_file_that_names_them(tmp_path):
    file = tmp_path / "sub" / "run.toml"
    file.parent.mkdir()
    file.write_text('[data]\ncorpus = "../books"\n')
    assert config.load(file).data.corpus == str(tmp_path / "books")
    file.write_text("")
    assert config.load(file).data.corpus == config.STDLIB


def test_a_file_that_is_no_text(tmp_path):
    file = tmp_path / "run.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="expected TOML in UTF-8"):
        config.load(file)


@pytest.mark.parametrize(
    ("model", "inner"),
    [
        (ModelConfig(kind="gpt", width=256), 1024),
        (ModelConfig(kind="llama", width=256), 704),
        (ModelConfig(kind="llama", width=48), 128),
        (ModelConfig(hidden=10), 10),
    ],
)
def test_features_of_the_feed_forward_layer(model, inner):
    assert model.inner == inner


def test_the_rate_rises_then_falls_along_a_cosine():
    chosen = OptimizerConfig(lr=2.0, warmup=4, final=0.25)
    assert [learning_rate(chosen, k, 12) for k in (1, 2, 4)] == [0.5, 1.0, 2.0]
    assert learning_rate(chosen, 8, 12) == pytest.approx(2.0 * (0.25 + 0.75 / 2))
    assert learning_rate(chosen, 12, 12) == pytest.approx(0.5)
    assert learning_rate(chosen, 50, 12) == pytest.approx(0.5)


def test_the_rate_needs_no_end_while_it_rises():
    chosen = OptimizerConfig(lr=2.0, warmup=4)
    assert learning_rate(chosen, 4, None) == 2.0
    with pytest.raises(ValueError, match="expected a number of steps after the warm-up"):
        learning_rate(chosen, 5, None)


def test_no_warmup_and_a_run_of_one_step():
    assert learning_rate(OptimizerConfig(lr=1.0, warmup=0, final=0.5), 1, 1) == pytest.approx(0.5)
