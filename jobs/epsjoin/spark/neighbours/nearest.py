"""The nearest neighbours of a few points at any distance, by one scan of all points, without pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.kernels.paired import paired_distances
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.from_pairs import Neighbours, merge_nearest
from epsjoin.spark.arrow import Task
from epsjoin.spark.reading import Reading
from epsjoin.spark.stored import Scan, in_table

NEAR = "id long, neighbour long, distance double"
_BLOCK = 1 << 15
"""Number of points that are compared with the few points at a time."""


def nearest_of(
    scan: Scan,
    reading: Reading,
    few: Sample,
    metric: Metric,
    k: int,
) -> Neighbours:
    """Find the k nearest other points of a few points, ties by the smaller id.

    Parameters
    ----------
    scan : of all points.
    reading : of the points.
    few : the few points.
    metric : the metric; the distances are those of the join.
    k : number of neighbours; fewer are returned if there are no more points.

    Notes
    -----
    O(len(few) n d). The scan is exact at any distance, whereas the pairs end at eps. A task returns k rows
    for each of the few points.
    """
    ids, places = few
    order = np.argsort(ids)
    near = scan(["id", "point"], scan_task(ids[order], places[order], reading, metric, k))
    return _merge(in_table(near, parse_ddl(NEAR)), k)


def _merge(near: pa.Table, k: int) -> Neighbours:
    ids, neighbours, distances = (near[name].to_numpy() for name in ("id", "neighbour", "distance"))
    return merge_nearest(ids, neighbours, distances, k)


def scan_task(
    ids: NDArray[np.int64], places: NDArray[np.float64], reading: Reading, metric: Metric, k: int
) -> Task:
    """Make the task that finds, in its batches, the k nearest neighbours of each of a few points.

    Parameters
    ----------
    ids, places : (m,) int64 and (m, d) float64, the few points.
    """

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        best = [Neighbours(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)) for _ in ids]
        for batch in batches:
            others, points = reading.arrays(batch)
            for begin in range(0, len(others), _BLOCK):
                block = slice(begin, begin + _BLOCK)
                both = np.concatenate([places, points[block]])
                right = np.arange(len(places), len(both))
                for row, id_ in enumerate(ids):
                    best[row] = _compare(best[row], row, id_, both, right, others[block], metric, k)
        for near in best:
            yield from _to_table(near).to_batches()

    return scan


def _compare(
    best: Neighbours,
    row: int,
    id_: int,
    both: NDArray[np.float64],
    right: NDArray[np.int64],
    others: NDArray[np.int64],
    metric: Metric,
    k: int,
) -> Neighbours:
    """Compare one of the few points with a block of others; only distances up to the k-th so far count.

    Parameters
    ----------
    best : its nearest so far.
    row, id_ : its row in ``both``, and its id.
    right, others : the rows of the others in ``both``, and their ids.
    """
    bound = float(best.distance[-1]) if len(best.id) == k else math.inf
    distance = paired_distances(metric.decision(bound), both, np.full(len(right), row), right)
    near = np.flatnonzero((distance >= 0) & (others != id_))
    if len(near) > k:
        near = near[distance[near] <= np.partition(distance[near], k - 1)[k - 1]]
    if not len(near):
        return best
    return merge_nearest(
        np.full(len(best.id) + len(near), id_),
        np.concatenate([best.neighbour, others[near]]),
        np.concatenate([best.distance, distance[near]]),
        k,
    )


def _to_table(near: Neighbours) -> pa.Table:
    return pa.table(
        {"id": np.asarray(near.id), "neighbour": np.asarray(near.neighbour), "distance": near.distance}
    )
