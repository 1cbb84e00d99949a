"""The fractal dimension by counting boxes, without a join: pairs that share a box, and occupied boxes.

1. :func:`box_counts` cuts the bounding cube into k parts per axis, for larger and larger k, and groups the
   rows by box.
2. :func:`fit_box_count`: how the pairs in one box grow with the side of the boxes is the correlation
   dimension D2; how the number of occupied boxes shrinks with it is the capacity dimension D0.

No join is needed, so all rows can take part, not only a sample.

References
----------
Dittrich's dissertation, section 3.7.1. Belussi, Faloutsos: Estimating the selectivity of spatial queries
using the correlation fractal dimension, VLDB 1995 (the sum over boxes of squared counts).

Departures: a sum of squared counts is twice the pairs that share a box, plus n for the pairs of each row with
itself. These n are a plateau that hides the law where boxes are fine; here they are subtracted, as those of
equal points are (``power_law.py``). k is any whole number, not only a power of 2, which would leave two
levels in 8 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.ids import GOLDEN
from epsjoin.local.arguments import check_seed
from epsjoin.local.coordinates import check_points
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    MAX_PAIR_FRACTION,
    MIN_PAIRS,
    N_GROUPS,
    Curve,
    PowerLawFit,
    fit_line,
    fit_power_law,
    jackknife_groups,
)

_LEVELS_PER_OCTAVE = 4
"""Number of values of k between one power of 2 and the next, where there are as many whole numbers."""

_OCTAVES = 40
"""Number of octaves of k; with more than 2**40 parts per axis, rounding would decide about boxes."""

_HALF = np.uint64(32)

_GROUP_BITS = np.uint64(5)
"""Number of bits of a key that hold the group of the row; they are the lowest."""

Keys = npt.NDArray[np.uint64]


class BoxCounts(NamedTuple):
    """Counts of rows by box, from the finest boxes to the coarsest; made by :func:`box_counts`.

    Parameters
    ----------
    n_rows : number of rows.
    distinct_rows : number of different rows among them.
    curve : pairs of rows that share a box (``curve.pairs``), by the side of the boxes (``curve.radius``).
    boxes : (n,) int64, number of occupied boxes for each side.
    boxes_without : (groups, n) int64, the same numbers when one group of rows is left out.
    """

    n_rows: int
    distinct_rows: int
    curve: Curve
    boxes: Ints
    boxes_without: Ints

    @property
    def squares(self) -> Ints:
        """Sum over all boxes of the squared number of rows, for each side: (n,) int64."""
        return np.asarray(2 * self.curve.pairs + self.n_rows, dtype=np.int64)


class BoxCountFit(NamedTuple):
    """The fractal dimensions that box counts show; made by :func:`fit_box_count`.

    Parameters
    ----------
    counts : the counts for all sides, also for those that the fits leave out.
    correlation : power law of the pairs that share a box. Its exponent is the correlation dimension D2, its
        range is one of sides.
    capacity : power law of the occupied boxes by 1 / side. Its exponent is the capacity dimension D0, its
        range is one of 1 / side. None where too few sides have enough boxes with enough rows in each: D0
        needs more rows than D2.
    """

    counts: BoxCounts
    correlation: PowerLawFit
    capacity: PowerLawFit | None


def box_counts(points: npt.ArrayLike, seed: int = 0) -> BoxCounts:
    """Count the pairs of rows that share a box, and the occupied boxes, for boxes of many sides.

    The bounding cube has the width of the widest axis. It is cut into k equal parts per axis, for k = 1, 2,
    3, 4, 5, 6, 7, 8, 10, 11, 13, 16, ... (the whole numbers next to four values per octave), until fewer than
    30 pairs of different points share a box. Whole boxes fill the cube, so that a uniform cube has no border
    effect.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified.
    seed : seed of the random groups of rows that are left out one after the other (jackknife).

    Returns
    -------
    BoxCounts
        The same points and seed give the same result.

    Raises
    ------
    ArgumentError
        The points have a wrong shape or type, or a value that is NaN or infinite (the message names row and
        column); no two points are different; an axis is wider than the largest float64.

    See Also
    --------
    fit_box_count : the fractal dimensions from these counts.

    Notes
    -----
    Time: O(levels (n d + n log n)) with four levels per octave of sides. Memory: 16 n d + 80 n bytes. Rows
    are grouped by a hash of 59 bits of their box. The chance that any two of n boxes get one hash is
    n² / 2**60, a millionth for a million rows.

    Examples
    --------
    >>> counts = box_counts(np.random.default_rng(1).random((1000, 2)))
    >>> counts.boxes[-3:].tolist(), counts.curve.pairs[-1].item()  # 3, 2 and 1 parts per axis
    ([9, 4, 1], 499500)
    """
    values = check_points("points", points)
    n = len(values)
    low = values.min(axis=0) if n else np.zeros(values.shape[1])
    with np.errstate(over="ignore"):
        width = float((values.max(axis=0) - low).max()) if n else 0.0
    if not 0 < width < np.inf:
        raise ArgumentError(
            f"boxes need two different points at a finite distance; {n:,} points span {width:g}; {BY_HAND}"
        )
    # One contiguous row per axis, in units of the cube's side.
    unit = np.ascontiguousarray(((values - low) / width).T)
    group = jackknife_groups(n, check_seed("seed", seed))
    ranks = (np.unique(axis, return_inverse=True)[1].astype(np.uint64) for axis in values.T)
    equal = _count_boxes(_hash_cells(ranks, n), group)
    levels = []
    for k in _parts_per_axis():
        last = np.float64(k - 1)
        level = _count_boxes(
            _hash_cells((np.minimum(axis * k, last).astype(np.uint64) for axis in unit), n), group
        )
        if level.pairs - equal.pairs < MIN_PAIRS:
            break
        levels.append((width / k, *level))
    if not levels:
        raise ArgumentError(f"{n:,} points have fewer than {MIN_PAIRS} pairs of different points; {BY_HAND}")
    side, boxes, pairs, boxes_without, pairs_without = (
        np.array(column) for column in zip(*reversed(levels), strict=True)
    )
    curve = Curve(side, pairs, equal.pairs, pairs_without.T, equal.pairs_without)
    return BoxCounts(n, equal.boxes, curve, boxes, boxes_without.T)


def fit_box_count(points: npt.ArrayLike, seed: int = 0) -> BoxCountFit:
    """Fit the power laws of the pairs that share a box (D2) and of the occupied boxes (D0).

    The fit of D2 leaves out fine boxes, where fewer than 30 pairs of different points share one, and coarse
    boxes, where more than a tenth of all pairs do. The fit of D0 takes the sides for which at least 30 boxes
    are occupied, and at most a tenth as many as there are different rows: among more boxes, some would be
    empty only because there are too few rows. The straight part, R² and the interval are found as by
    :func:`fit_epsilon`.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers, the whole set or a uniform sample; not modified.
    seed : seed of the random groups of rows that are left out one after the other (jackknife).

    Returns
    -------
    BoxCountFit
        The same points and seed give the same result.

    Raises
    ------
    ArgumentError
        As :func:`box_counts`. Or fewer than 6 sides are left for D2: there are too few rows for so many
        dimensions.

    See Also
    --------
    fit_epsilon : D2 from the pairs of a sample within r, and eps from it.
    box_counts : the counts alone.

    Notes
    -----
    The interval covers sampling only. Where boxes lie is a choice, too: on self-similar sets the counts swing
    around the law with the places of the borders of boxes. Measured: D2 up to 5 % off (Sierpinski triangle,
    Cantor dust), 12 % for a line in 512 dimensions; D0 up to 14 % (Cantor dust). Uniform points in 16 or more
    dimensions cannot be fitted: each box of half the side holds a 65,536th of the rows. The cost is that of
    :func:`box_counts`.

    Examples
    --------
    >>> square = np.random.default_rng(1).random((5000, 2))
    >>> fit = fit_box_count(square)
    >>> round(fit.correlation.exponent, 1)
    2.0
    """
    counts = box_counts(points, seed)
    side = counts.curve.radius
    try:
        correlation = fit_power_law(counts.curve, counts.n_rows)
    except ArgumentError as error:
        raise ArgumentError(
            f"{counts.n_rows:,} points share boxes of {side.size} sides only, "
            f"{side[0]:.6g} to {side[-1]:.6g}, too few for a power law of box counts; {BY_HAND}"
        ) from error
    usable = (counts.boxes >= MIN_PAIRS) & (counts.boxes <= MAX_PAIR_FRACTION * counts.distinct_rows)
    with np.errstate(over="ignore"):
        fineness = 1.0 / side
    usable &= np.isfinite(fineness)
    backwards = slice(None, None, -1)
    capacity = fit_line(
        fineness[backwards], counts.boxes[backwards], counts.boxes_without[:, backwards], usable[backwards]
    )
    return BoxCountFit(counts, correlation, capacity)


class _Level(NamedTuple):
    """Counts for boxes of one side, of all rows and without each group of rows."""

    boxes: int
    pairs: int
    boxes_without: Ints
    pairs_without: Ints


def _parts_per_axis() -> list[int]:
    """The values of k: the whole numbers next to 2**(i / 4), each once."""
    return sorted({round(2.0 ** (i / _LEVELS_PER_OCTAVE)) for i in range(_LEVELS_PER_OCTAVE * _OCTAVES + 1)})


def _hash_cells(cells: Iterable[Keys], n: int) -> Keys:
    """Hash the cell numbers of each row, which come axis by axis."""
    keys = np.zeros(n, dtype=np.uint64)
    for cell in cells:
        keys ^= cell
        keys *= GOLDEN
        keys ^= keys >> _HALF
    return keys


def _count_boxes(keys: Keys, group: Ints) -> _Level:
    """Count the boxes, and the pairs that share one, of all rows and without each group of rows."""
    # Sorted by (box, group), a run is the rows of one group in one box.
    rows = np.sort(keys >> _GROUP_BITS << _GROUP_BITS | group.astype(np.uint64))
    is_run = np.append(True, rows[1:] != rows[:-1])
    is_box = np.append(True, rows[1:] >> _GROUP_BITS != rows[:-1] >> _GROUP_BITS)
    in_box = np.diff(np.append(np.flatnonzero(is_box), rows.size))
    run = np.flatnonzero(is_run)
    in_run = np.diff(np.append(run, rows.size))
    run_group = (rows[run] & ((np.uint64(1) << _GROUP_BITS) - np.uint64(1))).astype(np.int64)
    around = in_box[np.cumsum(is_box)[run] - 1]
    touching = in_run * (around - in_run) + in_run * (in_run - 1) // 2
    boxes, pairs = in_box.size, int((in_box * (in_box - 1) // 2).sum())
    lost = np.bincount(run_group[in_run == around], minlength=N_GROUPS)
    touching = np.bincount(run_group, touching, N_GROUPS).astype(np.int64)
    return _Level(boxes, pairs, boxes - lost, pairs - touching)
