"""Tensors among arrays: NumPy's operators and functions, DLPack, numbers, text, copies."""

import copy
import pickle

import numpy as np
import pytest
import torch

from week01_uops.dtypes import ALL
from week02_render.buffers import address
from week09_10_autodiff.context import traced_by
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

A = np.asarray([[1.0, 2.0], [3.0, 4.0]], np.float32)


# NumPy


def test_an_array_beside_a_tensor_makes_a_tensor():
    x = Tensor([2.0, 3.0])
    for left, right in (
        (A * x, A * [2, 3]),
        (A + x, np.add(A, [2, 3])),
        (A - x, A - [2, 3]),
        (x - A, [2, 3] - A),
    ):
        assert type(left) is Tensor
        np.testing.assert_array_equal(left.numpy(), right)
    assert (A @ x).tolist() == [8, 18]
    assert (x > A).tolist() == [[True, True], [False, False]]
    assert (np.float64(2) * x).dtype is x.dtype
    assert type(np.float32(2) + x) is Tensor


def test_derivatives_pass_through_operators_of_arrays():
    x = Tensor([2.0, 3.0], requires_grad=True)
    (A * x).sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_functions_of_numpy():
    x = Tensor(A)
    assert type(np.exp(x)) is Tensor
    np.testing.assert_allclose(np.exp(x).numpy(), np.exp(A), rtol=1e-6)
    assert type(np.maximum(x, A)) is np.ndarray  # not known as a tensor's: computed by NumPy
    np.testing.assert_array_equal(np.sin(x), np.sin(A))
    np.testing.assert_array_equal(np.concatenate([x, x]), np.concatenate([A, A]))
    np.testing.assert_array_equal(np.add.reduce(x), A.sum(0))
    assert np.sum(x) == 10
    assert np.linalg.norm(x) == np.linalg.norm(A)
    assert np.add(x, 1, dtype=np.float64).dtype == np.float64


def test_as_arrays():
    x = Tensor(A)
    assert address(np.asarray(x)) == address(x.storage().array)
    assert not np.asarray(x).flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1
    assert x.storage().shared


def test_arrays_are_copied_by_the_constructor_and_not_by_from_numpy():
    base = np.zeros(100, np.float32)
    start = -(base.ctypes.data // 4) % 16
    array = base[start : start + 8]
    copied, same = Tensor(array), Tensor.from_numpy(array)
    array[0] = 5
    assert copied.tolist()[0] == 0
    assert same.tolist()[0] == 5
    assert same.storage().shared
    apart = Tensor.from_numpy(base[start + 1 : start + 3])  # not at a multiple of 64 bytes
    assert not apart.storage().shared


@pytest.mark.parametrize("order", ["F", "negative", "swapped"])
def test_other_layouts(order):
    array = {"F": np.asfortranarray(A), "negative": A[::-1], "swapped": A.astype(">f4")}[order]
    if order == "swapped":
        with pytest.raises(TensorError, match="expected"):
            Tensor(array)
    else:
        np.testing.assert_array_equal(Tensor(array).numpy(), array)


def test_lists():
    assert Tensor([1, 2]).dtype.name == "int64"
    assert Tensor([1.0, 2]).dtype.name == "float32"
    assert Tensor([True]).dtype.name == "bool"
    assert Tensor([]).shape == (0,)
    assert Tensor([Tensor(1.0), Tensor(2.0)]).tolist() == [1, 2]
    assert Tensor([1, 2], dtype="bfloat16").tolist() == [1, 2]
    assert Tensor((1, 2), dtype=np.uint8).dtype.name == "uint8"


def test_numbers_that_a_dtype_does_not_hold():
    for data, dtype in ((300, "uint8"), ([1, -1], "uint64"), (2**63, None), ([2**63], None)):
        with pytest.raises(TensorError, match=r"expected numbers of u?int"):
            Tensor(data, dtype)
    assert Tensor([2**63], "uint64").tolist() == [2**63]
    with pytest.raises(TypeError, match="expected numbers, got object"):
        Tensor(2**70)


# DLPack


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_to_and_from_torch_without_a_copy(dtype):
    x = (Tensor([[0, 1], [2, 3]]) * 1).to(dtype)
    theirs = torch.from_dlpack(x)
    assert theirs.data_ptr() == address(x.storage().array)
    assert str(theirs.dtype) == f"torch.{dtype}"
    back = Tensor.from_dlpack(theirs)
    assert back.dtype is dtype
    assert back.tolist() == x.tolist()
    assert address(back.storage().array) == theirs.data_ptr()


class Exported:
    """What only has DLPack, and not one of the libraries that are known."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__()

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int8])
def test_from_any_library(dtype):
    theirs = torch.arange(6).to(dtype).reshape(2, 3)
    x = Tensor.from_dlpack(Exported(theirs))
    assert x.tolist() == theirs.tolist()
    assert address(x.storage().array) == theirs.data_ptr()
    theirs[0, 0] = 7
    assert x.tolist()[0][0] == 7


def test_torch_tensors_are_taken_as_data():
    x = Tensor(torch.ones(3, dtype=torch.bfloat16, requires_grad=True))
    assert x.dtype.name == "bfloat16"
    assert (x + torch.ones(3)).dtype.name == "float32"


def test_dlpack_options():
    x = Tensor(A)
    assert x.__dlpack_device__() == (1, 0)
    copied = torch.utils.dlpack.from_dlpack(x.__dlpack__(copy=True))
    copied[0, 0] = 9
    assert x.tolist()[0][0] == 1
    with pytest.raises(BufferError, match="the CPU"):
        x.__dlpack__(dl_device=(2, 0))


# Numbers and text


def test_numbers():
    x = Tensor([[3]])
    assert (int(x), float(x), bool(x), x.item()) == (3, 3.0, True, 3)
    assert [10, 20, 30, 40][Tensor(3)] == 40
    assert list(range(Tensor(2))) == [0, 1]
    assert 4.0 in Tensor(A)
    assert 5.0 not in Tensor(A)


def test_sizes():
    x = Tensor.zeros(2, 3, dtype="float16")
    assert (x.size(), x.size(-1), x.dim(), x.numel(), x.nbytes, len(x)) == ((2, 3), 3, 2, 6, 12, 2)
    assert x.contiguous() is x


def test_text():
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1. , 2.5])"
    assert repr(Tensor([1, 2], dtype="int8")) == "Tensor([1, 2], dtype=int8)"
    assert repr(Tensor(1.0, requires_grad=True)) == "Tensor(1., requires_grad=True)"
    assert repr(Tensor([1.0], dtype="bfloat16")) == "Tensor([1.], dtype=bfloat16)"
    assert "..." in repr(Tensor.zeros(5000))
    assert f"{Tensor(1.23456):.2f}" == "1.23"
    assert f"{Tensor([1, 2])}" == "Tensor([1, 2])"


def test_text_where_nothing_may_be_computed():
    class Tracer:
        def __getattr__(self, name):
            return lambda *given: None

    with traced_by(Tracer()):
        assert repr(Tensor([1.0]) + 1) == "Tensor(<[1], not computed>)"


def test_copies():
    x = Tensor(A, requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.requires_grad
        assert y.node is not x.node
        np.testing.assert_array_equal(y.numpy(), A)
        (y * 2).sum().backward()
        assert y.grad is not None
    assert x.grad is None
    half = pickle.loads(pickle.dumps(Tensor([1.5], dtype="bfloat16")))
    assert (half.dtype.name, half.tolist()) == ("bfloat16", [1.5])


def test_tensors_are_keys():
    x, y = Tensor([1.0]), Tensor([1.0])
    assert len({x, y, x}) == 2
