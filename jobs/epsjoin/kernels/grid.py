"""The ε-grid inside a part: which rows a window sweep must bring together.

A cell of the grid is at least eps wide, so a row's pairs lie in its own cell and the cells next to it.
The grid cuts a few axes only, those of largest variance after the one the sweep runs along.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.distances import Decision
from epsjoin.kernels.sweep import (
    PAIRS,
    WINDOW_PADDING,
    PairBatch,
    WindowRows,
    is_done,
    new_state,
    window_sweep,
)

_GRID_AXES = 3
_ROWS_PER_CELL = 24.0  # fewer rows in a cell, on average, cost more in visits than they save in candidates
_MOST_CELLS = 1_000_000  # along one axis: three of them fit an int64, and rounding stays far below a cell


class WindowOrder(NamedTuple):
    """The order in which a window sweep reads rows.

    Parameters
    ----------
    order : (n,) int64: own rows by (cell, first axis), then carried rows by (cell, first axis).
    axes : (e,) int64, axes by falling variance; the sweep runs along the first.
    segments : (s, 4) int64, places in ``order``: begin and end of the rows of one cell, begin and end of
        the rows they are compared with. Where both are the same, each row is compared with the later ones.
    """

    order: NDArray[np.int64]
    axes: NDArray[np.int64]
    segments: NDArray[np.int64]


def axes_by_variance(embedded: NDArray[np.float64]) -> NDArray[np.int64]:
    """All axes, the one with the largest variance first, ties by number; (e,) int64."""
    if len(embedded) == 0:
        return np.arange(embedded.shape[1], dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.argsort(-embedded.var(axis=0), kind="stable").astype(np.int64)


def window_order(
    embedded: NDArray[np.float64], is_carried: NDArray[np.bool_], eps: float, rows_per_row: float = 1.0
) -> WindowOrder:
    """Lay a grid over the rows of a part and list the segments to compare.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    is_carried : (n,) bool; carried rows are not compared with each other.
    eps : threshold in embedded coordinates.
    rows_per_row : rows that each of these stands for, when they are a sample.

    Returns
    -------
    WindowOrder
        Any two rows within eps on every axis, not both carried, meet in exactly one segment.

    Notes
    -----
    O(n log n). Cells of two rows within eps differ by 1 at most on each axis: a cell is wider than eps by
    1e-9 of it, while numbering a million cells errs by less than 1e-9 of a cell.
    """
    axes = axes_by_variance(embedded)
    keys, steps = _cell_keys(embedded, axes[1 : 1 + _GRID_AXES], eps, rows_per_row)
    order = np.lexsort((embedded[:, axes[0]], keys, is_carried)).astype(np.int64, copy=False)
    n_own = len(order) - int(np.count_nonzero(is_carried))
    own = _Cells.of(keys[order[:n_own]], 0)
    carried = _Cells.of(keys[order[n_own:]], n_own)
    met = [own.meet(own, step) for step in steps if step >= 0]
    met += [own.meet(carried, step) for step in steps if len(carried.key)]
    segments = np.concatenate(met)
    return WindowOrder(order, axes, segments[np.argsort(segments[:, 0], kind="stable")])


def window_rows(
    points: NDArray[np.float64], embedded: NDArray[np.float64], mask: NDArray[np.int64], eps: float
) -> tuple[NDArray[np.int64], WindowRows]:
    """Put the rows of a part in the order of the window sweep.

    Parameters
    ----------
    points : (n, d) float64, original coordinates; embedded : (n, e) float64; mask : (n,) int64. Not modified.
    eps : threshold in embedded coordinates.

    Returns
    -------
    order : (n,) int64, the row at each place.
    rows : copies in that order.
    """
    order, axes, segments = window_order(embedded, (mask & 1).astype(np.bool_), eps)
    near = np.ascontiguousarray(embedded[order][:, axes])
    n = len(order)
    first = np.full(n + WINDOW_PADDING, np.inf)
    second = np.full(n + WINDOW_PADDING, np.inf)
    first[:n] = near[:, 0]
    second[:n] = near[:, 1] if near.shape[1] > 1 else 0.0
    return order, WindowRows(points[order], near, first, second, mask[order], segments)


def count_pairs(
    points: NDArray[np.float64], embedded: NDArray[np.float64], eps: float, decision: Decision
) -> int:
    """Count the pairs within eps without keeping them.

    Parameters
    ----------
    points : (n, d) float64, original coordinates; embedded : (n, e) float64. Not modified.
    eps : threshold in embedded coordinates.
    decision : the metric's decision.
    """
    _, rows = window_rows(points, embedded, np.zeros(len(points), np.int64), eps)
    counters = np.zeros(4, np.int64)
    batch = PairBatch(np.empty(1 << 16, np.int64), np.empty(1 << 16, np.int64), np.empty(1 << 16))
    state = new_state(0)
    while not is_done(state):
        window_sweep(state, rows, eps, decision, batch, counters)
    return int(counters[PAIRS])


def _cell_keys(
    embedded: NDArray[np.float64], axes: NDArray[np.int64], eps: float, rows_per_row: float
) -> tuple[NDArray[np.int64], list[int]]:
    """Give each row the number of its cell; also what to add to reach the cell and its neighbours."""
    n = len(embedded)
    keys = np.zeros(n, np.int64)
    factors: list[int] = []
    for axis in axes.tolist() if n else []:
        values = embedded[:, axis]
        low = float(values.min())
        extent = float(values.max()) - low
        side = max(eps * (1.0 + 1e-9), extent / _MOST_CELLS)
        if not 2.0 * side < extent < np.inf:
            break  # nearly all rows would be neighbours
        cell = np.floor((values - low) / side).astype(np.int64) + 1  # 0 and the last stay free for neighbours
        factor = int(cell.max()) + 2
        finer = keys * factor + cell
        ordered = np.sort(finer)
        if (1 + np.count_nonzero(np.diff(ordered))) * _ROWS_PER_CELL > n * rows_per_row:
            break
        keys = finer
        factors.append(factor)
    steps = [0]
    for factor in factors:
        steps = [step * factor + move for step, move in itertools.product(steps, (-1, 0, 1))]
    return keys, steps


class _Cells(NamedTuple):
    """The cells of a run of sorted rows: key, begin and end of each."""

    key: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], offset: int) -> _Cells:
        if len(keys) == 0:
            return cls(keys, keys, keys)
        borders = np.flatnonzero(np.diff(keys)) + 1
        begin = np.concatenate(([0], borders))
        end = np.concatenate((borders, [len(keys)]))
        return cls(keys[begin], begin + offset, end + offset)

    def meet(self, other: _Cells, step: int) -> NDArray[np.int64]:
        """Segments (s, 4) of these cells and those of ``other`` whose key is larger by ``step``."""
        place = np.searchsorted(other.key, self.key + step)
        place[place == len(other.key)] = 0
        found = np.flatnonzero(other.key[place] == self.key + step) if len(other.key) else place[:0]
        place = place[found]
        return np.stack((self.begin[found], self.end[found], other.begin[place], other.end[place]), axis=1)
