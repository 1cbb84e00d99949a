"""Compute clusters on the driver, whose threads read the pairs, without a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.kernels.ids import IdIndex, index_ids
from epsjoin.kernels.sorting import sort_numbers
from epsjoin.lake.arrow import pair_columns
from epsjoin.lake.parquet import File
from epsjoin.lake.phases import timed
from epsjoin.local.cluster.batches import cluster_rows
from epsjoin.local.cluster.positions import check_ids, indexed_positions_of
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.local.sweep.threads import in_order
from epsjoin.spark.cluster.from_pairs import CLUSTERS, to_rows
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.rows.rows import DriverRows
from epsjoin.spark.rows.splits import names_of
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.vocabulary import NOISE

MAX_ON_DRIVER_BYTES = 4 << 30
"""Maximum number of bytes that the driver's Python process holds of points and pairs."""
MAX_PAIRS = 200_000_000
"""Maximum number of pairs that the driver reads: some seconds, more than it takes to start tasks."""

_POINT_BYTES = 81
"""Bytes of each point: ids and their index, degrees, forest, nearest core points, labels."""
_PAIR_BYTES = 16
"""Bytes of a pair that waits until it is known whether its points are core."""


def fits_driver(n_points: int, n_pairs: int, min_pts: int) -> bool:
    """Whether the driver clusters the points by itself."""
    waiting = min(n_pairs, n_points * max(0, min_pts - 2))  # see epsjoin.local.cluster.batches
    held = _POINT_BYTES * n_points + _PAIR_BYTES * waiting
    return n_pairs <= MAX_PAIRS and held <= MAX_ON_DRIVER_BYTES


def cluster_on_driver(points: StoredSlice, pairs: StoredSlice, min_pts: int) -> DriverRows:
    """Find the cluster and the role of every point, while a thread for each core reads the pairs.

    Parameters
    ----------
    points, pairs : slices of the tables ``points`` and ``pairs``; each file is read once.
    min_pts : number of points within eps, the point itself included, that make a point core.

    Returns
    -------
    Columns ``CLUSTERS``, a row for every point, in the order of their ids.

    Raises
    ------
    ArgumentError
        An id comes twice, or is that of noise.
    TableError
        The pairs name a point that is not among the points; or a file cannot be read.
    """
    ids, threads = _read_ids(points), check_n_jobs(-1)
    index = index_ids(ids)
    files = (timed(_read_pairs(pairs, file, index), "work") for file in pairs.files)
    with closing(in_order(files, threads)) as batches:
        found = cluster_rows(timed(batches, "wait"), len(ids), min_pts)
    names = _name_clusters(ids, found.labels, found.is_core)
    degree = found.degree.astype(np.int64, copy=False)

    def rows_of_range(some: slice) -> pa.RecordBatch:
        return to_rows(ids[some], degree[some], names[found.labels[some]], min_pts)

    return DriverRows.of_ranges(points.job.session, threads, len(ids), rows_of_range, CLUSTERS)


def _read_ids(points: StoredSlice) -> NDArray[np.int64]:
    of_batches: Sequence[NDArray[np.int64]] = [batch["id"].to_numpy() for batch in points.stream(["id"])]
    ids = np.concatenate([np.empty(0, np.int64), *of_batches])
    sort_numbers(ids)
    check_ids(ids)
    return ids


def _read_pairs(pairs: StoredSlice, file: File, index: IdIndex) -> Iterator[Pairs]:
    for batch in replace(pairs, files=[file]).stream(names_of(PAIRS)):
        left, right, distance = pair_columns(batch)
        rows, others = indexed_positions_of(index, left), indexed_positions_of(index, right)
        # writable, like what a join finds: the kernels are compiled for this
        yield Pairs(rows, others, distance.copy())


def _name_clusters(
    ids: NDArray[np.int64], labels: NDArray[np.int64], is_core: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The smallest core point's id of each cluster, by whose order clusters are numbered, then noise's."""
    cores = np.flatnonzero(is_core)
    first = cores[np.flatnonzero(np.diff(np.maximum.accumulate(labels[cores]), prepend=NOISE))]
    return np.append(ids[first], NOISE)  # the label of noise is the last place
