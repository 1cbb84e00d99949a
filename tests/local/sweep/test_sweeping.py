"""A sweep to its end: the same for any number of threads, early, in bounded memory, and it can be stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from epsjoin.errors import BudgetError
from epsjoin.kernels.sweep import window
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
    # about 2 d + 8 numbers per point; twice while they are sorted
    rows = 2 * (2 * 2 + 8) * 8 * len(many_pairs)
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
    "equal points": "for _ in iter_self_join(np.zeros((20_000, 2)), 1.0, n_jobs=n_jobs): pass",
    "row by row": "self_join(np.zeros((300_000, 2)), 1.0, n_jobs=n_jobs)",
    "no pairs": "self_join(uniform[:150_000], 0.45, n_jobs=n_jobs)",
    "two tables": 'join(uniform[:80_000], uniform[80_000:], 0.45, how="anti", n_jobs=n_jobs)',
}
CALLS_AFTER = 20
"""Calls of kernels that may begin after ctrl-c, before the main thread hears it and tells the others."""
MAX_CANDIDATES = 1 << 27
"""Maximum number of candidates of a call, which ends by itself: tenths of a second."""

STOPPED = f"""
import json, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it
import numpy as np
from epsjoin.kernels.sweep import window
from epsjoin.kernels.sweep.row_windows import count_candidates
from epsjoin.kernels.pairs.batch import CANDIDATES
from epsjoin.local.join import partners
from epsjoin.local.join.arrays import iter_self_join, join, self_join
from epsjoin.local.sweep import by_row
uniform = np.random.default_rng(0).random((160_000, 16))
lock = threading.Lock()
def say(line):
    os.write(1, f"{{line}}\\n".encode())  # whole: print can be interrupted before the end of the line
def interrupt(is_in_kernel):
    global at
    is_in_kernel.wait()
    at = begun
    os.kill(os.getpid(), signal.SIGINT)
def watched(kernel, candidates_of):
    def call(*given):
        global begun, killer
        with lock:
            begun += 1
            number = begun
        if at and number > at + {CALLS_AFTER}:
            say("not stopped")
            os._exit(1)
        if number == 3:
            is_in_kernel = threading.Event()
            killer = threading.Thread(target=interrupt, args=[is_in_kernel])
            killer.start()
            is_in_kernel.set()
        before = candidates_of(given)
        found = kernel(*given)
        largest.append(candidates_of(given, before))
        return found
    return call
def counted(given, before=0):
    return int(given[-1][CANDIDATES]) - before
def in_rows(given, before=None):
    return 0 if before is None else int(count_candidates(given[0], *given[2:4])[0])
window.window_sweep = watched(window.window_sweep, counted)
partners.partner_sweep = watched(partners.partner_sweep, counted)
for name in ("count_partners", "find_pairs", "write_partners"):
    setattr(by_row, name, watched(getattr(by_row, name), in_rows))
for call, n_jobs in json.loads(sys.argv[1]):
    begun, at, largest = 0, 0, []
    try:
        exec(call)
        say("ended by itself")
    except KeyboardInterrupt:
        killer.join()
        say(f"stopped {{threading.active_count()}} {{max(largest)}}")
"""


def test_join__ends_within_few_calls_of_kernels_after_ctrl_c():
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
                said, *numbers = process.stdout.readline().split()
                assert said == "stopped", call
                n_threads, largest = map(int, numbers)
                assert n_threads == 1, call
                assert 0 < largest <= MAX_CANDIDATES, call
        finally:
            process.kill()
