"""Similarity joins of arrays, in this process: every pair of points within eps.

:func:`self_join` joins one table with itself, :func:`join` joins two; the functions whose names begin with
``iter_`` return the pairs batch by batch. By default the join is not split: one sweep with a window finds all
pairs (:mod:`epsjoin.kernels.sweep.window`). :class:`epsjoin.Cuts` splits it into parts, as the Spark jobs do,
which needs less memory at once, or as the papers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.arguments import check_choice
from epsjoin.local.join.by_product import join_of_one, join_of_two
from epsjoin.local.join.options import BATCH_ROWS, JoinOptions
from epsjoin.local.join.semi import mark_partners
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, check_batch_rows

HOW = ("inner", "left", "right", "outer", "semi", "anti")
"""Kinds of joins of two tables."""

NO_ROW = -1
"""Row number of a partner that does not exist, in a left, right or outer join."""

_How = Literal["inner", "left", "right", "outer"]
_HowRows = Literal["semi", "anti"]


class Rows(NamedTuple):
    """Rows of the left table that have a partner (semi join), or that have none (anti join).

    Parameters
    ----------
    left : (m,) int64, row numbers, ascending.
    """

    left: Ints


def self_join(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
) -> Pairs:
    """Find every pair of points within eps, sorted by (left, right).

    Parameters
    ----------
    points : (n, d) array of finite floats or integers, in any memory order; not modified. Distances are
        computed in float64; integers beyond 2**53 that float64 would round are refused.
    eps : threshold in the metric's unit, finite and above 0. A pair belongs to the result if its distance, as
        it is reported, is at most eps. Or (d,) thresholds, one per dimension: then the difference in each
        dimension is divided by its threshold, and the distance of a pair is at most 1.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    weights : (d,) numbers of at least 0, one per dimension, by which the terms of the metric's sum (or
        maximum) are multiplied; 1 by default. A term is a power of a difference: ``w_i (x_i - y_i)²`` for
        euclidean, ``w_i |x_i - y_i|`` for manhattan and chebyshev, ``w_i |x_i - y_i|^p`` for minkowski.
    ids : (n,) integers that the pairs consist of; the row numbers by default. They should be distinct, which
        is not checked: rows with the same id are joined like any others, and their pairs do not tell them
        apart (in a pair of two such rows, ``left == right``). For ids of another type, such as names, keep
        the row numbers: ``names[pairs.left]``.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    max_pairs : maximum number of pairs in the result; by default there is no limit.
    cuts : how to split the join into parts; by default it is not split. The result does not depend on it.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.
    counters : dictionary to whose entries the work is added: ``rows`` (of all parts, as often as ``cuts``
        repeat them), of these ``carried_rows``, which regular cuts send to a part only to be compared with
        its own; ``candidates`` (pairs of rows that are looked at), ``distance_computations`` (those that pass
        the filter), ``pairs``; ``largest_stack`` keeps the maximum number of rows in one window, or on the
        stack of regular cuts.

    Returns
    -------
    Pairs
        The ids of each pair, ``left < right`` where ids are distinct, and its distance. The arrays do not
        depend on ``n_jobs`` and ``cuts``.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite (the message names the
        first row and column); the metric is not defined for a point.
    BudgetError
        There are more than ``max_pairs`` pairs. Or ``cuts`` have a split rule without a limit, and one cube
        would be copied into a million rows. Or a part stays larger than their ``most_part_rows``.

    See Also
    --------
    iter_self_join : the same pairs batch by batch, in bounded memory.
    join : pairs of two tables.
    estimate : how many pairs there will be, before the join.

    Notes
    -----
    With one eps per dimension, the distance that is reported is the p-th root of the sum of
    ``w_i (|x_i - y_i| / eps_i)^p``, and a pair belongs to the result if it is at most 1. For chebyshev, that
    means ``|x_i - y_i| <= eps_i`` in each dimension. All sums are float64, in column order, of differences of
    the coordinates as they came.

    From 12 dimensions on, euclidean and cosine, without weights and cuts, go through products of blocks of
    rows where the planner expects that to cost less (:mod:`epsjoin.local.product.rows`): the same pairs and
    distances. Then points in float32 are not copied to float64; the join needs up to d + 6 float32 per point.

    Otherwise the join itself needs memory for at most 17 numbers per point; for d more if d is at most 8, and
    for d more with weights or one eps per dimension. The result takes 24 bytes per pair, 28 while it is being
    sorted (more with ``ids``).

    Up to 3 dimensions, euclidean, without weights, ``ids`` and cuts, are swept row by row
    (:mod:`epsjoin.kernels.sweep.row_sweep`): the same pairs and distances. If points have many neighbours,
    pairs need not be sorted afterwards, and the result takes 24 bytes per pair at any moment.

    Examples
    --------
    >>> pairs = self_join([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], eps=5.0)
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()
    ([0], [1], [5.0])
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    checked = join_of_one(points, ids, eps, weights, cuts, options)
    return checked.pairs("self_join") if ids is None else collect(checked.batches("self_join"))


def iter_self_join(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Find every pair of points within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    points, eps, metric, weights, ids, n_jobs, max_pairs, cuts, progress, counters : see :func:`self_join`.
    batch_rows : maximum number of pairs in one batch, at least 32; 262,144 by default.

    Yields
    ------
    Pairs
        A batch of pairs, ``left < right``; never empty. The order of the pairs depends on nothing but the
        arguments. The points must not change before the last batch has come.

    Raises
    ------
    ArgumentError
        As :func:`self_join`; raised by the call, not by the first batch.
    BudgetError
        As :func:`self_join`; raised before the batch with which there are more than ``max_pairs`` pairs.

    Notes
    -----
    The join is planned and all points are sorted before the first batch, which comes as soon as it is full.
    Few rows are joined in one call before the first batch.

    See Also
    --------
    self_join : all pairs at once, sorted.
    iter_join : batches of pairs of two tables.
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, check_batch_rows(batch_rows))
    return join_of_one(points, ids, eps, weights, cuts, options).batches("self_join")


@overload
def join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = ...,
    *,
    how: _How = ...,
    weights: ArrayLike | None = ...,
    n_jobs: int | None = ...,
    max_pairs: int | None = ...,
    cuts: Cuts | None = ...,
    progress: ProgressArgument = ...,
    counters: Counters | None = ...,
) -> Pairs: ...


@overload
def join(
    left: ArrayLike,
    right: ArrayLike | None,
    eps: float | ArrayLike,
    metric: str | Metric = ...,
    *,
    how: _HowRows,
    weights: ArrayLike | None = ...,
    n_jobs: int | None = ...,
    max_pairs: int | None = ...,
    cuts: Cuts | None = ...,
    progress: ProgressArgument = ...,
    counters: Counters | None = ...,
) -> Rows: ...


@overload
def join(
    left: ArrayLike,
    right: ArrayLike | None,
    eps: float | ArrayLike,
    metric: str | Metric = ...,
    *,
    how: str,
    weights: ArrayLike | None = ...,
    n_jobs: int | None = ...,
    max_pairs: int | None = ...,
    cuts: Cuts | None = ...,
    progress: ProgressArgument = ...,
    counters: Counters | None = ...,
) -> Pairs | Rows: ...


def join(
    left: ArrayLike,
    right: ArrayLike | None,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    how: str = "inner",
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
) -> Pairs | Rows:
    """Find every pair of a left and a right point within eps, sorted by (left, right).

    Parameters
    ----------
    left, right : (n, d) and (m, d) arrays of points, as for :func:`self_join`. With None as ``right``, for
        "semi" and "anti" only, the partners are other rows of ``left``, those equal to a row among them.
    how : kind of join. "inner" (the default) returns the pairs. "left", "right" and "outer" also return the
        rows of that table, or of both, that have no partner: their partner is -1 and their distance NaN.
        "semi" returns the left rows that have a partner, "anti" those that have none.
    eps, metric, weights, n_jobs, max_pairs, cuts, progress, counters : see :func:`self_join`. "semi" and
        "anti" make no pairs: ``max_pairs`` does not limit them, their counter ``pairs`` counts the left rows
        with a partner, and all ``cuts`` are planned ones.

    Returns
    -------
    Pairs
        Row numbers of the left and the right table, and distances. Rows without a partner come last, those of
        the left table before those of the right one.
    Rows
        For "semi" and "anti": row numbers of the left table.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`self_join`.

    See Also
    --------
    iter_join : the same pairs batch by batch, in bounded memory.
    self_join : pairs of one table.
    knn_join : the k nearest points of each query, without an eps.

    Notes
    -----
    A semi or anti join is done with a left row when its first partner is found, which it looks for from the
    row's own place outwards: the number of pairs does not matter. It needs the memory of the sweep and a byte
    per row. Rows without a partner cost as much as in an inner join. In products of blocks, a row leaves its
    block when its first partner is found.

    Examples
    --------
    >>> join([[0.0], [5.0]], [[1.0], [9.0]], eps=1.0, how="left")
    Pairs(left=array([0, 1]), right=array([ 0, -1]), distance=array([ 1., nan]))
    >>> join([[0.0], [5.0]], [[1.0], [9.0]], eps=1.0, how="anti").left
    array([1])
    """
    _check_how(how)
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    if how in ("semi", "anti"):
        of = eps, weights, cuts, options
        if right is None:
            rows_only = join_of_one(left, None, *of, is_semi=True, name="left")
        else:
            rows_only = join_of_two(left, right, *of)
        return Rows(np.flatnonzero(mark_partners(rows_only) == (how == "semi")))
    if right is None:
        raise ArgumentError(f"how = {how!r} needs two tables; self_join finds the pairs of one")
    checked = join_of_two(left, right, eps, weights, cuts, options)
    pairs = checked.pairs("join")
    if how == "inner":
        return pairs
    unmatched = _unmatched_rows(how, _mark(checked.n_left, pairs.left), _mark(checked.n_right, pairs.right))
    return Pairs(*(np.concatenate(column) for column in zip(pairs, unmatched, strict=True)))


def iter_join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    how: str = "inner",
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Find every pair of a left and a right point within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    left, right, eps, metric, how, weights, n_jobs, max_pairs, cuts, progress, counters : see :func:`join`.
        The rows without a partner are the last batch. "semi" and "anti" have no batches: call :func:`join`.
    batch_rows : maximum number of pairs in one batch, at least 32; 262,144 by default.

    Yields
    ------
    Pairs
        A batch of pairs; never empty. The order of the pairs depends on nothing but the arguments.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`iter_self_join`.

    See Also
    --------
    join : all pairs at once, sorted.
    iter_self_join : batches of pairs of one table.
    """
    _check_how(how)
    if how in ("semi", "anti"):
        raise ArgumentError(f"how = {how!r} returns rows, not batches of pairs: call join")
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, check_batch_rows(batch_rows))
    checked = join_of_two(left, right, eps, weights, cuts, options)
    batches = checked.batches("join")

    def with_unmatched_rows() -> Iterator[Pairs]:
        left_marked, right_marked = np.zeros(checked.n_left, np.bool_), np.zeros(checked.n_right, np.bool_)
        with closing(batches):
            for batch in batches:
                left_marked[batch.left] = True
                right_marked[batch.right] = True
                yield batch
        unmatched = _unmatched_rows(how, left_marked, right_marked)
        if len(unmatched.left):
            yield unmatched

    return with_unmatched_rows()


def _check_how(how: str) -> None:
    check_choice("how", how, HOW)


def _mark(n: int, rows: Ints) -> Bools:
    marked = np.zeros(n, np.bool_)
    marked[rows] = True
    return marked


def _unmatched_rows(how: str, left_marked: Bools, right_marked: Bools) -> Pairs:
    """Rows without a partner that this kind of join keeps, as pairs with ``NO_ROW``."""
    no_rows = np.empty(0, np.int64)
    left = np.flatnonzero(~left_marked) if how in ("left", "outer") else no_rows
    right = np.flatnonzero(~right_marked) if how in ("right", "outer") else no_rows
    return Pairs(
        np.concatenate((left, np.full(len(right), NO_ROW))),
        np.concatenate((np.full(len(left), NO_ROW), right)),
        np.full(len(left) + len(right), math.nan),
    )
