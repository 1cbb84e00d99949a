"""What the threads of this process spend their time on: reading, writing, committing, the rest of the work.

Phases are told apart by who is called: whoever reads or writes files says so here. A thread is in one phase
at a time; what begins within another phase interrupts it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from epsjoin.stopwatch import each_within

T = TypeVar("T")
Phase = Literal["read", "work", "write", "commit", "wait"]
"""What a thread does; ``wait``: what it waits for is counted elsewhere."""

_seconds: dict[str, float] = {}
_lock = threading.Lock()
_of_thread = threading.local()


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """Count the time in the block for a phase, without that of phases within it."""
    outer = getattr(_of_thread, "phase", None)
    _switch(name)
    try:
        yield
    finally:
        _switch(outer)


def timed(items: Iterable[T], name: Phase) -> Iterator[T]:
    """Yield the same items, and count the time spent waiting for them for a phase."""
    return each_within(items, lambda: phase(name))


def seconds_of_phases() -> dict[str, float]:
    """The seconds of each phase, added up over all threads since the process began."""
    with _lock:
        return dict(_seconds)


def _switch(name: str | None) -> None:
    now = time.perf_counter()
    before = getattr(_of_thread, "phase", None)
    if before is not None:
        with _lock:
            _seconds[before] = _seconds.get(before, 0.0) + now - _of_thread.began
    _of_thread.phase, _of_thread.began = name, now
