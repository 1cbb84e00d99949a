"""Similarity joins of arrays, in this process: every pair within eps.

One table with itself (:func:`self_join`) or two (:func:`join`), whole or batch by batch (``iter_...``). By
default all rows are one part, swept along a window (:mod:`epsjoin.kernels.join.window`);
:class:`epsjoin.local.plan.cuts.Cuts` cuts them into parts as the Spark jobs do, for less memory at once, or
as the papers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.options import BATCH_ROWS, JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, check_batch_rows

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
    progress: ProgressArgument = False,
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
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    checked = ArrayJoin.of_one(points, ids, eps, weights, cuts, options)
    n_rows = None if ids is not None else (checked.n_left, checked.n_left)
    return collect(checked.batches("self_join"), n_rows)


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
    progress: ProgressArgument = False,
    counters: Counters | None = None,
    batch_rows: int = BATCH_ROWS,
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
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, check_batch_rows(batch_rows))
    return ArrayJoin.of_one(points, ids, eps, weights, cuts, options).batches("self_join")


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
    progress: ProgressArgument = ...,
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
    progress: ProgressArgument = ...,
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
    progress: ProgressArgument = False,
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
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    checked = ArrayJoin.of_two(left, right, eps, weights, cuts, options)
    batches = checked.batches("join")
    if how in ("semi", "anti"):
        has_partner = np.zeros(checked.n_left, np.bool_)
        with closing(batches):
            for batch in batches:
                has_partner[batch.left] = True
        return Rows(np.flatnonzero(has_partner == (how == "semi")))
    pairs = collect(batches, (checked.n_left, checked.n_right))
    alone = _alone(how, _marked(checked.n_left, pairs.left), _marked(checked.n_right, pairs.right))
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
    progress: ProgressArgument = False,
    counters: Counters | None = None,
    batch_rows: int = BATCH_ROWS,
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
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, check_batch_rows(batch_rows))
    checked = ArrayJoin.of_two(left, right, eps, weights, cuts, options)
    batches = checked.batches("join")

    def with_unmatched_rows() -> Iterator[Pairs]:
        left_marked, right_marked = np.zeros(checked.n_left, np.bool_), np.zeros(checked.n_right, np.bool_)
        with closing(batches):
            for batch in batches:
                left_marked[batch.left] = True
                right_marked[batch.right] = True
                yield batch
        alone = _alone(how, left_marked, right_marked)
        if len(alone.left):
            yield alone

    return with_unmatched_rows()


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
