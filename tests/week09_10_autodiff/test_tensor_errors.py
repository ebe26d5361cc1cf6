"""Errors of tensors say what was expected, what came, and which line of the user's asked for it."""

import numpy as np
import pytest

from week09_10_autodiff.errors import TensorError, TensorTypeError
from week09_10_autodiff.tensor import Tensor, cat, einsum, stack, where


def test_the_line_and_its_expression():
    x, w = Tensor.ones(3, 4), Tensor.ones(5, 6)
    with pytest.raises(TensorError) as caught:
        _ = 2 * (x @ w)
    line = caught.traceback[0].lineno + 1
    wanted = "matmul: expected (…, m, k) @ (…, k, n), got [3, 4] @ [5, 6]"
    assert str(caught.value) == f"{wanted} (at test_tensor_errors.py:{line}: `x @ w`)"
    assert caught.value.reason == wanted
    assert isinstance(caught.value, ValueError)


def test_an_expression_over_several_lines():
    x = Tensor.ones(3)
    with pytest.raises(TensorError, match=r"`x \+ Tensor\( \[1, 2\], \)`"):
        _ = x + Tensor(
            [1, 2],
        )


def test_the_caller_of_a_helper_is_named_where_the_helper_is_the_users():
    def helper(x):
        return x.reshape(7)

    with pytest.raises(TensorError, match=r"`x\.reshape\(7\)`"):
        helper(Tensor.ones(3))


X = Tensor(np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda: X + Tensor.ones(3),
            r"add: expected shapes that broadcast, got \[3, 4\] and \[3\]",
        ),
        (lambda: X.sum(2), r"sum: expected an axis in \[-2, 2\), got 2"),
        (lambda: X.mean((0, 0)), "mean: expected each axis once"),
        (lambda: Tensor([1, 2]).mean(), "mean: expected a float x, got int64"),
        (lambda: X.reshape(5, -1), r"reshape: expected 12 elements in \[5, -1\]"),
        (lambda: X.reshape(-2, 3), "reshape: expected sizes ≥ 0 and at most one -1"),
        (lambda: X.reshape(5), r"reshape: expected 12 elements as in \[3, 4\], got \[5\]"),
        (lambda: X.expand(2, 4), r"expand: expected a shape that \[3, 4\] broadcasts to"),
        (lambda: X.permute(0, 0), "permute: expected each of 2 axes once"),
        (lambda: X.transpose(0, 2), "transpose: expected an axis in"),
        (lambda: X.split([1, 2], 1), "split: expected sizes that add up to 4"),
        (lambda: X.split(0), "split: expected a size ≥ 1"),
        (lambda: X.chunk(0), "chunk: expected at least one piece"),
        (lambda: X.repeat(2), "repeat: expected at least 2 counts"),
        (lambda: X.roll((1, 2), 0), "roll: expected a shift for each axis"),
        (lambda: X.pad((1, 2, 3)), "pad: expected at most 2 pairs"),
        (lambda: X.topk(5), "topk: expected k from 0 to 4, the axis, got 5"),
        (lambda: Tensor.ones(0).argmax(), "argmax: expected an axis that is not empty"),
        (lambda: cat([]), "cat: expected at least one tensor"),
        (lambda: cat([X, Tensor.ones(3, 4, 5)]), "cat: expected shapes equal but for axis 0"),
        (lambda: stack([X, Tensor.ones(3)]), "stack: "),
        (lambda: einsum("ij,jk", X), "einsum: expected an equation with a term for each tensor"),
        (lambda: einsum("ij->ii", X), "einsum: expected output labels of the inputs, each once"),
        (lambda: einsum("i1->i", X), "einsum: expected letters"),
        (lambda: einsum("ijk->i", X), "einsum: expected 3 axes for 'ijk', got 2"),
        (lambda: X.where(X, 0.0), "where: expected a bool condition, got float32"),
        (lambda: where(X, 1.0, 2.0), "where: expected a bool condition"),
        (lambda: X & X, "and: expected bool tensors, got float32; there are no operations on bits"),
        (lambda: ~Tensor([1]), "not: expected bool tensors, got int64"),
        (lambda: -Tensor([True]), "neg: expected an integer or a float, got bool"),
        (lambda: X.conv2d(X), r"conv2d: expected x \(N, C, height, width\), got \[3, 4\]"),
        (lambda: X.dot(X), "dot: expected two vectors"),
        (lambda: X.t().unsqueeze(0).t(), "t: expected at most two axes"),
        (lambda: X.gelu("other"), 'gelu: expected approximate "none" or "tanh"'),
        (lambda: Tensor([2]) ** -1, "pow: expected an exponent that is an integer ≥ 0"),
        (lambda: bool(X), r"bool: expected one element, got the shape \[3, 4\]"),
        (lambda: X.item(), "item: expected one element"),
        (lambda: len(Tensor(1.0)), "len: expected a tensor with axes"),
        (lambda: iter(Tensor(1.0)).__next__(), "len: expected a tensor with axes"),
        (lambda: [1][Tensor(0.0)], "index: expected an integer tensor, got float32"),
        (lambda: Tensor([[1], [1, 2]]), "expected lists of equal lengths"),
        (lambda: Tensor.full((2,), 1.5, "int32"), "expected an integer for int32, got 1.5"),
        (lambda: Tensor.full((2,), 300, "uint8"), "0 to 255, got 300"),
        (lambda: Tensor.zeros(-1), "expected sizes ≥ 0"),
        (lambda: Tensor.arange(0, 1, 0), "arange: expected a step other than 0"),
        (lambda: Tensor.linspace(0, 1, -1), "linspace: expected steps ≥ 0"),
        (lambda: Tensor.eye(-1), "eye: expected sizes ≥ 0"),
        (lambda: X.index_select(0, Tensor([0.5])), "take: expected an integer index"),
        (lambda: X.gather(0, Tensor([0])), "gather: expected an index of rank 2"),
        (lambda: X.size(2), "size: expected an axis of 2"),
        (lambda: X.one_hot(3), "one_hot: expected an integer index"),
    ],
)
def test_messages(action, message):
    with pytest.raises(TensorError, match=message) as caught:
        action()
    assert "(at test_tensor_errors.py:" in str(caught.value)


@pytest.mark.parametrize(
    "action",
    [
        lambda: Tensor(["a"]),
        lambda: Tensor("a"),
        lambda: Tensor(None),
        lambda: Tensor(1j),
        lambda: X.maximum("a"),
        lambda: X.matmul("a"),
    ],
)
def test_operands_that_are_no_arrays(action):
    with pytest.raises(TensorTypeError, match="expected") as caught:
        action()
    assert isinstance(caught.value, TypeError)


def test_operators_leave_what_they_do_not_know_to_python():
    for action in (lambda: X + "a", lambda: X @ None, lambda: "a" - X, lambda: X < None):
        with pytest.raises(TypeError, match=r"unsupported operand|not supported"):
            action()
    assert X.__add__("a") is NotImplemented
    assert (X == "a") is False
