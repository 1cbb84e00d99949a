"""The nearest neighbours of a few points at any distance, by one scan of all points, without pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.neighbours.knn import scan_nearest
from epsjoin.kernels.sorting import argsort
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.from_pairs import Neighbours, merge_nearest
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows.stored import in_table
from epsjoin.spark.tasks.arrow import Scan, Task

NEAR = "id long, neighbour long, distance double"


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
    order = argsort(ids)
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
    ids, places : (m,) int64, rising, and (m, d) float64, the few points.
    """

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        best = Neighbours(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        for batch in batches:
            near = _nearest_in(*reading.arrays(batch), ids, places, metric, k)
            owner, neighbour, distance = map(np.concatenate, zip(best, near, strict=True))
            best = merge_nearest(owner, neighbour, distance, k)
        yield from _to_table(best).to_batches()

    return scan


def _nearest_in(
    others: NDArray[np.int64],
    points: NDArray[np.float64],
    ids: NDArray[np.int64],
    places: NDArray[np.float64],
    metric: Metric,
    k: int,
) -> Neighbours:
    """Find the k nearest of each of the few points among these others.

    Parameters
    ----------
    others, points : ids and coordinates of the others.
    ids, places : those of the few points.
    """
    if not np.all(others[:-1] < others[1:]):  # of equally near rows the kernel keeps the first
        order = np.argsort(others)
        others, points = others[order], points[order]
    at = np.searchsorted(others, ids)
    is_there = np.take(others, at, mode="clip") == ids if len(others) else np.zeros(len(ids), np.bool_)
    lists = make_lists(len(ids), k)
    itself = np.where(is_there, at, -1)
    everywhere, rows = plain(metric.decision(math.inf)), np.arange(len(ids))
    scan_nearest(everywhere, read_only(places), rows, read_only(points), itself, plain(lists))
    is_filled = np.arange(k) < lists.sizes[:, np.newaxis]
    return Neighbours(np.repeat(ids, lists.sizes), others[lists.ids[is_filled]], lists.distances[is_filled])


def _to_table(near: Neighbours) -> pa.Table:
    return pa.table(
        {"id": np.asarray(near.id), "neighbour": np.asarray(near.neighbour), "distance": near.distance}
    )
