"""Nearest neighbours from the pairs within eps, in steps that also work on parts of the pairs.

The *k nearest* of a point are the k smallest (distance, neighbour id) among all other points.

1. :func:`nearest_within` finds the k nearest that a part of the pairs knows of, :func:`merge_nearest` those
   of several parts.
2. :class:`NearestOfRows` does the same for all points at once, which are numbered as rows.
3. A point is *settled* if its k-th neighbour lies within eps: all points that are in no pair with it are
   farther. For the others, the neighbours are searched among all points: for those that are known to have
   fewer than k neighbours within eps before any pair is read, while pairs are read; for the rest by
   :func:`complete`.

So every neighbour is exact, however far away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_nearest, keep_nearest_in_rows, sort_nearest
from epsjoin.kernels.sorting import run_starts, sort_numbers
from epsjoin.local.arguments import check_count, check_lengths, distance_column, int_column
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.knn import search_rows
from epsjoin.local.neighbours.lent import LentPoints
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.scratch import MakeArray
from epsjoin.local.sweep.pairs import check_pairs
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.local.sweep.threads import in_ranges

CERTAIN = 1 - 1e-12
"""A point is settled if its k-distance is at most this fraction of eps.

Distances are rounded roots, so that of a point in no pair may be a rounding error below eps.
"""


class Neighbours(NamedTuple):
    """At most k neighbours of each point, sorted by (id, distance, neighbour).

    Parameters
    ----------
    id, neighbour : (n,) int64, ids of the point and of its neighbour.
    distance : (n,) float64.
    """

    id: Ints
    neighbour: Ints
    distance: Floats


def nearest_within(left: npt.ArrayLike, right: npt.ArrayLike, distance: npt.ArrayLike, k: int) -> Neighbours:
    """Find the k nearest neighbours of every point in a part of the pairs; both ends of a pair are points.

    Parameters
    ----------
    left, right, distance : (n_pairs,) int64, int64, float64, each pair once, in any order.
    k : maximum number of neighbours of each point, at least 1.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; a distance is negative or NaN; k is below 1.

    Notes
    -----
    :func:`merge_nearest` combines the results of several parts. O(n_pairs log k) after one sort of the ids.
    """
    left, right, distance = check_pairs(left, right, distance)
    return _keep_nearest(((left, right), (right, left)), distance, check_count("k", k))


def merge_nearest(
    id: npt.ArrayLike,
    neighbour: npt.ArrayLike,
    distance: npt.ArrayLike,
    k: int,
) -> Neighbours:
    """Find the k nearest of every id in the concatenated results of :func:`nearest_within`.

    Parameters
    ----------
    id, neighbour, distance : (n,) int64, int64, float64, the rows of all results, in any order.
    k : maximum number of neighbours of each point, at least 1; not larger than the k of the results.

    Raises
    ------
    ArgumentError
        As :func:`nearest_within`.
    """
    ids, neighbour = int_column("id", id), int_column("neighbour", neighbour)
    distance = distance_column("distance", distance)
    check_lengths(id=ids, neighbour=neighbour, distance=distance)
    return _keep_nearest(((ids, neighbour),), distance, check_count("k", k))


class NearestOfRows:
    """The k nearest so far of points that are numbered as rows, from pairs that come in batches.

    Parameters
    ----------
    n : number of points.
    k : number of neighbours of each point, below n.
    make : makes the arrays of the neighbours.
    is_searched : (n,) bool, the rows that pairs do not settle: their pairs are left out, and :meth:`search`
        finds their nearest, at any time. None: no row.

    Attributes
    ----------
    size : (n,) int64, number of neighbours of each point so far, at most k.
    neighbour, distance : (n, k) int64 and float64. Until :meth:`sort` each row is a heap, the farthest first.

    Notes
    -----
    16 bytes for each neighbour and 8 for each point, in :meth:`sort` 8 more for each point.
    """

    def __init__(self, n: int, k: int, make: MakeArray = np.zeros, is_searched: Bools | None = None) -> None:
        self.size, self.neighbour, self.distance = make_lists(n, k, make)
        self.is_searched = np.zeros(n, np.bool_) if is_searched is None else is_searched

    def add(self, left: Ints, right: Ints, distance: Floats) -> None:
        """Add pairs of rows, each pair once; O(log k) for each."""
        lists = NearestLists(self.size, self.neighbour, self.distance)
        for row, other in ((left, right), (right, left)):
            keep_nearest_in_rows((row, read_only(other), read_only(distance)), self.is_searched, lists)

    def search(
        self, rows: Ints, points: Floats | LentPoints, metric: Metric, n_jobs: int | None, make: MakeArray
    ) -> None:
        """Search some rows among all points, as :func:`complete`; meanwhile no pair may be added to these."""
        if rows.size:
            lists = NearestLists(self.size, self.neighbour, self.distance)
            search_rows(points, rows, lists, metric, n_jobs=n_jobs, make=make)

    def find_open(self, eps: float) -> Ints:
        """Find the rows, ascending, that are not settled by all pairs within eps, and not searched."""
        is_settled = self.size == self.distance.shape[1]
        is_settled &= self.distance[:, 0] <= eps * CERTAIN
        return np.flatnonzero(~(is_settled | self.is_searched))

    def sort(self, n_jobs: int = 1) -> KNearest:
        """Sort the neighbours of each row that has k, in place; other rows have no meaning afterwards."""
        starts = np.arange(len(self.size) + 1) * self.distance.shape[1]

        def work(_: int, begin: int, end: int) -> None:
            sort_nearest(starts[begin : end + 1], self.neighbour.reshape(-1), self.distance.reshape(-1))

        in_ranges(n_jobs)(len(self.size), work)
        return KNearest(self.neighbour, self.distance)


def complete(
    near: NearestOfRows,
    points: Floats | LentPoints,
    eps: float,
    metric: Metric,
    *,
    n_jobs: int | None = 1,
    make: MakeArray = np.zeros,
) -> KNearest:
    """Search among all points for the neighbours of those that the pairs did not settle.

    Parameters
    ----------
    near : the nearest from all pairs within eps, and of the rows that were searched; modified.
    points : (n, d) float64, in the order of the rows; the metric is defined for them, which is not checked. A
        tree may take the memory of points that are lent.
    eps, metric : threshold and metric of the pairs.
    n_jobs : number of threads; -1 is one per processor.
    make : makes the arrays of the search that have a row for each point.

    Returns
    -------
    KNearest
        The same as ``knn_join(None, points, k, metric)``, bit for bit.
    """
    near.search(near.find_open(eps), points, metric, n_jobs, make)
    return near.sort(check_n_jobs(n_jobs))


def _keep_nearest(directions: tuple[tuple[Ints, Ints], ...], distance: Floats, k: int) -> Neighbours:
    ends = np.concatenate([end for end, _ in directions])
    sort_numbers(ends)
    firsts = run_starts(ends)
    owners, counts = ends[firsts], np.diff(firsts, append=ends.size)
    del ends
    sizes = np.minimum(counts, k)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    index = index_ids(owners)
    filled = np.zeros(owners.size, dtype=np.int64)
    lists = NearestLists(filled, np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1]))
    for end, other in directions:
        entries = rows_of(index, end), read_only(other), read_only(distance)
        keep_nearest(entries, starts, lists)
    sort_nearest(starts, lists.ids, lists.distances)
    return Neighbours(np.repeat(owners, sizes), lists.ids, lists.distances)
