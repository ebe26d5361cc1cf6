"""Generation against the transformers library, and what is promised of it."""

import shutil

import numpy as np
import pytest

from tests.week09_10_autodiff.hugging import (
    CONFIGS,
    VOCABULARY,
    greedy,
    language_model,
    logits,
    save,
    tokenizer,
)
from week09_10_autodiff.generation import (
    PromptError,
    Steps,
    TextGenerator,
    TokenGenerator,
    rounded,
)
from week09_10_autodiff.models import load_language_model
from week09_10_autodiff.sampling import Sampling

COUNT = 64
PROMPT = np.random.default_rng(5).integers(0, VOCABULARY, 7).tolist()


@pytest.fixture(scope="module", params=CONFIGS)
def published(request, tmp_path_factory):
    model = language_model(request.param)
    return model, save(tmp_path_factory.mktemp(request.param), model)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    reference = language_model("tinyllama")
    folder = save(tmp_path_factory.mktemp("llama"), reference)
    return reference, TokenGenerator(load_language_model(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    inner = tokenizer(["the cat sat on the mat, ", "über naïve 東京 "])
    return save(tmp_path_factory.mktemp("folder"), language_model("tinyllama"), inner)


def test_greedy_tokens(published):
    reference, folder = published
    made = TokenGenerator(load_language_model(folder))
    assert list(made.generate(PROMPT, COUNT)) == greedy(reference, PROMPT, COUNT)
    assert made.report.text == COUNT
    assert made.report.reason == "limit"


def test_scores_of_each_step_are_those_of_the_whole_text(llama):
    reference, made = llama
    steps = Steps(made.model, 128)
    text = np.random.default_rng(1).integers(0, VOCABULARY, 24).tolist()
    found = [steps.read(text[:20]), *(steps.next(text[k], k) for k in range(20, 24))]
    expected = logits(reference, [text])[0, 19:]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_step_is_captured_once_and_a_cache_serves_the_next_prompt(llama):
    _, made = llama
    first = list(made.generate(PROMPT, 20))
    steps = made._steps
    other = list(made.generate(PROMPT[::-1], 20))
    assert list(made.generate(PROMPT, 20)) == first != other
    assert made._steps is steps
    assert (steps._read.captures, steps._next.captures) == (1, 1)


def test_the_cache_is_changed_in_place(llama):
    _, made = llama
    steps = Steps(made.model, 128)
    steps.read(PROMPT)
    keys = steps.cache.keys[0]
    steps.next(1, len(PROMPT))
    array = keys.storage().array
    before = array.copy()
    steps.next(2, len(PROMPT) + 1)
    assert keys.storage().array is array
    changed = (array != before).any((0, 1, 3))
    assert changed.nonzero()[0].tolist() == [len(PROMPT) + 1]


def test_sampling_follows_its_seed(llama):
    _, made = llama
    texts = [
        list(made.generate(PROMPT, 20, Sampling(temperature=1.0, top_k=20, seed=seed)))
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]
    narrow = list(made.generate(PROMPT, 20, Sampling(temperature=1.0, top_p=1e-9, seed=0)))
    assert narrow == list(made.generate(PROMPT, 20))


def test_a_token_that_ends_the_text_is_not_given_out(llama):
    _, made = llama
    text = list(made.generate(PROMPT, 20))
    end = text[6]
    ended = TokenGenerator(made.model, {end}, _steps=made._steps)
    assert list(ended.generate(PROMPT, 20)) == text[: text.index(end)]
    assert ended.report.reason == "end"


def test_a_text_ends_where_the_context_does(llama):
    reference, made = llama
    context = made.model.context
    prompt = (PROMPT * 40)[: context - 2]
    assert list(made.generate(prompt, 10)) == greedy(reference, prompt, 3)
    assert made.report.reason == "context"
    assert len(list(made.generate((PROMPT * 40)[:context], 10))) == 1


@pytest.mark.parametrize(
    ("prompt", "limit", "message"),
    [
        ([], 5, "expected a prompt of 1 token or more, got none"),
        ([1] * 257, 5, "expected a prompt of at most 256 tokens, the model's context, got 257"),
        ([1, VOCABULARY], 5, r"expected tokens in \[0, 320\), the model's, got 320"),
        ([-1], 5, r"expected tokens in \[0, 320\), the model's, got -1"),
        ([1], 0, "expected 1 token or more to be made, got 0"),
    ],
)
def test_prompts_that_cannot_be_are_refused(llama, prompt, limit, message):
    _, made = llama
    with pytest.raises(PromptError, match=message):
        next(made.generate(prompt, limit))


def test_sizes_are_rounded_to_few():
    assert [rounded(n, 16, 100) for n in (1, 16, 17, 33, 99, 100)] == [16, 16, 32, 64, 100, 100]


def test_text_comes_in_pieces_of_whole_characters(folder):
    text = TextGenerator.from_folder(folder)
    pieces = list(text.stream("the cat ", 40, Sampling(temperature=1.5, seed=3)))
    ids = text.tokenizer.encode("the cat ").ids
    tokens = list(text.tokens.generate(ids, 40, Sampling(temperature=1.5, seed=3)))
    assert "".join(pieces) == text.tokenizer.decode(tokens)
    assert len(pieces) > 10


def test_tokens_of_another_model_are_refused(folder, tmp_path):
    inner = tokenizer(["the cat"], 257)
    inner.add_tokens([f"<{k}>" for k in range(100)])
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    inner.save(str(tmp_path / "tokenizer.json"))
    text = TextGenerator.from_folder(tmp_path)
    with pytest.raises(PromptError, match=r"expected tokens in \[0, 320\), the model's, got 356"):
        next(text.stream("a <99>", 1))
