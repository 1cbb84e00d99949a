"""Joins of objects with extent, in this process: boxes within eps, and points with an eps of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.local.join.objects import TreeOptions, ball_table, box_table, check_box_eps, join_objects
from epsjoin.local.join.options import BATCH_ROWS, JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import Pairs, collect


class Boxes(NamedTuple):
    """Axis-parallel boxes, closed: their sides belong to them.

    Parameters
    ----------
    lower, upper : (n, d) arrays, the two corners of each box; ``lower <= upper`` everywhere.

    Examples
    --------
    >>> boxes = Boxes(lower=[[0.0, 0.0], [2.0, 0.0]], upper=[[1.0, 1.0], [3.0, 1.0]])
    >>> box_join(boxes, eps=1.0).distance
    array([1.])
    """

    lower: ArrayLike
    upper: ArrayLike


_BoxArguments = Boxes | tuple[ArrayLike, ArrayLike]


def iter_box_join(
    left: Boxes | tuple[ArrayLike, ArrayLike],
    right: Boxes | tuple[ArrayLike, ArrayLike] | None = None,
    eps: float = 0.0,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Every pair of boxes that meet or lie within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    left : boxes, or a pair (lower, upper) of (n, d) arrays of floats or integers, any memory order; not
        modified. Computed in float64.
    right : boxes of as many dimensions. By default the left boxes are joined with each other.
    eps : threshold in the metric's unit. 0: boxes that meet, touching included. Above 0: boxes whose smallest
        distance is at most eps. That distance is the metric's length of the vector of gaps, by axis
        ``max(0, lower_y - upper_x, lower_x - upper_y)``.
    metric : euclidean, manhattan, chebyshev, or what :func:`epsjoin.local.metric.get_metric` gives for
        minkowski.
    max_pairs : refuse to give more pairs than this.
    n_jobs : threads.
    progress : True draws a bar on stderr; a function is called with the share done, from 0 to 1.
    replication_budget : rows per box that the leaves of the tree may have on average, at least 1. Where large
        boxes would need more, the tree has fewer cuts, down to none.
    sample_rows : rows on which the tree of cuts is grown.
    counters : added to as the batches come: ``rows`` (of all leaves), ``candidates``,
        ``distance_computations``, ``pairs``, and ``largest_stack``, which keeps the maximum: the most rows in
        one window (:mod:`epsjoin.kernels.join.stack_sweep`).
    batch_rows : most pairs in one batch, at least 1.

    Yields
    ------
    Pairs
        Row numbers and distance; never empty. ``left < right`` in a self join. The order depends on nothing
        but the boxes, eps, metric, budget, sample and batch size; not on ``n_jobs``.

    Raises
    ------
    ArgumentError
        A wrong argument, at the call; a value that is NaN or infinite, a lower side above the upper one (the
        message names the first row and column); cosine or haversine, which have no distance of boxes.
    BudgetError
        There are more than ``max_pairs`` pairs: raised before the batch that would exceed it.

    Notes
    -----
    Boxes of extent 0 are points: the pairs are those of :func:`epsjoin.local.join.arrays.self_join`, with the
    same
    distances. Memory beside the boxes: four float64 per axis for each box, 80 B for each row, and a batch and
    the copied rows of some leaves for each thread. Rows that no cut divides (many boxes on one spot) make a
    large leaf, whose pairs come batch by batch like all others.

    Dittrich's dissertation, section 3.5: GESS takes any input for which a hypercube can be computed.

    Examples
    --------
    >>> ends = np.arange(6.0).reshape(6, 1)
    >>> sum(len(pairs.left) for pairs in iter_box_join(Boxes(ends, ends + 1.0), batch_rows=2))
    5
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, batch_rows)
    return _join_boxes(left, right, eps, options, TreeOptions.of(replication_budget, sample_rows))


def box_join(
    left: Boxes | tuple[ArrayLike, ArrayLike],
    right: Boxes | tuple[ArrayLike, ArrayLike] | None = None,
    eps: float = 0.0,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
) -> Pairs:
    """Every pair of boxes that meet or lie within eps, sorted by (left, right).

    Parameters
    ----------
    left, right, eps, metric, max_pairs, n_jobs, progress, replication_budget, sample_rows, counters :
        see :func:`iter_box_join`.

    Returns
    -------
    Pairs
        Row numbers and distance; ``left < right`` in a self join.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`iter_box_join`.

    Examples
    --------
    >>> boxes = Boxes(lower=[[0.0, 0.0], [1.0, 1.0], [5.0, 6.0]], upper=[[1.0, 1.0], [2.0, 2.0], [7.0, 7.0]])
    >>> box_join(boxes).right.tolist()  # the first two touch in a corner
    [1]
    >>> box_join(boxes, eps=5.0).distance.tolist()
    [0.0, 5.0]
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    batches = _join_boxes(left, right, eps, options, TreeOptions.of(replication_budget, sample_rows))
    return collect(batches, _row_counts(left[0], None if right is None else right[0]))


def iter_ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Every pair of points within ``(eps_x + eps_y) / 2``, each with its own eps, batch by batch.

    In other words: balls of diameter eps around the points that meet.

    Parameters
    ----------
    points : (n, d) array of floats or integers, any memory order; not modified. Computed in float64.
    eps_of_each : (n,) numbers in the metric's unit, at least 0. Two objects of eps 0 are a pair when they are
        at distance 0; for a metric of coordinates, when they are equal.
    right, right_eps : the right table, in the same form; by default the points are joined with each other.
    metric : any metric of :func:`epsjoin.local.metric.get_metric`. The metric's own value is compared with
        the threshold: for euclidean the sum of squares with its square.
    max_pairs, n_jobs, progress, replication_budget, sample_rows, counters, batch_rows :
        see :func:`iter_box_join`.

    Yields
    ------
    Pairs
        As for :func:`iter_box_join`.

    Raises
    ------
    ArgumentError
        A wrong argument, at the call; a value that is NaN, infinite, or a negative eps (the message names the
        first row); an eps too small or too large for the metric to be decided exactly; a point for which the
        metric is not defined.
    BudgetError
        See :func:`iter_box_join`.

    Notes
    -----
    With one eps for all the pairs are those of the point join. The cubes of side eps meet as in the papers:
    Dittrich's dissertation, section 5.3.4.2, footnote 18, allows another eps for every object. On the unit
    sphere the cubes reach as far as the chord of eps / 2: a chord never exceeds the sum of the chords of two
    angles that add up to its own, nor ``sqrt(2 eps)`` of the cosine the sum of the roots of two eps that do.

    Examples
    --------
    >>> for pairs in iter_ball_join([[0.0], [3.0], [7.0]], [1.0, 5.0, 1.0], right=[[4.0]], right_eps=[5.0]):
    ...     print(pairs.left, pairs.right, pairs.distance)
    [1 2] [0 0] [1. 3.]
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, batch_rows)
    growth = TreeOptions.of(replication_budget, sample_rows)
    return _join_balls(points, eps_of_each, right, right_eps, options, growth)


def ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
) -> Pairs:
    """Every pair of points within ``(eps_x + eps_y) / 2``, each with its own eps, sorted by (left, right).

    Parameters
    ----------
    points, eps_of_each, right, right_eps, metric : see :func:`iter_ball_join`.
    max_pairs, n_jobs, progress, replication_budget, sample_rows, counters : see :func:`iter_box_join`.

    Returns
    -------
    Pairs
        Row numbers and distance; ``left < right`` in a self join.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`iter_ball_join`.

    Examples
    --------
    >>> pairs = ball_join([[0.0], [3.0], [7.0]], eps_of_each=[1.0, 5.0, 1.0])
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()
    ([0], [1], [3.0])
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    growth = TreeOptions.of(replication_budget, sample_rows)
    batches = _join_balls(points, eps_of_each, right, right_eps, options, growth)
    return collect(batches, _row_counts(points, right))


def _join_boxes(
    left: _BoxArguments, right: _BoxArguments | None, eps: float, options: JoinOptions, growth: TreeOptions
) -> Iterator[Pairs]:
    metric = options.metric
    eps = check_box_eps(eps, metric)
    first = box_table("left", left, eps, metric)
    second = None if right is None else box_table("right", right, eps, metric)
    return join_objects(first, second, f"within eps = {eps:g}", options, growth)


def _join_balls(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None,
    right_eps: ArrayLike | None,
    options: JoinOptions,
    growth: TreeOptions,
) -> Iterator[Pairs]:
    if (right is None) != (right_eps is None):
        raise ArgumentError("right and right_eps must be given both or neither")
    first = ball_table("points", "eps_of_each", points, eps_of_each, options.metric)
    second = None
    if right is not None and right_eps is not None:
        second = ball_table("right", "right_eps", right, right_eps, options.metric)
    return join_objects(first, second, "within half the sum of their eps", options, growth)


def _row_counts(left: ArrayLike, right: ArrayLike | None) -> tuple[int, int]:
    """Numbers of rows that the left and the right row numbers of pairs refer to."""
    return np.shape(left)[0], np.shape(left if right is None else right)[0]
