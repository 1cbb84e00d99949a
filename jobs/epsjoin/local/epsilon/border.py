"""The power law of points that fill their bounding box, with the effect of the box's border removed.

At the border of the data the balls around points are cut off, which lowers the slope of the pair curve, the
more so the more dimensions. Weights of pairs repair that where the data fills a box, and only there.

References
----------
Ohser, Stoyan: On the second-order and orientation analysis of planar stationary point processes, Biometrical
Journal 23 (1981): the weights of :func:`border_weights`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.epsilon.power_law import PowerLawFit, fit_power_law, pair_count_curve
from epsjoin.local.metric import Metric
from epsjoin.local.sweep.pairs import Pairs

_BATCH_NUMBERS = 1 << 21
"""Maximum number of coordinates in the temporary array of one step."""


def border_weights(differences: Iterable[Floats], sides: Floats) -> Floats:
    """Compute weights that correct for the border of a box: the larger a difference, the fewer places it has.

    Two points that differ by h are both in a box with sides L only if the first is in the box moved by -h,
    which is the fraction ``prod(1 - |h_i| / L_i)`` of the box. Weighted by the inverse, the pairs of uniform
    points in a box follow the power law with exponent d without a bend, in every L_p.

    Parameters
    ----------
    differences : d times (n,) float64, by how much the two points of each pair differ in a dimension; below
        its side in absolute value. They are modified, since new arrays in each step would take twice as long.
    sides : (d,) float64, sides of the box, above 0.

    Returns
    -------
    (n,) float64, at least 1.

    References
    ----------
    Ohser, Stoyan 1981: the translation correction, there for pair counts of a planar process.
    """
    places = np.ones(1)
    for difference, side in zip(differences, sides, strict=True):
        np.abs(difference, out=difference)
        difference /= side
        places = np.multiply(places, np.subtract(1.0, difference, out=difference), out=difference)
    return np.divide(1.0, places)


def fit_without_border(
    batches: list[Pairs], sample: Floats, metric: Metric, r_max: float, measured: PowerLawFit, seed: int
) -> PowerLawFit | None:
    """Fit the power law, corrected for the border of the bounding box; None where the points do not fill it.

    Parameters
    ----------
    batches : the pairs of the sample within ``r_max``.
    sample : (m, d) float64.
    metric, r_max : metric and eps of the join of the sample.
    measured : the power law without a correction.
    seed : seed of the jackknife groups.
    """
    with np.errstate(over="ignore"):  # a side is infinite then, and its border is nowhere near
        sides = np.ptp(sample, axis=0)
    varying = np.flatnonzero(sides)
    # On a cube under L∞ the slope at r is 2 d (1 - r) / (2 - r): below d / 2 only beyond two thirds of a
    # side, so the border is not the reason of a flatter curve.
    if metric.is_on_sphere or measured.interval_high < varying.size / 2:
        return None
    sides, columns = sides[varying], np.ascontiguousarray(sample[:, varying].T)
    reach = min(r_max, float(np.nextafter(sides.min(), 0.0)))  # beyond a side the box cannot hold a pair

    def weighted() -> Iterator[tuple[Ints, Ints, Floats, Floats]]:
        step = max(1, _BATCH_NUMBERS // varying.size)
        for batch in batches:
            near = np.flatnonzero(batch.distance <= reach)
            for begin in range(0, near.size, step):
                chunk = near[begin : begin + step]
                left, right = batch.left[chunk], batch.right[chunk]
                differences = (column[left] - column[right] for column in columns)
                yield left, right, batch.distance[chunk], border_weights(differences, sides)

    try:
        law = fit_power_law(pair_count_curve(weighted(), len(sample), reach, seed=seed), len(sample))
    except ArgumentError:  # too few pairs within the shortest side
        return None
    return law if law.interval_low <= varying.size <= law.interval_high else None
