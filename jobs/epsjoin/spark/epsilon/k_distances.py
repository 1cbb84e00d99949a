"""The k-distance curve of a run, and what other eps would give: what a person chooses eps by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError
from epsjoin.lake.lake import Slice
from epsjoin.local.epsilon.fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.spark.arrow import Task
from epsjoin.spark.job import Job
from epsjoin.spark.points import Points
from epsjoin.spark.rows import MappedRows, StoredRows, to_frame

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
"""Of the chosen eps: the others that are looked at."""

CURVE_POINTS = 200


class KDistances(NamedTuple):
    """Shares of the points by the distance to their k-th neighbour.

    Parameters
    ----------
    distance : (c,) float64, rising.
    share : (c,) float64, of the points, with their k-th neighbour within that distance.
    is_counted : (c,) bool: on all points, exactly; else estimated on the sample.
    """

    distance: NDArray[np.float64]
    share: NDArray[np.float64]
    is_counted: NDArray[np.bool_]

    def within(self, eps: float) -> float | None:
        """Share of the points with their k-th neighbour within eps; ``None`` where the curve ends before."""
        at = int(np.searchsorted(self.distance, eps, "right"))
        if at == 0:
            return 0.0
        ends_before = at == len(self.distance) and self.distance[-1] < eps
        return None if ends_before and self.share[-1] < 1 else float(self.share[at - 1])


def refit(job: Job, points: Points) -> EpsilonFit | None:
    """The fit that ``fit_epsilon`` made of the run's points, again; ``None`` where they have no power law."""
    params = job.params
    _, sample = points.sample(params.sample_rows, params.seed)
    max_k = max(64, params.min_pts - 1, params.n_neighbours)
    with suppress(ArgumentError):
        return fit_points(sample, job.lake.source.metric, params.sample_rows, params.seed, points.n, max_k)
    return None


def k_distances(job: Job, outliers: Slice, n_points: int, eps: float, fit: EpsilonFit | None) -> KDistances:
    """The k-distance curve: counted in ``outliers`` up to eps, the sample's from there on.

    Parameters
    ----------
    outliers : the slice of ``outliers``.
    n_points : rows of it.
    eps : where the join ended; shares are counted at all ``FACTORS`` of it below.
    fit : whose sample goes on beyond eps; ``None``: the curve ends there.
    """
    rows = StoredRows.of(job, outliers, "k_distance double")
    values = to_frame(rows).agg(
        F.min(F.when(F.col("k_distance") > 0, F.col("k_distance"))).alias("low"),
        F.max("k_distance").alias("high"),
    )
    ends = values.collect()[0]
    edges = np.array([factor * eps for factor in FACTORS if factor < 1])
    if ends["low"] is not None:
        edges = np.concatenate([edges, np.geomspace(ends["low"], ends["high"], CURVE_POINTS)])
    # a distance is a rounded root of what was compared with eps, so it may lie above by a rounding
    edges = np.unique(np.concatenate([edges, [eps, max(eps, ends["high"] or 0.0)]]))
    counted = to_frame(MappedRows(rows, _count(edges), "place long, points long"))
    by_place = {row[0]: row[1] for row in counted.groupBy("place").agg(F.sum("points")).collect()}
    share = np.cumsum([by_place.get(place, 0) for place in range(len(edges))]) / max(1, n_points)
    further, further_share = _beyond(fit, job.params.n_neighbours, float(edges[-1]), float(share[-1]))
    return KDistances(
        np.concatenate([edges, further]),
        np.concatenate([share, further_share]),
        np.arange(len(edges) + len(further)) < len(edges),
    )


def _count(edges: NDArray[np.float64]) -> Task:
    """Points by the first of the edges that their k-distance does not exceed."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = np.zeros(len(edges), np.int64)
        for batch in batches:
            known = batch["k_distance"].drop_null().to_numpy()
            found += np.bincount(np.searchsorted(edges, known), minlength=len(edges))
        yield pa.record_batch({"place": np.arange(len(edges)), "points": found})

    return count


def _beyond(
    fit: EpsilonFit | None, k: int, eps: float, share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sample's k-distances beyond eps, and the share of its points within each; never below ``share``."""
    rising = np.empty(0)
    if fit is not None:
        with suppress(ArgumentError):  # the sample has fewer neighbours
            rising = np.asarray(fit.k_distance_curve(k))
    shares = np.arange(1, len(rising) + 1) / max(1, len(rising))
    is_beyond = rising > eps
    return rising[is_beyond], np.maximum(shares[is_beyond], share)


def other_eps(fit: EpsilonFit | None, curve: KDistances, eps: float, k: int) -> list[dict[str, Any]]:
    """What eps, others around it, and the knee of the k-distance curve would give, by rising eps.

    Returns
    -------
    Rows of eps, pairs and neighbours (expected; ``None`` without a fit), share (of the points, with their
    k-th neighbour within it), is_chosen, is_knee, is_measured (whether the sample's curve goes so far).
    """
    knee = None
    if fit is not None:
        with suppress(ArgumentError):
            knee = fit.knee(k).eps
    wished = {eps, *(factor * eps for factor in FACTORS), *([] if knee is None else [knee])}
    rows = []
    for each in sorted(wished):
        pairs = None if fit is None else fit.expected_pairs(each)
        rows.append(
            {
                "eps": each,
                "pairs": pairs,
                "neighbours": None if fit is None or pairs is None else 2 * pairs / fit.n_rows,
                "share": curve.within(each),
                "is_chosen": each == eps,
                "is_knee": each == knee,
                "is_measured": fit is not None and fit.curve.radius[0] <= each <= fit.curve.radius[-1],
            }
        )
    return rows
