"""Sweeps in threads: the order of the sweeps, few of them ahead, and an end whenever the caller ends."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

from epsjoin import self_join
from epsjoin.local.sweep import threads as sweep_threads
from epsjoin.local.sweep.sweeping import MAX_THREADS, check_n_jobs
from epsjoin.local.sweep.threads import in_any_order, in_order, in_ranges


def sweeps_of(lengths, begun=None):
    def sweep(number, length):
        if begun is not None:
            begun.append(number)
        for batch in range(length):
            time.sleep(0.001 * ((number * 7 + batch * 3) % 4))
            yield number, batch

    return (sweep(number, length) for number, length in enumerate(lengths))


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("epsjoin")]


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_in_order__yields_all_in_the_order_of_the_sweeps(n_jobs, ahead):
    lengths = [3, 0, 1, 5, 0, 0, 2, 1]
    found = list(in_order(sweeps_of(lengths), n_jobs, ahead))
    assert found == [(number, batch) for number, length in enumerate(lengths) for batch in range(length)]
    assert list(in_order(iter(()), n_jobs, ahead)) == []
    assert not threads()


@pytest.mark.parametrize(("n_jobs", "ahead"), [(2, 1), (2, 3), (4, 2)])
def test_in_order__begins_no_more_sweeps_than_may_be_ahead(n_jobs, ahead):
    begun: list[int] = []
    swept = in_order(sweeps_of(itertools.repeat(1, 100), begun), n_jobs, ahead)
    for number, _ in itertools.islice(swept, 20):
        assert len(begun) <= number + n_jobs * ahead
    swept.close()


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_in_order__tells_the_sweeps_to_stop_and_ends_its_threads_when_it_is_closed(n_jobs):
    stop = threading.Event()

    def endless():
        while not stop.is_set():
            yield 1

    swept = in_order(itertools.repeat(endless(), 1), n_jobs, 2, stop)
    assert list(itertools.islice(swept, 3)) == [1, 1, 1]
    assert threads()
    assert not stop.is_set()
    swept.close()
    assert stop.is_set()
    assert not threads()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_in_order__raises_the_error_of_a_sweep_where_it_stands(n_jobs):
    def failing():
        yield 7
        raise LookupError("broken")

    swept = in_order(iter([iter([1, 2]), failing(), iter([3])]), n_jobs)
    assert list(itertools.islice(swept, 3)) == [1, 2, 7]
    with pytest.raises(LookupError, match="broken"):
        next(swept)
    assert not threads()


@pytest.mark.parametrize("n_items", [0, 1, 2, 40])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_in_any_order__works_on_each_item_once_and_tells_all_in_the_callers_thread(n_jobs, n_items):
    worked, told = [], []
    n_threads = min(n_jobs, max(1, n_items))
    all_there, was_here = threading.Barrier(n_threads), threading.local()

    def work(item):
        worked.append((item, threading.current_thread()))
        if not hasattr(was_here, "yes"):  # nobody goes on before each thread has taken an item
            was_here.yes = True
            all_there.wait(timeout=60)
        time.sleep(0.001 * (item * 7 % 4))
        return item * item

    def tell(square):
        told.append((square, threading.current_thread()))

    done = in_any_order(range(n_items), work, n_jobs, tell)
    assert sorted(done) == [item * item for item in range(n_items)]
    assert sorted(item for item, _ in worked) == list(range(n_items))
    assert told == [(square, threading.current_thread()) for square in done]
    assert len({thread for _, thread in worked}) == (n_threads if n_items else 0)
    assert not threads()


def test_threads__are_no_more_than_there_is_work_for(monkeypatch):
    begun, begin = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: begun.append(thread) or begin(thread))
    assert sorted(in_any_order(range(3), int, 1000)) == [0, 1, 2]
    assert in_any_order([], int, 1000) == []
    assert len(in_ranges(1000, are_long=True)(3, lambda *of: of)) == 3
    points = np.random.default_rng(1).random((50, 2))
    found = self_join(points, 0.2, n_jobs=100_000)
    assert len(begun) <= 2 + 2 + 50
    assert [column.tolist() for column in found] == [column.tolist() for column in self_join(points, 0.2)]
    assert check_n_jobs(10**9) == MAX_THREADS


@pytest.mark.parametrize("fails_in", ["work", "tell"])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_in_any_order__takes_no_more_items_after_an_error(n_jobs, fails_in):
    worked = []

    def fail(name, item):
        if name == fails_in and item >= 10:
            raise LookupError("broken")

    def work(item):
        worked.append(item)
        time.sleep(0.001)
        fail("work", item)
        return item

    with pytest.raises(LookupError, match="broken"):
        in_any_order(range(1000), work, n_jobs, lambda item: fail("tell", item))
    assert len(worked) < 100
    assert not threads()


def test_in_any_order__tells_long_work_to_end_after_an_error():
    begun, stop, is_told = threading.Event(), threading.Event(), []

    def work(item):
        if item == 0:
            begun.set()
            is_told.append(stop.wait(10.0))
        else:
            begun.wait()
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        in_any_order(range(2), work, 2, stop=stop)
    assert is_told == [True]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_in_ranges__divides_all_rows_in_order(monkeypatch, n_jobs):
    for least, count in ((12, n_jobs), (13, 1)):
        monkeypatch.setattr(sweep_threads, "_MIN_ROWS", least)
        found = in_ranges(n_jobs)(12, lambda number, begin, end: (number, list(range(begin, end))))
        assert [number for number, _ in found] == list(range(count))
        assert [row for _, rows in found for row in rows] == list(range(12))
    assert not threads()


def test_in_ranges__takes_the_first_in_the_callers_thread_and_divides_few_where_they_are_long():
    caller = threading.current_thread()
    ranges = in_ranges(2, are_long=True)
    assert ranges(1, lambda *of: (*of, threading.current_thread() is caller)) == [(0, 0, 1, True)]
    of_each = ranges(2, lambda *of: (*of, threading.current_thread() is caller))
    assert of_each == [(0, 0, 1, True), (1, 1, 2, False)]
    assert not threads()


def test_in_ranges__waits_for_the_threads_that_have_begun_where_no_more_can(monkeypatch):
    begin, ended = threading.Thread.start, []

    def start(thread):
        if thread.name == "epsjoin_2":
            raise RuntimeError("can't start new thread")
        begin(thread)

    def work(number, *_):
        time.sleep(0.02)
        ended.append(number)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start"):
        in_ranges(4, are_long=True)(4, work)
    assert ended == [1]
    assert not threads()


def test_in_ranges__raises_the_error_of_the_first_range_that_has_one_when_all_have_ended():
    ended = []

    def work(number, *_):
        if number in (1, 2):
            time.sleep(0.02 * (3 - number))  # the second one fails sooner
            raise LookupError(f"broken {number}")
        ended.append(number)

    with pytest.raises(LookupError, match="broken 1"):
        in_ranges(4, are_long=True)(4, work)
    assert sorted(ended) == [0, 3]
    assert not threads()


@pytest.mark.parametrize("d", [2, 4, 12])
def test_self_join__prepares_and_sorts_in_ranges_what_one_thread_finds(monkeypatch, d):
    monkeypatch.setattr(sweep_threads, "_MIN_ROWS", 1)
    random = np.random.default_rng(d)
    points = random.random((9, d))[random.integers(0, 9, 700)] + random.random((700, d)) * 0.2
    eps = 0.3 if d > 2 else 0.04
    first = self_join(points, eps)
    near = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)) <= eps
    assert list(zip(first.left, first.right, strict=True)) == list(
        zip(*np.nonzero(np.triu(near, 1)), strict=True)
    )
    for n_jobs in (2, 3):
        found = self_join(points, eps, n_jobs=n_jobs)
        assert [column.tolist() for column in found] == [column.tolist() for column in first]
