"""A join in parts while it runs: how many pairs it will have, how long it takes, and when it must stop."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import numpy as np
from pyspark.sql import SparkSession

from epsjoin.console import counted
from epsjoin.errors import BudgetError
from epsjoin.lake.parquet import File, stream_file
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.progressive.estimate_by_parts import (
    N_RADII,
    count_radii,
    estimate_parts,
    fraction_done,
    largest_fitting_eps,
    look_ahead,
    seconds_left,
)
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.spark.join.pairs_table import PairsTable
from epsjoin.spark.tasks.ended_tasks import EndedTasks

PERCENTS = (10, 50, 90)
"""Percent of the parts at which the estimate is kept, for the report."""
_BATCH_ROWS = 1 << 20
_DISTANCE = "distance double"
_MIN_EXPECTED = 1e-3
"""Minimum number of pairs that are expected of a part, since the estimate divides by it."""

Refuse = Callable[[RunningEstimate, str, float | None], BudgetError]
"""Makes the error of a join that is ended: of its estimate, how far it is, and an eps that fits, or None."""


class RunningJoin:
    """Watches the tasks of a join, one for each part (:class:`epsjoin.spark.tasks.progress.Watch`).

    Parameters
    ----------
    spark : the session.
    plan : the join's.
    numbers : number of the part of each task.
    rows : rows of each task's part; None if they are not known yet.
    max_pairs : maximum number of pairs; the tasks are ended as soon as the lower end of the estimate's
        interval is above it.
    table : the table of the pairs, which may grow while tasks run.
    refuse : makes the error of such an end.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: JoinPlan | BlockPlan,
        numbers: Sequence[int],
        rows: Sequence[int] | None,
        max_pairs: int,
        table: PairsTable,
        refuse: Refuse,
    ) -> None:
        self._ended = EndedTasks(spark)
        self.telling = self._ended.reporting
        places = np.asarray(numbers, np.int64)
        of_all = None if rows is None else np.zeros(plan.n_parts)
        if of_all is not None:
            of_all[places] = rows
        ahead = look_ahead(plan.parts, of_all, plan.expected_pairs, plan.n_parts)
        self._n_first = table.n_first
        lacking = self._n_first / ahead.pairs.sum()  # the plan expects of the parts what was given first, too
        self._expected = np.maximum(ahead.pairs[places] * (1.0 - lacking), _MIN_EXPECTED)
        self._work = ahead.work[places]
        self._found = np.zeros(len(places))
        self._is_done = np.zeros(len(places), np.bool_)
        self._eps, self._max_pairs, self._table, self._refuse = plan.eps, max_pairs, table, refuse
        self._began = time.monotonic()
        self._files: dict[int, list[File]] = {}

    @property
    def estimate(self) -> RunningEstimate:
        """The estimated pairs of the join, from the parts that are done."""
        return self._with_first(estimate_parts(self._expected, self._found, self._is_done))

    def _with_first(self, of_parts: RunningEstimate) -> RunningEstimate:
        """Add the first pairs, of which every part lacks about the same fraction."""
        pairs, low, high = (None if each is None else each + self._n_first for each in of_parts[:3])
        return RunningEstimate(pairs, low, high, of_parts.note)

    def look(self) -> None:
        """Take note of the parts that have ended, and add their pairs to a growing table.

        Raises
        ------
        TableError
            The table that grows cannot be written, or another job has changed it.
        BudgetError
            Some parts are not done, and all together will have more than ``max_pairs`` pairs.
        """
        has_news = self._take_news()
        self._table.grow(itertools.chain(*self._files.values()))
        if not has_news or self._is_done.all():
            return
        estimate = self.estimate
        low = estimate.low if estimate.low is not None else float(self._found.sum()) + self._n_first
        if low > self._max_pairs:
            raise self._refuse(estimate, self._so_far(), self._fitting_eps())

    def _take_news(self) -> bool:
        news = self._ended.news()
        for task, report in news:
            self._is_done[task] = True
            self._found[task] = sum(file.rows for file in report.files)
            self._files[task] = report.files
        return bool(news)

    def line(self, n_running: int) -> str | None:
        """Say percent, pairs and time left."""
        if not self._is_done.any():
            return None
        waiting = np.flatnonzero(~self._is_done)
        is_running = np.zeros(len(self._is_done), np.bool_)
        is_running[waiting[:n_running]] = True  # tasks begin in their order
        seconds = seconds_left(self._work, self._is_done, is_running, time.monotonic() - self._began)
        done = fraction_done(self._work, self._is_done)
        left = "" if seconds is None else f", about {_in_words(seconds)} left"
        return f"at work: {done:.0%}, {self._so_far()}; {describe(self.estimate)} pairs{left}"

    def _so_far(self) -> str:
        n_done = int(np.count_nonzero(self._is_done))
        return f"{n_done:,} of {counted(len(self._is_done), 'part')} joined"

    def _fitting_eps(self) -> float | None:
        """Find a smaller eps by the distances of the pairs that were found; None where a part has not all."""
        if (self._found + self._n_first > self._max_pairs).any():  # it may have ended early
            return None
        done = np.flatnonzero(self._is_done)
        by_radius = np.zeros((len(done), N_RADII))
        for place, task in enumerate(done.tolist()):
            for file in self._files[task]:
                for batch in stream_file(self._table.into.location, file, parse_ddl(_DISTANCE), _BATCH_ROWS):
                    by_radius[place] += count_radii(batch.column("distance").to_numpy(), self._eps)
        rest = float(self._expected[~self._is_done].sum())
        pairs = self.estimate.pairs or 0.0  # more than max_pairs
        of_parts = self._max_pairs * (1.0 - self._n_first / pairs)
        return largest_fitting_eps(by_radius, self._expected[done], rest, self._eps, of_parts)

    def counters(self, pairs: Sequence[int]) -> dict[str, float]:
        """What the estimate said when 10, 50 and 90 % of the parts were done, in the order of their tasks.

        They do not depend on the order in which tasks happened to end, so that they are the same every time.

        Parameters
        ----------
        pairs : pairs of each task's part.
        """
        found, counters = np.asarray(pairs, np.float64), dict[str, float]()
        for percent in PERCENTS:
            is_done = np.arange(len(found)) < max(1, len(found) * percent // 100)
            estimate = estimate_parts(self._expected, found, is_done)
            if len(found) and estimate.low is not None and estimate.pairs is not None:
                name = f"pairs_expected_at_{percent}_percent"
                counters |= {name: estimate.pairs, f"{name}_low": estimate.low}
                counters[f"{name}_high"] = estimate.high or estimate.pairs
        return counters


def describe(estimate: RunningEstimate) -> str:
    """Say how many pairs are expected: ``about 3,204,000 (3,100,000 to 3,300,000)``."""
    if estimate.pairs is None:
        return "an unknown number of"
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f" ({estimate.low:,.0f} to {estimate.high:,.0f})"
    return f"about {estimate.pairs:,.0f}{interval}"


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"
