"""The equations of the syllabus, tried on all small numbers."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

SMALL = range(-9, 10)
POSITIVE = range(1, 7)


def test_division_of_a_split_number():
    """Week 1, (1) and (2): x = g·A + S, 0 ≤ S < g, g divides d."""
    for g, quotient, a in itertools.product(POSITIVE, POSITIVE, SMALL):
        d = g * quotient
        for s in range(g):
            x = g * a + s
            assert x // d == a // (d // g)
            assert x % d == g * (a % (d // g)) + s


def test_comparison_of_a_split_number():
    """Week 1, (3): g·A + S < 0 just where A < 0."""
    for g, a in itertools.product(POSITIVE, SMALL):
        assert all((g * a + s < 0) == (a < 0) for s in range(g))


def test_lines_that_pay_for_themselves():
    for a, b, q, y in itertools.product(POSITIVE, POSITIVE, SMALL, range(-40, 41)):
        assert (y // a) // b == y // (a * b)
        assert (q + y // a) // b == (a * q + y) // (a * b)
        assert (y % (a * b)) // a == (y // a) % b
        assert a * (y // a) + y % a == y
        assert (a * q + y) // a == q + y // a
        assert y // -a == -y // a
        assert y % -a == -(-y % a)


def test_remainders_left_out_of_a_sum():
    """c·(y mod m) ≡ c·y modulo d, if d divides c·m."""
    for c, m, d, y in itertools.product(POSITIVE, POSITIVE, POSITIVE, SMALL):
        if c * m % d == 0:
            assert (c * (y % m) - c * y) % d == 0


@pytest.mark.parametrize("value", [2**62 + 2**38 + 1, -(2**62) - 2**38 - 1])
def test_casts_that_round_twice(value):
    assert float(np.int64(value).astype(np.float32)) == math.copysign(2**62 + 2**39, value)
    assert float(np.float32(float(value))) == math.copysign(2**62, value)


def test_rounding_twice_is_innocent_for_float16():
    """Week 2: a sum or product of float16, computed in float32 and rounded, is right."""
    few = np.random.default_rng(0).integers(0, 1 << 16, (2, 20_000), np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        for op in (np.add, np.multiply):
            single = op(*few.astype(np.float32)).astype(np.float16)
            exact = op(*few.astype(np.float64)).astype(np.float16)
            np.testing.assert_array_equal(single, exact)


def test_rounding_to_bfloat16():
    """Week 2: add 0x7fff and the last bit that stays, then cut."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 50_000, np.uint32)
    values = bits.view(np.float32)
    bits, values = bits[np.isfinite(values)], values[np.isfinite(values)]
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    with np.errstate(over="ignore"):
        want = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(rounded.astype(np.uint32).view(np.float32), want)


def groups(a, b):
    """Week 3: runs of axes with equal products, as short as can be."""
    i = j = 0
    while i < len(a) or j < len(b):
        first, other, left, right = i, j, 1, 1
        while (i, j) == (first, other) or left != right:
            if j == len(b) or (i < len(a) and left <= right):
                left, i = left * a[i], i + 1
            else:
                right, j = right * b[j], j + 1
        yield (first, i), (other, j)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 4), (6, 2, 2)),
        ((4, 6), (8, 3)),
        ((1, 4, 1), (2, 1, 2)),
        ((6, 5), (3, 2, 5)),
        ((2,), (2, 1)),
    ],
)
def test_reshape_in_groups(a, b):
    source = np.arange(math.prod(a)).reshape(a)
    wanted = source.reshape(b)
    for at in np.ndindex(*b):
        found = []
        for (first, last), (start, end) in groups(a, b):
            flat = 0
            for axis in range(start, end):
                flat = flat * b[axis] + at[axis]
            strides = [math.prod(a[axis + 1 : last]) for axis in range(first, last)]
            sizes = a[first:last]
            found += [flat // t % s for t, s in zip(strides, sizes, strict=True)]
        assert source[tuple(found)] == wanted[at]


@pytest.mark.parametrize(("length", "rows", "step"), [(8, 2, 1), (9, 3, 2), (7, 4, 1), (10, 3, 3)])
def test_windows_by_repetition(length, rows, step):
    """Row j, column t of the cut repetition is x[j·d + t]."""
    x = np.arange(length)
    pitch = length + step
    table = np.tile(x, rows * pitch // length + 1)[: rows * pitch].reshape(rows, pitch)
    for j, t in itertools.product(range(rows), range(length)):
        if j * step + t < length:
            assert table[j, t] == x[j * step + t]


def test_counting():
    """Σ_{r<n} [lo ≤ r < hi] in closed form, and the bounds that k·r + c < 0 gives."""
    for n, low, high in itertools.product(range(6), SMALL, SMALL):
        count = sum(low <= r < high for r in range(n))
        assert count == max(0, min(high, n) - max(low, 0))
    for k, c, n in itertools.product([-3, -2, -1, 1, 2, 3], SMALL, range(6)):
        holds = {r for r in range(n) if k * r + c < 0}
        low, high = (0, -(c // k)) if k > 0 else (c // -k + 1, n)
        assert holds == set(range(max(low, 0), min(high, n)))


def test_positions_are_counted():
    """The windows of an arange: n − max(n − 1 − i, 0) terms, less one, is i."""
    for n in range(1, 20):
        assert all(n - max(n - 1 - i, 0) - 1 == i for i in range(n))


def test_differences_have_the_errors_of_the_table():
    """Weeks 9 and 10: sin at 1, by one side and by both."""

    def errors(h, dtype):
        x, h = dtype(1), dtype(h)
        low, high = x - h, x + h
        one = (np.sin(high) - np.sin(x)) / (high - x)
        both = (np.sin(high) - np.sin(low)) / (high - low)
        return [float(abs(found / math.cos(1) - 1)) for found in (one, both)]

    for h, one, both in [
        (1e-1, 7.9e-2, 1.7e-3),
        (1e-2, 7.8e-3, 1.7e-5),
        (1e-3, 7.8e-4, 1.7e-7),
        (1e-5, 7.8e-6, 2.2e-11),
    ]:
        np.testing.assert_allclose(errors(h, np.float64), [one, both], rtol=0.5)
    best = min(errors(10.0**-k, np.float64)[1] for k in range(1, 13))
    assert 1e-13 < best < 1e-10
    assert errors(1e-5, np.float32)[1] > errors(1e-3, np.float32)[1]
    assert errors(1e-1, np.float32)[1] > errors(1e-3, np.float32)[1]


def test_the_neuron_of_the_first_table():
    w, x, b, t = 0.5, 3.0, -1.0, 1.0

    def loss(w, x, b):
        return (max(w * x + b, 0) - t) ** 2

    h = 1e-6
    assert loss(w, x, b) == 0.25
    assert (loss(w + h, x, b) - loss(w - h, x, b)) / (2 * h) == pytest.approx(-3)
    assert (loss(w, x + h, b) - loss(w, x - h, b)) / (2 * h) == pytest.approx(-0.5)
    assert (loss(w, x, b + h) - loss(w, x, b - h)) / (2 * h) == pytest.approx(-1)


def test_softmax_handed_back():
    """x̄ = s·(c − Σ s·c), and a shift of x changes nothing."""
    rng = np.random.default_rng(0)
    x, c, v = rng.normal(size=(3, 50))

    def softmax(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    s = softmax(x)
    bar, h = s * (c - (s * c).sum()), 1e-6
    slope = ((softmax(x + h * v) - softmax(x - h * v)) @ c) / (2 * h)
    assert bar @ v == pytest.approx(slope, rel=1e-7)
    assert bar.sum() == pytest.approx(0, abs=1e-15)


def test_updates_that_bfloat16_rounds_away():
    assert ml_dtypes.bfloat16(1 + 1 / 512) == 1
    weight = ml_dtypes.bfloat16(0.1)
    assert ml_dtypes.bfloat16(float(weight) + 1e-4) == weight
