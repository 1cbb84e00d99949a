"""Points that are lent to a search: a tree may keep them in the order of its leaves, without a copy."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints, Points
from epsjoin.kernels.neighbours.boxes import BoxTree, copy_places
from epsjoin.local.scratch import MakeArray

_AT_ONCE = 1 << 20
"""Number of points that are copied from a tree at once."""


P = TypeVar("P", bound=Points)


def by_row(points: P | LentPoints) -> P | Floats:
    """Points in the order of their rows, also those that are lent; see :meth:`LentPoints.by_row`."""
    return points.by_row() if isinstance(points, LentPoints) else points


class _Moved(NamedTuple):
    """Points in a tree: the row of each, its coordinates, axis by axis in each leaf, the number of leaves."""

    order: Ints
    places: Floats
    n_leaves: int


class LentPoints:
    """Points that can be asked for by row, in whatever order they are stored.

    Parameters
    ----------
    points : (n, d) float64, writable, which nobody else uses from now on.
    make : makes a new array if the points are needed by row after a tree has taken theirs.

    Attributes
    ----------
    shape : n and d.
    """

    def __init__(self, points: Floats, make: MakeArray = np.zeros) -> None:
        self.shape: tuple[int, int] = (points.shape[0], points.shape[1])
        self._points, self._make = points, make
        self._moved: _Moved | None = None

    def by_row(self) -> Floats:
        """All points, in the order of their rows; if a tree has them, in memory of their own from then on."""
        if self._moved is not None:
            order, places, n_leaves = self._moved
            self._points = self._make(self.shape)
            for begin in range(0, len(order), _AT_ONCE):
                positions = np.arange(begin, min(begin + _AT_ONCE, len(order)))
                copy_places(places, n_leaves, positions, order[positions], self._points)
            self._moved = None
        return self._points

    def move_into(self, tree: BoxTree) -> None:
        """Take note that a tree of all points has moved them, within their memory: they are its places."""
        self._moved = _Moved(tree.order, tree.places, (len(tree.low) + 1) // 2)

    def take(self, rows: Ints) -> Floats:
        """Copy the points of some rows, each asked for once; O(n) where a tree has them."""
        if self._moved is None:
            return np.asarray(self._points[rows])
        order, places, n_leaves = self._moved
        is_asked = np.zeros(len(order), np.bool_)
        is_asked[rows] = True
        positions = np.flatnonzero(is_asked[order])
        by_row = np.argsort(rows)
        which = by_row[np.searchsorted(rows, order[positions], sorter=by_row)]
        taken = np.empty((len(rows), self.shape[1]))
        copy_places(places, n_leaves, positions, which, taken)
        return taken
