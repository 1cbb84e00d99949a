"""The k nearest points of any number of queries, distributed over tasks.

1. Space is cut into cells on a sample, so small that the points of one fit a task.
2. Each query is searched for among the points of its own cell, by a tree of boxes. The distance to its k-th
   neighbour there is its *radius*: no nearer point lies beyond it.
3. A query whose ball of this radius reaches other cells is searched for in these, too.
4. The k nearest of what all its cells found are the k nearest of all points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.tree import reaches
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.cells import Cells, find_cells, other_cells_within, plan_cells
from epsjoin.local.neighbours.tree import PointTree
from epsjoin.spark.arrow import Task, from_ipc, to_ipc
from epsjoin.spark.join.replicas import hold_by_part
from epsjoin.spark.persist import persist_until
from epsjoin.spark.points import Points
from epsjoin.spark.rows import FrameRows, IpcRows, to_frame

NEAR = "id long, neighbour long, distance double"
"""Columns of nearest neighbours, as DDL."""

CELL_BYTES = 64 << 20
"""Number of bytes of coordinates that a cell should have at most; a task holds some four times as many."""

_MIN_CELL_POINTS = 1000
"""Number of points of a cell below which more cells would not make the search faster."""

_POINTS, _QUERIES, _NEAR = range(3)
"""Kinds of streams; a task takes its points before its queries."""

_STREAMS = "cell int, kind int, ipc binary"
_NOBODY = np.iinfo(np.int64).max
"""The id of the neighbours at a query's radius that are not real: any real one as far goes before them."""


def search_nearest(
    queries: Points,
    points: Points,
    sample: NDArray[np.float64],
    k: int,
    metric: Metric,
    done: ExitStack,
    *,
    is_self: bool,
    cell_bytes: int = CELL_BYTES,
) -> DataFrame:
    """Find the k nearest points of each query: (id, near).

    Parameters
    ----------
    queries, points : of known dimensions. The metric is defined for them, or a task fails.
    sample : (m, d) float64, a sample of the points.
    k : number of neighbours.
    metric : the metric of the distances.
    done : to be closed once the result is computed; then the intermediate frame is unpersisted.
    is_self : whether the queries are some of the points, which are not their own neighbours.
    cell_bytes : number of bytes of coordinates that a cell should have at most.

    Returns
    -------
    DataFrame
        A row for each query: ``near`` is an array of k structs (distance, neighbour), nearest first, ties by
        the smaller id; of fewer, if there are no k points. It is lazy.

    Notes
    -----
    The points go through two shuffles, a query through one and one more for each other cell that it reaches.
    A task holds the points of one cell and one stream of queries. Equal points share a cell, whatever its
    size.
    """
    dimensions = points.reading.dimensions or 1
    cores = points.frame.sparkSession.sparkContext.defaultParallelism
    wanted = max(8 * dimensions * points.n / cell_bytes, min(2 * cores, points.n / _MIN_CELL_POINTS))
    n_cells = 1 << max(0, math.ceil(math.log2(max(1.0, wanted))))
    space = _Space(plan_cells(metric.embed(sample), n_cells), metric, dimensions, k)
    streams = _send(points, space, _POINTS)
    first = _run(streams.union(_send(queries, space, _QUERIES)), space, is_self=is_self, is_first=True)
    persist_until(first, done)
    asked = first.where(F.col("kind") == _QUERIES)
    second = _run(streams.union(asked), space, is_self=is_self, is_first=False)
    found = first.where(F.col("kind") == _NEAR).union(second)
    near = to_frame(IpcRows(found.select("ipc"), NEAR))
    by_distance = F.sort_array(F.collect_list(F.struct("distance", "neighbour")))
    return near.groupBy("id").agg(F.slice(by_distance, 1, k).alias("near"))


class _Space(NamedTuple):
    """What every task knows."""

    cells: Cells
    metric: Metric
    dimensions: int
    k: int


class _Queries(NamedTuple):
    """Queries, and how far each has to look: (m,) int64, (m, d) float64, (m,) float64."""

    ids: NDArray[np.int64]
    places: NDArray[np.float64]
    radius: NDArray[np.float64]

    def to_table(self, rows: NDArray[np.int64]) -> pa.Table:
        """Some of the queries as a table."""
        return pa.table(
            {"id": self.ids[rows], "point": to_binary(self.places[rows]), "radius": self.radius[rows]}
        )

    @classmethod
    def of(cls, stream: pa.Buffer, dimensions: int) -> _Queries:
        """Read the queries of a stream."""
        rows = pa.Table.from_batches(from_ipc(stream))
        places = to_matrix(rows["point"], dimensions)
        return cls(rows["id"].to_numpy(), places, rows["radius"].to_numpy())


def _send(points: Points, space: _Space, kind: int) -> DataFrame:
    """Send points, or queries with no radius yet, to the cells in which they lie."""
    reading = points.reading

    def by_cell(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
        ids, places = reading.arrays(batch)
        cell = find_cells(space.cells, space.metric.embed(places))
        each = _Queries(ids, places, np.full(len(ids), np.inf))
        for number in np.unique(cell).tolist():
            yield number, each.to_table(np.flatnonzero(cell == number))

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in hold_by_part(by_cell(batch) for batch in batches):
            for cell in list(held):
                yield _to_stream(cell, kind, pa.concat_tables(held.pop(cell)))

    return FrameRows(points.frame).map(send, _STREAMS)


def _to_stream(cell: int, kind: int, rows: pa.Table) -> pa.RecordBatch:
    numbers = {"cell": pa.array([cell], pa.int32()), "kind": pa.array([kind], pa.int32())}
    return pa.record_batch({**numbers, "ipc": pa.array([to_ipc(rows)], pa.binary())})


def _run(streams: DataFrame, space: _Space, *, is_self: bool, is_first: bool) -> DataFrame:
    """Search in each cell, a task for each; yield what was found and, at first, who has to look further."""
    by_cell = streams.repartitionById(space.cells.n, "cell").sortWithinPartitions("kind")
    return FrameRows(by_cell).map(_make_searcher(space, is_self=is_self, is_first=is_first), _STREAMS)


def _make_searcher(space: _Space, *, is_self: bool, is_first: bool) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        of_points: list[_Queries] = []
        cell: _Cell | None = None
        for batch in batches:
            numbers, kinds = batch["cell"].to_pylist(), batch["kind"].to_pylist()
            for number, kind, stream in zip(numbers, kinds, batch["ipc"], strict=True):
                read = _Queries.of(stream.as_buffer(), space.dimensions)
                if kind == _POINTS:
                    of_points.append(read)
                    continue
                if cell is None:
                    cell = _Cell(of_points, space, is_self=is_self)
                    of_points = []
                near, radius = cell.search(read)
                yield _to_stream(number, _NEAR, near)
                if is_first:
                    yield from _ask_others(read._replace(radius=radius), number, space)

    return work


def _ask_others(queries: _Queries, home: int, space: _Space) -> Iterator[pa.RecordBatch]:
    metric = space.metric
    limit = reaches(metric.decision(math.inf), metric.norm, queries.radius)
    embedded, homes = metric.embed(queries.places), np.full(len(queries.ids), home)
    for cell, rows in other_cells_within(space.cells, embedded, homes, limit, metric.norm):
        yield _to_stream(cell, _QUERIES, queries.to_table(rows))


class _Cell:
    """The points of a cell, ready to be searched.

    Parameters
    ----------
    of_points : the points, in any number of streams; emptied.
    """

    def __init__(self, of_points: Sequence[_Queries], space: _Space, *, is_self: bool) -> None:
        self.space, self.is_self, self.tree = space, is_self, None
        if of_points:
            ids = np.concatenate([each.ids for each in of_points])
            order = np.argsort(ids)
            places = np.concatenate([each.places for each in of_points])[order]
            self.tree = PointTree.grow(places, ids[order], space.k + 1, space.metric)

    def search(self, queries: _Queries) -> tuple[pa.Table, NDArray[np.float64]]:
        """Find the k nearest of each query within its radius, and how far each has to look now."""
        n, k = len(queries.ids), self.space.k
        is_bounded = np.isfinite(queries.radius)
        radius = np.where(is_bounded, queries.radius, 0.0)[:, None]
        lists = NearestLists(
            np.where(is_bounded, k, 0), np.full((n, k), _NOBODY), np.repeat(radius, k, axis=1)
        )
        if self.tree is not None:
            itself = queries.ids if self.is_self else np.full(n, _missing(self.tree.names))
            self.tree.search(queries.places, itself, np.arange(n), lists)
        is_found = np.arange(k) < lists.sizes[:, None]
        # only at the radius itself is nobody's id nobody's
        is_found &= (lists.ids != _NOBODY) | (lists.distances < radius) | ~is_bounded[:, None]
        row, place = np.nonzero(is_found)
        columns = queries.ids[row], lists.ids[row, place], lists.distances[row, place]
        near = pa.table(dict(zip(("id", "neighbour", "distance"), columns, strict=True)))
        return near, np.where(lists.sizes == k, lists.distances[:, 0], np.inf)


def _missing(names: NDArray[np.int64]) -> int:
    """A number that is none of the names."""
    ascending = np.unique(names)
    if ascending[0] > np.iinfo(np.int64).min:
        return int(ascending[0]) - 1
    gaps = np.flatnonzero(np.diff(ascending) != 1)
    return int(ascending[gaps[0] if gaps.size else -1]) + 1
