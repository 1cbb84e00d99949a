"""The stopwatch: a counter has the seconds of its blocks, and an iterator's are not those of its caller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epsjoin import stopwatch
from epsjoin.stopwatch import add_seconds, each_within
from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stopwatch, "time", clock)
    return clock


def test_add_seconds__adds_up_its_blocks_also_one_that_raises(clock: Clock) -> None:
    counters = {"reading": 1.0}

    def fail(name: str) -> None:
        with add_seconds(counters, name):
            clock.now += 2
            raise ValueError(name)

    for name in ("reading", "sorting", "reading"):
        with pytest.raises(ValueError, match=name):
            fail(name)
    assert counters == {"reading": 5.0, "sorting": 2.0}


def test_each_within__has_the_wait_for_items_and_for_the_end_and_not_what_is_done_with_them(
    clock: Clock,
) -> None:
    def items() -> Iterator[int]:
        for item in range(3):
            clock.now += 1
            yield item
        clock.now += 4

    counters: dict[str, float] = {}
    found = []
    for item in each_within(items(), lambda: add_seconds(counters, "reading")):
        clock.now += 8
        found.append(item)
    assert (found, counters) == ([0, 1, 2], {"reading": 7.0})
