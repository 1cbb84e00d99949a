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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from epsjoin.kernels.neighbours.tree import reaches
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.cells import find_cells, other_cells_within
from epsjoin.local.neighbours.from_pairs import merge_nearest
from epsjoin.spark.join.replicas import hold_by_part
from epsjoin.spark.neighbours.cell import CELL_BYTES, Cell, Near, Queries, Space, plan_space, search_own
from epsjoin.spark.neighbours.messages import MESSAGES, Message, Work, exchange, write_messages
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.points.points import Points

NEAREST = "id long, neighbour long, distance double, nth int"
"""Columns of the k nearest of each query, as DDL; ``nth`` is 1 for the nearest."""

_MAX_HELD_ROWS = 1 << 20
"""Number of rows of neighbours that wait until they are merged with at least as many."""


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
        Columns ``NEAREST``, k rows for each query, ties in the order of ids. It is lazy.

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
    is_scored : whether messages ``WANTED`` tell cells which of their points others may have as neighbours.

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
            yield from _answer(*search_own(of_points, space), cell, space)

    return work


def _answer(queries: Queries, near: Near, cell: int, space: Space) -> Iterator[pa.RecordBatch]:
    """Yield what a cell has found of its queries, and ask the other cells that they reach."""
    metric = space.metric
    limit = reaches(metric.decision(math.inf), metric.norm, queries.radius, queries.places.shape[1])
    embedded, homes = metric.embed(queries.places), np.full(len(queries.ids), cell)
    slack = metric.slack(np.abs(embedded))
    is_open = np.zeros(len(queries.ids), np.bool_)
    for other, rows in other_cells_within(space.cells, embedded, homes, limit, metric.norm, slack):
        is_open[rows] = True
        for begin in range(0, len(rows), space.at_once):
            some = queries.to_table(rows[begin : begin + space.at_once])
            yield from write_messages(other, Kind.QUERIES, cell, some)
    is_of_open = pa.array(is_open[near.row])
    rows = near.to_table(queries.ids)
    yield from write_messages(cell, Kind.DONE, cell, rows.filter(pc.invert(is_of_open)), space.k)
    yield from write_messages(cell, Kind.OPEN, cell, rows.filter(is_of_open))


def _make_other_searcher(space: Space, *, is_scored: bool) -> Work:
    """Make the second round: search for queries of other cells, and send the results home."""

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
    """Send the results for open queries to the cell or task that puts them together."""
    if space.n_homes is None:
        yield from write_messages(cell, Kind.OPEN, cell, near)
        return
    hashes = hash_ids(0, near["id"].to_numpy()).view(np.uint64) % np.uint64(space.n_homes)
    for home, rows in _rows_by(hashes.astype(np.int64)):
        yield from write_messages(home, Kind.OPEN, cell, near.take(pa.array(rows)))
