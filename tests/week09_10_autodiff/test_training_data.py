"""Corpora, tokens, batches."""

import sys

import numpy as np
import pytest

from week09_10_autodiff.training import tokens
from week09_10_autodiff.training.batches import Batches
from week09_10_autodiff.training.config import DataConfig
from week09_10_autodiff.training.corpus import Corpus, read_corpus, split
from week09_10_autodiff.training.optional import MissingLibraryError, library
from week09_10_autodiff.training.settings import ConfigError
from week09_10_autodiff.training.tokens import (
    END,
    TokenData,
    tokenized,
    tokenizer_of,
    trained_tokenizer,
)

TEXTS = [f"def f{i}(x):\n    return x * {i} + {i * i}\n" for i in range(40)]
CORPUS = split(TEXTS, 0.2)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_documents_stay_where_they_are_when_others_are_added():
    assert set(CORPUS.training) | set(CORPUS.validation) == set(TEXTS)
    assert not set(CORPUS.training) & set(CORPUS.validation)
    assert 1 <= len(CORPUS.validation) <= 16
    more = split([*TEXTS, "another", "and one"], 0.2)
    assert set(CORPUS.training) <= set(more.training)
    assert set(CORPUS.validation) <= set(more.validation)


def test_two_documents_are_one_of_each_sort():
    small = split(["first", "second"], 0.01)
    assert (len(small.training), len(small.validation)) == (1, 1)


def test_of_a_single_text_the_end_is_held_back(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text("0123456789" * 10)
    made = read_corpus(DataConfig(corpus=str(file), validation=0.1))
    assert made == Corpus(("0123456789" * 9,), ("0123456789",))


def test_a_folder_without_what_is_no_text(tmp_path):
    for name, content in {
        "b.txt": b"second",
        "a/x.py": b"first",
        "c.bin": b"\xff\xfe\x00",
        "zero.txt": b"a\x00b",
        "empty.txt": b"",
        ".hidden": b"no",
        "__pycache__/z.txt": b"no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    made = read_corpus(DataConfig(corpus=str(tmp_path)))
    assert {*made.training, *made.validation} == {"first", "second"}


def test_the_standard_library_without_its_tests():
    made = read_corpus(DataConfig())
    again = read_corpus(DataConfig())
    assert made.key == again.key
    assert sum(map(len, made.training)) > 5_000_000
    assert 0 < sum(map(len, made.validation)) < 0.2 * sum(map(len, made.training))
    assert any(
        '"""Abstract Base Classes (ABCs)' in text for text in made.training + made.validation
    )


def test_corpora_that_are_not_there(tmp_path):
    with pytest.raises(ConfigError, match='expected "stdlib", a file or a folder'):
        read_corpus(DataConfig(corpus=str(tmp_path / "none")))
    with pytest.raises(ConfigError, match="expected text in UTF-8, got none in"):
        read_corpus(DataConfig(corpus=str(tmp_path)))


def test_tokens_are_the_text_with_an_end_after_each_document():
    data = tokenized(CORPUS, trained_tokenizer(CORPUS, 280))
    tool = tokenizer_of(data.tokenizer)
    assert tool.get_vocab_size() == 280
    assert data.training.dtype == np.uint16
    text = tool.decode(data.training.tolist(), skip_special_tokens=False)
    assert text == "".join(document + END for document in CORPUS.training)
    assert data.validation.tolist().count(tool.token_to_id(END)) == len(CORPUS.validation)


def test_no_text_is_unknown():
    tool = tokenizer_of(trained_tokenizer(CORPUS, 260))
    odd = "naïve 😀 \x00\t العربية"
    assert tool.decode(tool.encode(odd).ids) == odd


def test_what_was_made_is_taken_from_the_cache(monkeypatch):
    text = trained_tokenizer(CORPUS, 270)
    first = tokenized(CORPUS, text)
    monkeypatch.setattr(tokens, "_train", lambda *given: pytest.fail("trained again"))
    monkeypatch.setattr(tokens, "_encoded", lambda *given: pytest.fail("encoded again"))
    assert trained_tokenizer(CORPUS, 270) == text
    again = tokenized(CORPUS, text)
    assert isinstance(again.training, np.memmap)
    np.testing.assert_array_equal(first.training, again.training)


def test_another_corpus_has_other_entries():
    trained_tokenizer(CORPUS, 270)
    other = Corpus((*CORPUS.training, "x = 1\n"), CORPUS.validation)
    assert other.key != CORPUS.key
    assert Corpus(("ab",), ("c",)).key != Corpus(("a",), ("bc",)).key
    assert Corpus(("a", "b"), ()).key != Corpus(("a",), ("b",)).key


def test_without_a_cache_nothing_is_stored(monkeypatch):
    monkeypatch.setenv("UOPS_CACHE", "/dev/null/no")
    data = tokenized(CORPUS, trained_tokenizer(CORPUS, 260))
    assert not isinstance(data.training, np.memmap)
    assert len(data.training) > 1000


def test_a_large_vocabulary_takes_four_bytes(monkeypatch):
    class Tool:
        def get_vocab_size(self):
            return 70_000

        def token_to_id(self, token):
            return 69_999

        def encode_batch_fast(self, texts):
            return [type("E", (), {"ids": [len(t)]}) for t in texts]

    monkeypatch.setattr(tokens, "tokenizer_of", lambda text: Tool())
    data = tokenized(Corpus(("abc",), ("d",)), "{}")
    assert data.training.dtype == np.uint32
    assert data.training.tolist() == [3, 69_999]


def test_a_vocabulary_larger_than_the_text_gives():
    with pytest.raises(ConfigError, match="vocabulary: expected 4000 tokens, got"):
        trained_tokenizer(CORPUS, 4000)


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingLibraryError) as error:
        library("tokenizers", "text and tokens", "models")
    assert "expected the package tokenizers for text and tokens" in str(error.value)
    assert "pip install -e '.[models]'" in str(error.value)


def test_batches_depend_on_seed_and_number_alone():
    made = Batches(np.arange(1000, dtype=np.uint16), 4, 8)
    x, y = made.drawn(3, 17)
    np.testing.assert_array_equal(made.drawn(3, 17)[0], x)
    assert (x != made.drawn(3, 18)[0]).any()
    assert (x != made.drawn(4, 17)[0]).any()
    assert x.shape == y.shape == (4, 8)
    assert x.dtype == y.dtype == np.int64
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(np.diff(x, axis=1), 1)


def test_batches_reach_the_first_and_the_last_window():
    made = Batches(np.arange(12, dtype=np.uint16), 64, 8)
    starts = {int(s) for number in range(4) for s in made.drawn(0, number)[0][:, 0]}
    assert starts == {0, 1, 2, 3}


def test_validation_is_spread_over_all_tokens():
    made = Batches(np.arange(101, dtype=np.uint16), 2, 4, "validation")
    found = list(made.spread(3))
    assert [x[:, 0].tolist() for x, _ in found] == [[0, 19], [38, 58], [77, 96]]
    assert found[-1][1][-1].tolist() == [97, 98, 99, 100]


def test_fewer_tokens_than_a_window():
    with pytest.raises(ConfigError, match=r"more than 8 tokens for validation .*, got 8"):
        Batches(np.zeros(8, np.uint16), 1, 8, "validation")


def test_token_data_is_written_whole(tmp_path):
    TokenData("{}", np.arange(3, dtype=np.uint16), np.arange(2, dtype=np.uint16)).save(tmp_path)
    assert sorted(p.name for p in tmp_path.glob("*.npy")) == ["training.npy", "validation.npy"]
