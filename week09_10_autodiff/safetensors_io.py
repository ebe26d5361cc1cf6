"""Reading and writing safetensors files: memory is mapped, not copied.

A file is 8 bytes with the length n of the header (little-endian), n bytes of JSON, and the bytes
of the tensors, row-major, one after the other without a gap:

    {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}

Compiled programs want arrays at multiples of 64 bytes. A tensor that lies so is the mapped memory
itself; another is read once, straight into memory of its own. Files written here have a header
padded to 64 bytes, and tensors of whole multiples of 64 bytes first, so that at most the small
odd ones need that. See https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week02_render.buffers import ALIGNMENT, Array, aligned_empty
from week09_10_autodiff.atomic import atomic_file

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
METADATA = "__metadata__"
LARGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""

NAMES: Mapping[str, DType] = MappingProxyType(
    {
        "BOOL": dtypes.bool_,
        **{f"I{d.bits}": d for d in dtypes.INTEGERS if d.kind == "int"},
        **{f"U{d.bits}": d for d in dtypes.INTEGERS if d.kind == "uint"},
        "F16": dtypes.float16,
        "BF16": dtypes.bfloat16,
        "F32": dtypes.float32,
        "F64": dtypes.float64,
    }
)
"""The format's names of the dtypes."""
_NAME_OF = {dtype: name for name, dtype in NAMES.items()}


class SafetensorsError(ValueError):
    """A file is not what the format says, or not all of it is there."""


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: its type, shape, and bytes [start, end) of the whole file."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int


class SafetensorsFile(Mapping[str, Array]):
    """The tensors of a file by name, each an array when it is asked for.

    Arrays that are mapped may be written to: the file stays as it is (the pages are copied when
    they are first written). They keep the file's memory alive by themselves.

    Attributes:
        path: the file.
        metadata: the strings that stand beside the tensors.
        entries: where the tensors are.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the header.

        Raises:
            SafetensorsError: the file is damaged; the message says how.
        """
        self.path = Path(path)
        with open(self.path, "rb") as file:
            self.metadata, self.entries = _read_header(self.path, file)

    @cached_property
    def _map(self) -> mmap.mmap:
        with open(self.path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def __getitem__(self, name: str) -> Array:
        """The array of a tensor: mapped memory where it is aligned, else one copy."""
        if name not in self.entries:
            raise KeyError(f"expected a tensor of {self.path}, got {name!r}")
        entry = self.entries[name]
        if entry.start == entry.end:
            return aligned_empty(entry.shape, entry.dtype)
        if entry.start % ALIGNMENT:
            return self._copy(entry)
        count = (entry.end - entry.start) // entry.dtype.numpy.itemsize
        array = np.frombuffer(self._map, entry.dtype.numpy, count, entry.start)
        return array.reshape(entry.shape)

    def _copy(self, entry: Entry) -> Array:
        array = aligned_empty(entry.shape, entry.dtype)
        rest = array.reshape(-1).view(np.uint8).data
        with open(self.path, "rb", buffering=0) as file:
            file.seek(entry.start)
            while rest:
                count = file.readinto(rest)
                if not count:
                    raise SafetensorsError(f"{self.path}: the file ended while it was read")
                rest = rest[count:]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries


def _read_header(path: Path, file: BinaryIO) -> tuple[dict[str, str], dict[str, Entry]]:
    actual = os.fstat(file.fileno()).st_size
    if actual < 8:
        raise _damaged(path, f"expected 8 bytes or more, got {actual}")
    length = int.from_bytes(file.read(8), "little")
    if length > min(LARGEST_HEADER, actual - 8):
        wanted = f"expected a header of {length} bytes"
        raise _damaged(path, f"{wanted}, but the file has {actual} bytes in all")
    header = _parse(path, file.read(length))
    metadata = header.pop(METADATA, {})
    start = 8 + length
    entries = {name: _entry(path, name, item, start) for name, item in header.items()}
    _expect_gapless(path, entries, start, actual)
    return metadata, entries


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise _damaged(path, f"its header is no JSON ({error})") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no JSON object")
    return header


def _entry(path: Path, name: str, item: Any, start: int) -> Entry:  # noqa: ANN401 - any JSON
    try:
        code, shape = item["dtype"], tuple(map(int, item["shape"]))
        low, high = map(int, item["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        wanted = "dtype, shape and data_offsets"
        raise _damaged(path, f"tensor {name!r}: expected {wanted}, got {item!r}") from error
    if code not in NAMES:
        known = ", ".join(NAMES)
        raise SafetensorsError(f"{path}: tensor {name!r}: expected one of {known}, got {code!r}")
    dtype = NAMES[code]
    size = int(np.prod(shape, dtype=object)) * dtype.bits // 8
    if min(shape, default=0) < 0 or high - low != size:
        wanted = f"{size} bytes for {dtype}{list(shape)}"
        raise _damaged(path, f"tensor {name!r}: expected {wanted}, got {[low, high]}")
    return Entry(dtype, shape, start + low, start + high)


def _expect_gapless(path: Path, entries: Mapping[str, Entry], start: int, actual: int) -> None:
    """The tensors fill the file: no gaps, no overlaps, nothing missing at the end."""
    at = start
    for name, entry in sorted(entries.items(), key=lambda e: (e[1].start, e[1].end)):
        if entry.start != at:
            raise _damaged(
                path, f"tensor {name!r}: expected to begin at byte {at}, got {entry.start}"
            )
        at = entry.end
    if at != actual:
        what = "is truncated" if actual < at else "has bytes after its last tensor"
        raise SafetensorsError(f"{path} {what}: expected {at} bytes, got {actual}")


def _damaged(path: Path, why: str) -> SafetensorsError:
    return SafetensorsError(f"{path} is not a whole safetensors file: {why}")


def load_file(path: str | os.PathLike[str]) -> SafetensorsFile:
    """The tensors of one file by name; see SafetensorsFile."""
    return SafetensorsFile(path)


class SafetensorsFolder(Mapping[str, Array]):
    """The tensors of a folder: `model.safetensors`, or the shards that its index names."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Read the headers.

        Raises:
            FileNotFoundError: there is no such file, or a shard is missing.
            SafetensorsError: a file is damaged, or lacks a tensor that the index promises.
        """
        self.path = Path(folder)
        index = self.path / INDEX
        self._file_of = _from_index(index) if index.exists() else _single(self.path / SINGLE)

    def __getitem__(self, name: str) -> Array:
        if name not in self._file_of:
            raise KeyError(f"expected a tensor of {self.path}, got {name!r}")
        return self._file_of[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)

    def __contains__(self, name: object) -> bool:
        return name in self._file_of

    def entry(self, name: str) -> Entry:
        """Type and shape of a tensor, which is not read."""
        return self._file_of[name].entries[name]


def load_folder(folder: str | os.PathLike[str]) -> SafetensorsFolder:
    """The tensors of a folder by name; see SafetensorsFolder."""
    return SafetensorsFolder(folder)


def _single(path: Path) -> dict[str, SafetensorsFile]:
    if not path.exists():
        raise FileNotFoundError(f"expected {SINGLE} or {INDEX} in {path.parent}, found neither")
    file = SafetensorsFile(path)
    return dict.fromkeys(file, file)


def _from_index(index: Path) -> dict[str, SafetensorsFile]:
    try:
        shard_of = dict(json.loads(index.read_text("utf-8"))["weight_map"])
    except (KeyError, TypeError, ValueError) as error:
        raise SafetensorsError(f'{index}: expected JSON with a "weight_map"') from error
    files = {}
    for shard in sorted(set(shard_of.values())):
        path = index.parent / shard
        if not path.exists():
            raise FileNotFoundError(f"{index} names the shard {shard}, which is not there")
        files[shard] = SafetensorsFile(path)
    for name, shard in shard_of.items():
        if name not in files[shard]:
            raise SafetensorsError(f"{index} promises {name!r} in {shard}, which lacks it")
    return {name: files[shard] for name, shard in shard_of.items()}


def save_file(
    tensors: Mapping[str, Array],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors to a file that appears whole or not at all.

    Raises:
        TypeError: an array's type has no name in the format.
    """
    with atomic_file(path) as temporary:
        write_file(tensors, temporary, metadata)


def write_file(
    tensors: Mapping[str, Array], path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a file, as they come: whole multiples of 64 bytes first, then the rest."""
    order = sorted(tensors, key=lambda name: (tensors[name].nbytes % ALIGNMENT != 0, name))
    header = json.dumps(_header({name: tensors[name] for name in order}, metadata)).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for name in order:
            array = np.ascontiguousarray(tensors[name])
            file.write(array.reshape(-1).view(np.uint8).data)


def _header(tensors: Mapping[str, Array], metadata: Mapping[str, str] | None) -> dict[str, Any]:
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    at = 0
    for name, array in tensors.items():
        code = _NAME_OF[dtypes.from_numpy(array.dtype)]
        end = at + array.nbytes
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    return header
