"""Rank points on the driver: in its memory, or with large arrays in files; without a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from epsjoin.errors import TableError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.ids import IdIndex, index_ids, rows_of
from epsjoin.kernels.sorting import argsort
from epsjoin.lake.arrow import pair_columns, with_nulls
from epsjoin.local.neighbours.from_pairs import NearestOfRows, complete
from epsjoin.local.neighbours.lent import LentPoints
from epsjoin.local.neighbours.lof import lof_of_nearest
from epsjoin.local.neighbours.rank import order_by_outlyingness
from epsjoin.local.scratch import MakeArray, ScratchFiles, scratch_root
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.spark.neighbours.ranked import MAX_EXPLAINED, OUTLIERS, Scoring, Usual, check_near
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows.rows import DriverRows, Rows
from epsjoin.vocabulary import NOISE

MAX_ON_DRIVER_BYTES = 4 << 30
"""Maximum number of bytes that the driver's Python process holds, without pages of files."""

_HELD_BYTES = 100
"""Bytes that the driver holds of each point: id, degree, scores, ranks, its place in the tree. Measured: 73,
and 85 if many points are equal."""


def room_on_driver(n: int, dimensions: int, k: int, max_on_driver: int) -> MakeArray | None:
    """Choose where the driver puts coordinates and neighbours of n points: in memory or, if many, in files.

    Parameters
    ----------
    max_on_driver : maximum number of bytes that it may hold in memory, in addition to its JVM.

    Returns
    -------
    The function that makes these arrays. ``None``: the driver should not rank the points, since it would hold
    more than it may, or its files, whose pages a search looks at again and again, would take half of the
    machine's memory.

    Raises
    ------
    EpsjoinError
        The disk has too little room for the files.
    """
    held = n * _HELD_BYTES
    large = n * (27 * dimensions + 16 * k) if k < n else 8 * n * dimensions
    if held + large <= max_on_driver:
        return np.zeros
    if held > max_on_driver or large > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2:
        return None
    return ScratchFiles(scratch_root(), large, max_on_driver - held)


Draw = Callable[[Ints, Floats], Floats]
"""Draws a sample of points: ids and coordinates to some of the coordinates."""


class DriverInputs(NamedTuple):
    """Batches that the driver reads: the columns of the points, ``CLUSTERS`` (some) and ``PAIRS``."""

    points: Iterable[pa.RecordBatch]
    clusters: Iterable[pa.RecordBatch]
    pairs: Iterable[pa.RecordBatch]


def rank_on_driver(
    inputs: DriverInputs,
    reading: Reading,
    draw: Draw,
    scoring: Scoring,
    session: Callable[[], SparkSession],
    make: MakeArray = np.zeros,
) -> Rows:
    """Rank points on the driver, by a thread for each core of its machine, without a session.

    Parameters
    ----------
    inputs : each is read once.
    reading : how the batches of points are read.
    draw : draws a sample of the points.
    scoring : how they are scored.
    session : returns the session; called only if the rows go to Spark.
    make : makes the arrays of coordinates and neighbours, see :func:`room_on_driver`.

    Returns
    -------
    See :func:`epsjoin.spark.neighbours.rank.rank_points`.

    Raises
    ------
    TableError
        See :func:`epsjoin.spark.neighbours.rank.rank_points`.
    """
    eps, metric, k, names, are_candidates = scoring
    known, threads = _read_clusters(inputs.clusters), check_n_jobs(-1)
    n = len(known.ids)
    index = index_ids(known.ids)

    if k < n:
        is_searched = known.degree <= k  # a point counts itself
        near = NearestOfRows(n, k, make, is_searched)
        with ThreadPoolExecutor(1, "epsjoin") as pool:  # meanwhile the pairs settle the other points
            settled = pool.submit(_read_nearest, inputs.pairs, index, known.degree, near, are_candidates)
            coordinates = LentPoints(_read_points(inputs.points, reading, index, make), make)
            usual = Usual.of(draw(known.ids, coordinates.by_row()), names, metric)
            near.search(np.flatnonzero(is_searched), coordinates, metric, threads, make)
            settled.result()
        found = complete(near, coordinates, eps, metric, n_jobs=threads, make=make)
        lof, k_distance, *_ = lof_of_nearest(found, n_jobs=threads)
        del near, found
    else:
        coordinates = LentPoints(_read_points(inputs.points, reading, index, make))
        n_ends = 2 * sum(map(len, inputs.pairs))
        check_near(n_ends, int(known.degree.sum()) - n, are_candidates)
        usual = Usual.of(draw(known.ids, coordinates.by_row()), names, metric)
        lof, k_distance = np.full(n, np.nan), np.full(n, np.nan)
    order = order_by_outlyingness(lof, k_distance, threads)
    words = usual.describe(coordinates.take(order[:MAX_EXPLAINED]))
    return DriverRows.of_ranges(
        session, threads, n, _make_rows(known, order, lof, k_distance, words), OUTLIERS
    )


def _make_rows(
    known: _Known, order: Ints, lof: Floats, k_distance: Floats, words: pa.Array
) -> Callable[[slice], pa.RecordBatch]:
    """Make the function that makes the rows of a range of points; ``words`` are about the first ranks."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)

    def rows_of_range(some: slice) -> pa.RecordBatch:
        rank = ranks[some]
        return pa.record_batch(
            {
                "id": known.ids[some],
                "rank": rank,
                "lof": with_nulls(lof[some]),
                "k_distance": with_nulls(k_distance[some]),
                "degree": known.degree[some],
                "is_noise": known.is_noise[some],
                "dimensions": words.take(pa.array(rank - 1, mask=rank > len(words))),
            }
        )

    return rows_of_range


class _Known(NamedTuple):
    """What ``clusters`` says of every point, by ascending id: a point's row is its place here."""

    ids: Ints
    degree: Ints
    is_noise: Bools


def _read_clusters(clusters: Iterable[pa.RecordBatch]) -> _Known:
    of_batches = [
        (
            batch["id"].to_numpy(),
            batch["degree"].to_numpy(),
            batch["cluster_id"].to_numpy() == NOISE,  # faster to read than the role, which is text
        )
        for batch in clusters
    ]
    empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    known = _Known(*(np.concatenate(column) for column in zip(empty, *of_batches, strict=True)))
    if (known.ids[1:] > known.ids[:-1]).all():  # as the driver has written them; memory costs as much as work
        return known
    order = argsort(known.ids)
    return _Known(known.ids[order], known.degree[order], known.is_noise[order])


def _read_points(
    points: Iterable[pa.RecordBatch], reading: Reading, index: IdIndex, make: MakeArray
) -> Floats:
    """Read the coordinates of all points in the order of the index."""
    coordinates = make((len(index.ids), reading.dimensions or 0))
    n = 0
    for batch in points:
        ids, places = reading.arrays(batch)
        rows = _rows(index, ids)
        if len(rows) and (np.diff(rows) == 1).all():  # a copy of one block, not row by row
            coordinates[rows[0] : rows[-1] + 1] = places
        else:
            coordinates[rows] = places
        n += len(ids)
    if n != len(index.ids):
        raise TableError(f"clusters has {len(index.ids):,} points, there are {n:,}; run cluster again")
    return coordinates


def _read_nearest(
    pairs: Iterable[pa.RecordBatch],
    index: IdIndex,
    degree: Ints,
    near: NearestOfRows,
    are_candidates: bool,
) -> None:
    """Add the k nearest from the pairs; refuse pairs that do not fit the degrees."""
    n_ends = 0
    for batch in pairs:
        left, right, distance = pair_columns(batch)
        near.add(_rows(index, left), _rows(index, right), distance)
        n_ends += 2 * len(left)
    check_near(n_ends, int(degree.sum()) - len(degree), are_candidates)


def _rows(index: IdIndex, ids: Ints) -> Ints:
    rows = rows_of(index, ids)
    if rows.size and rows.min() < 0:
        raise TableError(f"clusters has no row of point {ids[rows.argmin()]}; run cluster again")
    return rows
