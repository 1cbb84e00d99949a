"""The power law of box counts: pairs that share a box, and occupied boxes, by the side of the boxes.

1. :func:`box_counts`: the bounding cube is cut into k parts per axis, k rising; rows are grouped by box.
2. :func:`fit_box_count`: the slope of the pairs is the correlation dimension D2, that of the boxes D0.

No join is needed, so all rows can take part.

References
----------
Dittrich's dissertation, section 3.7.1. Belussi, Faloutsos: Estimating the selectivity of spatial queries
using the correlation fractal dimension, VLDB 1995 (the sum over boxes of squared counts).

Departures: a sum of squared counts is twice the pairs that share a box, plus n for the pairs of each row with
itself, a plateau that hides the law on fine boxes; here they are taken off, as those of equal points are
(``power_law.py``). k is any whole number, not powers of 2 alone, which in 8 dimensions leave two levels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import IntColumn, check_count, check_points
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    LEAST_PAIRS,
    N_GROUPS,
    SATURATED,
    Curve,
    PowerLawFit,
    fit_line,
    fit_power_law,
    jackknife_groups,
)

_PER_OCTAVE = 4  # values of k, where there are as many whole numbers
_OCTAVES = 40  # parts of an axis beyond 2**40: rounding is no longer small against them

# Odd, its bits without a pattern: the golden ratio times 2**64.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_GROUP_BITS = np.uint64(5)  # of a key, below the bits of the box

Keys = npt.NDArray[np.uint64]


class BoxCounts(NamedTuple):
    """Rows by box, from fine boxes to coarse ones.

    Parameters
    ----------
    n_rows : rows that were counted.
    distinct_rows : different ones among them.
    curve : its ``radius`` is the side of the boxes, its ``pairs`` those of rows that share a box.
    boxes : (n,) int64, occupied boxes for each side.
    boxes_without : (groups, n) int64, the same without one group of rows.
    """

    n_rows: int
    distinct_rows: int
    curve: Curve
    boxes: IntColumn
    boxes_without: IntColumn

    @property
    def squares(self) -> IntColumn:
        """Sum over boxes of the squared count of rows, for each side; (n,) int64."""
        return np.asarray(2 * self.curve.pairs + self.n_rows, dtype=np.int64)


class BoxCountFit(NamedTuple):
    """What boxes say about the dimension of points; made by :func:`fit_box_count`.

    Parameters
    ----------
    counts : of all levels, those outside the fits as well.
    correlation : pairs that share a box; its exponent is D2, its ranges are sides of boxes.
    capacity : occupied boxes, by 1 / side; its exponent is D0, its ranges are 1 / side. None where too few
        levels have enough boxes and enough rows in each: D0 needs more rows than D2.
    """

    counts: BoxCounts
    correlation: PowerLawFit
    capacity: PowerLawFit | None


def box_counts(points: npt.ArrayLike, seed: int = 0) -> BoxCounts:
    """Count pairs of rows in one box, and boxes, for boxes of many sides.

    The bounding cube, as wide as the widest axis, is cut into k equal parts per axis, k = 1, 2, 3, 4, 5, 6,
    7, 8, 10, 11, 13, 16, ... (the whole numbers next to four per octave), until fewer than ``LEAST_PAIRS``
    pairs of different points share a box. Whole parts fill the cube, so a uniform cube has no border effect.

    Parameters
    ----------
    points : (n, d) floats or integers, finite; not modified.
    seed : of the groups of the jackknife.

    Raises
    ------
    ArgumentError
        Wrong shape or type, a value that is NaN or infinite (the message names row and column), no two
        different points, an axis wider than the largest float64.

    Notes
    -----
    O(levels (n d + n log n)), four levels per octave of sides; 16 n d + 80 n bytes. Rows are grouped by a
    hash of 59 bits of their box: any two of n become one with a chance of n² / 2**60, a millionth for a
    million rows.
    """
    values = check_points("points", points)
    n = len(values)
    low = values.min(axis=0) if n else np.zeros(values.shape[1])
    with np.errstate(over="ignore"):
        width = float((values.max(axis=0) - low).max()) if n else 0.0
    if not 0 < width < np.inf:
        raise ArgumentError(
            f"boxes need two different points at a finite distance; {n} points span {width:g}; {BY_HAND}"
        )
    # One contiguous row per axis, in units of the cube's side.
    unit = np.ascontiguousarray(((values - low) / width).T)
    group = jackknife_groups(n, check_count("seed", seed, 0))
    ranks = (np.unique(axis, return_inverse=True)[1].astype(np.uint64) for axis in values.T)
    equal = _count(_hash(ranks, n), group)
    levels = []
    for k in _parts():
        last = np.float64(k - 1)
        level = _count(_hash((np.minimum(axis * k, last).astype(np.uint64) for axis in unit), n), group)
        if level.pairs - equal.pairs < LEAST_PAIRS:
            break
        levels.append((width / k, *level))
    if not levels:
        raise ArgumentError(f"{n} points have fewer than {LEAST_PAIRS} pairs of different points; {BY_HAND}")
    side, boxes, pairs, boxes_without, pairs_without = (
        np.array(column) for column in zip(*reversed(levels), strict=True)
    )
    curve = Curve(side, pairs, equal.pairs, pairs_without.T, equal.pairs_without)
    return BoxCounts(n, equal.boxes, curve, boxes, boxes_without.T)


def fit_box_count(points: npt.ArrayLike, seed: int = 0) -> BoxCountFit:
    """Fit the power laws of pairs that share a box (D2) and of occupied boxes (D0).

    D2 is fitted by :func:`epsjoin.local.epsilon.power_law.fit_power_law`, so the same levels are left out:
    where
    nearly every row has its own box (fewer than ``LEAST_PAIRS`` pairs of different points share one), and
    coarse boxes that hold more than a tenth of all pairs. D0 is fitted where at least ``LEAST_PAIRS`` boxes
    are occupied and at most a tenth as many as there are different rows: beyond, boxes are missed for want of
    rows. Straight part, R² and interval are found in the same way.

    Parameters
    ----------
    points, seed : see :func:`box_counts`; the whole set, or a uniform sample.

    Raises
    ------
    ArgumentError
        As :func:`box_counts`; fewer than 6 levels are left for D2: too few rows for so many dimensions.

    Notes
    -----
    The interval is about sampling alone. Where boxes lie is a choice too: on self-similar sets the counts
    swing around the law by where box borders fall. Measured: D2 up to 5 % off (Sierpinski triangle, Cantor
    dust), 12 % for a line in 512 dimensions; D0 up to 14 % (Cantor dust). Uniform points in 16 or more
    dimensions cannot be fitted: boxes of half the side hold each a 65,536th of the rows. Cost as
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
            f"{counts.n_rows} points share boxes of {side.size} sides only, "
            f"{side[0]:.6g} to {side[-1]:.6g}, too few for a power law of box counts; {BY_HAND}"
        ) from error
    usable = (counts.boxes >= LEAST_PAIRS) & (counts.boxes <= SATURATED * counts.distinct_rows)
    backwards = slice(None, None, -1)
    capacity = fit_line(
        1.0 / side[backwards], counts.boxes[backwards], counts.boxes_without[:, backwards], usable[backwards]
    )
    return BoxCountFit(counts, correlation, capacity)


class _Level(NamedTuple):
    boxes: int
    pairs: int
    boxes_without: IntColumn
    pairs_without: IntColumn


def _parts() -> list[int]:
    """Parts of an axis: the whole numbers next to 2**(i / 4), each once."""
    return sorted({round(2.0 ** (i / _PER_OCTAVE)) for i in range(_PER_OCTAVE * _OCTAVES + 1)})


def _hash(cells: Iterable[Keys], n: int) -> Keys:
    """Hash of each row's whole numbers, given axis by axis."""
    keys = np.zeros(n, dtype=np.uint64)
    for cell in cells:
        keys ^= cell
        keys *= _MULTIPLIER
        keys ^= keys >> _HALF
    return keys


def _count(keys: Keys, group: IntColumn) -> _Level:
    """Boxes and pairs in one box, of all rows and without each group of rows."""
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
