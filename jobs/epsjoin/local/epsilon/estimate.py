"""The number of pairs and the cost of a join, estimated from a sample before the join runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import check_table_sizes
from epsjoin.local.coordinates import check_dimensions, check_points
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan import row_by_row
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.product import MIN_DIMENSIONS, ProductPlan, has_products
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.two_tables import SampledSides, count_between
from epsjoin.local.plan.ways import Tables, are_few, choose_way
from epsjoin.local.product.blas import one_thread
from epsjoin.local.scale import scale_metric

PAIR_BYTES = 24
"""Bytes of memory of a pair that is kept."""


@dataclass(frozen=True)
class Estimate:
    """Expected result and cost of a join; made by :func:`estimate`.

    Parameters
    ----------
    n_rows : number of rows of the whole set; of two tables those of the left one.
    n_sample : number of rows whose pairs were counted; of two tables those of the right one.
    eps : threshold in the metric's unit, or 1 where there is one eps per dimension.
    pairs : expected number of pairs.
    pairs_low, pairs_high : 95 % interval for the number of pairs.
    rows : expected number of rows to sweep; where the join is split into parts, with the replicas.
    candidates : expected number of pairs of rows that will be compared: all where they go through products,
        which :func:`epsjoin.self_join` does in a dozen dimensions and more. A join in up to three dimensions
        without ``cuts`` goes row by row, and compares more, each in less time; :func:`epsjoin.iter_self_join`
        and :func:`epsjoin.iter_join` do not.
    row_bytes : bytes of memory of the rows during the sweep, of all parts together.
    pair_bytes : bytes of memory of all pairs.
    right_rows : number of rows of the whole right table; None for one table with itself.
    tasks : number of pairs of blocks that a join of frames multiplies, each in a task; None where it does
        not. Then ``rows`` are those that are sent to tasks, each as often as it is sent, and ``candidates``
        are products.
    task_bytes : bytes of memory of the rows of the largest task.
    sent_bytes : bytes of all rows that are sent.
    seconds : seconds of one core for all tasks.

    Examples
    --------
    >>> corners = estimate([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], eps=1.0)
    >>> corners.pairs, corners.neighbours, corners.pair_bytes
    (4.0, 2.0, 96.0)
    """

    n_rows: int
    n_sample: int
    eps: float
    pairs: float
    pairs_low: float
    pairs_high: float
    rows: float
    candidates: float
    row_bytes: float
    pair_bytes: float
    right_rows: int | None = None
    tasks: int | None = None
    task_bytes: float | None = None
    sent_bytes: float | None = None
    seconds: float | None = None

    @property
    def neighbours(self) -> float:
        """Expected average number of points within eps of a point, the point itself not counted.

        Of two tables: of right rows within eps of a left one.
        """
        ends = 2.0 if self.right_rows is None else 1.0
        return ends * self.pairs / self.n_rows if self.n_rows else 0.0


def estimate(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
    n_rows: int | None = None,
    cuts: Cuts | None = None,
    seed: int = 0,
    right: ArrayLike | None = None,
    right_rows: int | None = None,
) -> Estimate:
    """Estimate the number of pairs and the cost of :func:`epsjoin.self_join` or :func:`epsjoin.join`.

    Parameters
    ----------
    points, eps, metric, weights, cuts : see :func:`epsjoin.self_join`. The points are the whole set or a
        uniform sample of it.
    n_rows : number of rows of the whole set, if ``points`` is a sample; by default the number of points.
    seed : seed of the random choices of rows, 0 by default.
    right : (m, d) array, the right table of a join of two, or a uniform sample of it, drawn by itself. By
        default ``points`` are joined with themselves.
    right_rows : number of rows of the whole right table, if ``right`` is a sample.

    Returns
    -------
    Estimate
        Expected pairs with an interval, and the cost. The same arguments give the same result.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.self_join`. Or n_rows or right_rows is not a whole number, or less than the number
        of points.

    See Also
    --------
    fit_epsilon : an eps for a given number of pairs or neighbours.
    self_join : the join itself.

    Notes
    -----
    The pairs of a sample of 20,000 rows (``cuts.sample_rows``) are counted, of fewer rows where these have
    millions. That takes tenths of a second. Where they have fewer than 30, the power law continues the count.
    ``self_join`` and ``fit_epsilon`` name the same number for the same points, ``sample_rows`` and seed.

    Examples
    --------
    >>> import numpy as np
    >>> square = np.random.default_rng(1).random((50_000, 2))
    >>> expected = estimate(square, 0.01)
    >>> 350_000 < expected.pairs_low < expected.pairs < expected.pairs_high < 430_000
    True
    """
    chosen = get_metric(metric)
    values = check_points("points", points)
    others = None if right is None else check_points("right", right)
    chosen.check(values, "points")
    both = values
    if others is not None:
        check_dimensions(points=values.shape[1], right=others.shape[1])
        both = np.concatenate((values, others))
        chosen.check(others, "right")
    chosen, threshold = scale_metric(chosen, both, eps, weights)
    n, m = check_table_sizes(values, others, n_rows, right_rows)
    if cuts is not None and not isinstance(cuts, Cuts):
        raise ArgumentError(f"cuts must be epsjoin.Cuts(...) or None, not {cuts!r}")
    sampling = cuts if cuts is not None else Cuts(seed=seed)
    d = values.shape[1]
    expectation = Expectation(values, n, chosen, seed, sampling.sample_rows, None, others, m)
    if others is None:
        rows = sampling.sample(len(values))
        sample = values[rows]
    else:
        sample = np.concatenate(expectation.samples)
        rows = np.arange(len(sample))
    expected = expectation.at(threshold)
    embedded, reach = chosen.embed(sample), chosen.embedded_eps(threshold)
    choice = choose_projection(embedded, n + m, reach, chosen.norm)
    swept, candidates = float(n + m), choice.candidates
    is_right = np.arange(len(sample)) >= (len(sample) if others is None else len(expectation.samples[0]))
    sides = None if others is None else SampledSides(is_right, (n, m))
    if cuts is not None:
        plan = plan_join(sample, rows, n + m, threshold, chosen, cuts, expected.pairs, sides)
        swept, candidates = plan.expected_rows, plan.expected_candidates
    elif row_by_row.is_row_by_row(chosen, d, n + m):
        candidates = row_by_row.expect_candidates(sample, n + m, reach, chosen.norm, sides)
    elif sides is not None:
        candidates = sides.pair_weight * count_between(embedded, sides.is_right, reach, choice.projection)
    row_bytes = swept * (16.0 * d + 4.0 * min(8, d) + 64.0)
    tables = Tables(sample[~is_right], None if others is None else sample[is_right], n, m)
    if cuts is None and _is_multiplied(tables, threshold, chosen):
        candidates, row_bytes = tables.n_pairs, swept * 4.0 * (d + 6)
    return Estimate(
        n_rows=n,
        n_sample=expected.sample_rows,
        eps=threshold,
        pairs=expected.pairs,
        pairs_low=expected.low,
        pairs_high=expected.high,
        rows=swept,
        candidates=candidates,
        row_bytes=row_bytes,
        pair_bytes=expected.pairs * PAIR_BYTES,
        right_rows=None if others is None else m,
    )


def _is_multiplied(tables: Tables, eps: float, metric: Metric) -> bool:
    """Whether a join of tables, of which these are samples, goes through products of blocks."""
    d = tables.left.shape[1]
    if d < MIN_DIMENSIONS or not has_products(metric) or are_few(tables.n_pairs, d):
        return False
    with one_thread():
        return isinstance(choose_way(tables, eps, metric), ProductPlan)
