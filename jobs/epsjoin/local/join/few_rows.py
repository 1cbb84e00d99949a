"""Joins of few rows, which one call of a kernel finds sooner than a sweep chooses its coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.distances import BY_AXIS, CHEBYSHEV, EUCLIDEAN, MANHATTAN
from epsjoin.kernels.join.few_rows import Line, Near, count_near, join_few
from epsjoin.kernels.join.projection import MAXIMUM, SQUARES, SUM
from epsjoin.local.metric import Metric
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts

_MAX_WORK, _WORK_PER_CANDIDATE = 1 << 23, 24
"""Maximum expected work, beyond which a sweep is sooner; that of each candidate beside its coordinates."""
_MAX_ORDERED = 1 << 12
"""Maximum number of rows that are put in order: a sweep has a grid, too."""
_COMPARED_PAIRS, _COMPARED_PER_ROW = 20_000, 32
"""Number of pairs of rows, in all and for each row, up to which all are compared: that takes no order."""
_SAMPLE_ROWS = 64
"""Number of rows that show which axis tells most of them apart."""
_METRIC_OF = {SQUARES: EUCLIDEAN, SUM: MANHATTAN, MAXIMUM: CHEBYSHEV}
"""Metrics that sum differences as the norms of embedded coordinates do."""


class Few(NamedTuple):
    """All pairs of few rows, sorted by both, and how many rows were near one another on an axis."""

    pairs: Pairs
    compared: int


def join_few_rows(points: Floats, n_left: int, is_one: bool, eps: float, metric: Metric) -> Few | None:
    """Find all pairs of few rows.

    Parameters
    ----------
    points : (n, d) float64; of two tables the left one's first. Not modified.
    n_left : number of rows of the left table, or of the only one.
    is_one : whether there is one table.
    eps, metric : threshold and metric; see :class:`epsjoin.local.join.array_join.ArrayJoin`.

    Returns
    -------
    Few | None
        None where rows are too many, or too near one another on each axis.
    """
    n, d = points.shape
    n_pairs = n * n // 2 if is_one else n_left * (n - n_left)
    is_ordered = n_pairs > max(_COMPARED_PAIRS, _COMPARED_PER_ROW * n)
    if n_pairs * (_WORK_PER_CANDIDATE + d) > _MAX_WORK and (n > _MAX_ORDERED or not is_ordered):
        return None
    decision = metric.decision(eps)
    embedded, place, reach = points, np.zeros(n), 0.0
    near_metric, bound = decision.metric, decision.bound
    if decision.metric not in BY_AXIS:
        embedded, near_metric, bound = (
            metric.embed(points),
            _METRIC_OF[metric.norm],
            metric.embedded_bound(eps),
        )
    if is_ordered:
        reach, step = metric.embedded_eps(eps), -(-n // _SAMPLE_ROWS)
        counts = count_near(embedded, reach, step)
        axis = int(np.argmin(counts))
        expected = counts[axis] * (2 * step * step / (n * n)) * n_pairs
        if expected * (_WORK_PER_CANDIDATE + d) > _MAX_WORK:
            return None
        place = embedded[:, axis]
    near = Near(reach, near_metric, bound)
    left = right = _line(points[:n_left], embedded[:n_left], place[:n_left], is_ordered)
    if not is_one:
        right = _line(points[n_left:], embedded[n_left:], place[n_left:], is_ordered)
    row, partner, distance, compared = join_few(decision, near, left, right, is_one)
    return Few(Pairs(row, partner, distance), compared)


def count_few(counters: Counters, n_rows: int, compared: int, n_pairs: int) -> None:
    """Add the work of a join of few rows to counters."""
    add_counts(
        counters,
        rows=n_rows,
        carried_rows=0,
        candidates=compared,
        distance_computations=compared,
        largest_stack=0,
        pairs=n_pairs,
    )


def _line(points: Floats, embedded: Floats, place: Floats, is_ordered: bool) -> Line:
    if not is_ordered:
        return Line(points, embedded, np.arange(len(points)), place)
    order = np.argsort(place)  # of equal places any order: pairs are sorted afterwards
    return Line(points, embedded, order, place[order])
