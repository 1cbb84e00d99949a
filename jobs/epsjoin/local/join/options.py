"""The arguments that every join of arrays shares: how to join, not what."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from epsjoin.errors import BudgetError
from epsjoin.local.arguments import check_count
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.progress import ProgressArgument, check_progress
from epsjoin.local.sweep.sweeping import UNREAD, Counters, SweepOptions, check_counters, check_n_jobs

BATCH_ROWS = 1 << 18
"""Default maximum number of pairs in one batch."""


class JoinOptions(NamedTuple):
    """Checked options of a join; made by :meth:`of`.

    Parameters
    ----------
    metric : the metric of the distances.
    n_jobs : number of threads, at least 1.
    max_pairs : maximum number of pairs in the result; None for no limit.
    progress : what the caller passed as ``progress``.
    counters : the caller's counters, or counters that nobody reads.
    batch_rows : maximum number of pairs in one batch.
    """

    metric: Metric
    n_jobs: int
    max_pairs: int | None
    progress: ProgressArgument
    counters: Counters
    batch_rows: int

    @classmethod
    def of(
        cls,
        metric: str | Metric,
        n_jobs: int | None,
        max_pairs: int | None,
        progress: ProgressArgument,
        counters: Counters | None,
        batch_rows: int = BATCH_ROWS,
    ) -> JoinOptions:
        """Check the arguments as callers pass them.

        Raises
        ------
        ArgumentError
            An argument has a wrong type or is out of its range.
        """
        if max_pairs is not None:
            check_count("max_pairs", max_pairs, 0)
        check_progress(progress)
        return cls(
            get_metric(metric),
            check_n_jobs(n_jobs),
            max_pairs,
            progress,
            UNREAD if counters is None else check_counters(counters),
            check_count("batch_rows", batch_rows),
        )

    def for_sweep(self) -> SweepOptions:
        """Return what a sweep needs of the options."""
        return SweepOptions(self.batch_rows, self.counters, self.n_jobs)

    def check_limit(self, found: int, near: str, expect: Callable[[], float] | None = None) -> None:
        """Refuse a join that has found more than ``max_pairs`` pairs.

        Parameters
        ----------
        found : number of its pairs so far.
        near : how near pairs are, for the message, such as "within eps = 2".
        expect : estimates the number of all pairs, for the message.

        Raises
        ------
        BudgetError
            There are more.
        """
        if self.max_pairs is not None and found > self.max_pairs:
            expected = f"; about {expect():.3g} are expected" if expect else ""
            raise BudgetError(f"more than max_pairs = {self.max_pairs} pairs {near}{expected}")
