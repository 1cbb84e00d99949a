"""The clock of phases: every second of a thread is in one phase, the innermost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from epsjoin.lake import phases
from epsjoin.lake.phases import phase, seconds_of_phases, timed
from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(phases, "time", clock)
    monkeypatch.setattr(phases, "_seconds", {})
    return clock


def test_phase__has_no_time_of_the_phases_within_it(clock: Clock) -> None:
    @phase("read")
    def read() -> None:
        clock.now += 4
        raise ValueError("of the reader")

    clock.now += 1
    with phase("work"):
        clock.now += 2
        with pytest.raises(ValueError, match="of the reader"):
            read()
        clock.now += 8
        with phase("work"):
            clock.now += 16
    clock.now += 32
    assert seconds_of_phases() == {"work": 26, "read": 4}


def test_timed__counts_the_wait_for_items_and_not_what_is_done_with_them(clock: Clock) -> None:
    def items() -> Iterator[int]:
        for item in range(3):
            clock.now += 1
            yield item
        clock.now += 4

    found = []
    with phase("work"):
        for item in timed(items(), "read"):
            clock.now += 8
            found.append(item)
    assert found == [0, 1, 2]
    assert seconds_of_phases() == {"read": 7, "work": 24}


def test_phases__of_threads_do_not_interrupt_one_another(clock: Clock) -> None:
    def read() -> None:
        with phase("read"):
            clock.now += 1

    with phase("wait"), ThreadPoolExecutor(1) as pool:
        pool.submit(read).result()
        pool.submit(read).result()
    assert seconds_of_phases() == {"read": 2, "wait": 2}
