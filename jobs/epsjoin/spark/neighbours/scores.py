"""Local outlier factors of any number of points, by cells of space that ask one another.

After the search of :mod:`epsjoin.spark.neighbours.search` come three more rounds: a cell

1. puts together the k nearest of its points, and sends other cells the k-distances of those of its points
   that their points may have as neighbours;
2. computes the densities of its points, and sends these;
3. computes the local outlier factors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from epsjoin.errors import TableError
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.lake.arrow import with_nulls
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.spark.neighbours.cell import plan_space
from epsjoin.spark.neighbours.messages import Message, by_kind, exchange, write_messages
from epsjoin.spark.neighbours.search import Kind, final_nearest, search_in_cells
from epsjoin.spark.points.points import Points

SCORES = "id long, lof double, k_distance double"
"""Columns of the scores, as DDL."""


def score_points(
    points: Points, sample: NDArray[np.float64], k: int, metric: Metric, cell_bytes: int
) -> DataFrame:
    """Compute the local outlier factor and the k-distance of every point.

    Parameters
    ----------
    points, sample, k, metric, cell_bytes : see :func:`epsjoin.spark.neighbours.search.search_nearest`.

    Returns
    -------
    DataFrame
        Columns ``SCORES``, those of :func:`epsjoin.lof` for the points in the order of their ids, bit for
        bit. It is lazy.

    Notes
    -----
    Five shuffles: two of them move the points, four move k rows for each point, and some more for open ones.
    A task holds the points of one cell and their neighbours.
    """
    space = plan_space(points, sample, k, metric, cell_bytes, None)
    found = search_in_cells(None, points, space, is_scored=True)

    def merge(cell: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        mail = by_kind(messages)
        tables = list(final_nearest(chain(mail[Kind.DONE], mail[Kind.OPEN]), k))
        for near in tables:
            yield from write_messages(cell, Kind.DONE, cell, near, k)
        ids, nearest = _join(tables, k)
        yield from _tell(cell, ids, nearest.distance[:, -1], mail[Kind.WANTED])
        for message in mail[Kind.WANTED]:
            yield message.pass_on(cell)

    def add_density(cell: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        mail = by_kind(messages)
        ids, nearest = _join_messages(mail[Kind.DONE], k)
        density = reach_densities(nearest.distance, _look_up(mail[Kind.KNOWN], nearest.neighbour))
        yield from _tell(cell, ids, density, mail[Kind.WANTED])
        for message in mail[Kind.DONE]:
            yield message.pass_on(cell)

    def add_factor(_: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        mail = by_kind(messages)
        ids, nearest = _join_messages(mail[Kind.DONE], k)
        density = _look_up(mail[Kind.KNOWN], np.column_stack((ids, nearest.neighbour)))
        lof = outlier_factors(density[:, 0].copy(), density[:, 1:])
        k_distance = nearest.distance[:, -1].copy()
        yield pa.record_batch({"id": ids, "lof": with_nulls(lof), "k_distance": with_nulls(k_distance)})

    n_cells = space.cells.n
    with_densities = exchange(exchange(found, n_cells, merge), n_cells, add_density)
    return exchange(with_densities, n_cells, add_factor, SCORES)


def _join(tables: Sequence[pa.Table], k: int) -> tuple[NDArray[np.int64], KNearest]:
    """Put together the k nearest of points: their ids, and the neighbours of each by id."""
    near = pa.concat_tables(tables)
    of = KNearest(near["neighbour"].to_numpy().reshape(-1, k), near["distance"].to_numpy().reshape(-1, k))
    return near["id"].to_numpy()[::k].copy(), of


def _join_messages(messages: Sequence[Message], k: int) -> tuple[NDArray[np.int64], KNearest]:
    return _join([message.read() for message in messages], k)


def _tell(
    cell: int, ids: NDArray[np.int64], values: NDArray[np.float64], wanted: Sequence[Message]
) -> Iterator[pa.RecordBatch]:
    """Tell a value of each point of the cell to itself, and to other cells those of the points they want."""
    yield from write_messages(cell, Kind.KNOWN, cell, pa.table({"id": ids, "value": values}))
    index, by_sender = index_ids(ids), defaultdict[int, list[NDArray[np.int64]]](list)
    for message in wanted:
        by_sender[message.sender].append(message.read()["id"].to_numpy())
    for sender, asked in by_sender.items():  # it may have asked for a point more than once
        rows = rows_of(index, np.unique(np.concatenate(asked)))
        some = pa.table({"id": ids[rows], "value": values[rows]})
        yield from write_messages(sender, Kind.KNOWN, cell, some)


def _look_up(known: Sequence[Message], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Look up what cells have sent about points, in the shape of the ids."""
    told = pa.concat_tables([message.read() for message in known])
    rows = rows_of(index_ids(told["id"].to_numpy()), np.ascontiguousarray(ids).reshape(-1))
    if rows.min() < 0:
        raise TableError(
            f"nothing is known of point {ids.reshape(-1)[rows.argmin()]}, which is a neighbour; "
            "the points changed while they were read: run it again"
        )
    return np.asarray(told["value"].to_numpy()[rows].reshape(ids.shape), np.float64)
