"""A sweep to its end: the same for any number of threads, early, in bounded memory, and it can be stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from epsjoin.errors import BudgetError
from epsjoin.kernels.join import window
from epsjoin.local.join.arrays import iter_join, iter_self_join, join, self_join
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.sweep import sweeping

JOBS = Path(__file__).parents[3] / "jobs"
MAX_BATCH = 1 << 18
PAIR_BYTES = 24


def threads_of_joins():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("epsjoin")]


@pytest.fixture(scope="module")
def many_rows():
    """More than 100,000 rows, in many chunks, with equal points and dense places."""
    random = np.random.default_rng(4)
    points = np.concatenate((random.random((90_000, 2)), 0.5 + random.normal(size=(15_000, 2)) * 0.01))
    points[:500] = points[500:1000]
    return points


@pytest.fixture(scope="module")
def many_pairs():
    """20,000 rows with about 5 million pairs within 0.09."""
    return np.random.default_rng(9).random((20_000, 2))


@pytest.mark.parametrize("cuts", [None, Cuts(n_parts=3)], ids=["no cuts", "planned"])
def test_self_join__is_the_same_for_any_number_of_threads(many_rows, cuts):
    eps = 0.001
    counted = []
    for n_jobs in (1, 2, 5):
        counters: dict[str, int] = {}
        counted.append((self_join(many_rows, eps, n_jobs=n_jobs, cuts=cuts, counters=counters), counters))
    assert counted[0][1]["rows"] > 12 * sweeping._CHUNK_ROWS
    assert counted[0][1]["pairs"] > 100_000
    for pairs, counters in counted[1:]:
        assert counters == counted[0][1]
        for column, first in zip(pairs, counted[0][0], strict=True):
            assert (column == first).all()


@pytest.mark.parametrize("batch_rows", [32, 3000, MAX_BATCH])
@pytest.mark.parametrize("n_rows", [500, 30_000])
def test_iter_self_join__gives_pairs_in_one_order_for_any_number_of_threads(many_rows, n_rows, batch_rows):
    points = many_rows[-n_rows:] if batch_rows > 32 else many_rows[:n_rows]
    orders = []
    for n_jobs in (1, 2, 5):
        batches = list(iter_self_join(points, 0.002, n_jobs=n_jobs, batch_rows=batch_rows))
        assert max(len(batch.left) for batch in batches) <= batch_rows
        assert min(len(batch.left) for batch in batches) > 0
        orders.append([np.concatenate(column) for column in zip(*batches, strict=True)])
    for other in orders[1:]:
        for column, first in zip(other, orders[0], strict=True):
            assert column.tolist() == first.tolist()
    assert (np.diff(orders[0][0]) < 0).any()  # it is no sorted order


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_iter_self_join__has_the_first_batch_early(many_pairs, n_jobs):
    counters: dict[str, int] = {}
    batches = iter_self_join(many_pairs, 0.09, n_jobs=n_jobs, counters=counters, batch_rows=10_000)
    first = next(batches)
    assert 0 < len(first.left) <= 10_000
    looked_at = counters["candidates"]
    found = len(first.left) + sum(len(batch.left) for batch in batches)
    assert found > 4_500_000
    assert looked_at < 0.01 * counters["candidates"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_iter_self_join__keeps_few_batches(many_pairs, n_jobs, monkeypatch):
    monkeypatch.setattr(sweeping, "_CHUNK_ROWS", 200)  # a hundred chunks, of more than a batch each
    batch_rows = 20_000
    rows = (
        2 * (2 * 2 + 8) * 8 * len(many_pairs)
    )  # about 2 d + 8 numbers per point; twice while they are sorted
    # in the caller's hands, being filled, copied; ahead
    batches = (3 + 2 * sweeping.CHUNKS_AHEAD * n_jobs) * batch_rows * PAIR_BYTES
    for _ in iter_self_join(many_pairs[:1000], 0.09, n_jobs=n_jobs):
        pass  # compiles
    tracemalloc.start()
    try:
        found = sum(
            len(batch.left)
            for batch in iter_self_join(many_pairs, 0.09, n_jobs=n_jobs, batch_rows=batch_rows)
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found > 4_500_000
    assert peak < rows + batches < found * PAIR_BYTES / 5


@pytest.mark.parametrize("cuts", [None, Cuts(n_parts=2)], ids=["no cuts", "planned"])
def test_iter_self_join__ends_its_threads_when_it_is_closed(many_pairs, cuts):
    batches = iter_self_join(many_pairs, 0.09, n_jobs=2, batch_rows=1000, cuts=cuts)
    next(batches)
    assert threads_of_joins()
    batches.close()
    assert not threads_of_joins()


def test_iter_join__ends_its_threads_when_it_is_closed(many_pairs):
    batches = iter_join(many_pairs[:12_000], many_pairs[12_000:], 0.09, n_jobs=2, batch_rows=1000)
    next(batches)
    assert threads_of_joins()
    batches.close()
    assert not threads_of_joins()


@pytest.mark.parametrize("call", ["self_join", "semi", "iter_join"])
def test_joins__end_their_threads_after_an_error(many_pairs, call):
    def stop(share):
        raise LookupError(f"stopped at {share}")

    # the error is kept, and with it all frames of its traceback
    calls = {
        "self_join": lambda: self_join(many_pairs, 0.02, n_jobs=2, progress=stop),
        "semi": lambda: join(many_pairs, many_pairs, 0.02, how="semi", n_jobs=2, progress=stop),
        "iter_join": lambda: list(iter_join(many_pairs, many_pairs, 0.02, n_jobs=2, progress=stop)),
    }
    with pytest.raises(LookupError, match="stopped at 0") as caught:
        calls[call]()
    assert not threads_of_joins()
    assert caught.traceback


def test_self_join__ends_its_threads_when_there_are_too_many_pairs(many_pairs):
    with pytest.raises(BudgetError, match="max_pairs = 1000") as caught:
        self_join(many_pairs, 0.02, n_jobs=2, max_pairs=1000)
    assert not threads_of_joins()
    assert caught.traceback


def test_iter_self_join__stops_sweeps_under_way_when_it_is_closed(many_pairs, monkeypatch):
    calls = []
    sweep = window.window_sweep

    def endless(state, rows, begin, *others):
        """The first chunk as it is; the others look at candidates for two seconds and find nothing."""
        calls.append(begin)
        if begin == 0 or len(calls) > 400:
            return sweep(state, rows, begin, *others)
        time.sleep(0.005)
        return 0

    monkeypatch.setattr(window, "window_sweep", endless)
    batches = iter_self_join(many_pairs, 0.02, n_jobs=2, batch_rows=100)
    next(batches)
    done = len(calls)
    batches.close()
    assert len(calls) - done < 50


# Joins that take half a minute and more.
CALLS = {
    "equal points": "for _ in iter_self_join(np.zeros((20_000, 2)), 1.0, n_jobs=n_jobs, progress=told): pass",
    "row by row": "self_join(np.zeros((300_000, 2)), 1.0, n_jobs=n_jobs, progress=told)",
    "no pairs": "self_join(uniform[:150_000], 0.45, n_jobs=n_jobs, progress=told)",
    "two tables": 'join(uniform[:80_000], uniform[80_000:], 0.45, how="anti", n_jobs=n_jobs, progress=told)',
}


STOPPED = """
import json, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it
import numpy as np
from epsjoin.local.join.arrays import iter_self_join, join, self_join
uniform = np.random.default_rng(0).random((160_000, 16))
def say(line):
    os.write(1, f"{line}\\n".encode())  # whole: print can be interrupted before the end of the line
def told(share):
    if share < 1.0:
        say(f"share {share}")
for call, n_jobs in json.loads(sys.argv[1]):
    try:
        exec(call)
        say("not stopped")
    except KeyboardInterrupt:
        say(f"stopped {threading.active_count()}")
"""


def test_join__ends_soon_after_ctrl_c():
    """Joins of every kind, one after the other in one process, which takes a second to start."""
    calls = [(call, 2 if name in ("equal points", "row by row") else 1) for name, call in CALLS.items()]
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, json.dumps(calls)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(JOBS)},
    ) as process:
        try:
            for call in CALLS:
                assert process.stdout.readline().startswith("share"), call
                time.sleep(0.05)  # into the next kernel call
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                said = next(line for line in process.stdout if not line.startswith("share"))
                seconds = time.monotonic() - begin
                assert said == "stopped 1\n", call
                assert seconds < 5.0, call  # a second is the promise; the machine may be busy
        finally:
            process.kill()
