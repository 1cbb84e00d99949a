"""Joins of objects with extent, in this process: boxes within eps, and points with an eps of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.join.box_sweep import Objects, SweepOrder, box_sweep, gather_rows, sweep_order
from epsjoin.kernels.join.cubes import Cubes, assign_cubes, count_rows, make_cubes, separating_axes
from epsjoin.kernels.join.stack_sweep import PairBatch, is_done, new_state
from epsjoin.local.arguments import check_count, check_points
from epsjoin.local.metric import METRICS, Metric, get_metric
from epsjoin.local.plan.box_tree import grow_box_tree
from epsjoin.local.plan.costs import BOX_NS_PER_CANDIDATE, BOX_NS_PER_ROW
from epsjoin.local.plan.cut_tree import prune_tree
from epsjoin.local.progress import Progress, ProgressWish, check_progress
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import add_counts
from epsjoin.local.sweep.threads import in_order

_ROWS_AT_ONCE = 1 << 16  # of leaves that are swept together
_ON_THE_SPHERE = ("cosine", "haversine", "haversine_radians")


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


class _Table(NamedTuple):
    """Checked objects, and where to look for their pairs.

    ``begin`` and ``end`` are the boxes in embedded coordinates; two objects within their threshold are at
    most ``reach_x + reach_y`` apart on each embedded axis.
    """

    objects: Objects
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    reach: NDArray[np.float64]


class _Settings(NamedTuple):
    """How to work, checked; see :func:`iter_box_join`."""

    metric: Metric
    threshold: str
    max_pairs: int | None
    n_jobs: int
    progress: ProgressWish
    replication_budget: float
    sample_rows: int
    counters: dict[str, int]
    batch_rows: int


def iter_box_join(
    left: Boxes | tuple[ArrayLike, ArrayLike],
    right: Boxes | tuple[ArrayLike, ArrayLike] | None = None,
    eps: float = 0.0,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressWish = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = 1 << 18,
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
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    if chosen.name in _ON_THE_SPHERE:
        raise ArgumentError(
            f"metric must be euclidean, manhattan, chebyshev or minkowski for boxes, not {chosen.name}"
        )
    eps = _check_eps(eps, chosen)
    first = _box_table("left", left, eps, chosen)
    second = None if right is None else _box_table("right", right, eps, chosen)
    settings = _check_settings(
        chosen,
        f"within eps = {eps:g}",
        max_pairs,
        n_jobs,
        progress,
        replication_budget,
        sample_rows,
        counters,
        batch_rows,
    )
    return _join(first, second, settings)


def box_join(
    left: Boxes | tuple[ArrayLike, ArrayLike],
    right: Boxes | tuple[ArrayLike, ArrayLike] | None = None,
    eps: float = 0.0,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressWish = False,
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
    return collect(
        iter_box_join(
            left,
            right,
            eps,
            metric,
            max_pairs=max_pairs,
            n_jobs=n_jobs,
            progress=progress,
            replication_budget=replication_budget,
            sample_rows=sample_rows,
            counters=counters,
        ),
        (np.shape(left[0])[0], np.shape((left if right is None else right)[0])[0]),
    )


def iter_ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressWish = False,
    replication_budget: float = 4.0,
    sample_rows: int = 20_000,
    counters: dict[str, int] | None = None,
    batch_rows: int = 1 << 18,
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
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    if (right is None) != (right_eps is None):
        raise ArgumentError("right and right_eps must be given both or neither")
    first = _ball_table("points", "eps_of_each", points, eps_of_each, chosen)
    second = None
    if right is not None and right_eps is not None:
        second = _ball_table("right", "right_eps", right, right_eps, chosen)
    settings = _check_settings(
        chosen,
        "within half the sum of their eps",
        max_pairs,
        n_jobs,
        progress,
        replication_budget,
        sample_rows,
        counters,
        batch_rows,
    )
    return _join(first, second, settings)


def ball_join(
    points: ArrayLike,
    eps_of_each: ArrayLike,
    right: ArrayLike | None = None,
    right_eps: ArrayLike | None = None,
    metric: str | Metric = "euclidean",
    *,
    max_pairs: int | None = None,
    n_jobs: int = 1,
    progress: ProgressWish = False,
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
    return collect(
        iter_ball_join(
            points,
            eps_of_each,
            right,
            right_eps,
            metric,
            max_pairs=max_pairs,
            n_jobs=n_jobs,
            progress=progress,
            replication_budget=replication_budget,
            sample_rows=sample_rows,
            counters=counters,
        ),
        (np.shape(points)[0], np.shape(points if right is None else right)[0]),
    )


def _join(first: _Table, second: _Table | None, settings: _Settings) -> Iterator[Pairs]:
    """The join of checked tables: plan, assign and order at once, sweep as the batches are asked for."""
    n_left = 0
    tables = [first]
    if second is not None:
        d, right_d = first.objects.lower.shape[1], second.objects.lower.shape[1]
        if d != right_d:
            raise ArgumentError(f"both tables must have as many dimensions, not {d} and {right_d}")
        n_left = len(first.reach)
        tables.append(second)
    objects = Objects(*(_stacked(column) for column in zip(*(t.objects for t in tables), strict=True)))
    n = len(objects.eps)
    begin = _stacked([t.begin for t in tables])
    end = _stacked([t.end for t in tables])
    reach = _stacked([t.reach for t in tables])
    is_right = np.arange(n) >= n_left if second is not None else np.zeros(n, np.bool_)
    is_self = second is None
    order, cubes = _order(Cubes(*make_cubes(begin, end, reach)), is_right, is_self, settings)

    def batches() -> Iterator[Pairs]:
        counters = settings.counters
        found = swept = 0
        add_counts(counters, rows=len(order.row))
        groups = _groups(order)
        sweeps = (_sweep(objects, order, cubes, group, is_self, settings) for group in groups)
        with Progress(settings.progress, "box_join") as shown:
            for pairs, counts, n_rows in in_order(sweeps, settings.n_jobs):
                candidates, computed, largest, n_pairs = counts.tolist()
                add_counts(counters, candidates=candidates, distance_computations=computed, pairs=n_pairs)
                add_counts(counters, largest_stack=largest)
                found += n_pairs
                if settings.max_pairs is not None and found > settings.max_pairs:
                    raise BudgetError(
                        f"more than max_pairs = {settings.max_pairs} pairs {settings.threshold}"
                    )
                if n_pairs:
                    yield Pairs(pairs.left, pairs.right - n_left, pairs.distance)
                swept += n_rows
                shown.show(swept / max(1, len(order.row)))

    return batches()


def _stacked(arrays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The arrays one below the other; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _order(
    cubes: Cubes, is_right: NDArray[np.bool_], is_self: bool, settings: _Settings
) -> tuple[SweepOrder, Cubes]:
    """Rows by leaf of a tree grown on a sample; also the cubes, those axes first that part them best."""
    n = len(is_right)
    sample = np.arange(n)
    if n > settings.sample_rows:
        sample = np.sort(np.random.default_rng(0).permutation(n)[: settings.sample_rows])
    axes = separating_axes(Cubes(cubes.lower[sample], cubes.upper[sample]), is_right[sample], is_self)
    cubes = Cubes(np.ascontiguousarray(cubes.lower[:, axes]), np.ascontiguousarray(cubes.upper[:, axes]))
    grown = grow_box_tree(
        Cubes(cubes.lower[sample], cubes.upper[sample]),
        is_right[sample],
        is_self,
        rows_per_row=n / len(sample) if n else 1.0,
        row_cost=BOX_NS_PER_ROW,
        candidate_cost=BOX_NS_PER_CANDIDATE,
        max_rows=settings.replication_budget * len(sample),
    )
    tree, n_cuts = grown.tree, grown.n_parts - 1
    while n_cuts and count_rows(cubes, tree) > settings.replication_budget * n:
        n_cuts //= 2  # the sample knew too few of the large cubes
        tree = prune_tree(grown.tree, n_cuts)
    rows = assign_cubes(cubes, tree)
    return sweep_order(rows, n_cuts + 1, cubes, is_right, is_self), cubes


def _groups(order: SweepOrder) -> list[tuple[int, int]]:
    """Leaves (first, end) that are swept together: at most ``_ROWS_AT_ONCE`` rows, or one leaf."""
    groups = []
    first, n_parts = 0, len(order.axis)
    while first < n_parts:
        end = int(np.searchsorted(order.begin, order.begin[first] + _ROWS_AT_ONCE, side="right")) - 1
        end = min(max(end, first + 1), n_parts)
        groups.append((first, end))
        first = end
    return groups


_Swept = tuple[Pairs, NDArray[np.int64], int]


def _sweep(
    objects: Objects,
    order: SweepOrder,
    cubes: Cubes,
    group: tuple[int, int],
    is_self: bool,
    settings: _Settings,
) -> Iterator[_Swept]:
    """Sweep some leaves; gives pairs of objects, what was counted, and how many rows are done with."""
    rows = gather_rows(order, cubes, *group, is_self)
    n = len(rows.row)
    room = min(settings.batch_rows, max(1, n * (n - 1) // 2))
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float64))
    state = new_state(0)
    metric = settings.metric
    while not is_done(state):
        counts = np.zeros(4, np.int64)
        found = box_sweep(state, rows, objects, METRICS[metric.name], metric.p, batch, counts)
        left, right, distance = batch.left[:found], batch.right[:found], batch.distance[:found]
        yield Pairs(left.copy(), right.copy(), distance.copy()), counts, n if is_done(state) else 0


def _box_table(name: str, boxes: Boxes | tuple[ArrayLike, ArrayLike], eps: float, metric: Metric) -> _Table:
    """Checked boxes of one eps."""
    if not isinstance(boxes, (tuple, list)) or len(boxes) != 2:
        raise ArgumentError(f"{name} must be Boxes(lower, upper) or a pair of such arrays, not {type(boxes)}")
    lower = check_points(f"{name}.lower", boxes[0])
    upper = check_points(f"{name}.upper", boxes[1])
    if lower.shape != upper.shape:
        raise ArgumentError(
            f"{name}.lower and {name}.upper must have one shape, not {lower.shape} and {upper.shape}"
        )
    wrong = lower > upper
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise ArgumentError(
            f"{name}.lower must not be above {name}.upper; in row {row}, column {column} "
            f"{lower[row, column]} is above {upper[row, column]}"
        )
    n = len(lower)
    return _Table(
        Objects(lower, upper, np.full(n, eps)), lower, upper, np.full(n, metric.embedded_eps(eps / 2.0))
    )


def _ball_table(name: str, eps_name: str, points: ArrayLike, eps: ArrayLike, metric: Metric) -> _Table:
    """Checked points with their checked eps."""
    values = check_points(name, points)
    of_each = np.asarray(eps)
    if of_each.shape != (len(values),) or (of_each.size and of_each.dtype.kind not in "fiu"):
        raise ArgumentError(
            f"{eps_name} must be one number per row, {len(values)}, not {of_each.dtype} {of_each.shape}"
        )
    of_each = np.ascontiguousarray(of_each, np.float64)
    wrong = ~(np.isfinite(of_each) & (of_each >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(f"{eps_name} must be finite and at least 0; row {row} is {of_each[row]}")
    _check_sizes(eps_name, of_each, metric)
    embedded = metric.embed(values)
    reach = np.array([metric.embedded_eps(e / 2.0) for e in of_each.tolist()], np.float64)
    return _Table(Objects(values, values, of_each), embedded, embedded, reach)


def _check_sizes(name: str, of_each: NDArray[np.float64], metric: Metric) -> None:
    """Refuse an eps that the metric cannot decide; with a partner of eps 0 the threshold is half of it."""
    positive = np.flatnonzero(of_each)
    if len(positive) == 0:
        return
    smallest = int(positive[np.argmin(of_each[positive])])
    largest = int(np.argmax(of_each))
    for row, threshold in ((smallest, of_each[smallest] / 2.0), (largest, of_each[largest])):
        try:
            metric.check_eps(threshold)
        except ArgumentError as error:
            raise ArgumentError(
                f"{name}: row {row} is {of_each[row]}, too small or too large for exact "
                f"{metric.name} decisions"
            ) from error


def _check_eps(eps: Any, metric: Metric) -> float:
    """Eps of boxes as a float: like the metric's own check, but 0 is a threshold as well."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float, np.integer, np.floating)) or not eps >= 0:
        raise ArgumentError(f"eps must be a finite number of at least 0, not {eps!r}")
    return metric.check_eps(float(eps)) if eps > 0 else 0.0


def _check_settings(
    metric: Metric,
    threshold: str,
    max_pairs: int | None,
    n_jobs: int,
    progress: ProgressWish,
    replication_budget: float,
    sample_rows: int,
    counters: dict[str, int] | None,
    batch_rows: int,
) -> _Settings:
    if max_pairs is not None:
        check_count("max_pairs", max_pairs, 0)
    check_progress(progress)
    if not 1.0 <= replication_budget < math.inf:
        raise ArgumentError(
            "replication_budget must be a finite number of rows per object, at least 1, "
            f"not {replication_budget}"
        )
    return _Settings(
        metric,
        threshold,
        max_pairs,
        check_count("n_jobs", n_jobs),
        progress,
        replication_budget,
        check_count("sample_rows", sample_rows),
        {} if counters is None else counters,
        check_count("batch_rows", batch_rows),
    )
