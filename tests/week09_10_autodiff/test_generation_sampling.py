import math

import numpy as np
import pytest

from week09_10_autodiff.sampling import Sampler, Sampling, candidates

SCORES = np.array([0.0, 2.0, -1.0, 1.0, 2.0, -math.inf], np.float32)


def drawn(count, scores=SCORES, **how):
    sampler = Sampler(Sampling(**how))
    return [sampler(scores) for _ in range(count)]


def test_without_a_temperature_the_first_of_the_likeliest_is_drawn():
    assert drawn(3) == [1, 1, 1]


def test_probabilities_are_those_of_a_softmax_with_the_temperature():
    tokens, chances = candidates(SCORES, Sampling(temperature=0.5))
    powers = np.exp(SCORES.astype(float) / 0.5)
    assert list(tokens) == [1, 4, 3, 0, 2, 5]
    np.testing.assert_allclose(chances, (powers / powers.sum())[tokens])


@pytest.mark.parametrize(
    ("k", "kept"), [(1, [1]), (2, [1, 4]), (3, [1, 4, 3]), (99, [1, 4, 3, 0, 2, 5])]
)
def test_top_k_keeps_the_likeliest(k, kept):
    tokens, chances = candidates(SCORES, Sampling(temperature=1.0, top_k=k))
    assert list(tokens) == kept
    assert chances.sum() == pytest.approx(1)


@pytest.mark.parametrize(("p", "count"), [(1e-9, 1), (0.39, 1), (0.6, 2), (0.79, 3), (1.0, 6)])
def test_top_p_keeps_the_fewest_that_reach_it(p, count):
    tokens, chances = candidates(SCORES, Sampling(temperature=1.0, top_p=p))
    all_tokens, all_chances = candidates(SCORES, Sampling(temperature=1.0))
    assert len(tokens) == count
    assert list(tokens) == list(all_tokens[:count])
    assert all_chances[:count].sum() >= p - 1e-9
    assert count in (1, 6) or all_chances[: count - 1].sum() < p
    assert chances.sum() == pytest.approx(1)


def test_top_p_counts_among_what_top_k_has_left():
    tokens, _ = candidates(SCORES, Sampling(temperature=1.0, top_k=2, top_p=0.5))
    assert list(tokens) == [1]


def test_frequencies_follow_the_probabilities():
    count = 4000
    found = np.bincount(drawn(count, temperature=1.0, seed=0), minlength=6) / count
    tokens, chances = candidates(SCORES, Sampling(temperature=1.0))
    for token, chance in zip(tokens, chances, strict=True):
        assert abs(found[token] - chance) < 5 * math.sqrt(chance * (1 - chance) / count) + 1e-12


def test_a_seed_draws_the_same_and_another_one_something_else():
    assert drawn(50, temperature=1.0, seed=3) == drawn(50, temperature=1.0, seed=3)
    assert drawn(50, temperature=1.0, seed=3) != drawn(50, temperature=1.0, seed=4)


def test_large_scores_do_not_overflow():
    assert drawn(5, np.array([1e30, -1e30, 0], np.float32), temperature=0.01, seed=0) == [0] * 5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_scores_without_a_largest_are_refused(temperature):
    with pytest.raises(ValueError, match="expected scores to choose from, got nan for token 2"):
        drawn(1, np.array([1, 5, math.nan], np.float32), temperature=temperature)
    with pytest.raises(ValueError, match="expected scores to choose from, got -inf for token 0"):
        drawn(1, np.full(3, -math.inf, np.float32), temperature=temperature)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"temperature": -1.0}, "expected a temperature ≥ 0, got -1.0"),
        ({"temperature": math.nan}, "expected a temperature ≥ 0, got nan"),
        ({"top_k": 0}, "expected a top_k ≥ 1, got 0"),
        ({"top_p": 0.0}, r"expected a top_p in \(0, 1\], got 0.0"),
        ({"seed": -1}, "expected a seed ≥ 0, got -1"),
    ],
)
def test_settings_that_cannot_be_are_refused(how, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**how)


def test_what_is_kept_is_what_transformers_keeps():
    torch = pytest.importorskip("torch")
    logits = pytest.importorskip(
        "transformers.generation.logits_process", reason="transformers is the second opinion"
    )
    random = np.random.default_rng(0)
    for _ in range(20):
        scores = random.standard_normal(50, np.float32) * 3
        how = Sampling(temperature=0.7, top_k=12, top_p=0.8)
        kept = torch.tensor(scores)[None]
        for warp in (
            logits.TemperatureLogitsWarper(how.temperature),
            logits.TopKLogitsWarper(how.top_k),
            logits.TopPLogitsWarper(how.top_p),
        ):
            kept = warp(None, kept)
        expected = torch.softmax(kept[0].double(), -1).numpy()
        tokens, chances = candidates(scores, how)
        assert set(tokens) == set(np.nonzero(expected)[0])
        np.testing.assert_allclose(chances, expected[tokens], rtol=1e-5)
