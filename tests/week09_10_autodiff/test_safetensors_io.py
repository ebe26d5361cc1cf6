"""Safetensors files: against the safetensors package both ways, mapped, and damaged."""

import json
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from week02_render.buffers import ALIGNMENT, address, is_dense
from week09_10_autodiff import safetensors_io
from week09_10_autodiff.safetensors_io import (
    SafetensorsError,
    SafetensorsFile,
    load_file,
    load_folder,
    save_file,
)

official = pytest.importorskip("safetensors.numpy")
DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]
DTYPES += [np.uint64, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def some_arrays():
    rng = np.random.default_rng(0)
    return {
        f"{np.dtype(d).name}.{i}": np.asarray(rng.standard_normal(shape) * 4).astype(d)
        for d in DTYPES
        for i, shape in enumerate([(), (3,), (4, 16), (0, 5), (2, 3, 5), (1,)])
    }


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_what_we_write_the_package_reads(tmp_path):
    arrays = some_arrays()
    save_file(arrays, tmp_path / "a.safetensors", {"format": "pt", "step": "7"})
    with official.safe_open(tmp_path / "a.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt", "step": "7"}
    got = official.load_file(tmp_path / "a.safetensors")
    assert got.keys() == arrays.keys()
    assert all(equal(got[name], arrays[name]) for name in arrays)


def test_what_the_package_writes_we_read(tmp_path):
    arrays = some_arrays()
    official.save_file(arrays, tmp_path / "a.safetensors", metadata={"a": "b"})
    got = load_file(tmp_path / "a.safetensors")
    assert got.metadata == {"a": "b"}
    assert got.keys() == arrays.keys()
    assert all(equal(got[name], arrays[name]) for name in arrays)
    assert all(is_dense(got[name]) for name in arrays)


@settings(max_examples=50, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda s: s != "__metadata__"),
        hnp.arrays(
            st.sampled_from([np.float32, np.int8, np.uint64]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9),
        ),
        max_size=5,
    )
)
def test_writing_and_reading_is_the_identity(arrays, tmp_path_factory):
    path = tmp_path_factory.mktemp("round") / "a.safetensors"
    save_file(arrays, path)
    got = load_file(path)
    assert got.keys() == arrays.keys()
    assert all(equal(got[name], arrays[name]) for name in arrays)


def test_aligned_tensors_are_the_mapped_memory(tmp_path):
    odd = np.arange(3, dtype=np.int16)
    arrays = {"a.odd": odd, "z": np.arange(64, dtype=np.float32), "m": np.ones((4, 8), np.float64)}
    save_file(arrays, tmp_path / "a.safetensors")
    file = load_file(tmp_path / "a.safetensors")
    start = address(np.frombuffer(file._map, np.uint8))
    for name in arrays:  # the odd one comes last, where it is still aligned
        assert address(file[name]) == start + file.entries[name].start
        assert address(file[name]) % ALIGNMENT == 0
    assert address(file["z"]) == address(file["z"])


def test_only_what_lies_askew_is_copied(tmp_path):
    arrays = {"a": np.zeros(3, np.int8), "b": np.ones(5, np.int8), "c": np.zeros(64, np.int8)}
    save_file(arrays, tmp_path / "a.safetensors")
    file = load_file(tmp_path / "a.safetensors")
    start = address(np.frombuffer(file._map, np.uint8))
    inside = {n: start <= address(file[n]) < start + len(file._map) for n in file}
    assert inside == {"c": True, "a": True, "b": False}
    assert equal(file["b"], arrays["b"])


def test_writing_to_a_mapped_array_leaves_the_file_alone(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": np.zeros(16, np.float32)}, path)
    before = path.read_bytes()
    x = load_file(path)["x"]
    x += 1
    assert (x == 1).all()
    assert path.read_bytes() == before


def test_a_mapped_array_outlives_its_file_object_and_a_new_file_of_its_name(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": np.full(1024, 3.0, np.float32)}, path)
    x = load_file(path)["x"]
    save_file({"x": np.zeros(1, np.float32)}, path)
    assert (x == 3).all()


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def item(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"{", b"", "its header is no JSON"),
        (b"[]", b"", "its header is no JSON object"),
        ({"x": 3}, b"", "tensor 'x': expected dtype, shape and data_offsets, got 3"),
        ({"x": {"dtype": "F32"}}, b"", "expected dtype, shape and data_offsets"),
        ({"x": item("F8_E4M3")}, b"\0" * 8, "tensor 'x': expected one of BOOL, .* got 'F8_E4M3'"),
        ({"x": item(shape=(3,))}, b"\0" * 8, "expected 12 bytes for float32[3], got [0, 8]"),
        ({"x": item(offsets=(8, 16))}, b"\0" * 16, "'x': expected to begin at byte"),
        ({"x": item(), "y": item()}, b"\0" * 8, "'y': expected to begin at byte"),
        ({"x": item()}, b"\0" * 9, "has bytes after its last tensor"),
        ({"x": item(shape=(-2, -1))}, b"\0" * 8, "expected 8 bytes for float32[-2, -1]"),
    ],
)
def test_damaged_files_are_refused_with_a_sentence(tmp_path, header, data, message):
    path = write(tmp_path / "bad.safetensors", header, data)
    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(SafetensorsError, match=pattern) as caught:
        load_file(path)
    assert str(path) in str(caught.value)


def test_a_truncated_file_is_refused_whatever_its_length(tmp_path):
    path = tmp_path / "whole.safetensors"
    save_file({"x": np.zeros(40, np.float32), "y": np.zeros(3, np.int8)}, path)
    whole = path.read_bytes()
    short = tmp_path / "short.safetensors"
    for length in range(len(whole)):
        short.write_bytes(whole[:length])
        with pytest.raises(SafetensorsError, match=r"short\.safetensors"):
            load_file(short)
    short.write_bytes(whole[:-1])
    said = f"truncated: expected {len(whole)} bytes, got {len(whole) - 1}"
    with pytest.raises(SafetensorsError, match=said):
        load_file(short)


def test_an_unknown_name_says_which_file(tmp_path):
    save_file({"x": np.zeros(3)}, tmp_path / "a.safetensors")
    with pytest.raises(KeyError, match=r"a\.safetensors"):
        load_file(tmp_path / "a.safetensors")["y"]


def test_a_type_without_a_name_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(TypeError, match="complex128"):
        save_file({"x": np.zeros(3, complex)}, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def sharded(folder):
    save_file({"a": np.arange(3)}, folder / "model-1.safetensors")
    save_file({"b": np.arange(4.0)}, folder / "model-2.safetensors")
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    index = folder / safetensors_io.INDEX
    index.write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    return index


def test_a_sharded_folder_is_one_mapping(tmp_path):
    sharded(tmp_path)
    tensors = load_folder(tmp_path)
    assert set(tensors) == {"a", "b"}
    assert len(tensors) == 2
    assert equal(tensors["b"], np.arange(4.0))
    assert tensors.entry("a").shape == (3,)


def test_a_folder_with_one_file(tmp_path):
    save_file({"a": np.arange(3)}, tmp_path / "model.safetensors")
    assert equal(load_folder(tmp_path)["a"], np.arange(3))


def test_folders_that_lack_something_say_what(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"expected model\.safetensors or model\.safetensors\.index"
    ):
        load_folder(tmp_path)
    index = sharded(tmp_path)
    shards = json.loads(index.read_text())["weight_map"]
    index.write_text(json.dumps({"weight_map": {**shards, "c": "model-2.safetensors"}}))
    with pytest.raises(SafetensorsError, match=r"promises 'c' in model-2.safetensors, which lacks"):
        load_folder(tmp_path)
    index.write_text(json.dumps({"weight_map": {"c": "model-3.safetensors"}}))
    with pytest.raises(FileNotFoundError, match=r"names the shard model-3\.safetensors"):
        load_folder(tmp_path)
    index.write_text("{}")
    with pytest.raises(SafetensorsError, match='expected JSON with a "weight_map"'):
        load_folder(tmp_path)


def test_a_file_is_a_mapping_without_reading_it(tmp_path):
    save_file({"x": np.zeros(3)}, tmp_path / "a.safetensors")
    file = SafetensorsFile(tmp_path / "a.safetensors")
    assert "x" in file
    assert "y" not in file
    assert "_map" not in vars(file)
