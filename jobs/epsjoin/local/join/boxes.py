"""Joins of arrays of boxes, and of points with an eps of their own (balls), in this process.

The checks and the join itself are in ``objects.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.local.join.objects import CutOptions, ball_table, box_table, check_box_eps, join_objects
from epsjoin.local.join.options import BATCH_ROWS, JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import Pairs, collect


class Boxes(NamedTuple):
    """Axis-parallel boxes. A box is closed: its sides belong to it.

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
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Find every pair of boxes that meet or lie within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    left : Boxes, or a pair (lower, upper) of (n, d) arrays of finite floats or integers, in any memory order;
        not modified. Distances are computed in float64.
    right : boxes with the same number of dimensions. By default the left boxes are joined with each other.
    eps : threshold in the metric's unit. With 0, the default, boxes are a pair when they meet, which includes
        touching. Above 0, they are a pair when their smallest distance is at most eps. That distance is the
        metric's length of the vector of gaps; the gap on an axis is
        ``max(0, lower_y - upper_x, lower_x - upper_y)``.
    metric : "euclidean" (the default), "manhattan", "chebyshev", or what :func:`epsjoin.get_metric` returns
        for "minkowski".
    max_pairs : maximum number of pairs in the result; by default there is no limit.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.
    replication_budget : maximum average number of rows per box in all leaves of the tree of cuts, at least 1;
        4 by default. Where large boxes would need more rows, the tree has fewer cuts, or none.
    sample_rows : number of boxes on which the tree of cuts is grown; 20,000 by default.
    counters : dictionary to whose entries the work is added while batches come: ``rows`` (of all leaves),
        ``candidates``, ``distance_computations``, ``pairs``; ``largest_stack`` keeps the maximum number of
        rows in one window.
    batch_rows : maximum number of pairs in one batch, at least 1; 262,144 by default.

    Yields
    ------
    Pairs
        A batch of row numbers and distances; never empty. ``left < right`` in a self join. The order depends
        on nothing but the boxes, eps, metric, budget, sample and batch size; not on ``n_jobs``.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite, or a lower side is
        above the upper one (the message names the first row and column); the metric is cosine or haversine,
        which have no distance of boxes. Raised by the call, not by the first batch.
    BudgetError
        There are more than ``max_pairs`` pairs; raised before the batch with which there are more.

    See Also
    --------
    box_join : all pairs at once, sorted.
    iter_ball_join : points with an eps of their own.

    Notes
    -----
    Boxes of extent 0 are points: their pairs are those of :func:`epsjoin.self_join`, with the same distances.
    Memory, not counting the boxes: four float64 per axis for each box, 80 bytes for each row, and for each
    thread a batch and the copied rows of some leaves. Rows that no cut divides (many boxes at one place) make
    a large leaf, whose pairs come batch by batch like all others.

    Dittrich's dissertation, section 3.5: GESS takes any input for which a hypercube can be computed.

    Examples
    --------
    >>> ends = np.arange(6.0).reshape(6, 1)
    >>> sum(len(pairs.left) for pairs in iter_box_join(Boxes(ends, ends + 1.0), batch_rows=2))
    5
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, batch_rows)
    return _join_boxes(left, right, eps, options, CutOptions.of(replication_budget, sample_rows))


def box_join(
    left: Boxes | tuple[ArrayLike, ArrayLike],
    right: Boxes | tuple[ArrayLike, ArrayLike] | None = None,
    eps: float = 0.0,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
) -> Pairs:
    """Find every pair of boxes that meet or lie within eps, sorted by (left, right).

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

    See Also
    --------
    iter_box_join : the same pairs batch by batch, in bounded memory.
    ball_join : points with an eps of their own.

    Examples
    --------
    >>> boxes = Boxes(lower=[[0.0, 0.0], [1.0, 1.0], [5.0, 6.0]], upper=[[1.0, 1.0], [2.0, 2.0], [7.0, 7.0]])
    >>> box_join(boxes).right.tolist()  # the first two touch in a corner
    [1]
    >>> box_join(boxes, eps=5.0).distance.tolist()
    [0.0, 5.0]
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    batches = _join_boxes(left, right, eps, options, CutOptions.of(replication_budget, sample_rows))
    return collect(batches, _row_counts(left[0], None if right is None else right[0]))


def iter_ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Pairs]:
    """Find every pair of points within ``(eps_x + eps_y) / 2``, batch by batch: each point has its own eps.

    In other words: around each point there is a ball with eps as its diameter, and pairs are balls that meet.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers, in any memory order; not modified. Distances are
        computed in float64.
    eps_of_each : (n,) numbers of at least 0, in the metric's unit. Two points of eps 0 are a pair when their
        distance is 0; for a metric of coordinates, when they are equal.
    right, right_eps : points and eps of the right table, in the same form. By default the points are joined
        with each other.
    metric : any metric of :func:`epsjoin.get_metric`; "euclidean" by default. The distance that is reported
        is what is compared with the threshold.
    max_pairs, n_jobs, progress, replication_budget, sample_rows, counters, batch_rows :
        see :func:`iter_box_join`.

    Yields
    ------
    Pairs
        As :func:`iter_box_join`.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a number is NaN or infinite, or an eps is negative (the
        message names the first row); an eps is too small or too large for exact decisions; the metric is not
        defined for a point. Raised by the call, not by the first batch.
    BudgetError
        See :func:`iter_box_join`.

    See Also
    --------
    ball_join : all pairs at once, sorted.
    iter_self_join : one eps for all points.

    Notes
    -----
    With one eps for all points the pairs are those of :func:`epsjoin.self_join`. Candidates are points whose
    cubes of side eps meet, as in the papers: Dittrich's dissertation, section 5.3.4.2, footnote 18, allows a
    different eps for every object. On the unit sphere a cube reaches as far as the chord of eps / 2. That
    loses no pair, because the chord of an angle never exceeds the sum of the chords of two angles that add
    up to it; the same holds for the cosine's ``sqrt(2 eps)``.

    Examples
    --------
    >>> for pairs in iter_ball_join([[0.0], [3.0], [7.0]], [1.0, 5.0, 1.0], right=[[4.0]], right_eps=[5.0]):
    ...     print(pairs.left, pairs.right, pairs.distance)
    [1 2] [0 0] [1. 3.]
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters, batch_rows)
    growth = CutOptions.of(replication_budget, sample_rows)
    return _join_balls(points, eps_of_each, right, right_eps, options, growth)


def ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
) -> Pairs:
    """Find every pair of points within ``(eps_x + eps_y) / 2``, sorted: each point has its own eps.

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

    See Also
    --------
    iter_ball_join : the same pairs batch by batch, in bounded memory.
    self_join : one eps for all points.

    Examples
    --------
    >>> pairs = ball_join([[0.0], [3.0], [7.0]], eps_of_each=[1.0, 5.0, 1.0])
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()
    ([0], [1], [3.0])
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    growth = CutOptions.of(replication_budget, sample_rows)
    batches = _join_balls(points, eps_of_each, right, right_eps, options, growth)
    return collect(batches, _row_counts(points, right))


def _join_boxes(
    left: _BoxArguments, right: _BoxArguments | None, eps: float, options: JoinOptions, growth: CutOptions
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
    growth: CutOptions,
) -> Iterator[Pairs]:
    if (right is None) != (right_eps is None):
        raise ArgumentError("right and right_eps belong together: pass both or neither")
    first = ball_table("points", "eps_of_each", points, eps_of_each, options.metric)
    second = None
    if right is not None and right_eps is not None:
        second = ball_table("right", "right_eps", right, right_eps, options.metric)
    return join_objects(first, second, "within half the sum of their eps", options, growth)


def _row_counts(left: ArrayLike, right: ArrayLike | None) -> tuple[int, int]:
    """Numbers of rows that the left and the right row numbers of pairs refer to."""
    return np.shape(left)[0], np.shape(left if right is None else right)[0]
