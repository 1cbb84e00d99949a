"""Run sweeps in threads, and take what they find in the order of the sweeps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from epsjoin.kernels.ranges import Ranges, in_one_range

T = TypeVar("T")
R = TypeVar("R")
_MIN_ROWS = 1 << 15
"""Minimum number of rows that are divided among threads; fewer are done before threads have started."""


def in_order(
    sweeps: Iterator[Iterator[T]], n_jobs: int, ahead: int = 1, stop: threading.Event | None = None
) -> Generator[T, None, None]:
    """Yield all that the sweeps yield, one sweep after the other, while several of them run.

    Parameters
    ----------
    sweeps : one thread at a time advances a sweep. No sweep may yield None.
    n_jobs : threads; with 1 the sweeps run in the caller's thread.
    ahead : number of sweeps for each thread that may run, or wait with one result, before they are needed.
    stop : set at the end, also when the caller closes this generator or is interrupted; sweeps that run may
        check it to end early.

    Yields
    ------
    T
        In the same order for any number of threads. The threads end when the generator is closed.
    """
    if n_jobs == 1:
        for sweep in sweeps:
            yield from sweep
        return
    running: deque[tuple[Iterator[T], Future[T | None]]] = deque()
    with ThreadPoolExecutor(n_jobs, "epsjoin") as pool:
        try:
            while True:
                for sweep in islice(sweeps, n_jobs * ahead - len(running)):
                    running.append((sweep, pool.submit(next, sweep, None)))
                if not running:
                    return
                sweep, future = running.popleft()
                found = future.result()
                if found is not None:
                    running.appendleft((sweep, pool.submit(next, sweep, None)))
                    yield found
        finally:
            if stop is not None:
                stop.set()


def in_any_order(
    items: Iterable[T],
    work: Callable[[T], R],
    n_jobs: int,
    tell: Callable[[R], None] | None = None,
    stop: threading.Event | None = None,
) -> list[R]:
    """Work on all items; each thread takes the next one when it is done with one, without waiting.

    Parameters
    ----------
    items, work : what is worked on, and how.
    n_jobs : threads, of which the caller's is one; at most as many are started as there are items.
    tell : called in the caller's thread with the result of each item, between items of its own.
    stop : set after an error; long work may check it to end early.

    Returns
    -------
    list
        The result of each item, in the order in which they were done. After an error, also one of ``tell``,
        no thread takes another item.
    """
    all_items = list(items)
    n_others = min(n_jobs, len(all_items)) - 1
    waiting, done, n_told = iter(all_items), list[R](), 0
    stop = threading.Event() if stop is None else stop

    def run(then: Callable[[], None]) -> None:
        try:
            for item in waiting:  # each is taken by one thread only
                if stop.is_set():
                    return
                done.append(work(item))
                then()
        except BaseException:
            stop.set()
            raise

    def tell_new() -> None:
        nonlocal n_told
        while tell is not None and n_told < len(done):
            tell(done[n_told])
            n_told += 1

    if n_others <= 0:  # a pool takes longer to start and end than little work does
        run(tell_new)
        return done
    with ThreadPoolExecutor(n_others, "epsjoin") as pool:
        others = [pool.submit(run, lambda: None) for _ in range(n_others)]
        run(tell_new)
        for other in others:
            other.result()
    tell_new()
    return done


def in_ranges(n_jobs: int, *, are_long: bool = False) -> Ranges:
    """Make a way to work on as many ranges of rows as there are threads, a thread for each.

    Parameters
    ----------
    n_jobs : threads, of which the caller's is one; at most as many as rows.
    are_long : whether even few rows are divided, since the work on each takes longer than starting threads.
    """
    if n_jobs == 1:
        return in_one_range

    def run(n: int, work: Callable[[int, int, int], Any]) -> list[Any]:
        if n < (2 if are_long else _MIN_ROWS):
            return in_one_range(n, work)
        n_ranges = min(n_jobs, n)
        ends = [n * number // n_ranges for number in range(n_ranges + 1)]
        found, errors = dict[int, Any](), dict[int, BaseException]()

        def work_on(number: int) -> None:
            try:
                found[number] = work(number, ends[number], ends[number + 1])
            except BaseException as error:  # noqa: BLE001  # it is raised in the caller's thread
                errors[number] = error

        # a pool would take twice as long to start and end, and a join would need some twenty
        others = [
            threading.Thread(target=work_on, args=(number,), name=f"epsjoin_{number}")
            for number in range(1, n_ranges)
        ]
        begun = list[threading.Thread]()
        try:
            for other in others:
                other.start()
                begun.append(other)
            work_on(0)
            for other in begun:
                other.join()
        finally:  # no thread goes on after an interrupt, or if the threads could not be started
            for other in begun:
                other.join()
        try:
            if errors:
                raise errors[min(errors)]
        finally:
            errors.clear()  # the error refers to this frame, which would refer to it
        return [found[number] for number in range(n_ranges)]

    return run
