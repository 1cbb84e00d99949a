"""How many pairs a sample has, and what it says about the pairs of all rows."""

from __future__ import annotations

import math
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints, Points
from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.join.projection import Projection
from epsjoin.kernels.join.stack_sweep import PAIRS, PairBatch
from epsjoin.kernels.join.window import is_done, new_state, window_rows, window_sweep
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cut_leaf import DecidedPairs
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.held_pairs import HeldPairs
from epsjoin.local.plan.product import MIN_DIMENSIONS, ProductPlan, has_products
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.ways import Tables, choose_way
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilterSpace
from epsjoin.local.product.sweep import NamedRows, sweep_products
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_window

_FIRST_ROWS = 4096
"""Number of rows of a sample whose pairs are found first, to be decided."""
_SUFFICIENT_PAIRS = 200_000
"""Number of pairs from which on no more are kept to be decided: more would only make the plan slower."""
_MAX_PAIRS = 2_000_000
"""Maximum number of pairs of a sample that are kept, or counted in more than ``_MIN_ROWS`` rows: memory, and
tenths of a second."""
_MIN_ROWS = 1000
"""Minimum number of rows whose pairs are counted, however many: fewer make the interval wide."""
_MIN_PAIRS = 30
"""Minimum number of pairs of a sample whose number says something about all rows."""
NORMAL_95 = 1.959964
"""Standard deviations around the mean that hold 95 % of a normal distribution."""
_RULE_OF_THREE = 3.0
"""Number of pairs that a sample without any may just have missed, at 95 %."""
_BLOCK_NUMBERS = 1 << 20
"""Maximum number of coordinates that are compared at once, of pairs that a sweep has found."""
_BATCH_PAIRS = 1 << 16
"""Maximum number of pairs that a sweep over a sample finds at once."""


class SamplePairs(NamedTuple):
    """Pairs that were counted in a sample.

    Parameters
    ----------
    rows : number of rows that were counted; of two tables those of the right one.
    pairs : number of pairs within eps among them, or with the left table.
    variance : estimated variance of ``pairs`` over samples of very many rows.
    """

    rows: int
    pairs: int
    variance: float


class ExpectedPairs(NamedTuple):
    """How many pairs within eps all rows are expected to have; made by :func:`expect_pairs`.

    Parameters
    ----------
    pairs : the number; exact where all rows were counted.
    low, high : its 95 % interval.
    sample_rows, sample_pairs : rows that were counted, and pairs among them.
    suffices : whether these are enough to speak for all rows; where they are not, a power law knows more.
    is_by_law : whether ``pairs`` is what a power law says.
    """

    pairs: float
    low: float
    high: float
    sample_rows: int
    sample_pairs: int
    suffices: bool
    is_by_law: bool = False


def draw_rows(n_rows: int, sample_rows: int, seed: int | tuple[int, int]) -> Ints:
    """Draw the rows of a sample, in random order, so that any first of them are a sample, too.

    Of two tables the right one's seed is (seed, 1): with one seed for both, rows of the same numbers would be
    drawn, which in two halves of one table are neighbours.
    """
    return np.random.default_rng(seed).permutation(n_rows)[:sample_rows]


def count_pairs(
    points: Floats,
    embedded: Floats,
    eps: float,
    metric: Metric,
    projection: Projection,
    *,
    is_right: Bools | None = None,
    max_pairs: float = math.inf,
    degree: Ints | None = None,
) -> int:
    """Count the pairs within eps without keeping them, until there are more than ``max_pairs``.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    projection : coordinates of the sweep; the number does not depend on it.
    is_right : (n,) bool, of two tables: rows of the right one. None: pairs of one table.
    max_pairs : the sweep ends when it has found more.
    degree : (n,) int64, the pairs of each row are added to it.

    Returns
    -------
    int
        The number of pairs when it is at most ``max_pairs``, else some larger number.
    """
    n = len(points)
    limits = metric.embedded_eps(eps), metric.decision(eps)
    places, no_mask = np.arange(n, dtype=np.int64), np.zeros(n, np.int64)
    rows = window_rows(points, embedded, places, no_mask, limits[0], projection, is_right)
    counters = np.zeros(4, np.int64)
    room = _BATCH_PAIRS
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    state = new_state()
    while not is_done(state) and counters[PAIRS] <= max_pairs:
        found = window_sweep(state, rows, 0, n, limits[1], batch, counters)
        if degree is not None:
            degree += np.bincount(batch.left[:found], minlength=n)
            degree += np.bincount(batch.right[:found], minlength=n)
    return int(counters[PAIRS])


def count_sample_pairs(
    points: Floats,
    eps: float,
    metric: Metric,
    *,
    left: Floats | None = None,
    max_pairs: float = math.inf,
    min_rows: int = 1,
    divisor: int = 2,
    held: HeldPairs | None = None,
) -> SamplePairs:
    """Count the pairs of a sample, or of fewer of its first rows while these have more than ``max_pairs``.

    Parameters
    ----------
    points : (m, d) float64, the sample in random order; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    left : (l, d) float64, the sample of a left table, whose pairs with ``points`` are counted. None: pairs of
        ``points`` with one another.
    max_pairs : more pairs than these are not counted, for time; by default all are.
    min_rows : fewer rows are not taken, however many pairs they have.
    divisor : ratio of the rows that are counted next where there were too many pairs.
    held : pairs of this sample that were found before; of many dimensions, those that are found now are held.

    Raises
    ------
    ArgumentError
        Points for which the metric is not defined.
    """
    rows, others = len(points), 0 if left is None else len(left)
    while True:
        cap = max_pairs if rows > min_rows else math.inf
        degree = np.zeros(others + rows, np.int64)
        of_all = held if rows == len(points) else None
        known = None if of_all is None else of_all.count(eps, degree)
        if known is not None:
            pairs = known
            break
        pairs = _count_degrees(left, points[:rows], eps, metric, cap, degree, of_all)
        if pairs <= cap:
            break
        rows = max(min_rows, rows // divisor)
    # Hoeffding's first order; at least the variance of a count, which matters where pairs are few
    between = sum(side.size * float(side.var()) for side in np.split(degree, [others]) if side.size)
    return SamplePairs(rows, pairs, max(between, float(pairs)))


def _count_degrees(
    left: Floats | None,
    points: Floats,
    eps: float,
    metric: Metric,
    max_pairs: float,
    degree: Ints,
    held: HeldPairs | None,
) -> int:
    """As :func:`count_pairs`, by the way that costs least; of two tables left rows come first in ``degree``.

    A sample has the dimensions of its set: in hundreds of them a sweep over it takes minutes.
    """
    others = 0 if left is None else len(left)
    if (
        points.shape[1] >= MIN_DIMENSIONS
        and has_products(metric)
        and len(points)
        and (left is None or others > 0)
    ):
        tables = Tables(points, None, len(points), 0)
        if left is not None:
            tables = Tables(left, points, others, len(points))
        with one_thread():
            way = choose_way(tables, eps, metric)
        if isinstance(way, ProductPlan):
            return _count_by_product(tables, way.space, eps, metric, max_pairs, degree, held)
    counted = points if left is None else np.concatenate((left, points))
    is_right = None if left is None else np.arange(len(counted)) >= others
    embedded = metric.embed(counted)
    projection = choose_projection(embedded, len(counted), metric.embedded_eps(eps), metric.norm).projection
    of = eps, metric, projection
    return count_pairs(counted, embedded, *of, is_right=is_right, max_pairs=max_pairs, degree=degree)


def _count_by_product(
    tables: Tables,
    space: FilterSpace,
    eps: float,
    metric: Metric,
    max_pairs: float,
    degree: Ints,
    held: HeldPairs | None,
) -> int:
    left = NamedRows(tables.left, np.arange(tables.n_left))
    right = None
    if tables.right is not None:
        right = NamedRows(tables.right, np.arange(tables.n_left, tables.n_rows))
    pairs = 0
    found: list[Pairs] = []
    with closing(sweep_products(left, right, space, metric, eps, SweepOptions(_BATCH_PAIRS, {}))) as batches:
        for batch in batches:
            pairs += len(batch.left)
            degree += np.bincount(batch.left, minlength=len(degree))
            degree += np.bincount(batch.right, minlength=len(degree))
            if pairs > max_pairs:
                return pairs
            if held is not None:
                found.append(batch)
    if held is not None:
        held.hold(eps, found)
    return pairs


def expect_pairs(
    points: Floats, n_rows: int, eps: float, metric: Metric, held: HeldPairs | None = None
) -> ExpectedPairs:
    """Expect of all rows the pairs that a sample of them has: the one count of estimates, plans and refusals.

    Parameters
    ----------
    points : (m, d) float64, a uniform sample in random order, see :func:`draw_rows`; not modified.
    n_rows : all rows, at least m.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    held : see :func:`count_sample_pairs`.

    Notes
    -----
    All rows of the sample are counted, fewer of the first where they have more than two million pairs. The
    number of pairs of m rows is a U-statistic. Its variance is 4 / m times the variance of the fraction of
    the sample that is within eps of a point (Hoeffding 1948), and at least the variance of a count; both
    vanish as m becomes n.
    """
    m, pairs, variance = count_sample_pairs(
        points, eps, metric, max_pairs=_MAX_PAIRS, min_rows=_MIN_ROWS, divisor=2, held=held
    )
    scale = n_rows * (n_rows - 1.0) / (m * (m - 1.0)) if m > 1 else 0.0
    remaining = 1.0 - m / n_rows if m else 0.0
    most = n_rows * max(0.0, n_rows - 1.0) / 2.0
    return _expect(SamplePairs(m, pairs, variance), scale, remaining, most, is_whole=m == n_rows)


def expect_pairs_between(
    left: Floats,
    right: Floats,
    n_rows: tuple[int, int],
    eps: float,
    metric: Metric,
    held: HeldPairs | None = None,
) -> ExpectedPairs:
    """Expect of two tables the pairs that samples of both have, as :func:`expect_pairs` does of one.

    Parameters
    ----------
    left, right : (l, d) and (r, d) float64, uniform samples in random order, drawn independently; not
        modified.
    n_rows : all rows of the left table and of the right one, n and m.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    held : see :func:`count_sample_pairs`.

    Returns
    -------
    ExpectedPairs
        ``sample_rows`` are those of the right table.

    Notes
    -----
    The number of pairs is a U-statistic of two samples. Its variance is, to Hoeffding's first order, that of
    the degrees of both sides' rows, and at least that of a count. It is taken times 1 - l r / (n m), which is
    more than either side's own 1 - l / n and 1 - r / m: the interval is rather too wide.
    """
    (n, m), l_rows = n_rows, len(left)
    limits = {"max_pairs": _MAX_PAIRS, "min_rows": _MIN_ROWS}
    found = count_sample_pairs(right, eps, metric, left=left, held=held, **limits)
    r_rows = min(found.rows, len(right))
    if not l_rows or not r_rows:
        return ExpectedPairs(0.0, 0.0, 0.0, r_rows, 0, True)
    is_whole = l_rows == n and r_rows == m
    scale = (n / l_rows) * (m / r_rows)
    found = found._replace(rows=r_rows)
    return _expect(found, scale, max(0.0, 1.0 - 1.0 / scale), float(n) * m, is_whole=is_whole)


def _expect(
    found: SamplePairs, scale: float, remaining: float, most: float, *, is_whole: bool
) -> ExpectedPairs:
    """Expect the pairs of all rows, with their interval.

    Parameters
    ----------
    scale : pairs of rows for each pair of rows of the sample.
    remaining : what is left of the variance, as the sample is a part of all rows.
    most : pairs of rows.
    is_whole : whether the sample is all rows.
    """
    pairs = found.pairs
    half = NORMAL_95 * math.sqrt(found.variance * remaining)
    few = _RULE_OF_THREE if pairs < _RULE_OF_THREE and not is_whole else 0.0
    high = min(most, (pairs + half + few) * scale)
    suffices = pairs >= _MIN_PAIRS or is_whole
    return ExpectedPairs(pairs * scale, max(0.0, pairs - half) * scale, high, found.rows, pairs, suffices)


def expected_pairs_of_tables(left: Points, right: Points | None, eps: float, metric: Metric) -> float:
    """Estimate the pairs of one table or of two, for the message of a join that is refused.

    Parameters
    ----------
    left, right : (n, d) and (m, d) points; None for one table with itself. Not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    """
    n, sample = len(left), Cuts()
    some = np.asarray(left[draw_rows(n, sample.sample_rows, sample.seed)], np.float64)
    if right is None:
        return expect_pairs(some, n, eps, metric).pairs
    others = np.asarray(right[draw_rows(len(right), sample.sample_rows, (sample.seed, 1))], np.float64)
    return expect_pairs_between(some, others, (n, len(right)), eps, metric).pairs


def decided_pairs(
    points: Floats, embedded: Floats, eps: float, projection: Projection, seed: int
) -> DecidedPairs:
    """Find the pairs of a sample that pass the filter of a window sweep, some for all where they are many.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    eps : threshold in embedded coordinates.
    projection : of the sweep.
    seed : of the 4096 rows that are swept first, of more rows where these have few pairs (so many that some
        two million pairs may come), and of the 200,000 pairs that stand for more.
    """
    m = len(points)
    random = np.random.default_rng(seed)
    shuffled = random.permutation(m)
    with np.errstate(over="ignore"):
        shifted = embedded - projection.centre
    is_out: Bools = (shifted < projection.low) | (shifted > projection.high)
    is_drawn_in = np.asarray(is_out.any(axis=1))
    first = np.sort(shuffled[:_FIRST_ROWS])
    everything = make_decision(EUCLIDEAN, 0.0, math.inf)
    swept = first
    while True:
        no_mask = np.zeros(len(swept), np.int64)
        rows = window_rows(points[swept], embedded[swept], swept, no_mask, eps, projection)
        kept = [(first[:0], first[:0])]
        for batch in sweep_window(rows, everything, SweepOptions(_BATCH_PAIRS, {})):
            near = _are_near_as_they_are(embedded, eps, is_drawn_in, batch.left, batch.right)
            kept.append((batch.left[near], batch.right[near]))
        left, right = (np.concatenate(side) for side in zip(*kept, strict=True))
        weight = (m / len(swept)) ** 2 if m else 1.0
        if len(swept) > len(first) or len(swept) == m or len(left) >= _SUFFICIENT_PAIRS:
            break
        times = math.isqrt(_MAX_PAIRS // max(1, len(left)))  # 3 at least
        swept = np.sort(shuffled[: times * len(first)])
    if len(left) > _SUFFICIENT_PAIRS:
        some = random.choice(len(left), _SUFFICIENT_PAIRS, replace=False)
        left, right, weight = left[some], right[some], weight * len(left) / _SUFFICIENT_PAIRS
    return DecidedPairs(left, right, weight)


def _are_near_as_they_are(embedded: Floats, eps: float, is_drawn_in: Bools, left: Ints, right: Ints) -> Bools:
    """Mark pairs whose rows are near each other where a sweep does not draw them in.

    A sweep draws in the outliers of its rows, to the border of the others, where they meet. A part draws in
    its own outliers: it hardly decides such pairs.
    """
    near: Bools = ~(is_drawn_in[left] | is_drawn_in[right])
    asked = np.flatnonzero(~near)
    at_once = max(1, _BLOCK_NUMBERS // max(1, embedded.shape[1]))
    with np.errstate(over="ignore"):
        for begin in range(0, len(asked), at_once):
            some = asked[begin : begin + at_once]
            near[some] = (np.abs(embedded[left[some]] - embedded[right[some]]) <= eps).all(axis=1)
    return near
