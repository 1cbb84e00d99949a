"""The k-distance curve of a run, and the result to expect from other values of eps, to choose eps by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.local.epsilon.k_distance import round_up
from epsjoin.spark.rows.stored import StoredSlice, in_table

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
"""Other values of eps that are compared, as multiples of the chosen one."""

CURVE_POINTS = 200
"""Number of distances at which the points of a run are counted."""


MIN_SAMPLE_PAIRS = 30
"""Minimum number of pairs of the sample within a radius for their count to be used."""


class PairCounts(NamedTuple):
    """The pairs by distance that ``fit_epsilon`` has counted on its sample, scaled to all points.

    Parameters
    ----------
    radius, pairs : (m,) float64 each, ascending; m is 0 where there is no fit.
    exponent : of the power law that continues them; ``None`` where there is none.
    chosen, chosen_pairs : eps of the run, and the number of pairs that ``fit_epsilon`` expects within it.
    n_points, n_sample : number of points, and of those that were counted.
    """

    radius: NDArray[np.float64]
    pairs: NDArray[np.float64]
    exponent: float | None
    chosen: float
    chosen_pairs: float
    n_points: int
    n_sample: int

    def expect(self, eps: float) -> float | None:
        """Expect the number of pairs within eps.

        It is interpolated between two counts, and follows the power law below them. Above them it is
        ``None``: the law has no end, but the pairs end when all points are within eps of one another.
        """
        some = self.pairs > 0
        radius, pairs = self.radius[some], self.pairs[some]
        if not len(radius) or self.exponent is None:
            return None
        if eps == self.chosen:
            return self.chosen_pairs
        if eps > radius[-1]:
            return None
        near = max(eps, float(radius[0]))
        counted = math.exp(float(np.interp(math.log(near), np.log(radius), np.log(pairs))))
        return counted * math.pow(eps / near, self.exponent)

    def suffices(self, eps: float) -> bool:
        """Whether the sample has enough pairs within eps for their count to be used."""
        scale = self.n_points * (self.n_points - 1) / max(1, self.n_sample * (self.n_sample - 1))
        within = self.pairs[self.radius <= eps]
        return bool(len(within) and within[-1] >= MIN_SAMPLE_PAIRS * scale)


class KDistances(NamedTuple):
    """Fraction of the points by the distance to their k-th neighbour.

    Parameters
    ----------
    distance : (c,) float64, ascending.
    fraction : (c,) float64, the fraction of the points with their k-th neighbour within that distance.
    """

    distance: NDArray[np.float64]
    fraction: NDArray[np.float64]

    def within(self, eps: float) -> float | None:
        """Fraction of the points with their k-th neighbour within eps; ``None`` if the curve ends before."""
        at = int(np.searchsorted(self.distance, eps, "right"))
        if at == 0:
            return 0.0
        ends_before = at == len(self.distance) and self.distance[-1] < eps
        return None if ends_before and self.fraction[-1] < 1 else float(self.fraction[at - 1])

    def knee(self) -> float | None:
        """Where the curve bends most: a classic choice of eps, see :meth:`epsjoin.EpsilonFit.knee`.

        ``None`` where all k-distances are equal, or where not all are known.
        """
        known = self.fraction > 0
        distance, fraction = self.distance[known], self.fraction[known]
        if not len(fraction) or fraction[-1] < 1 or fraction[0] == 1:
            return None
        height = fraction - (distance - distance[0]) / (distance[-1] - distance[0])
        return round_up(float(distance[int(np.argmax(height))]))


def k_distances(outliers: StoredSlice, eps: float) -> KDistances:
    """Count the k-distance curve in ``outliers``.

    Parameters
    ----------
    outliers : the slice of ``outliers``.
    eps : threshold of the join. The curve has a point at eps and at each of its multiples in ``FACTORS``.

    Notes
    -----
    Slices that were written under version 1 of the contract have no k-distances beyond eps. Their curve ends
    there, before it reaches all points.
    """
    ends = in_table(
        outliers.scan(["k_distance"], _find_ends), pa.schema([("low", pa.float64()), ("high", pa.float64())])
    )
    low, high = pc.min(ends["low"]).as_py(), pc.max(ends["high"]).as_py()
    last = max(eps, high or 0.0)
    edges = np.array([eps, *(factor * eps for factor in FACTORS if factor * eps < last), last])
    if low is not None:
        edges = np.concatenate([edges, np.geomspace(low, high, CURVE_POINTS)])
    edges = np.unique(edges)
    counted = outliers.scan(["k_distance"], lambda batches: _count(batches, edges))
    within = np.sum([batch["points"].to_numpy() for batch in counted], axis=0)
    fraction = np.cumsum(within) / max(1, outliers.n)
    return KDistances(edges, fraction)


def _find_ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the smallest k-distance above 0, and the largest."""
    for batch in batches:
        known = batch["k_distance"].drop_null()
        ends = [pc.min(known.filter(pc.greater(known, 0))), pc.max(known)]
        yield pa.record_batch([pa.array([end.as_py()], pa.float64()) for end in ends], names=["low", "high"])


def _count(batches: Iterable[pa.RecordBatch], edges: NDArray[np.float64]) -> Iterator[pa.RecordBatch]:
    """Count the points by the first of the edges that their k-distance does not exceed."""
    found = np.zeros(len(edges), np.int64)
    for batch in batches:
        known = batch["k_distance"].drop_null().to_numpy()
        found += np.bincount(np.searchsorted(edges, known), minlength=len(edges))
    yield pa.record_batch({"points": found})


def other_eps(counts: PairCounts, curve: KDistances) -> list[dict[str, Any]]:
    """Compare the chosen eps with its multiples in ``FACTORS`` and with the knee of the k-distance curve.

    Returns
    -------
    A row for each eps, ascending: ``eps``; ``pairs`` and ``neighbours`` (expected; ``None`` without a fit);
        ``fraction`` (of the points, with their k-th neighbour within eps); ``is_chosen``; ``is_knee``;
        ``is_measured`` (whether the sample has enough pairs within eps to count them).
    """
    eps, knee = counts.chosen, curve.knee()
    rows = []
    for each in sorted({eps, *(factor * eps for factor in FACTORS), *([] if knee is None else [knee])}):
        pairs = counts.expect(each)
        rows.append(
            {
                "eps": each,
                "pairs": pairs,
                "neighbours": None if pairs is None else 2 * pairs / max(1, counts.n_points),
                "fraction": curve.within(each),
                "is_chosen": each == eps,
                "is_knee": each == knee,
                "is_measured": pairs is not None and counts.suffices(each),
            }
        )
    return rows
