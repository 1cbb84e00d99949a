"""The k nearest points of any number of queries, distributed over tasks.

1. Space is cut into cells on a sample, so small that the points of one fit a task.
2. Each query is searched for among the points of its own cell. The distance to its k-th neighbour there is
   its *radius*: no nearer point lies beyond it.
3. A query whose ball of this radius reaches other cells is *open*, and searched for in these, too.
4. The k nearest of what all its cells found are the k nearest of all points.

The cells work in rounds (:mod:`epsjoin.spark.neighbours.messages`), a round for each of the steps 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.tree import reaches
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.cells import Cells, find_cells, other_cells_within, plan_cells
from epsjoin.local.neighbours.from_pairs import merge_nearest
from epsjoin.local.neighbours.search import SearchOptions, find_nearest
from epsjoin.local.neighbours.tree import PointTree
from epsjoin.spark.hashes import hash_ids
from epsjoin.spark.join.replicas import hold_by_part
from epsjoin.spark.neighbours.messages import MESSAGES, Message, Work, exchange, write_messages
from epsjoin.spark.points import Points

NEAREST = "id long, neighbour long, distance double, nth int"
"""Columns of the k nearest of each query, as DDL; ``nth`` is 1 for the nearest."""

CELL_BYTES = 64 << 20
"""Number of bytes that points of a cell and their neighbours should have at most; a task holds some six times
as many."""

_MIN_CELL_POINTS = 1000
"""Number of points of a cell below which more cells would not make the search faster."""

_MAX_HELD_ROWS = 1 << 20
"""Number of rows of neighbours that wait to be merged with as many at least."""

_NOBODY = np.iinfo(np.int64).max
"""The id of the neighbours at a query's radius that are not real: any real one as far goes before them."""


class Kind(IntEnum):
    """Kinds of messages; a cell gets them in this order."""

    POINTS = 0
    """Points of the cell: id, point."""
    QUERIES = 1
    """Points to search for: id, point, radius."""
    DONE = 2
    """The k nearest of queries, k rows for each, the nearest first: id, neighbour, distance."""
    OPEN = 3
    """Some of the nearest of queries that are open, in no order: id, neighbour, distance."""
    WANTED = 4
    """Points of the cell that may be neighbours of points of the sender: id."""
    KNOWN = 5
    """Something about points, of the cell or not: id, value."""


class Space(NamedTuple):
    """What every task knows.

    Parameters
    ----------
    cells, metric, dimensions, k : the cells, and what is searched for.
    at_once : number of queries of a message at most; a task searches for those of one message at a time.
    n_homes : in how many tasks the results of queries are put together, by a hash of their ids; None: in the
        cells in which the queries lie.
    """

    cells: Cells
    metric: Metric
    dimensions: int
    k: int
    at_once: int
    n_homes: int | None


def plan_space(
    points: Points,
    sample: NDArray[np.float64],
    k: int,
    metric: Metric,
    cell_bytes: int,
    n_queries: int | None,
) -> Space:
    """Plan the cells on a sample of the points.

    Parameters
    ----------
    n_queries : number of queries that are others than the points.
    """
    dimensions = points.reading.dimensions or 1
    cores = points.rows.spark.sparkContext.defaultParallelism
    of_lists = 16 * k  # the ids and distances of k neighbours
    n_bytes = (8 * dimensions + (of_lists if n_queries is None else 0)) * points.n
    at_once = max(1, cell_bytes // (8 * dimensions + of_lists))
    wanted = max(n_bytes / cell_bytes, min(2 * cores, points.n / _MIN_CELL_POINTS))
    n_cells = 1 << max(0, math.ceil(math.log2(max(1.0, wanted))))
    n_homes = None if n_queries is None else max(n_cells, math.ceil(of_lists * n_queries / cell_bytes))
    return Space(plan_cells(metric.embed(sample), n_cells), metric, dimensions, k, at_once, n_homes)


def search_nearest(
    queries: Points | None,
    points: Points,
    sample: NDArray[np.float64],
    k: int,
    metric: Metric,
    cell_bytes: int = CELL_BYTES,
) -> DataFrame:
    """Find the k nearest points of each query.

    Parameters
    ----------
    queries, points : of known dimensions. The metric is defined for them, or a task fails. None: the points
        are the queries, and not their own neighbours.
    sample : (m, d) float64, a sample of the points.
    k : number of neighbours; there are as many.
    metric : the metric of the distances.
    cell_bytes : number of bytes that points of a cell and their neighbours should have at most.

    Returns
    -------
    DataFrame
        Columns ``NEAREST``, k rows for each query; ties by the smaller id. It is lazy.

    Notes
    -----
    The points go through two shuffles, a query through one and one more for each other cell that it reaches.
    A task holds the points of one cell and one message of queries; if the points are the queries, all
    neighbours of the points of its cell, too. Equal points share a cell, whatever its size.
    """
    space = plan_space(points, sample, k, metric, cell_bytes, None if queries is None else queries.n)
    found = search_in_cells(queries, points, space, is_scored=False)

    def merge(_: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        nth = pa.array(np.arange(1, k + 1, dtype=np.int32))
        for near in final_nearest(messages, k):
            places = pa.array(np.tile(np.arange(k), len(near) // k))
            yield from near.append_column("nth", nth.take(places)).to_batches()

    return exchange(found, space.n_homes or space.cells.n, merge, NEAREST)


def search_in_cells(queries: Points | None, points: Points, space: Space, *, is_scored: bool) -> DataFrame:
    """Find all neighbours of each query that its cells know of.

    Parameters
    ----------
    is_scored : whether cells are told by ``WANTED`` which of their points others may have as neighbours.

    Returns
    -------
    DataFrame
        Messages ``DONE`` and ``OPEN``, which :func:`final_nearest` takes, and ``WANTED``.
    """
    messages = _send(points, space, Kind.POINTS)
    if queries is not None:
        messages = messages.union(_send(queries, space, Kind.QUERIES))
    at_home = exchange(messages, space.cells.n, _make_searcher(space, is_self=queries is None))
    return exchange(at_home, space.cells.n, _make_other_searcher(space, is_scored=is_scored))


def final_nearest(messages: Iterable[Message], k: int) -> Iterator[pa.Table]:
    """Yield the k nearest of queries, as ``DONE``: of one message after the other, then of all open ones."""
    held: list[pa.Table] = []
    n_held = n_merged = 0
    for message in messages:
        rows = message.read()
        if message.kind == Kind.DONE:
            yield rows
            continue
        held.append(rows)
        n_held += len(rows)
        if n_held - n_merged > max(_MAX_HELD_ROWS, n_merged):
            held = [_merge(held, k)]
            n_held = n_merged = len(held[0])
    if held:
        yield _merge(held, k)


def _merge(tables: Sequence[pa.Table], k: int) -> pa.Table:
    rows = pa.concat_tables(tables)
    ids, neighbour, distance = (rows[name].to_numpy() for name in ("id", "neighbour", "distance"))
    return pa.table(merge_nearest(ids, neighbour, distance, k)._asdict())


class Queries(NamedTuple):
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
    def of(cls, message: Message, dimensions: int) -> Queries:
        """Read the queries of a message."""
        rows = message.read()
        places = to_matrix(rows["point"], dimensions)
        return cls(rows["id"].to_numpy(), places, rows["radius"].to_numpy())


class Near(NamedTuple):
    """Neighbours of queries by (row, distance, neighbour): (n,) int64, int64, float64.

    Parameters
    ----------
    row : rows of the queries.
    neighbour : ids.
    """

    row: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    distance: NDArray[np.float64]

    def to_table(self, ids: NDArray[np.int64]) -> pa.Table:
        """The same with the ids of the queries."""
        return pa.table({"id": ids[self.row], "neighbour": self.neighbour, "distance": self.distance})


def _send(points: Points, space: Space, kind: Kind) -> DataFrame:
    """Send points, or queries with no radius yet, to the cells in which they lie."""
    reading = points.reading

    def by_cell(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
        ids, places = reading.arrays(batch)
        cell = find_cells(space.cells, space.metric.embed(places))
        each = Queries(ids, places, np.full(len(ids), np.inf))
        for number, rows in _rows_by(cell):
            yield number, each.to_table(rows)

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in hold_by_part(by_cell(batch) for batch in batches):
            for cell in list(held):
                rows = pa.concat_tables(held.pop(cell))
                yield from write_messages(cell, kind, cell, rows, most=space.at_once)

    return points.rows.map(send, MESSAGES)


def _rows_by(number: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each number, and the rows that have it, ascending."""
    order = np.argsort(number, kind="stable")
    found, begin = np.unique(number[order], return_index=True)
    bounds = pairwise([*begin.tolist(), len(order)])
    for each, (first, after) in zip(found.tolist(), bounds, strict=True):
        yield each, order[first:after]


def _make_searcher(space: Space, *, is_self: bool) -> Work:
    """Make the first round: search for queries in their own cell, and ask others about open ones."""

    def work(cell: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        of_points: list[Queries] = []
        mine: Cell | None = None
        for message in messages:
            read = Queries.of(message, space.dimensions)
            if message.kind == Kind.POINTS:
                yield message.pass_on(cell)
                of_points.append(read)
                continue
            if mine is None:
                mine, of_points = Cell(of_points, space), []
            near, radius = mine.search(read)
            yield from _answer(read._replace(radius=radius), near, cell, space)
        if is_self and of_points:
            yield from _answer(*_search_own(of_points, space), cell, space)

    return work


def _search_own(of_points: list[Queries], space: Space) -> tuple[Queries, Near]:
    """Search for the points of a cell among one another; they come by ascending id."""
    ids, places = _in_order(of_points)
    of_points.clear()
    n = len(ids)
    k, radius = min(space.k, n - 1), np.full(n, np.inf)
    if not k:
        return Queries(ids, places, radius), Near(ids[:0], ids[:0], radius[:0])
    found = find_nearest(places, places, np.arange(n), k, space.metric, SearchOptions(1, False, {}))
    if k == space.k:
        radius = found.distance[:, -1].copy()
    near = Near(np.repeat(np.arange(n), k), ids[found.neighbour.reshape(-1)], found.distance.reshape(-1))
    return Queries(ids, places, radius), near


def _answer(queries: Queries, near: Near, cell: int, space: Space) -> Iterator[pa.RecordBatch]:
    """Yield what a cell has found of its queries, and ask the other cells that they reach."""
    metric = space.metric
    limit = reaches(metric.decision(math.inf), metric.norm, queries.radius)
    embedded, homes = metric.embed(queries.places), np.full(len(queries.ids), cell)
    is_open = np.zeros(len(queries.ids), np.bool_)
    for other, rows in other_cells_within(space.cells, embedded, homes, limit, metric.norm):
        is_open[rows] = True
        for begin in range(0, len(rows), space.at_once):
            some = queries.to_table(rows[begin : begin + space.at_once])
            yield from write_messages(other, Kind.QUERIES, cell, some)
    is_of_open = pa.array(is_open[near.row])
    rows = near.to_table(queries.ids)
    yield from write_messages(cell, Kind.DONE, cell, rows.filter(pc.invert(is_of_open)), space.k)
    yield from write_messages(cell, Kind.OPEN, cell, rows.filter(is_of_open))


def _make_other_searcher(space: Space, *, is_scored: bool) -> Work:
    """Make the second round: search for queries of other cells, and send what was found home."""

    def work(cell: int, messages: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        of_points: list[Queries] = []
        mine: Cell | None = None
        for message in messages:
            if message.kind == Kind.POINTS:
                of_points.append(Queries.of(message, space.dimensions))
            elif message.kind == Kind.QUERIES:
                if mine is None:
                    mine, of_points = Cell(of_points, space), []
                queries = Queries.of(message, space.dimensions)
                near, _ = mine.search(queries)
                yield from _send_home(near.to_table(queries.ids), message.sender, space)
                if is_scored:
                    wanted = pa.table({"id": np.unique(near.neighbour)})
                    yield from write_messages(cell, Kind.WANTED, message.sender, wanted)
            elif message.kind == Kind.OPEN:
                yield from _send_home(message.read(), cell, space)
            else:
                yield message.pass_on(cell)

    return work


def _send_home(near: pa.Table, cell: int, space: Space) -> Iterator[pa.RecordBatch]:
    """Send what was found of open queries to where it is put together."""
    if space.n_homes is None:
        yield from write_messages(cell, Kind.OPEN, cell, near)
        return
    hashes = hash_ids(0, near["id"].to_numpy()).view(np.uint64) % np.uint64(space.n_homes)
    for home, rows in _rows_by(hashes.astype(np.int64)):
        yield from write_messages(home, Kind.OPEN, cell, near.take(pa.array(rows)))


def _in_order(of_points: Sequence[Queries]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ids and places of points by ascending id."""
    ids = np.concatenate([each.ids for each in of_points])
    order = np.argsort(ids)
    return ids[order], np.concatenate([each.places for each in of_points])[order]


class Cell:
    """The points of a cell, ready to be searched by others than themselves.

    Parameters
    ----------
    of_points : the points, in any number of messages.
    """

    def __init__(self, of_points: Sequence[Queries], space: Space) -> None:
        self.k, self.tree = space.k, None
        if of_points:
            ids, places = _in_order(of_points)
            self.tree = PointTree.grow(places, ids, space.k, space.metric)

    def search(self, queries: Queries) -> tuple[Near, NDArray[np.float64]]:
        """Find the k nearest of each query within its radius, and how far each has to look now."""
        n, k = len(queries.ids), self.k
        is_bounded = np.isfinite(queries.radius)
        radius = np.where(is_bounded, queries.radius, 0.0)[:, None]
        lists = NearestLists(
            np.where(is_bounded, k, 0), np.full((n, k), _NOBODY), np.repeat(radius, k, axis=1)
        )
        if self.tree is not None:
            nobody = np.full(n, _missing(self.tree.names))
            self.tree.search(queries.places, nobody, np.arange(n), lists)
        is_found = np.arange(k) < lists.sizes[:, None]
        # only at the radius itself is nobody's id nobody's
        is_found &= (lists.ids != _NOBODY) | (lists.distances < radius) | ~is_bounded[:, None]
        row, place = np.nonzero(is_found)
        neighbour, distance = lists.ids[row, place], lists.distances[row, place]
        order = np.lexsort((neighbour, distance, row))
        near = Near(row[order], neighbour[order], distance[order])
        return near, np.where(lists.sizes == k, lists.distances[:, 0], np.inf)


def _missing(names: NDArray[np.int64]) -> int:
    """A number that is none of the names."""
    ascending = np.unique(names)
    if ascending[0] > np.iinfo(np.int64).min:
        return int(ascending[0]) - 1
    gaps = np.flatnonzero(np.diff(ascending) != 1)
    return int(ascending[gaps[0] if gaps.size else -1]) + 1
