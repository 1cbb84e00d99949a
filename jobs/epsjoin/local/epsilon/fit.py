"""Choosing eps from the fractal dimension of the points.

1. ``radius.py`` chooses the largest radius, and the number of rows, for which the join of the sample stays
   small.
2. ``power_law.py`` counts the pairs within r for each r of a grid, from one join with the largest radius.
3. It fits the straight part of this curve on log-log scales; its slope is the exponent P. Where the points
   fill their bounding box, ``border.py`` corrects the effect of the border.
4. ``epsilon_fit.py`` derives eps for a number of neighbours, a number of pairs, a quantile of the
   k-distances, or their knee (``k_distance.py``).

:func:`fit_epsilon` is all four steps; ``local_exponents.py`` does them region by region. The sample must be a
uniform one. Then its exponent is that of the whole set, and from m sampled rows to n rows the number of pairs
grows by n (n - 1) / (m (m - 1)). ``box_count.py`` is another way to P, without a join.

References
----------
Dittrich's dissertation, sections 3.7 and 6.2 (local fractal dimensions). Levina, Bickel: Maximum likelihood
estimation of intrinsic dimension, NIPS 2004. Satopaa, Albrecht, Irwin, Raghavan: Finding a "kneedle" in a
haystack, ICDCS workshops 2011.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import check_count, check_seed, check_table_sizes
from epsjoin.local.coordinates import check_points
from epsjoin.local.epsilon.border import fit_without_border
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    fit_power_law,
    pair_count_curve,
)
from epsjoin.local.epsilon.radius import choose_r_max
from epsjoin.local.epsilon.two_tables import fit_between
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.expectation.expected import draw_rows
from epsjoin.local.scale import check_weights, multiply


def fit_epsilon(
    points: npt.ArrayLike,
    metric: str | Metric = "euclidean",
    sample_rows: int = 20_000,
    seed: int = 0,
    n_rows: int | None = None,
    max_k: int = 64,
    *,
    weights: npt.ArrayLike | None = None,
    right: npt.ArrayLike | None = None,
    right_rows: int | None = None,
) -> EpsilonFit:
    """Fit the power law of pair counts, from which eps follows.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers, the whole set or a uniform sample of it; not modified.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    sample_rows : maximum number of rows that are sampled, 20,000 by default. Fewer are used where their join
        would be too large.
    seed : seed of every random choice, 0 by default. The same points and seed give the same fit.
    n_rows : number of rows of the whole set, if ``points`` is a sample; by default the number of points.
    max_k : largest k for k-distances, 64 by default.
    weights : (d,) numbers of at least 0 that weigh the dimensions, see :func:`epsjoin.self_join`.
    right : (m, d) array, the right table of a join of two, or a uniform sample of it: then the pairs between
        both tables are fitted. By default those of ``points`` with one another.
    right_rows : number of rows of the whole right table, if ``right`` is a sample.

    Returns
    -------
    EpsilonFit
        The fit, from which :meth:`EpsilonFit.eps_for` chooses eps.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite (the message names its
        row and column). Or there are too few points, or too few different ones, for a power law, or two
        tables lie apart; then the message asks to choose eps by hand.

    See Also
    --------
    fit_box_count : the exponent without a join.
    k_distance : of every point; a quantile of them is an eps that needs no power law.
    local_exponents : an exponent for each region.
    estimate : the number of pairs for an eps.

    Notes
    -----
    The cost is one join of the sample with some million pairs.

    At the border of the data the balls around points are cut off. That lowers the slope, the more so the more
    dimensions there are. Where the metric is an L_p and the points fill their bounding box, the pairs are
    weighted to correct it. We take the box as filled when the 95 % interval of the corrected slope contains
    d, the number of axes that vary: a set of lower dimension does not reach d, because weights can only
    correct the border that the box has. Other sets keep the slope of the measured curve. For
    ``default_rng(0).random((20_000, d))`` the exponent is 5.04 for d = 5 (4.85 uncorrected), 7.89 for 8
    (7.21), 16.2 for 16 (13.2). On a lattice with many equal points it can be too large, because equal points
    are not counted; R² is then low.

    Between two tables the law is that of equation 3.15: the exponent is that of what both have in common, for
    two halves of one set that of the set. The border is not corrected. Tables that lie apart are refused:
    their first pairs are at the gap, and rise faster than those of tables that touch, twice the dimensions.

    With weights the sampled coordinates are multiplied, and rounded: for euclidean by the roots of the
    weights. ``weights=1 / eps**2`` (for manhattan and chebyshev ``1 / eps``) looks for the number by which
    one eps per dimension is to be multiplied.

    Examples
    --------
    >>> square = np.random.default_rng(1).random((5000, 2))
    >>> fit = fit_epsilon(square)
    >>> round(fit.exponent, 1), round(fit.eps_for(neighbours=10), 2)
    (2.0, 0.03)
    """
    chosen = get_metric(metric)
    values = check_points("points", points)
    chosen.check(values, "points")
    sample_rows, max_k = check_count("sample_rows", sample_rows, 2), check_count("max_k", max_k)
    seed = check_seed("seed", seed)
    others = None if right is None else check_points("right", right)
    n, m = check_table_sizes(values, others, n_rows, right_rows)
    given = check_weights(chosen, values.shape[1], weights)
    weigh = _as_they_are if given is None else multiply(chosen, values, given)
    if others is not None:
        chosen.check(others, "right")
        both = fit_between(values, others, chosen, sample_rows, seed, m, weigh)
        of_left = both.curve, both.law, both.law, both.rows, both.left
        return EpsilonFit(n, both.n_left, *of_left, chosen, max_k, both.right)
    # In random order, so that any first rows are a uniform sample as well.
    order = draw_rows(len(values), sample_rows, seed)
    sample = np.ascontiguousarray(weigh(values[order]))
    r_max, rows = choose_r_max(sample, chosen, seed=seed)
    fitted = sample[:rows]
    batches = list(iter_self_join(fitted, r_max, chosen))
    if not batches:
        raise ArgumentError(f"{rows} sampled points have no pair within {r_max:.6g}; {BY_HAND}")
    curve = pair_count_curve(batches, rows, r_max, seed=seed)
    measured = fit_power_law(curve, rows)
    law = fit_without_border(batches, fitted, chosen, r_max, measured, seed) or measured
    return EpsilonFit(n, rows, curve, law, measured, order, sample, chosen, max_k)


def _as_they_are(points: Floats) -> Floats:
    """Return the points: there are no weights."""
    return points
