"""Similarity joins of arrays, in this process: every pair within eps.

One table with itself (:func:`self_join`) or two (:func:`join`), whole or batch by batch (``iter_...``). By
default all rows are one part, swept along a window (:mod:`epsjoin.kernels.join.window`);
:class:`epsjoin.local.plan.cuts.Cuts` cuts them into parts as the Spark jobs do, for less memory at once, or
as the papers do.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.join.window import window_rows
from epsjoin.local.arguments import check_count, check_points, int_column
from epsjoin.local.join.parts import join_part
from epsjoin.local.join.scale import scale_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expected import expected_pairs_of_tables
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.spread import replicate
from epsjoin.local.progress import Progress, ProgressWish, check_progress
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, check_batch_rows, check_n_jobs, sweep_window

HOW = ("inner", "left", "right", "outer", "semi", "anti")
NO_ROW = -1

_How = Literal["inner", "left", "right", "outer"]
_HowRows = Literal["semi", "anti"]


class Rows(NamedTuple):
    """Rows of the left table: those with a partner (semi join) or without one (anti join).

    Parameters
    ----------
    left : (m,) int64, row numbers, ascending.
    """

    left: NDArray[np.int64]


def self_join(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    n_jobs: int = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressWish = False,
    counters: Counters | None = None,
) -> Pairs:
    """Every pair of points within eps, sorted by (left, right).

    Parameters
    ----------
    points : (n, d) array of floats or integers, any memory order; not modified. Computed in float64.
    eps : threshold in the metric's unit, finite and above 0; a pair at exactly eps belongs to the result. Or
        (d,) one per dimension: coordinates are divided by it, and within means a distance of at most 1.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned (minkowski).
    weights : (d,) numbers, at least 0: each term of the metric's sum (or maximum) is multiplied by its own.
    ids : (n,) integers; by default the row numbers. They should be distinct; this is not checked.
    n_jobs : threads. The result is the same for any number.
    max_pairs : refuse to give more pairs than this.
    cuts : cut the rows into parts; by default they are one. The pairs are the same.
    progress : True draws a bar on stderr; a function is called with the share done, from 0 to 1.
    counters : added to: ``rows``, ``carried_rows``, ``candidates``, ``distance_computations``, ``pairs``,
        ``largest_stack`` (:mod:`epsjoin.kernels.join.stack_sweep` defines them).

    Returns
    -------
    Pairs
        ``left < right`` are ids; the same arrays whatever the threads and cuts.

    Raises
    ------
    ArgumentError
        A wrong argument; a value that is NaN or infinite (the message names the first row and column); a
        point for which the metric is not defined.
    BudgetError
        There are more than ``max_pairs`` pairs, or an unlimited split rule makes a million rows of one cube.

    Notes
    -----
    At most 17 numbers of memory per point, and d more where d is at most 8. Besides, the pairs: 24 bytes
    each, 28 while they are sorted (more with ``ids``).

    Examples
    --------
    >>> pairs = self_join([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], eps=5.0)
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()
    ([0], [1], [5.0])
    """
    task = _Task.of(points, None, eps, metric, weights, ids, n_jobs, max_pairs, cuts, progress, counters)
    return collect(
        task.batches(1 << 18, "self_join"), None if ids is not None else (task.n_left, task.n_left)
    )


def iter_self_join(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    n_jobs: int = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressWish = False,
    counters: Counters | None = None,
    batch_rows: int = 1 << 18,
) -> Iterator[Pairs]:
    """Every pair of points within eps, batch by batch: the first at once, all in bounded memory.

    Parameters
    ----------
    points, eps, metric, weights, ids, n_jobs, max_pairs, cuts, progress, counters : see :func:`self_join`.
    batch_rows : most pairs in one batch, at least 32.

    Yields
    ------
    Pairs
        In an order that depends on nothing but the arguments; ``left < right``; never empty. The points must
        not change before the last.

    Raises
    ------
    ArgumentError
        As :func:`self_join`, at the call.
    BudgetError
        Before the batch that would exceed ``max_pairs``.
    """
    task = _Task.of(points, None, eps, metric, weights, ids, n_jobs, max_pairs, cuts, progress, counters)
    return task.batches(check_batch_rows(batch_rows), "self_join")


@overload
def join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = ...,
    *,
    how: _How = ...,
    weights: ArrayLike | None = ...,
    n_jobs: int = ...,
    max_pairs: int | None = ...,
    cuts: Cuts | None = ...,
    progress: ProgressWish = ...,
    counters: Counters | None = ...,
) -> Pairs: ...


@overload
def join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = ...,
    *,
    how: _HowRows,
    weights: ArrayLike | None = ...,
    n_jobs: int = ...,
    max_pairs: int | None = ...,
    cuts: Cuts | None = ...,
    progress: ProgressWish = ...,
    counters: Counters | None = ...,
) -> Rows: ...


def join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    how: _How | _HowRows = "inner",
    weights: ArrayLike | None = None,
    n_jobs: int = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressWish = False,
    counters: Counters | None = None,
) -> Pairs | Rows:
    """Every pair of a left and a right point within eps, sorted by (left, right).

    Parameters
    ----------
    left, right : (n, d) and (m, d) arrays, see :func:`self_join`.
    how : "inner"; "left", "right", "outer": also the rows without a partner, which then is -1, at the
        distance NaN; "semi", "anti": only the left rows that have a partner, or have none.
    eps, metric, weights, n_jobs, max_pairs, cuts, progress, counters : see :func:`self_join`.

    Returns
    -------
    Pairs
        Row numbers; rows without a partner come last, left ones first.
    Rows
        For "semi" and "anti".

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`self_join`.

    Examples
    --------
    >>> join([[0.0], [5.0]], [[1.0], [9.0]], eps=1.0, how="left")
    Pairs(left=array([0, 1]), right=array([ 0, -1]), distance=array([ 1., nan]))
    >>> join([[0.0], [5.0]], [[1.0], [9.0]], eps=1.0, how="anti").left
    array([1])
    """
    _check_how(how)
    task = _Task.of(left, right, eps, metric, weights, None, n_jobs, max_pairs, cuts, progress, counters)
    batches = task.batches(1 << 18, "join")
    if how in ("semi", "anti"):
        has_partner = np.zeros(task.n_left, np.bool_)
        with closing(batches):
            for batch in batches:
                has_partner[batch.left] = True
        return Rows(np.flatnonzero(has_partner == (how == "semi")))
    pairs = collect(batches, (task.n_left, task.n_right))
    alone = _alone(how, _marked(task.n_left, pairs.left), _marked(task.n_right, pairs.right))
    return Pairs(*(np.concatenate(column) for column in zip(pairs, alone, strict=True)))


def iter_join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    how: _How = "inner",
    weights: ArrayLike | None = None,
    n_jobs: int = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressWish = False,
    counters: Counters | None = None,
    batch_rows: int = 1 << 18,
) -> Iterator[Pairs]:
    """Every pair of a left and a right point within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    left, right, eps, metric, how, weights, n_jobs, max_pairs, cuts, progress, counters : see :func:`join`;
        rows without a partner are the last batch. "semi" and "anti" have no batches: call :func:`join`.
    batch_rows : most pairs in one batch, at least 32.

    Yields
    ------
    Pairs
        In an order that depends on nothing but the arguments; never empty.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`iter_self_join`.
    """
    _check_how(how)
    if how in ("semi", "anti"):
        raise ArgumentError(f"how = {how!r} gives rows, not batches of pairs: call join")
    task = _Task.of(left, right, eps, metric, weights, None, n_jobs, max_pairs, cuts, progress, counters)
    batches = task.batches(check_batch_rows(batch_rows), "join")

    def with_the_rest() -> Iterator[Pairs]:
        left_marked, right_marked = np.zeros(task.n_left, np.bool_), np.zeros(task.n_right, np.bool_)
        with closing(batches):
            for batch in batches:
                left_marked[batch.left] = True
                right_marked[batch.right] = True
                yield batch
        alone = _alone(how, left_marked, right_marked)
        if len(alone.left):
            yield alone

    return with_the_rest()


@dataclass(frozen=True)
class _Task:
    """A checked join: the points of both tables, the left first, and how to go about it."""

    points: NDArray[np.float64]
    ids: NDArray[np.int64]
    is_right: NDArray[np.bool_] | None
    n_left: int
    eps: float
    metric: Metric
    n_jobs: int
    max_pairs: int | None
    cuts: Cuts | None
    progress: ProgressWish
    counters: Counters

    @property
    def n_right(self) -> int:
        """Rows of the right table."""
        return len(self.points) - self.n_left

    @classmethod
    def of(
        cls,
        left: ArrayLike,
        right: ArrayLike | None,
        eps: float | ArrayLike,
        metric: str | Metric,
        weights: ArrayLike | None,
        ids: ArrayLike | None,
        n_jobs: int,
        max_pairs: int | None,
        cuts: Cuts | None,
        progress: ProgressWish,
        counters: Counters | None,
    ) -> _Task:
        """Check all arguments."""
        chosen = metric if isinstance(metric, Metric) else get_metric(metric)
        points = check_points("points" if right is None else "left", left)
        n_left = len(points)
        numbers = np.arange(n_left, dtype=np.int64)
        is_right = None
        if right is not None:
            others = check_points("right", right)
            if others.shape[1] != points.shape[1]:
                dimensions = f"{points.shape[1]} and {others.shape[1]}"
                raise ArgumentError(f"left and right must have the same dimensions, not {dimensions}")
            points = np.concatenate((points, others))
            is_right = np.arange(len(points)) >= n_left
            numbers = np.concatenate((numbers, np.arange(len(others), dtype=np.int64)))
        elif ids is not None:
            numbers = int_column("ids", ids)
            if len(numbers) != n_left:
                raise ArgumentError(f"ids must be one per point, {n_left}, not {len(numbers)}")
        points, threshold = scale_points(points, eps, weights, chosen)
        if right is None:
            _check_for(chosen, "points", points)
        else:
            _check_for(chosen, "left", points[:n_left])
            _check_for(chosen, "right", points[n_left:])
        if max_pairs is not None:
            check_count("max_pairs", max_pairs, 0)
        if cuts is not None and not isinstance(cuts, Cuts):
            raise ArgumentError(f"cuts must be epsjoin.Cuts(...) or None, not {cuts!r}")
        check_progress(progress)
        counts: Counters = {} if counters is None else counters
        jobs = check_n_jobs(n_jobs)
        return cls(
            points, numbers, is_right, n_left, threshold, chosen, jobs, max_pairs, cuts, progress, counts
        )

    def batches(self, batch_rows: int, what: str) -> Generator[Pairs, None, None]:
        """All pairs, as they come, never more than allowed; its threads end when it is closed."""
        found = 0
        with Progress(self.progress, what) as shown:
            if self.cuts is None:
                parts = self._one_part(batch_rows, shown)
            else:
                parts = self._parts(self.cuts, batch_rows, shown)
            with closing(parts):
                for pairs in parts:
                    found += len(pairs.left)
                    if self.max_pairs is not None and found > self.max_pairs:
                        raise BudgetError(
                            f"more than max_pairs = {self.max_pairs} pairs within eps = {self.eps:g}; "
                            f"about {self._expected_pairs():.3g} are expected"
                        )
                    yield pairs

    def _one_part(self, batch_rows: int, shown: Progress) -> Generator[Pairs, None, None]:
        n = len(self.points)
        embedded = self.metric.embed(self.points)
        eps = self.metric.embedded_eps(self.eps)
        projection = choose_projection(embedded, n, eps, self.metric.norm).projection
        nothing = np.zeros(n, np.int64)
        rows = window_rows(self.points, embedded, self.ids, nothing, eps, projection, self.is_right)
        decision = self.metric.decision(self.eps)
        return sweep_window(rows, decision, batch_rows, self.counters, self.n_jobs, shown.show)

    def _parts(self, cuts: Cuts, batch_rows: int, shown: Progress) -> Generator[Pairs, None, None]:
        sample = cuts.sample(len(self.points))
        plan = plan_join(self.points[sample], self.ids[sample], len(self.points), self.eps, self.metric, cuts)
        rows = replicate(self.points, self.ids, plan)
        ends = np.searchsorted(rows.part, np.arange(plan.n_parts + 1))
        for part in range(plan.n_parts):
            of_part = slice(ends[part], ends[part + 1])
            row, key = rows.row[of_part], rows.key[of_part]
            is_right = None if self.is_right is None else self.is_right[row]
            yield from join_part(
                self.points[row],
                self.ids[row],
                key,
                part,
                plan,
                batch_rows,
                self.counters,
                self.n_jobs,
                is_right,
            )
            shown.show(ends[part + 1] / max(1, len(rows.row)))

    def _expected_pairs(self) -> float:
        """Estimate the pairs of all rows."""
        return expected_pairs_of_tables(self.points, self.n_left, self.eps, self.metric)


def _check_for(metric: Metric, name: str, points: NDArray[np.float64]) -> None:
    try:
        metric.check(points)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _check_how(how: str) -> None:
    if how not in HOW:
        raise ArgumentError(f"how must be one of {', '.join(HOW)}, not {how!r}")


def _marked(n: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    marked = np.zeros(n, np.bool_)
    marked[rows] = True
    return marked


def _alone(how: str, left_marked: NDArray[np.bool_], right_marked: NDArray[np.bool_]) -> Pairs:
    """The rows without a partner that this kind of join keeps."""
    nobody = np.empty(0, np.int64)
    left = np.flatnonzero(~left_marked) if how in ("left", "outer") else nobody
    right = np.flatnonzero(~right_marked) if how in ("right", "outer") else nobody
    return Pairs(
        np.concatenate((left, np.full(len(right), NO_ROW))),
        np.concatenate((np.full(len(left), NO_ROW), right)),
        np.full(len(left) + len(right), math.nan),
    )
