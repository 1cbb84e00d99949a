"""The parts of an index: trees of boxes over its rows, how they are arranged, and what is found in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.pairs import Room, find_pairs, find_within
from epsjoin.kernels.neighbours.tree import search_tree
from epsjoin.kernels.neighbours.within import Reach
from epsjoin.kernels.pairs.sort_pairs import Block, sort_by_rows
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.tree import count_leaves, grow_boxes, widen
from epsjoin.local.sweep.pairs import Pairs, concatenate

_ROOM, _ROOM_PER_ROW = 1 << 12, 8
"""Number of pairs that there is room for at first, at least and for each row; more comes when it is full."""
_MAX_ROOM = 1 << 20
"""Maximum number of pairs in one batch, unless one query has more."""


class Within(NamedTuple):
    """What is within eps, as the kernels decide it; plain tuples."""

    decision: Decision
    reach: Reach


class Piece(NamedTuple):
    """Points of an index with their rows, ascending.

    Parameters
    ----------
    first : the row of the index that is the first of them.
    points : (m, d) float64, m at least 1.
    rows : (m,) int64, the row of the index of each; None where they follow one another.
    """

    first: int
    points: Floats
    rows: Ints | None = None

    def all_rows(self) -> Ints:
        """The row of the index of each point."""
        return np.arange(self.first, self.first + len(self.points)) if self.rows is None else self.rows

    def end(self) -> int:
        """One more than the last row."""
        return self.first + len(self.points) if self.rows is None else int(self.rows[-1]) + 1

    def without(self, removed: Ints) -> Piece | None:
        """These points without some, whose rows are ascending; None if no point is left."""
        rows = self.all_rows()
        is_kept = ~np.isin(rows, removed, assume_unique=True)
        return _piece(rows[is_kept], self.points[is_kept]) if is_kept.any() else None

    def and_then(self, other: Piece) -> Piece:
        """These points and those of a piece whose rows are larger."""
        return _piece(
            np.concatenate((self.all_rows(), other.all_rows())), np.concatenate((self.points, other.points))
        )


def _piece(rows: Ints, points: Floats) -> Piece:
    first = int(rows[0])
    return Piece(first, points, None if rows[-1] - first == len(rows) - 1 else read_only(rows))


class Part(NamedTuple):
    """Rows of an index and the tree over them.

    Parameters
    ----------
    piece : the points and their rows; read-only.
    tree : over these points.
    names : (m,) int64, the rows of the index in the order of the leaves.
    """

    piece: Piece
    tree: BoxTree
    names: Ints

    @classmethod
    def grow(cls, piece: Piece, metric: Metric) -> Part:
        """Grow the tree of these points, in O(m log m)."""
        return cls.of(piece, widen(grow_boxes(piece.points, metric), metric))

    @classmethod
    def of(cls, piece: Piece, tree: BoxTree) -> Part:
        """Make the part from points and their tree; names take memory unless they begin with 0."""
        piece = piece._replace(points=read_only(piece.points))
        if piece.rows is not None:
            return cls(piece, tree, read_only(piece.rows[tree.order]))
        names = tree.order if piece.first == 0 else read_only(tree.order + piece.first)
        return cls(piece, tree, names)

    @property
    def points(self) -> Floats:
        """(m, d) float64, the points in the order of their rows."""
        return self.piece.points

    def rows_of(self, places: Ints) -> Ints:
        """The rows of the index of some of the points."""
        return places + self.piece.first if self.piece.rows is None else self.piece.rows[places]

    def within(self, asked: Within, queries: Floats, embedded: Floats) -> Iterator[Pairs]:
        """Find the rows of the part within eps of queries, batch by batch, sorted by both rows.

        Parameters
        ----------
        asked : eps.
        queries, embedded : (q, d) and (q, e) float64, read-only.
        """

        def find(begin: int, room: Room) -> tuple[int, int]:
            return find_within(*asked, plain(self.tree), queries, embedded, begin, plain(room))

        for left, right, distance in _in_batches(find, len(queries)):
            yield Pairs(left, self.rows_of(right), distance)

    def pairs(self, asked: Within, embedded: Floats) -> Iterator[Pairs]:
        """Find the pairs of rows of the part, batch by batch, in no order; ``embedded``: all its points."""

        def find(begin: int, room: Room) -> tuple[int, int]:
            return find_pairs(*asked, plain(self.tree), self.points, embedded, begin, plain(room))

        for left, right, distance in _in_batches(
            find, count_leaves(len(self.points)), _ROOM_PER_ROW * len(self.points)
        ):
            yield Pairs(self.rows_of(left), self.rows_of(right), distance)

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
        own : (q,) int64, the row that each query must not find.
        """
        of_lists = read_only(np.arange(len(queries)))
        search_tree(everything, metric.norm, self.tree, self.names, queries, embedded, own, of_lists, lists)


def arrange(given: Sequence[Part | Piece], metric: Metric) -> list[Part]:
    """Make parts of these, each at least twice as large as the next; parts that fit already stay."""
    arranged: list[Part | Piece] = []
    for each in given:
        while arranged and len(arranged[-1].points) < 2 * len(each.points):
            each = _piece_of(arranged.pop()).and_then(_piece_of(each))
        arranged.append(each)
    return [each if isinstance(each, Part) else Part.grow(each, metric) for each in arranged]


def _piece_of(each: Part | Piece) -> Piece:
    return each.piece if isinstance(each, Part) else each


def take_out(parts: list[Part], removed: Ints) -> list[Part | Piece]:
    """Take rows, ascending, out of parts: parts that had one become pieces, and empty ones are dropped."""
    left: list[Part | Piece] = []
    for part in parts:
        mine = removed[
            np.searchsorted(removed, part.piece.first) : np.searchsorted(removed, part.piece.end())
        ]
        kept = part.piece.without(mine) if len(mine) else part
        if kept is not None:
            left.append(kept)
    return left


def count_rows(parts: list[Part]) -> int:
    """Number of rows of all parts."""
    return sum(len(part.points) for part in parts)


def end_of(parts: list[Part]) -> int:
    """One more than the last row of all."""
    return parts[-1].piece.end() if parts else 0


def all_rows(parts: list[Part]) -> Ints:
    """The rows of all parts, ascending."""
    return np.concatenate([np.empty(0, np.int64), *(part.piece.all_rows() for part in parts)])


def sort_pairs(n: int, batches: list[Pairs]) -> Pairs:
    """Put all pairs of n rows into one, sorted by (left, right)."""
    pairs = batches[0] if len(batches) == 1 else concatenate(batches)
    m = len(pairs.left)
    into = left, right, distance = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
    sort_by_rows(n, Block(*pairs), Block(*into))
    return Pairs(left, right, distance)


def _in_batches(find: Callable[[int, Room], tuple[int, int]], end: int, least: int = 0) -> Iterator[Pairs]:
    """Call a kernel until it is done; if nothing fits, with more room."""
    size, begin = max(_ROOM, least), 0
    while begin < end:
        room = Room(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size))
        begin, found = find(begin, room)
        if found:
            yield Pairs(room.left[:found], room.right[:found], room.distance[:found])
        if not found or size < _MAX_ROOM:
            size *= 4
