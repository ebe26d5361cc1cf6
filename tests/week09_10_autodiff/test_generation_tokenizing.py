import json

import pytest

from week09_10_autodiff.hub import HubError
from week09_10_autodiff.tokenizing import TextStream, Tokenizer

tokenizers = pytest.importorskip("tokenizers", reason="the tokenizers library reads tokenizer.json")

TEXT = "Grüße aus 東京, 👩‍🚀 and naïve café! " * 3


def byte_level(vocabulary=300, texts=(TEXT,)):
    """Byte-level BPE: a token may be a part of a character."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|end|>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made


def metaspace():
    """SentencePiece's way, as Llama's: words begin with a mark, which is no blank in front."""
    words = ["▁the", "▁cat", "▁sat", "s", "<unk>"]
    model = tokenizers.models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="<unk>")
    made = tokenizers.Tokenizer(model)
    made.decoder = tokenizers.decoders.Metaspace()
    return made


def streamed(tokenizer, ids):
    stream = TextStream(tokenizer)
    return [stream.put(token) for token in ids] + [stream.end()]


def test_a_text_survives():
    tokenizer = Tokenizer(byte_level())
    ids = tokenizer.encode(TEXT).ids
    assert tokenizer.decode(ids) == TEXT


def test_streamed_pieces_are_whole_characters_and_make_the_text():
    tokenizer = Tokenizer(byte_level(vocabulary=257, texts=()))
    pieces = streamed(tokenizer, tokenizer.encode(TEXT).ids)
    assert "".join(pieces) == TEXT
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert pieces.count("") > 5  # within characters
    assert pieces[0] != ""


def test_a_part_of_a_character_at_the_end_is_shown_as_such():
    tokenizer = Tokenizer(byte_level(vocabulary=257, texts=()))
    ids = tokenizer.encode("ab東").ids[:-1]
    pieces = streamed(tokenizer, ids)
    assert pieces[:2] == ["a", "b"]
    assert "".join(pieces) == tokenizer.decode(ids) == "ab\N{REPLACEMENT CHARACTER}"


def test_blanks_between_words_are_kept():
    tokenizer = Tokenizer(metaspace())
    assert streamed(tokenizer, [0, 1, 3, 2]) == ["the", " cat", "s", " sat", ""]


def test_special_tokens_have_no_text():
    tokenizer = Tokenizer(byte_level())
    ids = [*tokenizer.encode("ab").ids, 0, *tokenizer.encode("c").ids]
    assert tokenizer.decode(ids) == "abc"
    assert "".join(streamed(tokenizer, ids)) == "abc"


def test_padding_and_truncation_of_the_file_do_not_count():
    inner = byte_level()
    inner.enable_padding(length=50)
    inner.enable_truncation(4)
    assert Tokenizer(inner).decode(Tokenizer(inner).encode(TEXT).ids) == TEXT


def test_truncated_texts_have_at_most_so_many_tokens():
    tokenizer = Tokenizer(byte_level()).truncate(5)
    assert [len(text.ids) for text in tokenizer.encode_all([TEXT, "a"])] == [5, 1]


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(HubError, match=f"expected tokenizer.json in {tmp_path}, found none"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "{}", json.dumps({"model": {"type": "None"}})])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(HubError, match=r"tokenizer.json: expected a tokenizer, but "):
        Tokenizer.from_folder(tmp_path)


def test_a_folder_with_one_is_read(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    assert (
        Tokenizer.from_folder(tmp_path).decode(Tokenizer.from_folder(tmp_path).encode("a b").ids)
        == "a b"
    )
