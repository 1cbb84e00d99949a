"""The join of many dimensions: what a product of two blocks of rows lets through, and the decision.

BLAS multiplies blocks of *filter rows* (:mod:`epsjoin.local.product.rows`), in which the squared
distance of two rows is ``|g|² + |h|² - 2 g·h`` and never above that of their points. So a pair within eps has

    g·h - half(h) >= threshold(g)

where half and threshold are made once per row, with slack for every rounding. What passes is a *survivor*:
its distance is computed from the coordinates as they came, in float64, in any order of the sum. Pairs that
this puts within eps, with slack again, are decided by the metric's own formula.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit, njit_any_order, njit_as, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Floats32, Ints, Points
from epsjoin.kernels.distances import COSINE, Decision, cosine_of_sums, decide
from epsjoin.kernels.pairs.batch import DISTANCES, PAIRS, PairBatch
from epsjoin.kernels.simd.lanes import in_each_lane
from epsjoin.kernels.sweep.vectors import lowest_lane

LANES = 64
"""Number of columns of a product that are looked at together; a block has a multiple of them."""
MIN_THRESHOLD = -4.0
"""A threshold that every row reaches, since none is longer than 1, and the padding of -infinity does not."""
COLUMN, ROW, LANE, DONE = range(4)
"""Places in a state: the first column of the block that is multiplied, the row and the lane of its product to
go on from, and whether the chunk is done."""
_SUM_SLACK = 2.0**-52
"""Slack of a sum of d squares in float64, in any order, beside one in column order, for each term."""
_COSINE_SLACK = 1e-9
"""Bound of the rounding errors of two formulas of the cosine, for up to 2**20 dimensions."""
_MIN_CHECKED = 32
"""Minimum number of dimensions in which a sum in any order is made before the metric's own formula."""


class ProductRows(NamedTuple):
    """The rows of a table as a product filters and decides them.

    Parameters
    ----------
    points : (n, d) float64 or float32, coordinates as they came.
    names : (n,) int64, the names by which pairs report the rows.
    inverse_norm : (n,) float64, ``1 / |x|`` for cosine; (0,) for Euclid.
    half : (n + padding,) float32, what is subtracted from a row's products as a right row; infinite for the
        padding, which brings the rows to a multiple of ``LANES``.
    threshold : (n,) float32, what the rest must reach for a left row.
    """

    points: Points
    names: Ints
    inverse_norm: Floats
    half: Floats32
    threshold: Floats32


_FLOATS = ir.VectorType(ir.FloatType(), LANES)


def _load(builder: Any, array: Any, at: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(array, [at]), _FLOATS.as_pointer()), align=4)


def _reaching(builder: Any, products: Any, half: Any, threshold: Any) -> Any:
    survives = builder.fcmp_ordered(">=", builder.fsub(products, half), threshold)
    return builder.bitcast(survives, ir.IntType(LANES))


def _survivors(builder: Any, products: Any, place: Any, half: Any, lane: Any, threshold: Any) -> Any:
    of_row = in_each_lane(builder, threshold, _FLOATS)
    return _reaching(builder, _load(builder, products, place), _load(builder, half, lane), of_row)


@njit_as(_survivors)
def survivors_among(products: Floats32, place: int, half: Floats32, lane: int, threshold: np.float32) -> int:
    """Which of ``LANES`` products from a place on reach the threshold, a bit each; ``lane``: first column."""
    bits = 0
    for i in range(LANES):
        bits |= int(products[place + i] - half[lane + i] >= threshold) << i
    return bits


def _column_survivors(builder: Any, products: Any, place: Any, half: Any, threshold: Any, lane: Any) -> Any:
    of_row = in_each_lane(builder, half, _FLOATS)
    return _reaching(builder, _load(builder, products, place), of_row, _load(builder, threshold, lane))


@njit_as(_column_survivors)
def survivors_of_columns(
    products: Floats32, place: int, half: np.float32, threshold: Floats32, lane: int
) -> int:
    """As :func:`survivors_among`, but the columns have thresholds, and the row has the half."""
    bits = 0
    for i in range(LANES):
        bits |= int(products[place + i] - half >= threshold[lane + i]) << i
    return bits


@njit_any_order
def _square_sum(x: Points, y: Points) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        difference = np.float64(x[i]) - np.float64(y[i])
        total += difference * difference
    return total


@njit_any_order
def _dot(x: Points, y: Points) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        total += np.float64(x[i]) * np.float64(y[i])
    return total


@njit
def may_be_within(left: ProductRows, x: int, right: ProductRows, y: int, metric: int, bound: float) -> bool:
    """Whether two rows may be within a bound (for Euclid, of the square), by a sum in any order."""
    if metric == COSINE:
        cosine = _dot(left.points[x], right.points[y]) * left.inverse_norm[x] * right.inverse_norm[y]
        return not 1.0 - cosine > bound + _COSINE_SLACK
    slack = (left.points.shape[1] + 4) * _SUM_SLACK
    return not _square_sum(left.points[x], right.points[y]) > bound * (1.0 + slack)


@njit
def decide_rows(
    left: ProductRows, x: int, right: ProductRows, y: int, decision: Decision, copied: Floats
) -> float:
    """The distance of two rows when it is within the decision's bound, else -1, by the metric's own formula.

    Parameters
    ----------
    left, x, right, y : the rows.
    decision : the metric's, Euclid or cosine.
    copied : (2, d) float64, room for the two rows.
    """
    for i in range(copied.shape[1]):
        copied[0, i] = left.points[x, i]
        copied[1, i] = right.points[y, i]
    return decide(decision, copied, 0, copied, 1)


@njit_inner
def measure_four(
    left: Points, x: int, right: Points, y: tuple[int, int, int, int], metric: int
) -> tuple[float, float, float, float]:
    """The distances of a row and four others, by the formula of Euclid or the cosine.

    Each sum runs in column order, so no distance differs from one that is decided alone; the four run side by
    side, and none waits for the others.
    """
    a, b, c, e = y
    to_a = to_b = to_c = to_e = 0.0
    if metric == COSINE:
        square = square_a = square_b = square_c = square_e = 0.0
        for i in range(left.shape[1]):
            value, at_a, at_b = np.float64(left[x, i]), np.float64(right[a, i]), np.float64(right[b, i])
            at_c, at_e = np.float64(right[c, i]), np.float64(right[e, i])
            square += value * value
            to_a += value * at_a
            to_b += value * at_b
            to_c += value * at_c
            to_e += value * at_e
            square_a += at_a * at_a
            square_b += at_b * at_b
            square_c += at_c * at_c
            square_e += at_e * at_e
        return (
            cosine_of_sums(to_a, square, square_a),
            cosine_of_sums(to_b, square, square_b),
            cosine_of_sums(to_c, square, square_c),
            cosine_of_sums(to_e, square, square_e),
        )
    for i in range(left.shape[1]):
        value = np.float64(left[x, i])
        by_a, by_b = value - np.float64(right[a, i]), value - np.float64(right[b, i])
        by_c, by_e = value - np.float64(right[c, i]), value - np.float64(right[e, i])
        to_a += by_a * by_a
        to_b += by_b * by_b
        to_c += by_c * by_c
        to_e += by_e * by_e
    return math.sqrt(to_a), math.sqrt(to_b), math.sqrt(to_c), math.sqrt(to_e)


@njit_inner
def _add_near(
    left: ProductRows,
    x: int,
    right: ProductRows,
    near: Ints,
    n: int,
    decision: Decision,
    batch: PairBatch,
    found: int,
) -> int:
    """Add the pairs of a row with those of up to four others that are within eps; return how many there are.

    Parameters
    ----------
    left, x, right : the tables, and the row of the left one.
    near : (4,) int64, of which the first n, at least one, are rows of the right table.
    batch, found : the batch, and how many pairs are in it.
    """
    four = near[0], near[min(1, n - 1)], near[min(2, n - 1)], near[min(3, n - 1)]
    measured = measure_four(left.points, x, right.points, four, decision.metric)
    for i in range(n):
        if measured[i] <= decision.eps:
            batch.left[found] = left.names[x]
            batch.right[found] = right.names[near[i]]
            batch.distance[found] = measured[i]
            found += 1
    return found


@njit
def scan_product(
    products: Floats32,
    left: ProductRows,
    begin: int,
    right: ProductRows,
    state: Ints,
    is_self: bool,
    decision: Decision,
    batch: PairBatch,
    counts: Ints,
) -> int:
    """Find the pairs within eps of one block of left rows and one of right rows.

    Parameters
    ----------
    products : (r, c) float32, of the filter rows; c is a multiple of ``LANES``.
    left, begin : the left table, and the row of it that is the first of the block.
    right : the right table, or the same; ``state[COLUMN]`` is the first row of the block.
    state : (4,) int64; goes on from its row and lane. At the end its row is r, unless the batch was full.
    is_self : whether only pairs with a smaller left row are meant.
    decision : the metric's, Euclid or cosine.
    batch : filled from its beginning, as long as it has room for four pairs.
    counts : (4,) int64, see :mod:`epsjoin.kernels.sweep.stack_sweep`; distances and pairs are added.

    Returns
    -------
    int
        Pairs written.
    """
    column, (n_rows, n_columns) = state[COLUMN], products.shape
    flat = products.reshape(-1)
    half = right.half[column : column + n_columns]
    is_wide = left.points.shape[1] >= _MIN_CHECKED
    near, waiting, found = np.empty(4, np.int64), 0, 0
    for i in range(state[ROW], n_rows):
        x = begin + i
        threshold = left.threshold[x]
        first = max(state[LANE], x + 1 - column if is_self else 0)
        state[LANE] = 0
        for lane in range(first // LANES * LANES, n_columns, LANES):
            bits = survivors_among(flat, i * n_columns + lane, half, lane, threshold)
            while bits:
                j = lane + lowest_lane(bits)
                bits &= bits - 1
                if j < first:
                    continue
                y = column + j
                if waiting == 0 and found + 4 > batch.left.shape[0]:
                    state[ROW], state[LANE] = i, j
                    counts[PAIRS] += found
                    return found
                counts[DISTANCES] += 1
                if is_wide and not may_be_within(left, x, right, y, decision.metric, decision.bound):
                    continue
                near[waiting] = y
                waiting += 1
                if waiting == 4:
                    found = _add_near(left, x, right, near, waiting, decision, batch, found)
                    waiting = 0
        if waiting:
            found = _add_near(left, x, right, near, waiting, decision, batch, found)
            waiting = 0
    state[ROW] = n_rows
    counts[PAIRS] += found
    return found


@njit
def find_partners_in(
    products: Floats32,
    left: ProductRows,
    places: Ints,
    right: ProductRows,
    column: int,
    is_self: bool,
    decision: Decision,
    has_partner: Bools,
    counts: Ints,
) -> None:
    """Tell which of some left rows have a partner in one block of right rows.

    Parameters
    ----------
    products : (r, c) float32, of the filter rows; c is a multiple of ``LANES``.
    left, places : the left table, and the (r,) int64 rows of it that were multiplied.
    right, column : the right table, or the same, and the first row of the block.
    is_self : whether a row is no partner of its own.
    decision : the metric's, Euclid or cosine.
    has_partner : (r,) bool, all False; filled.
    counts : (4,) int64, see :mod:`epsjoin.kernels.sweep.stack_sweep`; distances are added.
    """
    n_rows, n_columns = products.shape
    flat, half = products.reshape(-1), right.half[column : column + n_columns]
    copied = np.empty((2, left.points.shape[1]))
    for i in range(n_rows):
        x = places[i]
        threshold, lane = left.threshold[x], 0
        while lane < n_columns and not has_partner[i]:
            bits = survivors_among(flat, i * n_columns + lane, half, lane, threshold)
            while bits and not has_partner[i]:
                y = column + lane + lowest_lane(bits)
                bits &= bits - 1
                if is_self and x == y:
                    continue
                counts[DISTANCES] += 1
                if may_be_within(left, x, right, y, decision.metric, decision.bound):
                    has_partner[i] = decide_rows(left, x, right, y, decision, copied) >= 0.0
            lane += LANES
