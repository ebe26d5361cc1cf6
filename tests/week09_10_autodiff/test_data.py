"""Batches: functions of seed and number, each sample once an epoch, windows of tokens."""

import numpy as np
import pytest

from week09_10_autodiff.data import ArrayDataset, DataLoader, TokenDataset
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)


def numbers(batches):
    return [int(y) for _, part in batches for y in part.tolist()]


def test_in_order_with_a_last_batch_that_is_smaller():
    loader = DataLoader((X, Y), batch_size=4)
    parts = list(loader)
    assert len(loader) == len(parts) == 3
    assert [x.shape for x, _ in parts] == [(4, 2), (4, 2), (2, 2)]
    assert all(isinstance(t, Tensor) for part in parts for t in part)
    assert numbers(parts) == list(range(10))
    assert (parts[2][0].numpy() == X[8:]).all()


def test_the_last_batch_is_dropped_if_asked():
    loader = DataLoader(ArrayDataset(X, Y), batch_size=4, drop_last=True)
    assert len(loader) == 2
    assert numbers(loader) == list(range(8))


def test_shuffled_epochs_hold_each_sample_once_in_orders_of_their_own():
    loader = DataLoader((X, Y), batch_size=3, shuffle=True, seed=5)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    assert loader.epoch == 2
    assert numbers(DataLoader((X, Y), batch_size=3, shuffle=True, seed=5)) == first
    assert numbers(DataLoader((X, Y), batch_size=3, shuffle=True, seed=6)) != first


def test_a_batch_is_a_function_of_its_number():
    loader = DataLoader((X, Y), batch_size=3, shuffle=True)
    run = loader.batches()
    wanted = [numbers([next(run)]) for _ in range(9)]
    resumed = DataLoader((X, Y), batch_size=3, shuffle=True).batches(6)
    assert [numbers([next(resumed)]) for _ in range(3)] == wanted[6:]
    assert numbers([loader.batch(4)]) == wanted[4]


def test_orders_stay_what_they_are_from_version_to_version():
    loader = DataLoader((X, Y), batch_size=10, shuffle=True, seed=1)
    assert numbers([loader.batch(0)]) == [3, 5, 2, 9, 7, 0, 8, 6, 1, 4]


def test_windows_of_tokens(tmp_path):
    tokens = np.arange(100, 121, dtype=np.uint16)
    np.save(tmp_path / "tokens.npy", tokens)
    for given in (tokens, tmp_path / "tokens.npy", str(tmp_path / "tokens.npy")):
        windows = TokenDataset(given, context=5)
        assert len(windows) == 4
        x, y = windows.take(np.array([0, 3]))
        assert x.dtype == y.dtype == np.int64
        assert x.tolist() == [list(range(100, 105)), list(range(115, 120))]
        assert (y == x + 1).all()
    assert isinstance(TokenDataset(tmp_path / "tokens.npy", 5).tokens, np.memmap)
    x, _ = DataLoader(windows, batch_size=2, shuffle=True).batch(1)
    assert x.shape == (2, 5)


def test_refusals():
    with pytest.raises(TensorError, match=r"expected arrays of one length, got \[3, 10\]"):
        DataLoader((X, Y[:3]))
    with pytest.raises(TensorError, match="a batch_size of 1 or more, got 0"):
        DataLoader((X,), batch_size=0)
    with pytest.raises(TensorError, match="expected a batch of samples, got 10 samples"):
        DataLoader((X,), batch_size=11, drop_last=True)
    with pytest.raises(
        TensorError, match=r"tokens as integers along one axis, got float64\[10, 2\]"
    ):
        TokenDataset(X, 3)
    with pytest.raises(TensorError, match="a context of 1 to 9, for 10 tokens, got 10"):
        TokenDataset(Y, 10)
