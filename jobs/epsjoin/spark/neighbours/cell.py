"""The work of one cell of space: it holds points, and finds the nearest of them to queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.sorting import argsort
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.cells import Cells, plan_cells
from epsjoin.local.neighbours.nearest import SearchOptions
from epsjoin.local.neighbours.search import find_nearest
from epsjoin.local.neighbours.tree import PointTree
from epsjoin.spark.neighbours.messages import Message
from epsjoin.spark.points.points import Points

CELL_BYTES = 64 << 20
"""Maximum number of bytes that points of a cell and their neighbours should have; a task holds some six times
as many."""

_MIN_CELL_POINTS = 1000
"""Number of points of a cell below which more cells would not make the search faster."""

_NOBODY = np.iinfo(np.int64).max
"""The id of placeholders at a query's radius: any real neighbour at this distance comes before them."""


class Space(NamedTuple):
    """What every task knows.

    Parameters
    ----------
    cells, metric, dimensions, k : the cells, and what is searched for.
    at_once : maximum number of queries in a message; a task searches for those of one message at a time.
    n_homes : number of tasks in which the results of queries are put together, by a hash of their ids; None:
        this is done in the cells in which the queries lie.
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
    n_queries : number of queries that are not the points.
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


def search_own(of_points: list[Queries], space: Space) -> tuple[Queries, Near]:
    """Search for the points of a cell among themselves; they come by ascending id."""
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


def _in_order(of_points: Sequence[Queries]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ids and places of points by ascending id."""
    ids = np.concatenate([each.ids for each in of_points])
    order = argsort(ids)
    return ids[order], np.concatenate([each.places for each in of_points])[order]


class Cell:
    """The points of a cell, ready to be searched for other queries.

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
        # this id stands for a placeholder only at the radius itself
        is_found &= (lists.ids != _NOBODY) | (lists.distances < radius) | ~is_bounded[:, None]
        row, place = np.nonzero(is_found)
        neighbour, distance = lists.ids[row, place], lists.distances[row, place]
        order = np.lexsort((neighbour, distance, row))
        near = Near(row[order], neighbour[order], distance[order])
        return near, np.where(lists.sizes == k, lists.distances[:, 0], np.inf)


def _missing(names: NDArray[np.int64]) -> int:
    """A number that is not among the names."""
    ascending = np.unique(names)
    if ascending[0] > np.iinfo(np.int64).min:
        return int(ascending[0]) - 1
    gaps = np.flatnonzero(np.diff(ascending) != 1)
    return int(ascending[gaps[0] if gaps.size else -1]) + 1
