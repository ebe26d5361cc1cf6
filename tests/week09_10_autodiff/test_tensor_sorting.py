"""Sorting, topk, argmax: PyTorch's stable order, by counting and by the network."""

import numpy as np
import pytest
import torch

from tests.week09_10_autodiff.test_tensor_indexing import interpreted
from week09_10_autodiff import sorting
from week09_10_autodiff.tensor import Tensor


def floats(count):
    """Few different values, with NaNs and infinities, in rows of their own."""
    rows = np.random.default_rng(count).integers(-3, 3, (3, count)).astype(np.float32)
    rows[0, [3, 7]] = np.nan
    rows[1, [2, 5]] = np.inf, -np.inf
    rows[2, [4, count - 1]] = -np.inf
    return rows


def arrays(count):
    numbers = np.nan_to_num(floats(count), posinf=9, neginf=-9)
    return [
        floats(count),
        floats(count).astype(np.float64),
        numbers.astype(np.int32),
        numbers.clip(0).astype(np.uint8),
        numbers > 0,
    ]


def sorted_by_torch(array, dim, descending):
    order = torch.sort(torch.from_numpy(array), dim=dim, descending=descending, stable=True)
    return order.values.numpy(), order.indices.numpy()


def check(pairs):
    """All results in one program, against what is wanted."""
    got = [tensor for tensors, _ in pairs for tensor in tensors]
    wanted = [array for _, arrays in pairs for array in arrays]
    Tensor.realize(*got)
    for tensor, array in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("number", range(5))
def test_by_counting(number):
    array = arrays(21)[number]
    x = Tensor(array)
    check(
        [
            (x.sort(d, down), sorted_by_torch(array, d, down))
            for d in (0, 1)
            for down in (False, True)
        ]
    )


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("descending", [False, True])
def test_by_the_network(number, descending, monkeypatch):
    monkeypatch.setattr(sorting, "SHORT", 2)
    array = arrays(11)[number]
    values, indices = Tensor(array).sort(-1, descending)
    wanted, positions = sorted_by_torch(array, -1, descending)
    np.testing.assert_array_equal(interpreted(indices), positions)
    np.testing.assert_array_equal(interpreted(values), wanted)


def test_the_network_compiled(monkeypatch):
    monkeypatch.setattr(sorting, "SHORT", 2)
    array = np.random.default_rng(0).standard_normal(7)
    np.testing.assert_array_equal(Tensor(array).sort().values.numpy(), np.sort(array))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("number", range(5))
def test_topk_in_blocks(number, largest, monkeypatch):
    monkeypatch.setattr(sorting, "LONG", 8)
    array = arrays(50)[number]
    values, indices = Tensor(array).topk(2, largest=largest)
    wanted, positions = sorted_by_torch(array, -1, largest)
    check([((values, indices), (wanted[:, :2], positions[:, :2]))])


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_topk(count):
    array = np.random.default_rng(count).standard_normal((2, 9)).astype(np.float32)
    for dim in (0, 1):
        if count > array.shape[dim]:
            continue
        values, indices = Tensor(array).topk(count, dim)
        wanted = torch.topk(torch.from_numpy(array), count, dim)
        check([((values, indices), (wanted.values.numpy(), wanted.indices.numpy()))])


def test_argmax_is_the_first_and_nan_is_the_largest():
    x = Tensor([[1.0, 3.0, 3.0], [float("nan"), 9.0, float("nan")], [2.0, 0.0, 0.0]])
    assert x.argmax(1).tolist() == [1, 0, 0]
    assert x.argmin(1).tolist() == [0, 0, 1]
    assert x.argmax().item() == 3
    assert Tensor([True, False, True]).argmin().item() == 1
    assert Tensor([-128, 127], dtype="int8").argmin().item() == 0
    assert Tensor(5.0).argmax().item() == 0


def test_scalars_are_sorted():
    values, indices = Tensor(3.0).sort()
    assert (values.item(), indices.item()) == (3, 0)


def test_derivatives_go_to_where_the_elements_came_from():
    x = Tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort().values * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


def test_names():
    order = Tensor([3.0, 1.0]).sort()
    assert order.indices is order[1]
    assert order.values.tolist() == [1, 3]
