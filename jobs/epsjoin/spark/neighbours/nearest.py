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
_BLOCK = 8192
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
        best: list[pa.Table] = []
        for batch in batches:
            others, points = reading.arrays(batch)
            for begin in range(0, len(others), _BLOCK):
                block = slice(begin, begin + _BLOCK)
                best.append(_compare_block(ids, places, others[block], points[block], metric, k))
                best = [_to_table(_merge(pa.concat_tables(best), k))]
        for table in best:
            yield from table.to_batches()

    return scan


def _compare_block(
    ids: NDArray[np.int64],
    places: NDArray[np.float64],
    others: NDArray[np.int64],
    points: NDArray[np.float64],
    metric: Metric,
    k: int,
) -> pa.Table:
    """Compare the few points with a block of others: the k nearest of each, and those tied with the last."""
    left = np.repeat(np.arange(len(ids)), len(others))
    right = np.tile(np.arange(len(ids), len(ids) + len(others)), len(ids))
    both = np.concatenate([places, points])
    distance = paired_distances(metric.decision(math.inf), both, left, right).reshape(len(ids), len(others))
    is_other = ids[:, None] != others[None]
    if len(others) > k:
        kth = np.partition(np.where(is_other, distance, math.inf), k - 1, axis=1)[:, k - 1 : k]
        is_other &= distance <= kth
    row, column = np.nonzero(is_other)
    return _to_table(Neighbours(ids[row], others[column], distance[row, column]))


def _to_table(near: Neighbours) -> pa.Table:
    return pa.table(
        {"id": np.asarray(near.id), "neighbour": np.asarray(near.neighbour), "distance": near.distance}
    )
