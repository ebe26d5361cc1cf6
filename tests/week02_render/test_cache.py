import multiprocessing
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from week01_uops.dtypes import float32
from week01_uops.ops import param, program
from week02_render import cache as module
from week02_render.cache import ObjectCache, cache_directory, content_key
from week02_render.runtime import load
from week02_render.toolchain import find_toolchain

COPY = program(param(0, float32, (1,)))
SOURCE = """\
void program(void *const *inputs, void *const *outputs) { *(float *)outputs[0] = NUMBER; }
"""


def entries(directory):
    return sorted(Path(directory).glob("objects/*/*.so"))


def scratch(directory):
    return list(Path(directory).glob("objects/*/tmp-*"))


def answer(number, directory):
    source = SOURCE.replace("NUMBER", str(number))
    program_ = load(source, COPY, cache=ObjectCache(Path(directory)))
    return float(program_.run([np.zeros(1, np.float32)])[0][0])


def counting(content):
    calls = []

    def build(path):
        calls.append(path)
        path.write_bytes(content)

    return build, calls


def test_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path / "a"))
    assert cache_directory() == tmp_path / "a"
    monkeypatch.delenv("UOPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "uops"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "uops"


def test_keys_depend_on_every_part_and_its_place():
    keys = [
        content_key(*parts)
        for parts in [("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ("", "ab")]
    ]
    assert len(set(keys)) == len(keys)
    assert content_key("a", "b") == keys[0]


def test_an_entry_is_built_once(tmp_path):
    build, calls = counting(b"object")
    store = ObjectCache(tmp_path)
    assert [store.get("k" * 64, build) for _ in range(3)] == [b"object"] * 3
    assert len(calls) == 1
    assert not scratch(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"x", b"y" * 100])
def test_a_damaged_entry_is_built_anew(tmp_path, damage):
    build, calls = counting(b"object")
    store = ObjectCache(tmp_path)
    store.get("k" * 64, build)
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    for content in (damage, whole[:-1], whole[1:], b"z" + whole[1:]):
        entry.write_bytes(content)
        assert store.get("k" * 64, build) == b"object"
    assert len(calls) == 5
    assert entry.read_bytes() == whole


def test_a_failing_build_leaves_nothing(tmp_path):
    def build(path):
        path.write_bytes(b"half")
        raise ValueError("cut short")

    store = ObjectCache(tmp_path)
    with pytest.raises(ValueError, match="cut short"):
        store.get("k" * 64, build)
    assert not entries(tmp_path)
    assert not scratch(tmp_path)


def test_a_directory_that_cannot_be_written_caches_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    build, calls = counting(b"object")
    store = ObjectCache(tmp_path / "file")
    assert [store.get("k" * 64, build) for _ in range(2)] == [b"object"] * 2
    assert len(calls) == 2


def test_the_entries_used_longest_ago_go(tmp_path):
    build, _ = counting(bytes(1000))
    store = ObjectCache(tmp_path, limit=5000)
    for k in range(10):
        store.get(f"{k:064}", build)
    times = iter(range(1000, 2000))
    for entry in entries(tmp_path):
        os.utime(entry, (next(times),) * 2)
    store.get(f"{0:064}", build)
    store.sweep()
    kept = {path.name for path in entries(tmp_path)}
    assert len(kept) == 3
    assert f"{0:062}.so" in kept


def test_abandoned_builds_go(tmp_path):
    folder = tmp_path / "objects" / "ab"
    old, new = folder / "tmp-old", folder / "tmp-new"
    for path in (old, new):
        path.mkdir(parents=True)
    long_ago = time.time() - 2 * module.ABANDONED
    os.utime(old, (long_ago, long_ago))
    ObjectCache(tmp_path).sweep()
    assert scratch(tmp_path) == [new]


def test_processes_race_for_one_entry(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        jobs = [(1 + k % 2, str(tmp_path)) for k in range(12)]
        assert pool.starmap(answer, jobs, chunksize=1) == [float(n) for n, _ in jobs]
    assert len(entries(tmp_path)) == 2
    assert not scratch(tmp_path)


def test_threads_race_with_eviction(tmp_path):
    """Every call gets its answer while another thread removes entries all the time."""
    wrong, done = [], threading.Event()

    def work():
        for k in range(6):
            if answer(k, tmp_path) != k:
                wrong.append(k)

    def evict():
        while not done.is_set():
            ObjectCache(tmp_path, limit=0).sweep()

    threads = [threading.Thread(target=work) for _ in range(3)]
    evictor = threading.Thread(target=evict)
    for thread in (evictor, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    evictor.join()
    assert not wrong


def test_the_key_knows_flags_and_compiler(tmp_path):
    chain = find_toolchain()
    store = ObjectCache(tmp_path)
    for item in (
        chain,
        replace(chain, flags=(*chain.flags, "-DX")),
        replace(chain, version="other"),
    ):
        load(SOURCE.replace("NUMBER", "1"), COPY, cache=store, toolchain=item)
    assert len(entries(tmp_path)) == 3
