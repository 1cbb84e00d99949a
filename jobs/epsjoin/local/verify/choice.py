"""Which points are checked, and the probability that an error is not found.

Two kinds of points are checked: random points (each with the same probability), and the points of random
*cells* of a grid (each occupied cell with the same probability, however few points it has), see
:func:`points_of_cells`. Random points find an error in a fraction of all points. Cells find an error in one
region, such as a lost part or file, with a higher probability where the region has few points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.local.verify.brute_force import Ids, Points

GRID = 32
"""Number of cells of the grid along each axis; the grid has at most two axes."""


class Cells(NamedTuple):
    """A grid of cells over points.

    Parameters
    ----------
    axes : (a,) int64, the widest axes, at most two.
    low, side : (a,) float64, lower corner of the grid, and sides of a cell. Points beyond the grid are in its
        outermost cells.
    seed : seed of the choice of cells and points.
    """

    axes: Ids
    low: Points
    side: Points
    seed: int

    @classmethod
    def over(cls, sample: Points, seed: int) -> Cells:
        """Make a grid over the bounding box of some points."""
        low, high = sample.min(axis=0), sample.max(axis=0)
        width = high - low
        axes = np.sort(np.argsort(-width, kind="stable")[:2])
        with np.errstate(over="ignore"):
            side = np.where(width[axes] > 0, width[axes] / GRID, 1.0)
        return cls(axes, low[axes], side, seed)

    def of(self, points: Points) -> Ids:
        """Return the number of the cell of each point."""
        place = np.clip((points[:, self.axes] - self.low) / self.side, 0, GRID - 1).astype(np.int64)
        return np.asarray(place @ GRID ** np.arange(len(self.axes), dtype=np.int64))


def points_of_cells(ids: Ids, points: Points, cells: Cells, n_cells: int, per_cell: int) -> Ids:
    """Choose ``n_cells`` random occupied cells, and at most ``per_cell`` random points of each.

    The cells and points with the smallest seeded hashes are chosen. So the choice may run on parts of the
    points, and then on the union of the results: that is the choice from all points.

    Returns
    -------
    (k,) int64, row numbers, ascending.
    """
    cell = cells.of(points)
    occupied = np.unique(cell)
    chosen = occupied[np.argsort(_hash(occupied, cells.seed), kind="stable")[:n_cells]]
    rows = np.flatnonzero(np.isin(cell, chosen))
    rows = rows[np.lexsort((ids[rows], _hash(ids[rows], cells.seed), cell[rows]))]
    begins = np.searchsorted(cell[rows], cell[rows])  # where the cell of the row begins
    return np.sort(rows[np.arange(len(rows)) - begins < per_cell])


def _hash(values: Ids, seed: int) -> NDArray[np.uint64]:
    """Mix 64 bits (splitmix64, Steele et al., OOPSLA 2014)."""
    x = values.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def missed_probability(fraction: float, n: int, checked: int) -> float:
    """Compute the probability that no wrong point is among ``checked`` of n points, chosen at random.

    With b = ceil(fraction n) wrong points it is ``C(n - b, checked) / C(n, checked)``, at most
    ``(1 - fraction) ** checked``. For cells, n is the number of occupied cells.
    """
    wrong = math.ceil(fraction * n)
    if checked > n - wrong:
        return 0.0
    log_ways = (math.lgamma(n - wrong + 1), -math.lgamma(n - wrong - checked + 1))
    return math.exp(math.fsum((*log_ways, -math.lgamma(n + 1), math.lgamma(n - checked + 1))))
