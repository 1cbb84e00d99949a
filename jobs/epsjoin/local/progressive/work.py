"""The counters of a progressive join: what it has done so far, and the seconds of each kind of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from epsjoin.local.progressive.rows import Met
from epsjoin.stopwatch import add_seconds, each_within

_COUNTS = (
    *("rows", "replicas", "runs", "replans", "merges", "passes", "bytes_written", "bytes_read", "candidates"),
    *("distance_computations", "pairs_in_runs", "pairs_in_merges", "largest_area"),
    *(f"seconds_{what}" for what in ("reading", "sorting", "joining", "merging")),
)


class Work:
    """Adds to the caller's counters.

    Parameters
    ----------
    counters : the caller's; missing ones begin with 0.
    """

    def __init__(self, counters: dict[str, Any]) -> None:
        self.counters = counters
        for name in _COUNTS:
            counters.setdefault(name, 0)

    def add(self, name: str, n: int = 1) -> None:
        """Count."""
        self.counters[name] += n

    def reach(self, name: str, n: int) -> None:
        """Keep the largest number."""
        self.counters[name] = max(self.counters[name], n)

    def timed(self, what: str) -> AbstractContextManager[None]:
        """Count the seconds of this block."""
        return add_seconds(self.counters, f"seconds_{what}")

    def timed_each(self, what: str, found: Iterator[Met]) -> Iterator[Met]:
        """Count the seconds that an iterator takes, and not those of its caller."""
        return each_within(found, lambda: self.timed(what))

    def saved(self) -> dict[str, Any]:
        """What :meth:`restore` needs, as JSON can hold it."""
        return {name: self.counters[name] for name in _COUNTS}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from the counters of an earlier process."""
        self.counters.update(saved)
