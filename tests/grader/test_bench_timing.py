"""Rounds: who takes turns, what counts, what drops out; and the rows that follow."""

import itertools
import json
import math
import os
import time

import numpy as np
import pytest

from grader.bench import rows, timing
from grader.bench.ceiling import Ceiling
from grader.bench.contractions import gemm
from grader.bench.row import Row, geomeans
from grader.bench.timing import Measurement, Plan, Round, Usage, undisturbed
from grader.bench.workload import Workload

WORKLOAD = gemm("gemm", 3, 4, 5)


class Fake:
    """Computes a product, slowly."""

    pids = ()
    overhead = 0.0

    def __init__(self, inputs, log, name, seconds=1e-5, compute=np.matmul):
        self.inputs, self.log, self.name = inputs, log, name
        self.seconds, self.compute = seconds, compute
        self.out = np.zeros(WORKLOAD.shape, np.float32)
        self.calls = 0
        self.closed = False

    def take(self):
        self.out[...] = np.nan
        self.log.append((self.name, self.inputs[0].copy()))

    def ready(self):
        self.log.append((f"{self.name} ready", None))

    def run(self, calls):
        for _ in range(calls):
            self.calls += 1
            found = self.compute(*self.inputs)
            if found is not None:
                self.out[...] = found

    def fault(self, answer):
        return answer.fault(self.out)

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)
    monkeypatch.setattr(timing, "SAMPLE", 0.001)
    monkeypatch.setattr(timing, "_timed", clocked)


def clocked(one, calls):
    """What the calls take by their own account, however busy the machine is."""
    one.run(calls)
    return calls * one.seconds


def measurement(log, **computes):
    inputs = [np.empty(shape, np.float32) for shape in WORKLOAD.shapes]
    draws = [(d, WORKLOAD.answer(d)) for d in (WORKLOAD.draw(seed) for seed in (0, 1))]
    contenders = {
        name: compute if isinstance(compute, Fake) else Fake(inputs, log, name, compute=compute)
        for name, compute in computes.items()
    }
    for fake in contenders.values():
        fake.inputs = inputs
    return Measurement(contenders, inputs, draws)


def undisturbing(monkeypatch):
    monkeypatch.setattr(Usage, "now", classmethod(lambda cls, pids=(): cls(0.0, 0.0, 0.0)))


def test_contenders_take_turns_on_the_same_fresh_inputs(monkeypatch):
    undisturbing(monkeypatch)
    log = []
    found = measurement(log, ours=np.matmul, numpy=np.matmul, torch=np.matmul)
    found.calibrate()
    del log[:]
    rounds = found.rounds(Plan(rounds=4, budget=60))
    assert len(rounds) == 4
    assert [name for name, _ in log[1::2]] == [f"{name} ready" for name, _ in log[::2]]
    del log[1::2]
    orders = [[name for name, _ in log[3 * k : 3 * k + 3]] for k in range(4)]
    assert {tuple(sorted(order)) for order in orders} == {("numpy", "ours", "torch")}
    assert orders[1] == orders[0][::-1]
    assert len({order[0] for order in orders}) > 1
    for k in range(4):
        same = [np.array_equal(log[3 * k][1], drawn) for _, drawn in log[3 * k : 3 * k + 3]]
        assert all(same)
    assert not np.array_equal(log[0][1], log[3][1])


def test_a_wrong_result_drops_out():
    found = measurement([], ours=np.matmul, numpy=lambda a, b: a @ b + 1)
    found.calibrate()
    assert list(found.contenders) == ["ours"]
    assert "expected" in str(found.faults["numpy"])


def test_work_that_is_done_once_only_is_seen(monkeypatch):
    """The outputs are forgotten before every sample, and the inputs change."""
    undisturbing(monkeypatch)
    kept = []

    def lazy(a, b):
        kept.append(a @ b)
        return kept[0]

    found = measurement([], ours=lazy)
    found.calibrate()
    assert not found.faults
    found.rounds(Plan(rounds=3, budget=60))
    assert "expected" in str(found.faults["ours"])


def test_a_failure_ends_one_contender(monkeypatch):
    undisturbing(monkeypatch)
    calls = []

    def breaks(a, b):
        calls.append(1)
        if len(calls) > 40:
            raise ValueError("worn out")
        return a @ b

    found = measurement([], ours=np.matmul, numpy=breaks, torch=np.matmul)
    numpy = found.contenders["numpy"]
    found.calibrate()
    rounds = found.rounds(Plan(rounds=5, budget=60))
    assert str(found.faults["numpy"]) == "worn out"
    assert numpy.closed
    assert all({"ours", "torch"} <= r.seconds.keys() for r in rounds)


def test_no_round_goes_on_without_ours(monkeypatch):
    undisturbing(monkeypatch)
    found = measurement([], ours=lambda a, b: a @ b, numpy=np.matmul)
    found.calibrate()
    found.contenders["ours"].compute = lambda a, b: a @ b + 1
    assert len(found.rounds(Plan(rounds=7, budget=60))) == 1


def test_disturbed_rounds_are_replaced(monkeypatch):
    busy = iter([0, 0, 0, 9, 9, 9] + [9] * 1000)
    monkeypatch.setattr(Usage, "now", classmethod(lambda cls, pids=(): cls(0.0, 0.0, next(busy))))
    found = measurement([], ours=np.matmul)
    found.calibrate()
    rounds = found.rounds(Plan(rounds=3, budget=60))
    assert [r.disturbed for r in rounds] == [True, False, False, False]
    assert undisturbed(rounds) == rounds[1:]


def test_waiting_for_a_processor_disturbs(monkeypatch):
    waited = iter(range(100000))
    monkeypatch.setattr(Usage, "now", classmethod(lambda cls, pids=(): cls(0.0, next(waited), 0.0)))
    found = measurement([], ours=np.matmul)
    found.calibrate()
    rounds = found.rounds(Plan(rounds=2, budget=60))
    assert [r.disturbed for r in rounds] == [True] * 4
    assert undisturbed(rounds) == rounds


def test_one_round_is_measured_whatever_it_takes(monkeypatch):
    undisturbing(monkeypatch)
    found = measurement([], ours=np.matmul)
    found.calibrate()
    assert len(found.rounds(Plan(rounds=7, budget=0))) == 1


def test_short_calls_are_repeated_and_long_ones_are_not(monkeypatch):
    undisturbing(monkeypatch)
    monkeypatch.setattr(timing, "WARM", 0.002)
    log = []
    slow = Fake([], log, "numpy", seconds=0.01)
    found = measurement(log, ours=np.matmul, numpy=slow)
    found.calibrate()
    before = found.contenders["ours"].calls, slow.calls
    (one,) = found.rounds(Plan(rounds=1, budget=60))
    after = found.contenders["ours"].calls, slow.calls
    assert after[0] - before[0] > 10
    assert after[1] - before[1] == 1
    assert one.seconds == pytest.approx({"numpy": 0.01, "ours": 1e-5})


def test_whoever_is_slow_only_while_calls_are_counted_gets_as_many_of_them(monkeypatch):
    undisturbing(monkeypatch)
    found = measurement([], ours=np.matmul)
    ours = found.contenders["ours"]
    ours.seconds = 1.0
    found.calibrate()
    ours.seconds, before = 1e-5, ours.calls
    (one,) = found.rounds(Plan(rounds=1, budget=60))
    assert ours.calls - before > 50
    assert one.seconds == pytest.approx({"ours": 1e-5})


def test_nobody_knows_how_many_calls_a_sample_has(monkeypatch):
    undisturbing(monkeypatch)
    counts = []
    found = measurement([], ours=np.matmul)
    found.calibrate()
    run = found.contenders["ours"].run
    monkeypatch.setattr(
        found.contenders["ours"], "run", lambda calls: (counts.append(calls), run(calls))
    )
    found.rounds(Plan(rounds=8, budget=60))
    assert len(set(counts) - {1}) > 1


def test_the_counters_of_this_machine_grow():
    before = Usage.now([os.getpid()])
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        pass
    after = Usage.now([os.getpid()])
    assert after.own >= before.own
    assert after.all >= before.all


def row(case="case", **ratios):
    found = Row(case, 1, flops=1e9, bytes=10**6)
    rounds = [Round({"ours": 1.0, **{n: 1 / r for n, r in ratios.items()}}) for _ in range(3)]
    found.take(rounds)
    return found


def test_ratios_are_medians_of_rounds():
    found = Row("case", 1)
    times = [(1.0, 2.0), (3.0, 1.0), (2.0, 2.0)]
    found.take([Round({"ours": a, "numpy": b}) for a, b in times])
    assert found.ratio == {"numpy": 1.0}
    assert sorted(found.ratios["numpy"]) == [0.5, 1.0, 3.0]
    assert (found.ours_s, found.rounds, found.correct) == (2.0, 3, True)


def test_the_rival_is_the_faster_eager_library():
    assert row(numpy=0.5, torch=0.9, jax=4.0).rival == "torch"
    assert row(numpy=0.5, torch=0.9, jax=4.0).best == pytest.approx(0.9)
    assert row(jax=4.0).best is None


def test_means_leave_out_what_failed():
    failed = row(numpy=0.001)
    failed.fail("crashed")
    assert (failed.correct, failed.ratio, failed.gflops) == (False, {}, None)
    means = geomeans([row(numpy=0.5), row(numpy=2.0, torch=4.0), failed])
    assert means == pytest.approx({"numpy": 1.0, "torch": 4.0, "best": math.sqrt(2.0)})


def test_the_roofline_is_a_contender_of_each_round():
    found = Row("case", 1)
    found.take([Round({"ours": a, "numpy": 4.0, "roofline": 1.0}) for a in (1.0, 2.0, 4.0)])
    assert found.roofline == 0.5
    assert found.ratio.keys() == found.ratios.keys() == {"numpy"}
    found.fail("wrong")
    assert found.roofline is None


@pytest.mark.parametrize(("flops", "size"), [(24 * 10**6, 64), (100, 1 << 20)])
def test_a_ceiling_computes_or_moves_whichever_takes_longer(flops, size, monkeypatch):
    rates = {"peak_flops": 1e11, "bandwidth": 1e10, "copy_bandwidth": 1e10}
    monkeypatch.setenv("UOPS_MACHINE", json.dumps(rates))
    whole = rows.ELEMENTWISE["exp"]("exp.small", (size,))
    monkeypatch.setattr(Workload, "flops", property(lambda _: flops))
    inputs, outs = whole.arrays(), whole.results()
    for array in (*inputs, *outs):
        array.fill(1)
    ceiling = Ceiling(whole, inputs, outs)
    ceiling.take()
    ceiling.run(1)
    assert ceiling.computes == (flops > 100)
    assert all((out != 1).all() != ceiling.computes for out in outs)
    assert all((x == 1).all() for x in inputs)
    assert ceiling.fault(whole.answer(whole.draw(0))) == ""


@pytest.mark.parametrize(("count", "waits", "expected"), [(2, 3, 4), (2, 99, 20), (1, 3, 0)])
def test_threads_on_one_core_get_time_to_spread(count, waits, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(count))
    found = measurement([], ours=np.matmul)
    found.calibrate()
    waited = iter([True] * waits + [False] * 99)

    def watched(name, run):
        runs.append(run)
        return *run(name), next(waited)

    runs = []
    monkeypatch.setattr(found, "_watched", watched)
    found._spread("ours")
    assert len(runs) == expected


@pytest.mark.parametrize(("apart", "waits"), [((4711,), False), ((), True)])
def test_only_those_that_compute_are_disturbed_by_waiting(apart, waits, monkeypatch):
    """A thread of this process that watches another one may wait as long as it likes."""
    found = measurement([], ours=np.matmul)
    found.contenders["ours"].pids = apart
    waited = itertools.count()

    def now(cls, pids):
        return cls(0.0, float(next(waited)) if os.getpid() in pids else 0.0, 0.0)

    monkeypatch.setattr(Usage, "now", classmethod(now))
    assert found._watched("ours", lambda name: (1, 0.1)) == (1, 0.1, waits)
