"""Runs of a tiny model: losses, logs, stops and what goes on after them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.week09_10_autodiff.tiny_run import Ear, begun, losses, tiny, with_optimizer
from week09_10_autodiff.models import load_language_model
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.training.log import read_log
from week09_10_autodiff.training.loop import DivergedError, Trainer
from week09_10_autodiff.training.settings import ConfigError
from week09_10_autodiff.training.workplace import Workplace


@pytest.fixture(autouse=True)
def _no_thread_pool(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_a_model_learns_and_is_written_down(tmp_path, kind):
    folder = tmp_path / "run"
    trainer, ear = begun(tiny(folder, kind, steps=40, evaluate_every=20, sample_tokens=4))
    assert trainer.train()
    assert [told.step for told in ear.steps] == list(range(1, 41))
    assert abs(ear.steps[0].loss - math.log(280)) < 0.2
    assert ear.steps[-1].loss < ear.steps[0].loss - 1
    assert [step for step, _ in ear.validations] == [20, 40]
    assert ear.validations[1][1] < ear.validations[0][1]
    assert ear.checkpoints == [40]
    assert ear.samples[0][1].startswith("def ")
    written = {path.name for path in folder.iterdir()}
    assert written >= {"config.toml", "log.jsonl", "tokenizer.json", "model", "checkpoints"}
    tokens, _ = next(trainer.validation.spread(1))
    again = load_language_model(folder / "model")
    wanted = trainer.learner.model(Tensor(tokens)).numpy()
    np.testing.assert_allclose(again(Tensor(tokens)).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_the_log_has_every_step_and_what_else_happened(tmp_path):
    trainer, _ = begun(tiny(tmp_path / "run", evaluate_every=3, sample_every=3, sample_tokens=4))
    trainer.train()
    records = list(read_log(trainer.place.log))
    kinds = [r["kind"] for r in records]
    assert kinds.count("step") == 6
    assert kinds.count("validation") == kinds.count("sample") == 2
    step = next(r for r in records if r["kind"] == "step")
    assert set(step) == {"kind", "step", "loss", "lr", "norm", "seconds"}
    assert step["lr"] == pytest.approx(1e-2 / 2)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_stopped_run_goes_on_to_the_same_losses(tmp_path, accumulation):
    whole, _ = begun(tiny(tmp_path / "whole", accumulation=accumulation))
    whole.train()
    first, ear = begun(tiny(tmp_path / "parts", accumulation=accumulation))
    assert not first.train(lambda: len(ear.steps) == 3)
    second = Trainer(Workplace.again(tmp_path / "parts"), Ear())
    assert second.step == 3
    assert second.train()
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_dropout_goes_on_where_it_was(tmp_path):
    def config(name):
        made = tiny(tmp_path / name, "gpt")
        return replace(made, model=replace(made.model, dropout=0.2))

    whole, _ = begun(config("whole"))
    whole.train()
    first, ear = begun(config("parts"))
    first.train(lambda: len(ear.steps) == 2)
    Trainer(Workplace.again(tmp_path / "parts"), Ear()).train()
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    plain, _ = begun(tiny(tmp_path / "plain", "gpt"))
    plain.train()
    assert losses(tmp_path / "plain") != losses(tmp_path / "whole")


def test_a_run_may_be_made_longer(tmp_path):
    trainer, _ = begun(tiny(tmp_path / "run", steps=2))
    trainer.train()
    longer = Trainer(Workplace.again(tmp_path / "run", steps=4), Ear())
    assert longer.train()
    assert sorted(losses(tmp_path / "run")) == [1, 2, 3, 4]
    assert Workplace.again(tmp_path / "run").config.run.steps == 4


def test_two_batches_in_a_step_are_one_of_twice_the_size(tmp_path):
    """The batches are other ones, so gradients are compared on the same."""
    trainer, _ = begun(tiny(tmp_path / "two", accumulation=2, batch=2))
    single, _ = begun(tiny(tmp_path / "one", batch=4))
    halves = [trainer.training.drawn(0, 0), trainer.training.drawn(0, 1)]
    x, y = (np.concatenate(parts) for parts in zip(*halves, strict=True))
    for _ in range(2):
        loss, norm = trainer.learner.step(halves, 1e-3)
        other_loss, other_norm = single.learner.step([(x, y)], 1e-3)
        assert loss == pytest.approx(other_loss, rel=1e-5)
        assert norm == pytest.approx(other_norm, rel=1e-4)


def test_bfloat16_keeps_its_weights_in_float32_as_well(tmp_path):
    config = tiny(tmp_path / "run", steps=30)
    trainer, ear = begun(replace(config, model=replace(config.model, dtype="bfloat16")))
    trainer.train()
    assert ear.steps[-1].loss < ear.steps[0].loss - 0.5
    told = json.loads((tmp_path / "run/model/config.json").read_text())
    assert told["torch_dtype"] == "bfloat16"


def test_minutes_become_steps(tmp_path):
    config = with_optimizer(tiny(tmp_path / "run", steps=0, minutes=0.005), warmup=11)
    trainer, ear = begun(config)
    assert trainer.train()
    assert ear.steps[5].steps is None
    assert ear.steps[-1].steps == ear.steps[-1].step == trainer.step > 11
    planned = [r["steps"] for r in read_log(trainer.place.log) if r["kind"] == "planned"]
    assert planned == [trainer.step]


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    config = with_optimizer(tiny(tmp_path / "run"), lr=1e30, warmup=0, clip=0.0)
    trainer, _ = begun(config)
    with pytest.raises(DivergedError) as error:
        trainer.train()
    assert "uopc train --resume" in str(error.value)
    assert "--check-nan" in str(error.value)
    assert list(read_log(trainer.place.log))[-1]["kind"] == "diverged"


def test_check_nan_names_the_operation(tmp_path):
    config = with_optimizer(tiny(tmp_path / "run"), lr=1e30, warmup=0, clip=0.0)
    trainer, _ = begun(config, check_nan=True)
    with pytest.raises(DivergedError) as error:
        trainer.train()
    assert "the first NaN came from `" in str(error.value)
    assert ".py:" in str(error.value)


def test_a_folder_with_a_run_is_not_begun_again(tmp_path):
    Workplace.begin(tiny(tmp_path / "run"))  # nothing has been done in it
    Workplace.begin(tiny(tmp_path / "run")).log.touch()
    with pytest.raises(ConfigError, match="expected a folder without a run"):
        Workplace.begin(tiny(tmp_path / "run"))


def test_a_folder_without_a_run_does_not_go_on(tmp_path):
    with pytest.raises(ConfigError, match=r"expected the folder of a run, with a config\.toml"):
        Workplace.again(tmp_path)


def test_a_corpus_that_changed_is_refused(tmp_path):
    config = tiny(tmp_path / "run")
    place = Workplace.begin(config)
    place.data()
    (tmp_path / "corpus.txt").write_text("something else entirely\n" * 100)
    with pytest.raises(ConfigError, match="has changed since"):
        Workplace.again(tmp_path / "run").data()


def test_a_run_that_saved_nothing_begins_anew(tmp_path):
    place = Workplace.begin(tiny(tmp_path / "run"))
    place.data()
    assert Trainer(Workplace.again(tmp_path / "run"), Ear()).step == 0
