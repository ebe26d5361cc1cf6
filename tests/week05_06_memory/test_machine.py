import json
from dataclasses import replace

import pytest

from week05_06_memory import machine as module
from week05_06_memory import probe
from week05_06_memory.machine import (
    Machine,
    MachineError,
    data_caches,
    datapath,
    detect,
    vectors,
    vendor,
)
from week05_06_memory.probe import Speed, measured_speed

GIVEN = {
    "cores": 3,
    "vector_bytes": 32,
    "vector_registers": 16,
    "l1": 48 << 10,
    "l2": 1 << 20,
    "l3": 0,
    "line": 128,
    "balance": 5.5,
    "fork_cycles": 7000,
    "peak_flops": 5e10,
    "bandwidth": 1e10,
    "copy_bandwidth": 8e9,
}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    monkeypatch.delenv("UOPS_MACHINE", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path / "cache"))
    module._speed.cache_clear()


def test_detected_machine_is_usable_and_always_the_same():
    machine = detect()
    assert machine is detect()
    assert machine.cores >= 1
    assert machine.vector_registers in (16, 32)
    assert machine.caches == tuple(sorted(machine.caches))


@pytest.mark.parametrize(
    ("architecture", "features", "expected"),
    [
        ("x86_64", "flags : sse2 avx avx2 fma avx512f", (64, 32)),
        ("x86_64", "flags : sse2 avx", (32, 16)),
        ("x86_64", "flags : sse2 avx512", (16, 16)),
        ("aarch64", "Features : fp asimd", (16, 32)),
    ],
)
def test_vectors(architecture, features, expected):
    assert vectors(architecture, features) == expected


AMD = "vendor_id : AuthenticAMD\ncpu family : {}\nflags : avx2"


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (AMD.format(25), ("AuthenticAMD", 32)),
        (AMD.format(26), ("AuthenticAMD", 64)),
        ("vendor_id : GenuineIntel\ncpu family : 25", ("GenuineIntel", 64)),
        ("Features : fp asimd", ("", 64)),
    ],
)
def test_facts_of_a_processor(features, expected):
    assert (vendor(features), datapath(features)) == expected


@pytest.mark.parametrize(("features", "expected"), [(AMD.format(25), 8192), ("flags : avx2", 2048)])
def test_what_a_core_fetches_by_itself_is_known_of_its_maker(features, expected, monkeypatch):
    monkeypatch.setattr(module, "processor", lambda: features)
    module._detected.cache_clear()
    try:
        assert module._detected(1).ahead == expected
    finally:
        module._detected.cache_clear()


def cache(folder, number, **facts):
    index = folder / f"index{number}"
    index.mkdir()
    for name, text in facts.items():
        (index / name).write_text(f"{text}\n")


def test_caches_as_linux_lists_them(tmp_path):
    cache(tmp_path, 0, level=1, type="Data", size="48K", coherency_line_size=128)
    cache(tmp_path, 1, level=1, type="Instruction", size="32K", coherency_line_size=64)
    cache(tmp_path, 2, level=2, type="Unified", size="2M", coherency_line_size=64)
    assert data_caches(tmp_path) == {"l1": 48 << 10, "l2": 2 << 20, "l3": 0, "line": 128}


def test_caches_are_assumed_where_nothing_is_listed(tmp_path):
    cache(tmp_path, 0, level=1, type="Data", size="much")
    assert data_caches(tmp_path) == module.CACHES


def test_threads_bound_the_cores(monkeypatch):
    cores = detect().cores
    for text, expected in [("1", 1), ("1,4", 1), ("100000", cores), ("0", cores), ("many", cores)]:
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert detect().cores == expected


def test_given_values_replace_detected_ones(monkeypatch, tmp_path):
    detected = detect()
    monkeypatch.setenv("UOPS_MACHINE", '{"l2": 16777216, "l3": 0, "balance": 7}')
    assert detect() == replace(detected, l2=16 << 20, l3=0, balance=7.0)
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(GIVEN))
    monkeypatch.setenv("UOPS_MACHINE", str(file))
    assert GIVEN.items() <= json.loads(detect().to_json()).items()
    assert detect().caches == (48 << 10, 1 << 20)


def test_json_and_back():
    machine = Machine.from_json(json.dumps(GIVEN))
    assert Machine.from_json(machine.to_json()) == machine
    assert (machine.peak_flops, machine.bandwidth, machine.copy_bandwidth) == (5e10, 1e10, 8e9)
    assert "3 cores" in machine.describe()
    assert "given: 50.0 GFLOP/s" in machine.describe()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", r"expected a JSON object that describes a machine, got \[1\]"),
        ("{", "expected a JSON object that describes a machine, but "),
        ('{"core": 2}', r'expected a property of a machine \(cores, .*\), got "core"'),
        ('{"cores": true}', "cores: expected an integer ≥ 1, got true"),
        ('{"cores": 0}', "cores: expected an integer ≥ 1, got 0"),
        ('{"l1": "32K"}', 'l1: expected an integer ≥ 1, got "32K"'),
        ('{"balance": NaN}', "balance: expected a number > 0, got NaN"),
        ('{"bandwidth": -1}', "bandwidth: expected a number > 0, got -1"),
        ('{"vector_bytes": 24}', "vector_bytes: expected one of 16, 32, 64, got 24"),
        ('{"l1": 65536, "l2": 32768, "l3": 0}', "expected caches that grow with their level"),
    ],
)
def test_refusals(text, says):
    with pytest.raises(MachineError, match=says):
        Machine.from_json(text)


def test_a_missing_file_is_named(monkeypatch):
    monkeypatch.setenv("UOPS_MACHINE", "nowhere.json")
    with pytest.raises(MachineError, match=r"UOPS_MACHINE: expected a JSON object or .*nowhere"):
        detect()


def test_speed_is_measured_once(monkeypatch):
    speed = measured_speed(16, 1 << 20)
    assert speed.source == "measured"
    assert 1e8 < speed.peak_flops < 1e13
    assert 1e8 < speed.bandwidth < 1e13
    assert 1e8 < speed.copy_bandwidth < 1e13
    monkeypatch.setattr(probe, "_measure", None)
    assert measured_speed(16, 1 << 20) == speed


def test_a_damaged_record_is_measured_again(monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "_measure", lambda *_: Speed(1.0, 2.0, 3.0, "measured"))
    measured_speed(16, 1 << 20)
    (record,) = (tmp_path / "cache" / "machine").iterdir()
    for damage in ("{", '{"peak_flops": 1.0}', record.read_text().replace("1.0", '"1.0"')):
        record.write_text(damage)
        assert measured_speed(16, 1 << 20) == Speed(1.0, 2.0, 3.0, "measured")


def test_without_a_compiler_speed_is_an_estimate_and_says_so(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    machine = Machine.from_json('{"balance": 3}')
    assert machine.speeds().source == "estimated"
    assert machine.peak_flops == 3 * machine.bandwidth
    assert "estimated" in machine.describe()


def test_given_rates_replace_measured_ones(monkeypatch):
    monkeypatch.setattr(module, "measured_speed", lambda *_: Speed(8.0, 2.0, 3.0, "measured"))
    machine = Machine.from_json('{"bandwidth": 4}').measured()
    assert dict(machine.rates) == {"peak_flops": 8.0, "bandwidth": 4.0, "copy_bandwidth": 3.0}
    assert Machine.from_json('{"bandwidth": 4}').speeds().source == "measured but for what is given"
