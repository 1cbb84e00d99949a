"""A part of an index: a tree of boxes over some of its rows, and what is found in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.pairs import Room, find_within
from epsjoin.kernels.neighbours.tree import search_tree
from epsjoin.kernels.neighbours.within import Reach
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.tree import grow_boxes
from epsjoin.local.sweep.pairs import Pairs

_ROOM = 1 << 12
"""Number of pairs that there is room for at first; more comes when it is full, or has none for one query."""
_MAX_ROOM = 1 << 20
"""Maximum number of pairs in one batch, unless one query has more."""


class Within(NamedTuple):
    """What is within eps, as the kernels decide it."""

    decision: Decision
    reach: Reach


class Part(NamedTuple):
    """Consecutive rows of an index and the tree over them.

    Parameters
    ----------
    first : the row of the index that is row 0 of the part.
    points : (m, d) float64, read-only, m at least 1.
    tree : over these points.
    names : (m,) int64, the rows of the index in the order of the leaves.
    """

    first: int
    points: Floats
    tree: BoxTree
    names: Ints

    @classmethod
    def grow(cls, first: int, points: Floats, metric: Metric) -> Part:
        """Grow the tree of these points, in O(m log m)."""
        return cls.of(first, points, grow_boxes(points, metric))

    @classmethod
    def of(cls, first: int, points: Floats, tree: BoxTree) -> Part:
        """Make the part of points whose tree is there; names take memory unless they begin with 0."""
        names = tree.order if first == 0 else read_only(tree.order + first)
        return cls(first, read_only(points), tree, names)

    def within(self, asked: Within, queries: Floats, embedded: Floats) -> Iterator[Pairs]:
        """Find the rows of the part within eps of queries, batch by batch, sorted by both rows.

        Parameters
        ----------
        asked : eps.
        queries, embedded : (q, d) and (q, e) float64, read-only.
        """
        size, begin = _ROOM, 0
        while begin < len(queries):
            room = Room(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size))
            begin, found = find_within(*asked, self.tree, queries, embedded, begin, room)
            if found:
                yield Pairs(room.left[:found], room.right[:found] + self.first, room.distance[:found])
            if not found or size < _MAX_ROOM:
                size *= 4

    def nearest(
        self,
        metric: Metric,
        everything: Decision,
        queries: Floats,
        embedded: Floats,
        lists: NearestLists,
        own: Ints,
    ) -> None:
        """Put the rows of the part into the lists of queries, where they are among the nearest.

        Parameters
        ----------
        metric, everything : the metric, and its decision with an infinite eps.
        queries, embedded : (q, d) and (q, e) float64, read-only.
        lists : of the queries; modified.
        own : (q,) int64, the row that a query must not find.
        """
        of_lists = read_only(np.arange(len(queries)))
        search_tree(everything, metric.norm, self.tree, self.names, queries, embedded, own, of_lists, lists)
