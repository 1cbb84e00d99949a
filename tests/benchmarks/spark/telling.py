"""What it costs that a join in parts tells percent, pairs and time left, and may end early.

The share is small against what CPU seconds differ by from run to run, so it is measured in two ways: by the
clock of the threads that watch, and by joins that nobody watches, in turns with others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

from ..page import seconds, spread
from .bench import Taken, timed

Work = Callable[[], Mapping[str, float]]
HEAD = ["", "CPU s", "watching, CPU ms", "of the CPU, %", "CPU / unwatched"]
LINE_SECONDS = 1.0
"""A line each second, ten times as often as joins print one: more than their cost is measured."""


class Watching:
    """CPU seconds of the driver's Python that go into watching tasks, while :meth:`counted`.

    The thread that watches counts whole, with what it asks Spark and with what it adds to a table that grows;
    of the thread that waits, making the watch and the estimates for the report. What the JVM spends on the
    questions, and a task on telling its report, only a comparison with an unwatched join shows.
    """

    def __init__(self) -> None:
        self.cpu_seconds = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        from epsjoin.spark.join.running import RunningJoin
        from epsjoin.spark.tasks import progress

        places = ((progress._Watcher, "run"), (RunningJoin, "__init__"), (RunningJoin, "counters"))
        patches = [mock.patch.object(of, name, self._counting(getattr(of, name))) for of, name in places]
        with mock.patch.object(progress, "SECONDS", LINE_SECONDS), patches[0], patches[1], patches[2]:
            yield

    def _counting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            began = time.thread_time()
            try:
                return plain(*given)
            finally:
                self.cpu_seconds += time.thread_time() - began

        return counting


@contextmanager
def unwatched() -> Iterator[None]:
    """Let joins in parts run without a watch, and their tasks tell nothing before all have ended."""
    from epsjoin.spark.join.running import RunningJoin
    from epsjoin.spark.tasks.ended_tasks import EndedTasks

    with (
        mock.patch.object(RunningJoin, "watching", nullcontext),
        mock.patch.object(EndedTasks, "reporting", lambda _, work: work),
    ):
        yield


def race_watched(works: Mapping[str, Work], rounds: int) -> list[list[str]]:
    """A row for each of the works, watched and unwatched in turns; the first round only warms up."""
    rows = []
    for name, work in works.items():
        told = [_watched_and_not(work, watched_first=number % 2 == 0) for number in range(rounds + 1)][1:]
        rows.append(
            [
                name,
                seconds(min(on.cpu for on, _, _ in told)),
                spread([1e3 * watching for _, _, watching in told]),
                spread([100.0 * watching / on.cpu for on, _, watching in told]),
                spread([on.cpu / off.cpu for on, off, _ in told]),
            ]
        )
    return rows


def _watched_and_not(work: Work, *, watched_first: bool) -> tuple[Taken, Taken, float]:
    watching, found = Watching(), dict[bool, Taken]()
    for is_watched in (watched_first, not watched_first):
        with watching.counted() if is_watched else unwatched():
            found[is_watched] = timed(work)
    pairs = {each.counters["pairs"] for each in found.values()}
    if len(pairs) != 1:
        raise AssertionError(f"watched and unwatched joins have other pairs: {pairs}")
    return found[True], found[False], watching.cpu_seconds
