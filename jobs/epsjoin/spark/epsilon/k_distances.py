"""The k-distance curve of a run, and the result to expect from other values of eps, to choose eps by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.params import RunParams
from epsjoin.spark.stored import StoredSlice, in_table

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
"""Other values of eps that are compared, as multiples of the chosen one."""

CURVE_POINTS = 200
"""Number of distances at which the points of a run are counted."""


class KDistances(NamedTuple):
    """Fraction of the points by the distance to their k-th neighbour.

    Parameters
    ----------
    distance : (c,) float64, ascending.
    share : (c,) float64, the fraction of the points with their k-th neighbour within that distance.
    """

    distance: NDArray[np.float64]
    share: NDArray[np.float64]

    def within(self, eps: float) -> float | None:
        """Fraction of the points with their k-th neighbour within eps; ``None`` if the curve ends before."""
        at = int(np.searchsorted(self.distance, eps, "right"))
        if at == 0:
            return 0.0
        ends_before = at == len(self.distance) and self.distance[-1] < eps
        return None if ends_before and self.share[-1] < 1 else float(self.share[at - 1])


def refit(sample: NDArray[np.float64], metric: str, params: RunParams, n_points: int) -> EpsilonFit | None:
    """Repeat the fit of the step ``fit_epsilon`` on its sample; ``None`` where there is no power law."""
    max_k = max(64, params.min_pts - 1, params.n_neighbours)
    with suppress(ArgumentError):
        return fit_points(sample, metric, params.sample_rows, params.seed, n_points, max_k)
    return None


def k_distances(outliers: StoredSlice, eps: float) -> KDistances:
    """Count the k-distance curve in ``outliers``.

    Parameters
    ----------
    outliers : the slice of ``outliers``.
    eps : threshold of the join. The curve has a point at eps and at each of its multiples in ``FACTORS``.

    Notes
    -----
    Slices that were written under version 1 of the contract know no k-distance beyond eps. Their curve ends
    there, below all of the points.
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
    share = np.cumsum(within) / max(1, outliers.n)
    return KDistances(edges, share)


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


def other_eps(fit: EpsilonFit | None, curve: KDistances, eps: float, k: int) -> list[dict[str, Any]]:
    """Compare eps with its multiples in ``FACTORS`` and with the knee of the k-distance curve.

    Returns
    -------
    A row for each eps, ascending: ``eps``; ``pairs`` and ``neighbours`` (expected; ``None`` without a fit);
        ``share`` (fraction of the points with their k-th neighbour within eps); ``is_chosen``; ``is_knee``;
        ``is_measured`` (whether the sample has enough pairs within eps to count them).
    """
    knee = None
    if fit is not None:
        with suppress(ArgumentError):
            knee = fit.knee(k).eps
    values = {eps, *(factor * eps for factor in FACTORS), *([] if knee is None else [knee])}
    rows = []
    for each in sorted(values):
        expected = None if fit is None else fit.expect(each)
        pairs = None if expected is None else expected.pairs
        rows.append(
            {
                "eps": each,
                "pairs": pairs,
                "neighbours": None if fit is None or pairs is None else 2 * pairs / fit.n_rows,
                "share": curve.within(each),
                "is_chosen": each == eps,
                "is_knee": each == knee,
                "is_measured": expected is not None and expected.suffices,
            }
        )
    return rows
