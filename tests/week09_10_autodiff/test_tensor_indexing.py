"""Indexing of tensors as NumPy indexes arrays: what is read, what is written, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from week05_06_memory.evaluate import evaluate
from week09_10_autodiff.errors import TensorError, TensorIndexError
from week09_10_autodiff.realize import canonical
from week09_10_autodiff.tensor import Tensor

SHAPE = (3, 4, 5)
ARRAY = np.arange(60.0, dtype=np.float32).reshape(SHAPE)
MASK = ARRAY[:, :, 0] % 3 == 0

KEYS = [
    0,
    -1,
    (2, -4, 3),
    (slice(None), 1),
    (..., 2),
    (0, ..., 1),
    (slice(None, None, -1),),
    (slice(0, 3, 2), slice(3, 0, -2), slice(4, None, -3)),
    slice(5, 2),
    (slice(1, 1), 0),
    None,
    (None, 0, ..., None),
    [0, 2],
    [],
    (slice(None), [1, 0, 3]),
    ([0, 1], [2, 3]),
    ([0, 1], slice(None), [2, 3]),
    (0, slice(None), [1, 2]),
    ([1, 2], slice(None), 0),
    (slice(None), 1, [1, 2]),
    (slice(None), [[0], [1]], [1, -2]),
    ([[0, 1], [2, 0]], None, 1),
    (None, [0, 2], slice(1, 3)),
    MASK,
    ARRAY > 30,
    (slice(None), ARRAY[0, :, 0] > 4),
    (MASK, [0, 1, 2, 4]),
]


def as_key(key):
    """NumPy takes a list of lists for an array only where it says so."""
    return np.asarray(key, np.int64) if isinstance(key, list) else key


@pytest.fixture(scope="module")
def read():
    """All keys in one program."""
    x = Tensor(ARRAY)
    results = [x[key] for key in KEYS]
    Tensor.realize(*results)
    return results


@pytest.mark.parametrize("number", range(len(KEYS)), ids=lambda n: str(n))
def test_reading(read, number):
    wanted = ARRAY[as_key(KEYS[number])]
    assert read[number].shape == wanted.shape
    np.testing.assert_array_equal(read[number].numpy(), wanted)


@pytest.fixture(scope="module")
def written():
    """A number and a value of the full shape at each key, in one program."""
    rng = np.random.default_rng(0)
    results, wanted = [], []
    for key in KEYS:
        one, each = Tensor(ARRAY), Tensor(ARRAY)
        first, second = ARRAY.copy(), ARRAY.copy()
        one[key] = first[as_key(key)] = -1
        values = rng.standard_normal(ARRAY[as_key(key)].shape).astype(np.float32)
        each[key] = second[as_key(key)] = values
        results += [one, each]
        wanted += [first, second]
    Tensor.realize(*results)
    return results, wanted


@pytest.mark.parametrize("number", range(len(KEYS)), ids=lambda n: str(n))
def test_writing(written, number):
    results, wanted = written
    for at in (2 * number, 2 * number + 1):
        np.testing.assert_array_equal(results[at].numpy(), wanted[at])


def test_tensors_as_indices():
    x, i = Tensor(ARRAY), Tensor([0, 2, -1])
    np.testing.assert_array_equal(x[i].numpy(), ARRAY[[0, 2, -1]])
    np.testing.assert_array_equal(x[:, i, i].numpy(), ARRAY[:, [0, 2, -1], [0, 2, -1]])
    np.testing.assert_array_equal(x[Tensor(1)].numpy(), ARRAY[1])
    np.testing.assert_array_equal(x[Tensor([1, 0], dtype="uint8")].numpy(), ARRAY[[1, 0]])


def test_a_tensor_outside_reads_zero_and_writes_nothing():
    x, i = Tensor(ARRAY), Tensor([1, 7, -9])
    np.testing.assert_array_equal(x[i].numpy(), [ARRAY[1], ARRAY[0] * 0, ARRAY[0] * 0])
    np.testing.assert_array_equal(x[i, Tensor(0)].numpy()[1:], np.zeros((2, 5)))
    x[i] = -1
    wanted = ARRAY.copy()
    wanted[1] = -1
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_the_last_of_equal_positions_is_written():
    x = Tensor.zeros(3)
    x[[1, 1, 0]] = [5, 6, 7]
    assert x.tolist() == [7, 6, 0]


def test_masks_of_tensors_write():
    x, wanted = Tensor(ARRAY), ARRAY.copy()
    x[x > 30] = 0
    wanted[wanted > 30] = 0
    x[Tensor(MASK)] = Tensor([1, 2, 3, 4, 5])
    wanted[MASK] = [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_writing_keeps_the_dtype_and_what_was_read_before():
    x = Tensor([1, 2, 3])
    before = x + 0
    x[1] = 7.9
    assert x.dtype.name == "int64"
    assert x.tolist() == [1, 7, 3]
    assert before.tolist() == [1, 2, 3]


def test_what_was_read_is_no_view():
    x = Tensor([[1, 2], [3, 4]])
    row = x[0]
    x[0] += 10
    x[1][0] = 99
    assert x.tolist() == [[11, 12], [3, 4]]
    assert row.tolist() == [1, 2]


def test_derivatives_of_reading_and_writing():
    x = Tensor(ARRAY, requires_grad=True)
    v = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[0, 0, [1, 1]] = v  # the second one wins
    (y[[0, 0, 2], 0] * 2).sum().backward()
    wanted = np.zeros(SHAPE)
    wanted[0, 0] = 4
    wanted[2, 0] = 2
    wanted[0, 0, 1] = 0
    np.testing.assert_array_equal(x.grad.numpy(), wanted)
    assert v.grad.tolist() == [0, 4]


def test_a_long_table_is_read_at_its_rows():
    rng = np.random.default_rng(1)
    table = rng.standard_normal((50000, 8)).astype(np.float32)
    rows = rng.integers(-50000, 50000, (3, 7))
    np.testing.assert_array_equal(Tensor(table)[Tensor(rows)].numpy(), table[rows])


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [
        (5, TensorIndexError, r"index in \[-3, 3\) for axis 0, got 5"),
        ((0, -5), TensorIndexError, r"index in \[-4, 4\) for axis 1, got -5"),
        ([7], TensorIndexError, r"index in \[-3, 3\) for axis 0, got 7"),
        ((0, 0, 0, 0), TensorIndexError, "at most 3 indices, one for each axis, got 4"),
        ((..., ...), TensorIndexError, "at most one"),
        (1.5, TensorError, "integers, slices, None, ... and integer arrays as indices, got float"),
        ([1.5], TensorError, "integers as indices, got float64"),
        ("a", TensorError, "as indices, got str"),
        (True, TensorError, "as indices, got True"),
        (slice(0.5), TensorIndexError, "integers in a slice"),
        (np.ones(2, bool), TensorIndexError, "a mask with 3 elements along axis 0, got 2"),
        (([0, 1], [0, 1, 2]), TensorIndexError, "shapes that broadcast"),
    ],
)
def test_refused(key, kind, message):
    with pytest.raises(kind, match=message):
        Tensor(ARRAY)[key]
    with pytest.raises(kind, match=message):
        Tensor(ARRAY)[key] = 0


def test_a_mask_of_a_tensor_is_refused_with_a_way_out():
    with pytest.raises(TensorError, match=r"x\[mask\.numpy\(\)\]"):
        Tensor(ARRAY)[Tensor(MASK)]


def test_values_that_do_not_fit_are_refused():
    x = Tensor(ARRAY)
    with pytest.raises(TensorError, match="set: "):
        x[0] = [1, 2]
    with pytest.raises(TensorError, match="a mask of the first axes"):
        x[Tensor([True, False])] = 0
    with pytest.raises(TensorError, match="no_grad"):
        x.requires_grad_()[0] = 1


@st.composite
def keys(draw, shape):
    """A key of slices, integers, None and … for a shape."""
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.booleans()):
            items.append(None)
        bound = st.none() | st.integers(-size - 1, size + 1)
        step = st.none() | st.sampled_from([1, 2, 3, -1, -2])
        choice = st.builds(slice, bound, bound, step)
        items.append(draw(choice | st.integers(-size, size - 1) if size else choice))
    if draw(st.booleans()):
        items.append(...)
    return tuple(items)


@st.composite
def chains(draw):
    """A function of arrays and of tensors: keys one after the other, with broadcast arithmetic."""
    steps, x = [], np.arange(24.0).reshape(2, 3, 4)
    for _ in range(draw(st.integers(1, 3))):
        key = draw(keys(x.shape))
        x = x[key]
        other = draw(st.sampled_from([x.shape[i:] for i in range(x.ndim + 1)]))
        other = tuple(draw(st.sampled_from([1, size])) for size in other)
        steps.append((key, np.arange(1.0, 1 + np.prod(other, dtype=int)).reshape(other)))
    return steps


def interpreted(tensor):
    """The elements as the interpreter computes them, which compiles nothing."""
    program, inputs = canonical([tensor.node])
    return evaluate(program, [storage.array for storage in inputs])[0]


@settings(max_examples=60, deadline=None)
@given(chains())
def test_chains_of_keys_and_broadcasting(steps):
    array = np.arange(24.0).reshape(2, 3, 4)
    tensor = Tensor(array)
    for key, other in steps:
        array, tensor = array[key] * other, tensor[key] * Tensor(other)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(interpreted(tensor), array)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_keys_write(data):
    array = np.arange(24.0).reshape(2, 3, 4)
    tensor = Tensor(array)
    key = data.draw(keys(array.shape))
    values = -1.0 - np.arange(array[key].size, dtype=float).reshape(array[key].shape)
    array[key] = values
    tensor[key] = values
    np.testing.assert_array_equal(interpreted(tensor), array)
