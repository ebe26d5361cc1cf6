"""The benchmark of language models, on models that are small."""

import json

import pytest
from click.testing import CliRunner

from grader.bench.greedy import main as greedy
from grader.bench.language import alternate, main, sentences, summary

SMALL = "--layers 1 --width 32 --inner 48 --heads 4 --groups 2 --vocabulary 64 --dtype float32"


def test_sides_take_turns():
    order = []

    def side(name):
        def run():
            order.append(name)
            return {"ours": 1.0, "torch": 2.0}[name]

        return run

    rounds = alternate({name: side(name) for name in ("ours", "torch")}, 3)
    assert order == ["ours", "torch", "torch", "ours", "ours", "torch"]
    assert summary(rounds) == {"ours": 1.0, "torch": 2.0, "ratio": 0.5}
    assert summary([{"ours": 3.0}]) == {"ours": 3.0}


def test_sentences_are_different():
    found = sentences(100)
    assert len(set(found)) == 100
    assert all(len(text.split()) > 2 for text in found)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "against PyTorch"])
def test_decoding(alone, tmp_path):
    if not alone:
        pytest.importorskip("torch", reason="PyTorch is the other side")
        pytest.importorskip("transformers", reason="transformers has the other side's model")
    file = tmp_path / "found.json"
    words = [*SMALL.split(), "--rounds", "1", "--tokens", "2", "--prompt", "5", "--json", str(file)]
    result = CliRunner().invoke(main, ["decode", *words, *(["--alone"] if alone else [])])
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())
    assert found["parameters"] == 2 * 64 * 32 + 3 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32
    assert found["bytes_a_step"] == 4 * (found["parameters"] - 64 * 32)
    assert found["fraction_of_bandwidth"] > 0
    assert ("ratio" in found["seconds_a_token"]) is not alone


def test_greedy_text(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is the other side")
    pytest.importorskip("transformers", reason="transformers has the other side's model")
    file = tmp_path / "found.json"
    small = "--layers 1 --width 128 --inner 96 --vocabulary 64 --tokens 6 --prompt 5"
    result = CliRunner().invoke(greedy, [*small.split(), "--json", str(file)])
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())
    assert len(found["tokens"]) == 6
    assert found["dtype"] == "bfloat16"
