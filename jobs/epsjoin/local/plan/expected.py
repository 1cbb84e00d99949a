"""How many pairs a sample has, and what it says about the pairs of all rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.join.projection import Projection
from epsjoin.kernels.join.stack_sweep import PAIRS, PairBatch
from epsjoin.kernels.join.window import is_done, new_state, window_rows, window_sweep
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cut_leaf import DecidedPairs
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_window

_FIRST_ROWS = 4096
"""Number of rows of a sample whose pairs are counted first."""
_SUFFICIENT_PAIRS = 200_000
"""Number of pairs from which on no more rows are counted: more would only make the plan slower."""
_MAX_PAIRS = 10 * _SUFFICIENT_PAIRS
"""Maximum number of pairs of a sample that are kept to choose some of them: memory."""
_MIN_PAIRS = 100
"""Minimum number of pairs of a sample whose number says something about all rows."""
_FAR_RATIO = 10
"""Ratio of the pairs at two distances between which the power law is measured."""
_STEP = 2.0**0.5
"""Ratio of one distance to the next in the search for more pairs."""
_MAX_STEPS = 128
"""Maximum number of distances in the search for more pairs."""
_BATCH_PAIRS = 1 << 16
"""Maximum number of pairs that a sweep over a sample finds at once."""
_REFUSAL_SAMPLE_ROWS = 20_000
"""Maximum number of rows of each table on which a refused join estimates its pairs."""
_REFUSAL_SEED = 0


class SamplePairs(NamedTuple):
    """Pairs that were counted in a sample.

    Parameters
    ----------
    rows : number of rows that were counted; of two tables those of the right one.
    pairs : number of pairs within eps among them, or with the left table.
    variance : estimated variance of ``pairs`` over samples of one table; NaN for two tables.
    """

    rows: int
    pairs: int
    variance: float


def count_pairs(
    points: Floats,
    embedded: Floats,
    eps: float,
    metric: Metric,
    projection: Projection,
    *,
    is_right: Bools | None = None,
    max_pairs: float = math.inf,
    degree: Ints | None = None,
) -> int:
    """Count the pairs within eps without keeping them, until there are more than ``max_pairs``.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    projection : coordinates of the sweep; the number does not depend on it.
    is_right : (n,) bool, of two tables: rows of the right one. None: pairs of one table.
    max_pairs : the sweep ends when it has found more.
    degree : (n,) int64, the pairs of each row are added to it.

    Returns
    -------
    int
        The number of pairs when it is at most ``max_pairs``, else some larger number.
    """
    n = len(points)
    limits = metric.embedded_eps(eps), metric.decision(eps)
    places, no_mask = np.arange(n, dtype=np.int64), np.zeros(n, np.int64)
    rows = window_rows(points, embedded, places, no_mask, limits[0], projection, is_right)
    counters = np.zeros(4, np.int64)
    room = _BATCH_PAIRS
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    state = new_state()
    while not is_done(state) and counters[PAIRS] <= max_pairs:
        found = window_sweep(state, rows, 0, n, limits[1], batch, counters)
        if degree is not None:
            degree += np.bincount(batch.left[:found], minlength=n)
            degree += np.bincount(batch.right[:found], minlength=n)
    return int(counters[PAIRS])


def count_sample_pairs(
    points: Floats,
    eps: float,
    metric: Metric,
    *,
    left: Floats | None = None,
    max_pairs: float = math.inf,
    min_rows: int = 1,
    divisor: int = 2,
) -> SamplePairs:
    """Count the pairs of a sample, or of fewer of its first rows while these have more than ``max_pairs``.

    Parameters
    ----------
    points : (m, d) float64, the sample in random order; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    left : (l, d) float64, the sample of a left table, whose pairs with ``points`` are counted. None: pairs of
        ``points`` with one another.
    max_pairs : more pairs than these are not counted, for time; by default all are.
    min_rows : fewer rows are not taken, however many pairs they have.
    divisor : ratio of the rows that are counted next where there were too many pairs.

    Raises
    ------
    ArgumentError
        Points for which the metric is not defined.
    """
    rows = len(points)
    while True:
        cap = max_pairs if rows > min_rows else math.inf
        counted = points[:rows] if left is None else np.concatenate((left, points[:rows]))
        is_right = None if left is None else np.arange(len(counted)) >= len(left)
        degree = np.zeros(len(counted), np.int64)
        embedded = metric.embed(counted)
        reach = metric.embedded_eps(eps)
        projection = choose_projection(embedded, len(counted), reach, metric.norm).projection
        pairs = count_pairs(
            counted, embedded, eps, metric, projection, is_right=is_right, max_pairs=cap, degree=degree
        )
        if pairs <= cap:
            break
        rows = max(min_rows, rows // divisor)
    if left is not None:
        return SamplePairs(rows, pairs, math.nan)
    # sd(pairs) ~ 2 sd(degree) / 2 * sqrt(rows) from the points, sqrt(pairs) from counting few
    between = rows * float(degree.var()) if rows else 0.0
    return SamplePairs(rows, pairs, max(between, float(pairs)))


def expected_pairs(
    points: Floats,
    embedded: Floats,
    n_rows: int,
    eps: float,
    metric: Metric,
    projection: Projection,
    seed: int,
) -> float:
    """Estimate the pairs of all rows from those of a sample.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    n_rows : all rows.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    projection : of the sweeps that count.
    seed : of the 4096 rows that are counted first; where they have enough pairs, no more rows are counted.

    Notes
    -----
    Of very many rows a sample may hold hardly a pair within eps. Then eps grows by steps until it holds a
    hundred, and on to a thousand, and the power law through both counts leads back to eps (the dissertation,
    3.7.1, eq. 3.15), unless that is a tenth of all pairs of the sample. Equal rows, and clumps smaller than
    what the sample can see, are missed by that.
    """
    m = len(points)
    if m < 2:
        return 0.0
    if m > _FIRST_ROWS:
        first = np.random.default_rng(seed).permutation(m)[:_FIRST_ROWS]
        pairs = count_pairs(points[first], embedded[first], eps, metric, projection)
        if pairs >= _SUFFICIENT_PAIRS:
            return _scale(pairs, _FIRST_ROWS, n_rows)
    pairs = count_pairs(points, embedded, eps, metric, projection)
    if pairs >= _MIN_PAIRS or n_rows == m:
        return _scale(pairs, m, n_rows)
    distance, seen = eps, pairs
    near: tuple[float, int] | None = None
    most = m * (m - 1) // 2 // _FAR_RATIO  # beyond, too many rows lie within: the law bends
    for _ in range(_MAX_STEPS):
        distance *= _STEP
        if not metric.decision(distance).bound < math.inf or seen > most:
            break
        seen = count_pairs(points, embedded, distance, metric, projection)
        if near is None and seen >= _MIN_PAIRS:
            near = distance, seen
        elif near is not None and seen >= _FAR_RATIO * near[1]:
            break
    if near is None or not _FAR_RATIO * near[1] <= seen <= most:
        return _scale(pairs, m, n_rows)
    exponent = math.log(seen / near[1]) / math.log(distance / near[0])
    return _scale(near[1] * (eps / near[0]) ** exponent, m, n_rows)


def expected_pairs_of_tables(points: Floats, n_left: int, eps: float, metric: Metric) -> float:
    """Estimate the pairs of one table or of two, for the message of a join that is refused.

    Parameters
    ----------
    points : (n, d) float64, the left table's points, then the right one's; not modified.
    n_left : rows of the left table; n for one table with itself.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    """
    n, m = n_left, len(points) - n_left
    for rows in (_FIRST_ROWS, _REFUSAL_SAMPLE_ROWS):
        sampling = Cuts(sample_rows=rows, seed=_REFUSAL_SEED)
        left, right = points[sampling.sample(n)], points[n + sampling.sample(m)]
        if m == 0:
            counted = count_sample_pairs(left, eps, metric)
        else:
            counted = count_sample_pairs(right, eps, metric, left=left)
        if counted.pairs >= _SUFFICIENT_PAIRS:
            break
    if m == 0:
        return _scale(counted.pairs, len(left), n)
    return counted.pairs * (n / len(left)) * (m / len(right))


def _scale(pairs: float, rows: int, n_rows: int) -> float:
    """Scale the pairs of some rows to all rows."""
    return pairs * (n_rows / rows) * ((n_rows - 1) / (rows - 1))


def decided_pairs(
    points: Floats, embedded: Floats, eps: float, projection: Projection, seed: int
) -> DecidedPairs:
    """Find the pairs of a sample that pass the filter of a window sweep, some for all where they are many.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    eps : threshold in embedded coordinates.
    projection : of the sweep.
    seed : of the 4096 rows that are swept first, of more rows where these have few pairs (so many that some
        two million pairs may come), and of the 200,000 pairs that stand for more.
    """
    m = len(points)
    random = np.random.default_rng(seed)
    shuffled = random.permutation(m)
    first = np.sort(shuffled[:_FIRST_ROWS])
    everything = make_decision(EUCLIDEAN, 0.0, math.inf)
    swept = first
    while True:
        no_mask = np.zeros(len(swept), np.int64)
        rows = window_rows(points[swept], embedded[swept], swept, no_mask, eps, projection)
        batches = list(sweep_window(rows, everything, SweepOptions(_BATCH_PAIRS, {})))
        left = np.concatenate([first[:0], *(batch.left for batch in batches)])
        right = np.concatenate([first[:0], *(batch.right for batch in batches)])
        weight = (m / len(swept)) ** 2 if m else 1.0
        if len(swept) > len(first) or len(swept) == m or len(left) >= _SUFFICIENT_PAIRS:
            break
        times = math.isqrt(_MAX_PAIRS // max(1, len(left)))  # 3 at least
        swept = np.sort(shuffled[: times * len(first)])
    if len(left) > _SUFFICIENT_PAIRS:
        some = random.choice(len(left), _SUFFICIENT_PAIRS, replace=False)
        left, right, weight = left[some], right[some], weight * len(left) / _SUFFICIENT_PAIRS
    return DecidedPairs(left, right, weight)
