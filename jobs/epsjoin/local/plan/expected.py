"""What a sample says about the pairs of all rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.distances import EUCLIDEAN, Decision
from epsjoin.kernels.join.projection import Projection
from epsjoin.kernels.join.window import count_pairs, window_rows
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cut_leaf import DecidedPairs
from epsjoin.local.sweep.sweeping import sweep_window

_FEW_ROWS, _ENOUGH_PAIRS = 4096, 200_000  # of a sample: more pairs would only make the plan slower
_MOST_PAIRS = 10 * _ENOUGH_PAIRS  # of a sample, for the rows that are looked at: memory
_LEAST_PAIRS = 100  # of a sample: below, their number says little
_FAR = 10  # so many times them at a second distance
_STEP, _MOST_STEPS = 2.0**0.5, 128  # of a distance
_BATCH_ROWS = 1 << 16  # pairs of a sample that are looked at at once


def expected_pairs(
    points: NDArray[np.float64],
    embedded: NDArray[np.float64],
    n_rows: int,
    eps: float,
    metric: Metric,
    projection: Projection,
    seed: int,
) -> float:
    """Pairs of all rows, from those of a sample.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    n_rows : all rows.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    projection : of the sweeps that count.
    seed : of the 4096 rows that are looked at first; where they have enough pairs, no more are.

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

    def count(rows: NDArray[np.int64] | slice, distance: float) -> int:
        limits = metric.embedded_eps(distance), metric.decision(distance)
        return count_pairs(points[rows], embedded[rows], *limits, projection)

    def scaled(pairs: float, looked: int) -> float:
        return pairs * (n_rows / looked) * ((n_rows - 1) / (looked - 1))

    if m > _FEW_ROWS:
        pairs = count(np.random.default_rng(seed).permutation(m)[:_FEW_ROWS], eps)
        if pairs >= _ENOUGH_PAIRS:
            return scaled(pairs, _FEW_ROWS)
    pairs = count(slice(None), eps)
    if pairs >= _LEAST_PAIRS or n_rows == m:
        return scaled(pairs, m)
    distance, seen = eps, pairs
    near: tuple[float, int] | None = None
    most = m * (m - 1) // 2 // _FAR  # beyond, too many rows lie within: the law bends
    for _ in range(_MOST_STEPS):
        distance *= _STEP
        if not distance < math.inf or seen > most:
            break
        try:
            seen = count(slice(None), distance)
        except OverflowError:  # a Minkowski distance whose power is no float any more
            break
        if near is None and seen >= _LEAST_PAIRS:
            near = distance, seen
        elif near is not None and seen >= _FAR * near[1]:
            break
    if near is None or not _FAR * near[1] <= seen <= most:
        return scaled(pairs, m)
    exponent = math.log(seen / near[1]) / math.log(distance / near[0])
    return scaled(near[1] * (eps / near[0]) ** exponent, m)


def decided_pairs(
    points: NDArray[np.float64], embedded: NDArray[np.float64], eps: float, projection: Projection, seed: int
) -> DecidedPairs:
    """Pairs of the sample that pass the filter of a window sweep, some for all where they are many.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    eps : threshold in embedded coordinates.
    projection : of the sweep.
    seed : of the 4096 rows that are looked at first, of more rows where these have few pairs (so many that
        some two million pairs may come), and of the 200,000 pairs that stand for more.
    """
    m = len(points)
    random = np.random.default_rng(seed)
    shuffled = random.permutation(m)
    few = np.sort(shuffled[:_FEW_ROWS])
    everything = Decision(EUCLIDEAN, 0.0, math.inf)
    left = right = few[:0]
    weight = 1.0
    looked = few
    while True:
        nothing = np.zeros(len(looked), np.int64)
        rows = window_rows(points[looked], embedded[looked], looked, nothing, eps, projection)
        batches = list(sweep_window(rows, everything, _BATCH_ROWS, {}))
        left = np.concatenate([few[:0], *(batch.left for batch in batches)])
        right = np.concatenate([few[:0], *(batch.right for batch in batches)])
        weight = (m / len(looked)) ** 2 if m else 1.0
        if len(looked) > len(few) or len(looked) == m or len(left) >= _ENOUGH_PAIRS:
            break
        times = math.isqrt(_MOST_PAIRS // max(1, len(left)))  # 3 at least
        looked = np.sort(shuffled[: times * len(few)])
    if len(left) > _ENOUGH_PAIRS:
        some = random.choice(len(left), _ENOUGH_PAIRS, replace=False)
        left, right, weight = left[some], right[some], weight * len(left) / _ENOUGH_PAIRS
    return DecidedPairs(left, right, weight)
