"""Which dtype results of two: the table, its laws, and what operations make of it."""

import itertools

import numpy as np
import pytest

from week01_uops.dtypes import ALL, BY_NAME, bool_, float16, float32, int64, uint64
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.promotion import default_dtype, dtype_of, promote, promote_weak
from week09_10_autodiff.tensor import Tensor, where

NAMES = ["bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"]
FULL = {"bool": "bool", "bf16": "bfloat16"} | {
    f"{short}{bits}": f"{kind}{bits}"
    for short, kind, sizes in (("u", "uint", 8), ("i", "int", 8), ("f", "float", 16))
    for bits in (sizes, 16, 32, 64)
    if bits >= sizes
}
TABLE = """
bool u8   u16  u32  u64  i8   i16  i32  i64  f16  bf16 f32  f64
u8   u8   u16  u32  u64  i16  i16  i32  i64  f16  bf16 f32  f64
u16  u16  u16  u32  u64  i32  i32  i32  i64  f16  bf16 f32  f64
u32  u32  u32  u32  u64  i64  i64  i64  i64  f16  bf16 f32  f64
u64  u64  u64  u64  u64  -    -    -    -    f16  bf16 f32  f64
i8   i16  i32  i64  -    i8   i16  i32  i64  f16  bf16 f32  f64
i16  i16  i32  i64  -    i16  i16  i32  i64  f16  bf16 f32  f64
i32  i32  i32  i64  -    i32  i32  i32  i64  f16  bf16 f32  f64
i64  i64  i64  i64  -    i64  i64  i64  i64  f16  bf16 f32  f64
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
ENTRIES = {
    (BY_NAME[FULL[a]], BY_NAME[FULL[b]]): None if entry == "-" else BY_NAME[FULL[entry]]
    for a, row in zip(NAMES, ROWS, strict=True)
    for b, entry in zip(NAMES, row, strict=True)
}


def test_the_table_is_whole():
    assert set(ENTRIES) == set(itertools.product(ALL, ALL))


@pytest.mark.parametrize("pair", ENTRIES, ids=str)
def test_promotion(pair):
    if ENTRIES[pair] is None:
        with pytest.raises(TensorError, match="uint64"):
            promote(*pair)
    else:
        assert promote(*pair) is ENTRIES[pair]
        a, b = (Tensor.ones(2, dtype=dtype) for dtype in pair)
        assert (a + b).dtype is (a * b).dtype is where(a == a, a, b).dtype is ENTRIES[pair]


def test_laws():
    for a, b, c in itertools.product(ALL, repeat=3):
        if uint64 in (a, b, c) or {a, b, c} >= {float16, BY_NAME["bfloat16"]}:
            continue
        assert promote(a, promote(b, c)) is promote(promote(a, b), c)
    assert all(promote(a, a) is a for a in ALL)


def test_integers_as_numpy_does():
    for (a, b), wanted in ENTRIES.items():
        if wanted is not None and a.kind != "float" != b.kind:
            assert np.promote_types(a.numpy, b.numpy) == wanted.numpy


@pytest.mark.parametrize(
    ("dtype", "number", "wanted"),
    [
        ("bool", True, "bool"),
        ("bool", 1, "int64"),
        ("bool", 1.0, "float32"),
        ("uint8", 1, "uint8"),
        ("int32", True, "int32"),
        ("int32", 1.0, "float32"),
        ("float16", 1, "float16"),
        ("bfloat16", 1.5, "bfloat16"),
        ("float64", 1.5, "float64"),
        ("int8", np.float64(1.5), "float32"),
    ],
)
def test_numbers_are_weak(dtype, number, wanted):
    x = Tensor.ones(2, dtype=dtype)
    plain = number.item() if isinstance(number, np.generic) else number
    assert promote_weak(x.dtype, (plain,)) is BY_NAME[wanted]
    for result in (x + number, number + x, x * number, x.maximum(number)):
        assert result.dtype is BY_NAME[wanted]


def test_a_number_that_does_not_fit():
    with pytest.raises(TensorError, match="0 to 255, got 300"):
        Tensor.ones(2, dtype="uint8") + 300
    assert (Tensor.ones(2, dtype="uint8") > -1).tolist() == [True, True]
    assert (Tensor.ones(2, dtype="uint8") == 257).tolist() == [False, False]


def test_quotients_are_floats():
    assert (Tensor([7]) / 2).tolist() == [3.5]
    assert (Tensor([True]) / Tensor([4])).dtype is float32
    assert (Tensor([7]) // 2).dtype is int64


def test_names_of_dtypes():
    for given in ("float32", np.float32, np.dtype("f4"), float, float32):
        assert dtype_of(given) is float32
    assert dtype_of(int) is int64
    assert dtype_of(bool) is bool_
    assert dtype_of("bfloat16").name == "bfloat16"
    assert [default_dtype(v) for v in (True, 1, 1.0)] == [bool_, int64, float32]
    for wrong in ("float8", complex, "nonsense"):
        with pytest.raises(TensorError, match="expected one of bool, int8"):
            dtype_of(wrong)
