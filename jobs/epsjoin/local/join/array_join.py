"""A join of arrays whose arguments are checked, and how it runs: as one part or cut into parts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.row_windows import row_windows
from epsjoin.kernels.sweep.window import WindowRows, window_rows
from epsjoin.local.arguments import int_column
from epsjoin.local.coordinates import check_dimensions, check_points
from epsjoin.local.join.few_rows import FewRows
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.parts import join_part
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expectation.expected import expected_pairs_of_tables
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.row_by_row import choose_coordinates, is_row_by_row
from epsjoin.local.plan.spread import replicate
from epsjoin.local.progress import Progress, show_done
from epsjoin.local.scale import scale_metric
from epsjoin.local.sweep.buckets import sort_blocks
from epsjoin.local.sweep.by_row import RowSweep
from epsjoin.local.sweep.by_window import window_blocks
from epsjoin.local.sweep.pairs import Pairs, collect, cut_pairs, rename, row_type
from epsjoin.local.sweep.sweeping import sweep_window
from epsjoin.local.sweep.threads import in_ranges

_SORTED_BATCH_ROWS = 1 << 14
"""Number of pairs in a batch that goes to be sorted: the cache holds it until it is packed."""


class ArrayJoin(NamedTuple):
    """A checked join; made by :meth:`of_one` and :meth:`of_two`.

    Parameters
    ----------
    points : (n, d) float64, as they came; of two tables, the left table's points and then the right table's.
    ids : (n,) int64, for one table the ids that pairs consist of; None: the row numbers of each table.
    n_left : number of rows of the left table, or of the only one.
    is_one : whether there is one table.
    metric : the metric of the distances, with the weights and with an eps per dimension.
    eps : threshold of the metric; 1 where there is one per dimension.
    cuts : how to split the join into parts; None for one part.
    options : all other options.
    projection : coordinates of the sweep of one part, where they have been chosen.
    few_rows : the join of all pairs in one call, if it is known that there are few rows.
    """

    points: Floats
    ids: Ints | None
    n_left: int
    is_one: bool
    metric: Metric
    eps: float
    cuts: Cuts | None
    options: JoinOptions
    projection: Projection | None = None
    few_rows: FewRows | None = None

    @property
    def n_right(self) -> int:
        """Rows of the right table."""
        return len(self.points) - self.n_left

    def is_right(self) -> Bools | None:
        """Whether each point is one of the right table; None for a self join."""
        return None if self.is_one else np.arange(len(self.points)) >= self.n_left

    def all_ids(self) -> Ints:
        """The ids of all points."""
        if self.ids is not None:
            return self.ids
        numbers = np.arange(len(self.points))
        if not self.is_one:
            numbers[self.n_left :] -= self.n_left
        return numbers

    @classmethod
    def of_one(
        cls,
        points: ArrayLike,
        ids: ArrayLike | None,
        eps: float | ArrayLike,
        weights: ArrayLike | None,
        cuts: Cuts | None,
        options: JoinOptions,
        name: str = "points",
    ) -> ArrayJoin:
        """Check the arguments of a self join, as :func:`epsjoin.self_join` describes them."""
        _check_cuts(cuts)
        values = check_points(name, points, in_ranges(options.n_jobs))
        numbers = None if ids is None else check_ids(ids, len(values))
        metric, threshold = scale_metric(options.metric, values, eps, weights)
        metric.check(values, name)
        return cls(values, numbers, len(values), True, metric, threshold, cuts, options)

    @classmethod
    def of_two(
        cls,
        left: ArrayLike,
        right: ArrayLike,
        eps: float | ArrayLike,
        weights: ArrayLike | None,
        cuts: Cuts | None,
        options: JoinOptions,
    ) -> ArrayJoin:
        """Check the arguments of a join of two tables, as :func:`epsjoin.join` describes them."""
        _check_cuts(cuts)
        ranges = in_ranges(options.n_jobs)
        first, second = check_points("left", left, ranges), check_points("right", right, ranges)
        check_dimensions(left=first.shape[1], right=second.shape[1])
        n_left = len(first)
        both = np.concatenate((first, second))
        del first, second  # they may be copies
        metric, threshold = scale_metric(options.metric, both, eps, weights)
        metric.check(both[:n_left], "left")
        metric.check(both[n_left:], "right")
        return cls(both, None, n_left, False, metric, threshold, cuts, options)

    def batches(self, name: str) -> Generator[Pairs, None, None]:
        """Find all pairs, batch by batch; closing the generator ends its threads.

        Parameters
        ----------
        name : label of the progress bar.

        Raises
        ------
        BudgetError
            Before the batch with which there are more than ``max_pairs`` pairs.
        """
        with Progress(self.options.progress, name) as progress:
            parts = self._join_whole(progress) if self.cuts is None else self._join_parts(self.cuts, progress)
            yield from limited(parts, self.options, self.eps, self.expected_pairs)

    def pairs(self, name: str) -> Pairs:
        """Find all pairs of row numbers, sorted by (left, right): see :meth:`batches`.

        Notes
        -----
        Few rows are joined in one call (:mod:`epsjoin.kernels.sweep.few_rows`). In few dimensions, joins by
        Euclidean distance are swept row by row (:mod:`epsjoin.kernels.sweep.row_sweep`), which makes no
        batches.
        """
        few_rows = self.find_few_rows()
        if few_rows is not None:
            pairs = few_rows.pairs()
            self._check_limit(len(pairs.left))
            few_rows.count_work(self.options.counters, few_rows.compared, len(pairs.left))
            show_done(self.options.progress, name)
            return pairs
        n, n_jobs = len(self.points), self.options.n_jobs
        n_rows = self.n_left, n if self.is_one else self.n_right
        sorted_later = self.options._replace(batch_rows=_SORTED_BATCH_ROWS)
        if self.cuts is not None:
            return collect(self._replace(options=sorted_later).batches(name), n_rows, n_jobs=n_jobs)
        if not is_row_by_row(self.metric, self.points.shape[1], n):
            with Progress(self.options.progress, name) as progress:
                dtype = row_type(max(n_rows))  # the window's memory is freed before pairs are sorted
                options = sorted_later.for_sweep()
                blocks = window_blocks(*self._window(), dtype, options, progress.show, self._check_limit)
            return Pairs(*sort_blocks(blocks, n_rows, n_jobs=n_jobs))
        embedded_eps = self.metric.embedded_eps(self.eps)
        projection = choose_coordinates(self.points, n, embedded_eps, self.metric.norm)
        rows = row_windows(
            self.points, self.points, embedded_eps, projection, self.is_right(), in_ranges(n_jobs)
        )
        bound = self.metric.decision(self.eps).bound
        with Progress(self.options.progress, name) as progress:
            of = rows, self.points, self.n_left, bound, self.options.for_sweep()
            return RowSweep(*of, progress.show, self._check_limit).pairs()

    def find_few_rows(self) -> FewRows | None:
        """The join of all pairs in one call; None if there are many rows, or cuts are given."""
        if self.few_rows is not None or self.cuts is not None:
            return self.few_rows
        return FewRows.of(self.points, self.n_left, self.is_one, self.eps, self.metric)

    def _check_limit(self, found: int) -> None:
        if self.options.max_pairs is not None:
            self.options.check_limit(found, f"within eps = {self.eps:g}", self.expected_pairs)

    def expected_pairs(self) -> float:
        """Estimate the number of pairs, for the message of a join that is refused."""
        right = None if self.is_one else self.points[self.n_left :]
        return expected_pairs_of_tables(self.points[: self.n_left], right, self.eps, self.metric)

    def _join_whole(self, progress: Progress) -> Generator[Pairs, None, None]:
        few_rows = self.find_few_rows()
        if few_rows is None:
            return sweep_window(*self._window(), self.options.for_sweep(), progress.show)
        pairs = few_rows.pairs()
        few_rows.count_work(self.options.counters, few_rows.compared, len(pairs.left))
        if self.ids is not None:
            pairs = rename(pairs, self.ids)
        return cut_pairs(pairs, self.options.batch_rows)

    def _window(self) -> tuple[WindowRows, Decision]:
        """Put the rows in the order of a window sweep."""
        metric, n = self.metric, len(self.points)
        embedded = metric.embed(self.points)
        eps = metric.embedded_eps(self.eps)
        projection = self.projection
        if projection is None:
            at_once = in_ranges(self.options.n_jobs, are_long=True)
            projection = choose_projection(embedded, n, eps, metric.norm, ranges=at_once).projection
        no_mask = np.empty(0, np.int64)
        ranges = in_ranges(self.options.n_jobs)
        ids = self.ids if self.is_one else self.all_ids()
        rows = window_rows(self.points, embedded, ids, no_mask, eps, projection, self.is_right(), ranges)
        return rows, metric.decision(self.eps)

    def _join_parts(self, cuts: Cuts, progress: Progress) -> Generator[Pairs, None, None]:
        options, n = self.options, len(self.points)
        all_ids, all_right = self.all_ids(), self.is_right()
        sample = cuts.sample(n)
        plan = plan_join(self.points[sample], all_ids[sample], n, self.eps, self.metric, cuts)
        rows = replicate(self.points, all_ids, plan)
        ends = np.searchsorted(rows.part, np.arange(plan.n_parts + 1))
        for part in range(plan.n_parts):
            of_part = slice(ends[part], ends[part + 1])
            row, key = rows.row[of_part], rows.key[of_part]
            is_right = None if all_right is None else all_right[row]
            points, ids = self.points[row], all_ids[row]
            yield from join_part(points, ids, key, part, plan, *options.for_sweep(), is_right)
            progress.show(ends[part + 1] / max(1, len(rows.row)))


def _check_cuts(cuts: object) -> None:
    if cuts is not None and not isinstance(cuts, Cuts):
        raise ArgumentError(f"cuts must be epsjoin.Cuts(...) or None, not {cuts!r}")


def check_ids(ids: ArrayLike | None, n: int) -> Ints:
    """Return the ids of n points; their row numbers where there are none."""
    if ids is None:
        return np.arange(n, dtype=np.int64)
    numbers = int_column("ids", ids)
    if len(numbers) != n:
        raise ArgumentError(f"ids must be one per point, {n}, not {len(numbers)}")
    return numbers


def limited(
    parts: Generator[Pairs, None, None], options: JoinOptions, eps: float, expect: Callable[[], float]
) -> Generator[Pairs, None, None]:
    """Yield batches of pairs, and refuse the one with which there are more than ``max_pairs``.

    Parameters
    ----------
    parts : the batches; the generator is closed at the end.
    options : of the join; eps : its threshold, and ``expect`` estimates its pairs, for the message.
    """
    found = 0
    with closing(parts):
        for pairs in parts:
            found += len(pairs.left)
            options.check_limit(found, f"within eps = {eps:g}", expect)
            yield pairs
