"""Cells: a partition of space by cuts in the middle of a sample, for more points than a task can hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.projection import MAXIMUM, SQUARES


class Cells(NamedTuple):
    """The cuts of a complete binary tree whose leaves are the cells.

    Node i has the children 2 i + 1 and 2 i + 2.

    Parameters
    ----------
    axis, cut : (c - 1,) int64 and float64: a node's left child has what is at most ``cut`` on ``axis``.
    """

    axis: Ints
    cut: Floats

    @property
    def n(self) -> int:
        """Number of cells, a power of two."""
        return len(self.axis) + 1


def plan_cells(embedded: Floats, n_cells: int) -> Cells:
    """Plan cells with about as many points each, if the sample is like all points.

    Parameters
    ----------
    embedded : (m, e) float64, a sample in embedded coordinates.
    n_cells : a power of two. Points that are equal are in one cell, so that cells may differ in size.
    """
    axis, cut = np.zeros(n_cells - 1, np.int64), np.zeros(n_cells - 1)
    rows = [np.arange(len(embedded))]
    for node in range(n_cells - 1):
        mine = embedded[rows[node]]
        if len(mine):
            with np.errstate(over="ignore"):
                axis[node] = int(np.ptp(mine, axis=0).argmax())
            cut[node] = _middle_cut(mine[:, axis[node]])
        is_left = mine[:, axis[node]] <= cut[node]
        rows += [rows[node][is_left], rows[node][~is_left]]
    return Cells(axis, cut)


def _middle_cut(values: Floats) -> float:
    """A number between two of the values, in the middle of the gap that is nearest to the median.

    Unless all values are equal, none lies on the cut: all equal to it would be near both sides.
    """
    ascending = np.sort(values)
    gaps = np.flatnonzero(ascending[1:] > ascending[:-1])
    if not gaps.size:
        return float(ascending[0])
    gap = gaps[np.abs(2 * (gaps + 1) - ascending.size).argmin()]
    low, high = float(ascending[gap]), float(ascending[gap + 1])
    middle = low / 2.0 + high / 2.0
    return middle if low <= middle < high else low


def find_cells(cells: Cells, embedded: Floats) -> Ints:
    """Find the cell of each point."""
    node = np.zeros(len(embedded), np.int64)
    rows = np.arange(len(embedded))
    for _ in range(cells.n.bit_length() - 1):
        node = 2 * node + 1 + (embedded[rows, cells.axis[node]] > cells.cut[node])
    return node - (cells.n - 1)


def other_cells_within(
    cells: Cells, embedded: Floats, home: Ints, limit: Floats, norm: int, slack: Floats | None = None
) -> Iterator[tuple[int, Ints]]:
    """Find the cells, except a query's own, that its ball reaches.

    Parameters
    ----------
    embedded : (m, e) float64, queries.
    home : (m,) int64, the cell that each has been searched for in.
    limit : (m,) float64, see :func:`epsjoin.kernels.neighbours.tree.reach`.
    norm : what the limit is compared with, see :attr:`epsjoin.local.metric.Metric.norm`.
    slack : (m, e) float64, by how much a query may seem to be too far from another point on each axis, see
        :meth:`epsjoin.local.metric.Metric.slack`; None: by nothing.

    Yields
    ------
    tuple[int, Ints]
        A cell, and the rows of the queries that reach it.

    Notes
    -----
    A query goes down the tree of cuts, at each cut to the sides that it reaches: the cost grows with the
    number of cells that it reaches, not of all cells.
    """
    reached = [(0, np.arange(len(embedded)), dict[int, Floats]())]
    while reached:
        node, rows, gaps = reached.pop()
        if node >= cells.n - 1:
            cell = node - (cells.n - 1)
            others = home[rows] != cell
            if others.any():
                yield cell, rows[others]
            continue
        axis = int(cells.axis[node])
        beyond = embedded[rows, axis] - cells.cut[node]
        more = 0.0 if slack is None else slack[rows, axis]
        # the left one is popped first
        for child, gap in ((2 * node + 2, -beyond - more), (2 * node + 1, beyond - more)):
            wider = gaps | {axis: np.maximum(gap, gaps.get(axis, 0.0))}
            is_near = _combined(list(wider.values()), norm) <= limit[rows]
            if is_near.any():
                reached.append((child, rows[is_near], {j: each[is_near] for j, each in wider.items()}))


def _combined(gaps: Sequence[Floats], norm: int) -> Floats:
    """Combine the gaps of points to a box on each axis into their distances from it, as the norm does."""
    if norm == MAXIMUM:
        return np.asarray(np.max(gaps, axis=0))
    return np.asarray(sum(each * each if norm == SQUARES else each for each in gaps))
