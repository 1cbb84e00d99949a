"""The join of points that changed a little, from their pairs before: an increment.

Points that stayed where they were keep their pairs: these are copied. Only the others, new ones and those
that moved (they are *placed*), are joined, with one another and with all that stayed. Both joins are those of
:mod:`epsjoin.local.join.arrays`, which decide a pair on its two points alone, so the result is that of a
whole join, bit for bit: a present pair either has two ends that stayed, and then it was a pair before, or it
has a placed end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints, Words
from epsjoin.kernels.ids import IdIndex, differ_from, rows_of
from epsjoin.kernels.sweep.near_cells import NearCells, find_near, mark_cells
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.local.arguments import index_distinct, int_column
from epsjoin.local.coordinates import check_dimensions, check_points
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.scale import scale_metric
from epsjoin.local.sweep.pairs import Pairs, check_pair_columns, collect
from epsjoin.local.sweep.sweeping import Counters, add_counts, sweep_window


class Points(NamedTuple):
    """Points with ids.

    Parameters
    ----------
    points : (n, d) float64.
    ids : (n,) int64, distinct.
    """

    points: Floats
    ids: Ints


def update_join(
    pairs: Pairs,
    before: ArrayLike,
    now: ArrayLike,
    ids_before: ArrayLike,
    ids_now: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    counters: Counters | None = None,
) -> Pairs:
    """Find every pair of points within eps from the earlier pairs: only points that have changed are joined.

    Parameters
    ----------
    pairs : the pairs before, with ids: ``self_join(before, eps, metric, ids=ids_before)``, or what this
        function returned, in any order. They must be of the same eps, metric and weights, which only their
        distances can show.
    before, now : (n, d) and (m, d) points before and now, as for :func:`epsjoin.self_join`.
    ids_before, ids_now : (n,) and (m,) integers, distinct, by which a point is known before and now. A point
        is joined again if it is new, or if a coordinate has changed by as little as a bit; -0.0 is 0.0.
    eps, metric, weights, n_jobs, max_pairs : see :func:`epsjoin.self_join`.
    counters : dictionary to whose entries the work is added: ``kept_pairs`` and ``dropped_pairs`` of those
        before, ``placed`` points, and those of :func:`epsjoin.self_join` for the pairs that were joined.

    Returns
    -------
    Pairs
        What ``self_join(now, eps, metric, weights=weights, ids=ids_now)`` returns, bit for bit, sorted by
        (left, right).

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.self_join`. Or ids come twice, or are not one per point; a pair has an id that is
        not in ``ids_before``, the smaller id on the right, or a distance above eps; a pair comes twice.
    BudgetError
        There are more than ``max_pairs`` pairs.

    See Also
    --------
    self_join : the whole join.

    Notes
    -----
    O(n + m) for ids and coordinates, O(pairs) for what is copied and sorted; the join of c placed points with
    m looks up the cells of all m points, and sorts and compares those near a placed one. It is faster than a
    whole join if few points change.

    Examples
    --------
    >>> from epsjoin import self_join
    >>> pairs = self_join([[0.0], [1.0], [5.0]], eps=2.0, ids=[7, 8, 9])
    >>> update_join(pairs, [[0.0], [1.0], [5.0]], [[0.0], [6.0], [5.0]], [7, 8, 9], [7, 8, 9], 2.0)
    Pairs(left=array([8]), right=array([9]), distance=array([1.]))
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, False, counters)
    old, new = _check_side("before", before, ids_before), _check_side("now", now, ids_now)
    if len(old.ids) and len(new.ids):
        check_dimensions(before=old.points.shape[1], now=new.points.shape[1])
    metric, threshold = scale_metric(options.metric, new.points, eps, weights)
    metric.check(new.points, "now")
    options = options._replace(metric=metric)
    index = index_distinct(old.ids, "ids_before")
    known = _check_known_pairs(pairs, index, threshold)
    index_distinct(new.ids, "ids_now")
    is_placed, is_gone = find_changes(rows_of(index, new.ids), old.points, new.points)
    placed, stayed = Points(new.points[is_placed], new.ids[is_placed]), (new, ~is_placed)
    is_kept = keep_pairs(index, is_gone, known.left, known.right)
    kept = Pairs(known.left[is_kept], known.right[is_kept], known.distance[is_kept])
    add_counts(
        options.counters,
        kept_pairs=len(kept.left),
        dropped_pairs=len(is_kept) - len(kept.left),
        placed=len(placed.ids),
    )

    near = f"within eps = {threshold:g}"

    def batches() -> Generator[Pairs, None, None]:
        found = len(kept.left)
        if found:
            yield kept
        joins = [join_placed(placed, threshold, options)]
        if len(placed.ids):
            cells = mark_near(placed, new.points, len(new.ids), threshold, options)
            joins.insert(0, join_with(placed, [stayed], cells, threshold, options))
        for join in joins:
            for batch in join:
                found += len(batch.left)
                options.check_limit(found, near)
                yield batch

    options.check_limit(len(kept.left), near)
    result = collect(batches())
    is_twice = (result.left[1:] == result.left[:-1]) & (result.right[1:] == result.right[:-1])
    if is_twice.any():  # which the joins do not find
        at = int(is_twice.argmax())
        raise ArgumentError(f"the pair ({result.left[at]}, {result.right[at]}) comes twice in pairs")
    return result


def find_changes(was: Ints, places_before: Floats | Words, places_now: Floats | Words) -> tuple[Bools, Bools]:
    """Tell which present points are placed, and which earlier points are gone: deleted or moved.

    Parameters
    ----------
    was : (m,) int64, the row before of each point of now, -1 where its id is new.
    places_before, places_now : (n, w) and (m, w), numbers that are equal where a place is the same: the
        coordinates, of which -0.0 equals 0.0, or their digests, which make no difference there either.
    """
    is_placed = np.empty(len(was), np.bool_)
    differ_from(read_only(places_before), was, read_only(places_now), is_placed)
    is_gone = np.ones(len(places_before), np.bool_)
    is_gone[was[~is_placed]] = False
    return is_placed, is_gone


def keep_pairs(index: IdIndex, is_gone: Bools, left: Ints, right: Ints) -> Bools:
    """Tell which pairs stay: those with two ends that stay.

    Parameters
    ----------
    index : some ids, among them all that are gone; an end that is not among them stays.
    is_gone : whether each of these ids is gone.
    """
    stays = np.append(~is_gone, True)  # an id that is not there has the row number -1: the last
    return np.asarray(stays[rows_of(index, left)] & stays[rows_of(index, right)])


def mark_near(placed: Points, sample: Floats, n: int, eps: float, options: JoinOptions) -> NearCells:
    """Mark the cells around placed points, for :func:`join_with`.

    Parameters
    ----------
    sample : (m, d) float64, one of the points at least, by which the coordinates of cells are chosen.
    n : number of all points.

    Notes
    -----
    It takes tens of milliseconds, so it is done once for all batches; so all batches count the same work.
    """
    metric = options.metric
    embedded_eps = metric.embedded_eps(eps)
    projection = choose_projection(metric.embed(sample), n, embedded_eps, metric.norm).projection
    return mark_cells(metric.embed(placed.points), projection, embedded_eps)


def join_with(
    placed: Points,
    batches: Iterable[tuple[Points, Bools]],
    cells: NearCells,
    eps: float,
    options: JoinOptions,
) -> Iterator[Pairs]:
    """Yield the pairs of a placed point and one that stayed, the smaller id at the left.

    Parameters
    ----------
    batches : points, and (m,) which of them stayed; every batch gives its own pairs, whatever its size.
    cells : from :func:`mark_near` of the placed points.

    Notes
    -----
    The placed points are sorted together with the points of each batch that lie in cells around them; most
    others are left out before they are copied, in O(1) each.
    """
    metric, n_placed = options.metric, len(placed.ids)
    embedded_eps = metric.embedded_eps(eps)
    for of, stays in batches:
        rows = find_near(cells, metric.embed(of.points), np.flatnonzero(stays))
        if not len(rows):
            continue
        both = np.concatenate((placed.points, of.points[rows]))
        ids = np.concatenate((placed.ids, of.ids[rows]))
        is_right = np.arange(len(ids)) >= n_placed
        no_mask = np.zeros(len(ids), np.int64)
        window = window_rows(both, metric.embed(both), ids, no_mask, embedded_eps, cells.projection, is_right)
        for left, right, distance in sweep_window(window, metric.decision(eps), options.for_sweep()):
            yield Pairs(np.minimum(left, right), np.maximum(left, right), distance)


def join_placed(placed: Points, eps: float, options: JoinOptions) -> Iterator[Pairs]:
    """Yield the pairs of two placed points, the smaller id at the left."""
    n = len(placed.ids)
    if n:
        join = ArrayJoin(placed.points, placed.ids, n, True, options.metric, eps, None, options)
        yield from join.batches("update_join")


def _check_side(name: str, points: ArrayLike, ids: ArrayLike) -> Points:
    values, numbers = check_points(name, points), int_column(f"ids_{name}", ids)
    if len(numbers) != len(values):
        raise ArgumentError(f"ids_{name} must be one per point, {len(values)}, not {len(numbers)}")
    return Points(values, numbers)


def _check_known_pairs(pairs: Pairs, index: IdIndex, eps: float) -> Pairs:
    checked = check_pair_columns("pairs", pairs)
    is_wrong = checked.left >= checked.right
    if is_wrong.any():
        at = int(is_wrong.argmax())
        raise ArgumentError(
            f"pairs have the smaller id at the left; entry {at} is ({checked.left[at]}, {checked.right[at]})"
        )
    for name, ends in (("left", checked.left), ("right", checked.right)):
        unknown = rows_of(index, ends) < 0
        if unknown.any():
            raise ArgumentError(
                f"{name} of the pairs has id {ends[int(unknown.argmax())]}, which ids_before lack; "
                "pairs must have been joined with these ids"
            )
    if len(checked.distance) and checked.distance.max() > eps:
        raise ArgumentError(
            f"a pair has the distance {checked.distance.max()}, above eps = {eps!r}; pairs must have been "
            "joined with this eps"
        )
    return checked
