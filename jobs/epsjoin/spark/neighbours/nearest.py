"""The nearest neighbours of a few points at any distance, by one scan of all points, without pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from epsjoin.kernels.paired import paired_distances
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.from_pairs import Neighbours, merge_nearest
from epsjoin.spark.arrow import Task
from epsjoin.spark.points import Points
from epsjoin.spark.reading import Reading
from epsjoin.spark.rows import MappedRows, collect_table

NEAR = "id long, neighbour long, distance double"
_BLOCK = 8192
"""Number of points that are compared with the few points at a time."""


def nearest_of(points: Points, ids: Sequence[int], metric: Metric, k: int) -> Neighbours:
    """Find the k nearest other points of a few points, ties by the smaller id.

    Parameters
    ----------
    points : every point.
    ids : the ids of the few points.
    metric : the metric; the distances are those of the join.
    k : number of neighbours; fewer are returned if there are no more points.

    Notes
    -----
    O(len(ids) n d). The scan is exact at any distance, whereas the pairs end at eps. A task returns k rows
    for each of the few points.
    """
    few = points.frame.where(F.col("id").isin([int(each) for each in ids])).toArrow()
    few_ids, places = points.reading.arrays(few)
    order = np.argsort(few_ids)
    task = scan_task(few_ids[order], places[order], points.reading, metric, k)
    near = collect_table(MappedRows(points.rows, task, NEAR))
    return _merge(near, k)


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
                best.append(_compare_block(ids, places, others[block], points[block], metric))
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
) -> pa.Table:
    left = np.repeat(np.arange(len(ids)), len(others))
    right = np.tile(np.arange(len(others)), len(ids))
    is_other = ids[left] != others[right]
    left, right = left[is_other], right[is_other]
    both = np.concatenate([places, points])
    distance = paired_distances(metric.decision(math.inf), both, left, len(ids) + right)
    return _to_table(Neighbours(ids[left], others[right], distance))


def _to_table(near: Neighbours) -> pa.Table:
    return pa.table(
        {"id": np.asarray(near.id), "neighbour": np.asarray(near.neighbour), "distance": near.distance}
    )
