"""Random tensors: the stream is the paper's, it depends on nothing but seed and position."""

import itertools
import json
import math

import numpy as np
import pytest

from week01_uops.dtypes import bfloat16, float32, float64, uint64
from week01_uops.ops import param, program
from week02_render.runtime import load
from week09_10_autodiff import random
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.random import Generator
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.squares import draws_now, key_of
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.turns import cos_turns, sin_turns


def squares32(counter, key):
    """The equations of the paper, on Python's integers."""
    word = 2**64 - 1
    x = y = counter * key & word
    z = y + key & word
    x = x * x + y & word
    x = x >> 32 | x << 32 & word
    x = x * x + z & word
    x = x >> 32 | x << 32 & word
    x = x * x + y & word
    x = x >> 32 | x << 32 & word
    return (x * x + z & word) >> 32


def numbers(seed, start, count):
    return np.array([squares32(start + k, key_of(seed)) for k in range(count)], np.uint64)


SEEDS = (0, 1, 2**63, 2**64 - 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_stream_is_that_of_the_paper(seed):
    want = numbers(seed, 0, 100)
    assert np.array_equal(draws_now(key_of(seed), np.arange(100, dtype=np.uint64)), want)
    stream = Generator(seed)
    got = random.randint(0, 2**32, (50,), dtype=uint64, generator=stream).numpy()
    assert np.array_equal(got, want.reshape(50, 2)[:, 0])


@pytest.mark.parametrize("seed", [*SEEDS, -1, 12345])
def test_keys_are_irregular(seed):
    digits = f"{key_of(seed):016x}"
    assert key_of(seed) % 2 == 1
    assert "0" not in digits
    assert len(set(digits[:8])) == len(set(digits[8:])) == 8


def test_neighbouring_seeds_have_keys_that_differ_in_half_of_their_bits():
    keys = [key_of(seed) for seed in range(2000)]
    assert len(set(keys)) == 2000
    flips = [(a ^ b).bit_count() for a, b in itertools.pairwise(keys)]
    assert 26 < np.mean(flips) < 34
    assert key_of(-1) == key_of(2**64 - 1)


def test_rand_is_the_upper_bits_of_the_numbers():
    want = numbers(3, 0, 64) >> np.uint64(8)
    got = random.rand(64, generator=Generator(3)).numpy()
    assert got.dtype == np.float32
    assert np.array_equal(got, (want * 2.0**-24).astype(np.float32))
    upper, lower = numbers(3, 0, 64).reshape(32, 2).T
    whole = (upper >> np.uint64(5)) * 2.0**26 + (lower >> np.uint64(6))
    wide = random.rand(32, dtype=float64, generator=Generator(3)).numpy()
    assert np.array_equal(wide, whole * 2.0**-53)


def test_normal_numbers_are_those_of_box_and_muller():
    a, b = numbers(4, 0, 400).reshape(200, 2).astype(np.float64).T
    v = np.floor(b / 256) * 2.0**-24
    want = np.sqrt(-2 * np.log((a + 0.5) * 2.0**-32)) * np.cos(2 * np.pi * v)
    got = random.randn(200, generator=Generator(4)).numpy()
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=2e-7)
    wide = random.randn(100, dtype=float64, generator=Generator(4)).numpy()
    a, b, c, d = numbers(4, 0, 400).reshape(100, 4).astype(np.float64).T
    u = (np.floor(a / 32) * 2.0**26 + np.floor(b / 64) + 0.5) * 2.0**-53
    v = (np.floor(c / 32) * 2.0**26 + np.floor(d / 64)) * 2.0**-53
    want = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
    np.testing.assert_allclose(wide, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [random.rand, random.randn])
@pytest.mark.parametrize("dtype", [float32, float64])
def test_shapes_and_portions_change_nothing(function, dtype):
    whole = function(24, dtype=dtype, generator=Generator(9)).numpy()
    shaped = function(2, 3, 4, dtype=dtype, generator=Generator(9)).numpy()
    assert np.array_equal(shaped.reshape(-1), whole)
    stream = Generator(9)
    parts = [function((n,), dtype=dtype, generator=stream) for n in (1, 5, 18)]
    joined = np.concatenate([part.numpy() for part in reversed(parts)][::-1])
    assert np.array_equal(joined, whole)


def test_a_state_goes_on_where_it_was_taken():
    random.manual_seed(7)
    random.rand(5)
    state = random.get_state()
    assert json.loads(json.dumps(state)) == {"seed": 7, "position": 5}
    first = random.randn(4).numpy()
    random.rand(3)
    random.set_state(state)
    assert np.array_equal(random.randn(4).numpy(), first)
    assert random.manual_seed(7).get_state() == {"seed": 7, "position": 0}
    assert random.DEFAULT.initial_seed() == 7


def test_generators_do_not_disturb_each_other():
    random.manual_seed(1)
    want = random.rand(3).numpy()
    random.manual_seed(1)
    random.rand(100, generator=Generator(2))
    assert np.array_equal(random.rand(3).numpy(), want)
    assert not np.array_equal(random.rand(3, generator=Generator(2)).numpy(), want)


def test_positions_far_out_wrap():
    stream = Generator(3)
    stream.set_state({"seed": 3, "position": 2**64 - 2})
    got = random.rand(4, generator=stream).numpy()
    places = [2**64 - 2, 2**64 - 1, 0, 1]
    want = np.array([squares32(p, key_of(3)) >> 8 for p in places]) * 2.0**-24
    assert np.array_equal(got, want.astype(np.float32))
    assert stream.get_state() == {"seed": 3, "position": 2}


def test_further_draws_compile_nothing():
    random.rand(3, 5).numpy()
    compiled = PROGRAMS.compiled
    for _ in range(3):
        random.rand(3, 5).numpy()
    random.manual_seed(99)
    random.rand(3, 5).numpy()
    assert PROGRAMS.compiled == compiled


# Distributions ----------------------------------------------------------------------------------


def chi_square(counts):
    """How many standard deviations χ² is from what it should be."""
    expected = counts.sum() / counts.size
    freedom = counts.size - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_uniform_numbers_are_uniform(seed):
    u = random.rand(1 << 18, generator=Generator(seed)).numpy().astype(np.float64)
    assert 0 <= u.min() < u.max() < 1
    assert abs(chi_square(np.bincount((u * 256).astype(int), minlength=256))) < 5
    low = (u * 2**24).astype(np.int64) % 256
    assert abs(chi_square(np.bincount(low, minlength=256))) < 5
    pairs = (u[::2] * 16).astype(int) * 16 + (u[1::2] * 16).astype(int)
    assert abs(chi_square(np.bincount(pairs, minlength=256))) < 5
    for lag in (1, 2, 7, 64):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 5 / math.sqrt(u.size)


def test_streams_of_neighbouring_seeds_are_independent():
    rows = np.stack([random.rand(1 << 14, generator=Generator(s)).numpy() for s in range(12)])
    found = np.corrcoef(rows) - np.eye(12)
    assert np.abs(found).max() < 5 / math.sqrt(1 << 14)


@pytest.mark.parametrize("dtype", [float32, float64])
def test_normal_numbers_are_normal(dtype):
    x = random.randn(1 << 18, dtype=dtype, generator=Generator(11)).numpy().astype(np.float64)
    root = math.sqrt(x.size)
    moments = {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}
    for power, (mean, variance) in moments.items():
        assert abs((x**power).mean() - mean) < 5 * math.sqrt(variance) / root
    ordered = np.sort(x)[:: x.size // 512]
    normal = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in ordered])
    steps = np.arange(ordered.size) * (x.size // 512) / x.size
    assert np.abs(normal - steps).max() < 2 / root + 1 / x.size * 512
    assert 4 < np.abs(x).max() < 7


@pytest.mark.parametrize(("low", "high"), [(0, 7), (-5, 12), (0, 1), (10, 10 + 48)])
def test_integers_are_uniform(low, high):
    x = random.randint(low, high, (1 << 16,), generator=Generator(5)).numpy()
    assert x.dtype == np.int64
    counts = np.bincount(x - low, minlength=high - low)
    assert counts.size == high - low
    assert high - low == 1 or abs(chi_square(counts)) < 5


def test_wide_intervals_of_integers():
    for low, high in ((-(2**62), 2**62), (-(2**63), 2**63), (0, 3 << 60), (0, 2**32)):
        x = random.randint(low, high, (4096,), generator=Generator(1)).numpy().astype(np.float64)
        assert low <= x.min() <= x.max() < high
        u = (x - low) / (high - low)
        assert abs(u.mean() - 0.5) < 5 * math.sqrt(1 / 12 / u.size)


def test_permutations():
    stream = Generator(3)
    assert sorted(random.randperm(100, generator=stream).tolist()) == list(range(100))
    assert random.randperm(0).shape == (0,)
    seen = [tuple(random.randperm(4, generator=stream).tolist()) for _ in range(2400)]
    counts = np.unique(np.array(seen), axis=0, return_counts=True)[1]
    assert counts.size == 24
    assert abs(chi_square(counts)) < 5


def test_bernoulli():
    p = Tensor(np.repeat(np.array([0, 0.25, 1], np.float32), 4096))
    x = random.bernoulli(p, generator=Generator(0)).numpy().reshape(3, -1)
    assert x[0].max() == 0
    assert x[2].min() == 1
    assert abs(x[1].mean() - 0.25) < 0.035
    assert set(np.unique(x[1])) == {0, 1}


def test_dropout_and_its_derivative():
    x = Tensor(np.full(4096, 3, np.float32), requires_grad=True)
    y = random.dropout(x, 0.25, generator=Generator(2))
    y.sum().backward()
    values = y.numpy()
    assert set(np.unique(values)) == {0, 4}
    assert abs((values == 0).mean() - 0.25) < 0.035
    np.testing.assert_allclose(x.grad.numpy() * 3, values)
    assert random.dropout(x, 0.0) is x
    assert not random.dropout(x, 1.0).numpy().any()
    assert random.dropout(Tensor(np.ones(3)).to(bfloat16)).dtype is bfloat16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random.rand(3, dtype="int32"), "rand: expected a float dtype, got int32"),
        (lambda: random.randint(5, 5, (2,)), "randint: expected .* got low 5 and high 5"),
        (lambda: random.randint(0, 300, (2,), dtype="uint8"), "≤ 256 for uint8, got low 0 and"),
        (lambda: random.randint(0, 3, (2,), dtype="float32"), "randint: expected an integer dtype"),
        (lambda: random.randperm(-1), "randperm: expected 0 ≤ n"),
        (lambda: random.dropout(Tensor([1.0]), 1.5), r"dropout: expected p in \[0, 1\], got 1.5"),
        (lambda: random.bernoulli(Tensor([1])), "bernoulli: expected float probabilities, got"),
        (lambda: Generator(0.5), "expected an integer as seed, got 0.5"),
        (lambda: random.set_state({"seed": 1}), "expected an integer as position, got None"),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(TensorError, match=message):
        call()


# Angles in turns --------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "most"), [(float32, 3.0), (float64, 4.0)])
def test_sine_and_cosine_of_turns(dtype, most):
    """The error in units of the last place of the value, at multiples of 2⁻²⁴."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.integers(0, 1 << 24, 20000), np.arange(0, 1 << 24, 1 << 19)])
    u = (u * 2.0**-24).astype(dtype.numpy)
    x = param(0, dtype, u.shape)
    whole = program(cos_turns(x), sin_turns(x))
    found = load(REFERENCE.compile(whole), whole).run([u])
    exact = u.astype(np.longdouble)
    folded = np.abs(exact - np.longdouble(0.5)) - np.longdouble(0.25)
    side = np.where(exact < 0.25, exact, np.where(exact > 0.75, exact - 1, 0.5 - exact))
    turn = 8 * np.arctan(np.longdouble(1))
    for got, angle in zip(found, (folded, side), strict=True):
        want = np.sin(turn * angle)
        unit = np.spacing(np.abs(want).astype(dtype.numpy)).astype(np.longdouble)
        assert (np.abs(got - want) / unit).max() < most
    assert found[0][-32] == 1
    assert found[1][-32] == 0
