"""The best cut of a leaf of the planned tree, rated on the rows of a sample."""

from __future__ import annotations

import math
from itertools import chain
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.plan.balance import balanced_position, divide_weights
from epsjoin.kernels.plan.cuts import HASH_AXIS, MAX_AXES, cube_sides
from epsjoin.kernels.projection import Projection, axes_by_variance
from epsjoin.kernels.ranges import Ranges, in_each
from epsjoin.kernels.sorting import argsort
from epsjoin.local.plan.expectation.decided_pairs import DecidedPairs
from epsjoin.local.plan.projection import row_candidates

_MAX_TRIED_AXES = 16
"""Maximum number of axes that are tried, by falling variance: a cut on a flat axis crosses every cube."""
_SORTED_ROWS_PER_ROW = 8
"""Number of rows of a sorted sample that are read in the time in which one row of a leaf is sorted."""
_MAX_DIVIDED_AXES = 5
"""Maximum number of axes for which the work of both sides is counted."""
_MAX_CROSSED_FRACTION = 0.5
"""Fraction of a leaf's cubes that a cut crosses, above which a cut by hash may be cheaper and is tried."""
_MAX_SIDE_FRACTION = 0.7
"""Fraction of a leaf's work on one side of a cut, above which a cut by hash is tried."""
_MAX_SHIFTS = 3
"""Maximum number of times that the best cut is shifted to balance the work of its sides."""
_BALANCE_TOLERANCE = 0.03
"""Relative distance from the balance aimed at, up to which a cut is not shifted."""


class Leaf(NamedTuple):
    """A leaf and what the sample shows of it.

    Parameters
    ----------
    row : (k,) int64, rows of the sample at the leaf, ascending.
    is_carried : (k,) bool, whether a row's hash is below the leaf's bound.
    pair : numbers of the pairs that are decided here: the leaf holds their reference points
        (:mod:`epsjoin.kernels.plan.cuts`).
    candidates : (k,) int64, candidates of each row.
    work : estimated work of the leaf, in the unit of the costs.
    """

    row: Ints
    is_carried: Bools
    pair: Ints
    candidates: Ints
    work: float


class Cut(NamedTuple):
    """A cut and its two leaves."""

    axis: int
    position: float
    left: Leaf
    right: Leaf


class Costs(NamedTuple):
    """What a join costs, in any one unit.

    Parameters
    ----------
    row, candidate, decision : work for a row, for a candidate, and for a pair that is decided.
    move, turn : for bringing a row to its part, and for projecting it on a direction; no work of a part.
    """

    row: float
    candidate: float
    decision: float
    move: float
    turn: float

    def of_sample(self, rows_per_row: float) -> Costs:
        """What a row, or a pair, of a sample costs, each of whose rows stands for so many."""
        pairs_per_pair = rows_per_row**2
        return Costs(
            self.row * rows_per_row,
            self.candidate * pairs_per_pair,
            self.decision * pairs_per_pair,
            self.move * rows_per_row,
            self.turn * rows_per_row,
        )


class TreeSample(NamedTuple):
    """The sample, and the cost of its rows and pairs: all that cuts are rated by.

    Parameters
    ----------
    embedded : (m, e) float64.
    lower, upper : (b, m) float64, sides of the cubes along the directions of the basis.
    hashes, decided, eps : see :func:`epsjoin.local.plan.tree.grow_tree.grow_tree`.
    simple : coordinates in which a leaf's candidates are counted, except for the axes: each leaf chooses its
        own.
    costs : of one of the sample, for all that it stands for.
    largest_weight : weight of the largest part in rating a cut, as a fraction of all work.
    columns : (e + b, m) float64, ``embedded`` by axes, then the middles between both sides.
    orders : all rows by their values on each axis that has been sorted; filled as axes are asked for.
    ranges : how ranges of axes, and of leaves, are worked on.
    """

    embedded: Floats
    lower: Floats
    upper: Floats
    hashes: Floats
    decided: DecidedPairs
    eps: float
    simple: Projection
    costs: Costs
    largest_weight: float
    columns: Floats
    orders: dict[int, Ints]
    ranges: Ranges

    def sides(self, rows: Ints, axis: int) -> tuple[Floats, Floats]:
        """Lower and upper sides of the cubes of these rows, as ``assign`` computes them."""
        turned = axis - self.embedded.shape[1]
        if turned >= 0:
            return self.lower[turned][rows], self.upper[turned][rows]
        return cube_sides(self.columns[axis][rows], self.eps / 2.0)

    def divide_pairs(self, pair: Ints, axis: int, position: float) -> tuple[Ints, Ints]:
        """The pairs that are decided on either side of a cut.

        That is the side which holds the reference point. Rows that pass the filter of all rows may be far
        from each other, such as outliers that it draws in: of these some meet on neither side.
        """
        below, above = np.ones(len(pair), np.bool_), np.ones(len(pair), np.bool_)
        for rows in (self.decided.left[pair], self.decided.right[pair]):
            if axis == HASH_AXIS:
                below &= self.hashes[rows] < position
            else:
                lower, upper = self.sides(rows, axis)
                below &= lower < position
                above &= upper >= position
        return pair[below], pair[above & ~below]

    def weights(self, leaf: Leaf) -> Floats:
        """Work of each row of a leaf; the work of a pair is divided between its two rows."""
        ends = np.concatenate((self.decided.left[leaf.pair], self.decided.right[leaf.pair]))
        of_rows = np.bincount(ends, minlength=len(self.embedded))[leaf.row]
        return np.asarray(
            self.costs.row
            + self.costs.candidate * leaf.candidates.astype(np.float64)
            + self.costs.decision * (0.5 * self.decided.weight) * of_rows
        )

    def order(self, rows: Ints, axis: int) -> Ints:
        """These rows, which are ascending, or all, sorted by their values on an axis; ties by row."""
        if len(rows) * _SORTED_ROWS_PER_ROW < len(self.embedded):
            return np.asarray(rows[argsort(self.values(axis)[rows])])
        if axis not in self.orders:
            self.orders[axis] = argsort(self.values(axis))
        return self.orders[axis]

    def values(self, axis: int) -> Floats:
        """Coordinates of all rows on an axis; along a direction, the middle between their sides."""
        return self.hashes if axis == HASH_AXIS else np.asarray(self.columns[axis])


def make_leaf(sample: TreeSample, row: Ints, is_carried: Bools, pair: Ints) -> Leaf:
    """Count the candidates of a leaf and estimate its work."""
    candidates = np.zeros(len(row), np.int64)
    if len(row) > 1:
        values = sample.embedded[row]
        simple = sample.simple._replace(axes=axes_by_variance(values)[: len(sample.simple.axes)])
        candidates = row_candidates(values, is_carried, sample.eps, simple)
    costs = sample.costs
    work = (
        costs.row * len(row)
        + costs.candidate * float(candidates.sum())
        + costs.decision * sample.decided.weight * len(pair)
    )
    return Leaf(row, is_carried, pair, candidates, work)


def _divide(sample: TreeSample, leaf: Leaf, axis: int, position: float) -> Cut:
    """Divide a leaf by a cut, with the same comparisons as ``assign``."""
    if axis == HASH_AXIS:
        is_left = sample.hashes[leaf.row] < position
        is_right = np.ones(len(leaf.row), np.bool_)
        carried = leaf.is_carried | is_left
    else:
        lower, upper = sample.sides(leaf.row, axis)
        is_left = lower < position
        is_right = upper >= position
        carried = leaf.is_carried
    pair_left, pair_right = sample.divide_pairs(leaf.pair, axis, position)
    left = make_leaf(sample, leaf.row[is_left], leaf.is_carried[is_left], pair_left)
    right = make_leaf(sample, leaf.row[is_right], carried[is_right], pair_right)
    return Cut(axis, position, left, right)


def _carried_ratio(leaf: Leaf) -> float:
    """Ratio of a leaf's carried rows to its own rows."""
    carried = int(np.count_nonzero(leaf.is_carried))
    return float(carried / max(1, len(leaf.row) - carried))


def _hash_fraction(leaf: Leaf, fraction: float) -> float:
    """Fraction of the own rows that must be left of a hash cut for this fraction of the pairs to be left.

    Of N own rows the left ones, fN, are compared with C carried ones and with each other: f C N + (f N)² / 2
    of C N + N² / 2 pairs; the right ones with all rows.
    """
    c = _carried_ratio(leaf)
    return float(np.sqrt(c * c + fraction * (2.0 * c + 1.0)) - c)


def allot_parts(works: tuple[float, float], n_parts: int) -> int:
    """Divide parts between two sides, at least one to each, so that the largest part is as small as possible.

    Returns
    -------
    int
        Parts of the left side.
    """
    left, right = works
    fewer = min(max(int(n_parts * left / (left + right)), 1), n_parts - 1)
    more = min(fewer + 1, n_parts - 1)
    return min(fewer, more, key=lambda of_left: max(left / of_left, right / (n_parts - of_left)))


def _rate(sample: TreeSample, axis: int, works: tuple[float, float], n_rows: int, n_parts: int) -> float:
    """Rate a cut of a leaf that is worth ``n_parts`` parts, less is better: all work, rows, the largest part.

    Parameters
    ----------
    axis : of the cut.
    works : of both sides. The parts go to both sides as their work does, one at least to either; a side may
        be larger than the parts that it has.
    n_rows : rows of both sides.
    """
    left, right = works
    of_left = allot_parts(works, n_parts)
    largest = max(left / of_left, right / (n_parts - of_left))
    is_turned = axis >= sample.embedded.shape[1]
    moved = n_rows * (sample.costs.move + (sample.costs.turn if is_turned else 0.0))
    return left + right + moved + sample.largest_weight * n_parts * largest


def _position(sample: TreeSample, leaf: Leaf, weights: Floats, axis: int, fraction: float) -> float | None:
    """Find where to cut an axis for about this fraction of the leaf's weights to be left; or None."""
    rows = leaf.row
    if axis == HASH_AXIS:
        own = ~leaf.is_carried
        rows, weights, fraction = rows[own], weights[own], _hash_fraction(leaf, fraction)
    of_rows = np.full(len(sample.embedded), -1.0)
    of_rows[rows] = weights
    position = balanced_position(sample.order(rows, axis), sample.values(axis), of_rows, fraction)
    return None if math.isnan(position) else position


def _best_axes(
    sample: TreeSample, leaf: Leaf, weights: Floats, used: set[int], n_parts: int
) -> list[tuple[int, float]]:
    """Find the axes and directions that are rated best by the leaf's weights, each with its cut."""
    n_embedded = sample.embedded.shape[1]
    flat = axes_by_variance(sample.embedded[leaf.row])[:_MAX_TRIED_AXES].tolist()
    axes = [*flat, *range(n_embedded, n_embedded + len(sample.lower))]
    if len(used) >= MAX_AXES:
        axes = [axis for axis in axes if axis in used]
    rated = in_each(sample.ranges, axes, lambda axis: _rate_axis(sample, leaf, weights, axis, n_parts))
    best: dict[int, float] = {}
    for _, axis, position in sorted(chain.from_iterable(rated)):
        best.setdefault(axis, position)
    return list(best.items())[:_MAX_DIVIDED_AXES]


def _rate_axis(
    sample: TreeSample, leaf: Leaf, weights: Floats, axis: int, n_parts: int
) -> list[tuple[float, int, float]]:
    """Rate two cuts of an axis by the leaf's weights: the rating, the axis, and the position of each."""
    middle = _position(sample, leaf, weights, axis, (n_parts // 2) / n_parts)
    if middle is None:
        return []
    lower, upper = sample.sides(leaf.row, axis)
    # equal rows would all be crossed
    below_middle = float(lower[sample.values(axis)[leaf.row] == middle].min())
    on_left, on_right = np.empty(len(weights)), np.empty(len(weights))
    rated = []
    for position in (middle, below_middle):
        n_left, n_right = divide_weights(lower, upper, weights, position, on_left, on_right)
        works = float(on_left[:n_left].sum()), float(on_right[:n_right].sum())
        rated.append((_rate(sample, axis, works, n_left + n_right, n_parts), axis, position))
    return rated


def best_cut(sample: TreeSample, leaf: Leaf, used: set[int], room: float, n_parts: int) -> Cut | None:
    """Find the best cut, or None when no cut makes the larger side cheaper than the leaf.

    The leaf is worth ``n_parts`` parts, 2 at least; so a cut need not halve it. The hash is tried where the
    axes that are rated best cross many cubes or leave most of the work on one side; a cut that adds more than
    ``room`` rows is not made.
    """
    if np.count_nonzero(~leaf.is_carried) < 2:
        return None
    fraction = (n_parts // 2) / n_parts
    weights = sample.weights(leaf)
    best: tuple[float, Cut] | None = None

    def try_cut(axis: int, position: float | None) -> bool:
        """Whether this is the best cut so far."""
        nonlocal best
        if position is None:
            return False
        cut = _divide(sample, leaf, axis, position)
        works = cut.left.work, cut.right.work
        n_rows = len(cut.left.row) + len(cut.right.row)
        rated = _rate(sample, axis, works, n_rows, n_parts)
        if n_rows - len(leaf.row) > room or max(works) >= leaf.work or (best and rated >= best[0]):
            return False
        best = rated, cut
        return True

    def balance() -> None:
        """Shift the best cut: what balances the leaf's weights does not balance the work of both sides."""
        aimed = fraction
        for _ in range(_MAX_SHIFTS):
            if best is None:
                return
            left, right = best[1].left.work, best[1].right.work
            off = left / (left + right) - fraction
            aimed -= off
            if abs(off) <= _BALANCE_TOLERANCE * fraction or not 0.0 < aimed < 1.0:
                return
            if not try_cut(best[1].axis, _position(sample, leaf, weights, best[1].axis, aimed)):
                return

    for axis, position in _best_axes(sample, leaf, weights, used, n_parts):
        try_cut(axis, position)
    balance()
    is_poor = best is None or _is_poor(best[1], leaf)
    if is_poor and try_cut(HASH_AXIS, _position(sample, leaf, weights, HASH_AXIS, fraction)):
        balance()
    return best[1] if best else None


def _is_poor(cut: Cut, leaf: Leaf) -> bool:
    """Whether a cut crosses many cubes, or leaves most of the work on one side."""
    n_rows = len(cut.left.row) + len(cut.right.row)
    return (
        n_rows > (1.0 + _MAX_CROSSED_FRACTION) * len(leaf.row)
        or max(cut.left.work, cut.right.work) > _MAX_SIDE_FRACTION * leaf.work
    )
