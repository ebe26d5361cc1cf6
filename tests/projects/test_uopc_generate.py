"""`uopc generate` on folders that are whole, and on folders that are not."""

import json
import shutil

import pytest
from click.testing import CliRunner

from projects.uopc.cli import main
from tests.week09_10_autodiff.hugging import greedy, language_model, save, tokenizer

PROMPT = "the cat sat"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    reference = language_model("tinyllama")
    inner = tokenizer(["the cat sat on the mat ", "über naïve 東京 "])
    return reference, inner, save(tmp_path_factory.mktemp("model"), reference, inner)


@pytest.fixture
def folder(published, tmp_path):
    return shutil.copytree(published[2], tmp_path / "model")


def generate(folder, *options, text=None):
    return CliRunner().invoke(main, ["generate", str(folder), *options], input=text)


def refused(folder, *options):
    """The sentence that is told instead of a traceback."""
    result = generate(folder, "--prompt", PROMPT, *options)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_the_text_is_the_references(published):
    reference, inner, folder = published
    ids = inner.encode(PROMPT).ids
    expected = inner.decode(greedy(reference, ids, 24))
    result = generate(folder, "--prompt", PROMPT, "--max-tokens", "24")
    assert result.exit_code == 0, result.output
    assert result.stdout == expected + "\n"
    assert result.stderr.startswith("24 tokens, ")
    assert f"a prompt of {len(ids)}, " in result.stderr
    assert result.stderr.endswith("ended: as many tokens as asked for\n")
    same = generate(folder, "--max-tokens", "24", text=PROMPT)
    assert same.stdout == result.stdout


def test_json(published):
    *_, folder = published
    drawn = ("--temperature", "0.9", "--top-k", "50", "--top-p", "0.95", "--seed", "7")
    first, again = (
        generate(folder, "--prompt", PROMPT, "--max-tokens", "24", "--json", *drawn)
        for _ in range(2)
    )
    told = json.loads(first.stdout)
    assert (told["prompt"], told["tokens"], told["reason"]) == (PROMPT, 24, "limit")
    assert told["text"] == json.loads(again.stdout)["text"]
    assert told["tokens_per_second"] > 0
    assert told["prompt_tokens_per_second"] > 0
    assert first.stderr == ""


def test_a_missing_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    assert refused(folder) == f"uopc: expected tokenizer.json in {folder}, found none\n"


def test_a_missing_config(folder):
    (folder / "config.json").unlink()
    assert refused(folder) == f"uopc: expected config.json in {folder}, found none\n"


def test_no_folder(tmp_path):
    wanted = f"uopc: expected a folder with a model, found none at {tmp_path / 'nowhere'}\n"
    assert refused(tmp_path / "nowhere") == wanted


def test_missing_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "expected model.safetensors or model.safetensors.index.json" in refused(folder)


def test_a_missing_shard(published, folder):
    published[0].save_pretrained(folder, max_shard_size="50KB")
    (folder / "model.safetensors").unlink()
    next(folder.glob("model-00002*")).unlink()
    assert "names the shard model-00002-of-" in refused(folder)


def test_truncated_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert f"{path} is truncated: expected " in refused(folder)


def test_an_unknown_architecture(folder):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "mamba"}))
    said = "expected one of gpt2, llama, qwen2 for 'model_type', got \"mamba\""
    assert refused(folder) == f"uopc: {path}: {said}\n"


def test_a_prompt_longer_than_the_context(published):
    *_, folder = published
    said = refused(folder, "--prompt", PROMPT * 200)
    assert "expected a prompt of at most 256 tokens, the model's context, got " in said


def test_an_empty_prompt(published):
    *_, folder = published
    assert "expected a prompt of 1 token or more, got none" in refused(folder, "--prompt", "")


def test_options_are_checked():
    for options in (["--temperature", "-1"], ["--top-p", "0"], ["--max-tokens", "0"]):
        assert generate("folder", *options).exit_code == 2
