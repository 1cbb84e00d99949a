"""The formulas of the local outlier factor (LOF), on arrays of the k nearest neighbours.

1. The *reachability distance* of p from its neighbour o is ``reach(p, o) = max(k_distance(o), d(p, o))``.
2. :func:`reach_densities`: the *local reachability density* is ``lrd(p) = k / sum reach(p, o)``, o over the
   k nearest of p.
3. :func:`outlier_factors`: ``lof(p) = mean lrd(o) / lrd(p)``, over the same neighbours.

What depends on an unknown k-distance is unknown: NaN, never a guess.

References
----------
Breunig, Kriegel, Ng, Sander: LOF: identifying density-based local outliers, SIGMOD 2000, definitions 3-7.
Departures: there all points at the k-distance are neighbours, here those of the smaller ids, k together. The
paper assumes that fewer than k points are equal to a point; here densities may be infinite, see
:func:`outlier_factors`.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Floats


def reach_densities(distance: Floats, neighbour_k_distance: Floats, added_distance: float = 0.0) -> Floats:
    """Compute the local reachability density of points from their k nearest.

    Parameters
    ----------
    distance : (n, k) float64, distances to the k nearest, ordered by (distance, neighbour). They are added in
        that order, so that a sum is the same to the last bit wherever it is computed.
    neighbour_k_distance : (n, k) float64, the k-distances of these neighbours; NaN where unknown.
    added_distance : number that is added to every mean reachability distance.

    Returns
    -------
    (n,) float64: infinite where k neighbours are equal to the point and each has k more such neighbours
    (unless a distance is added), NaN where a k-distance is unknown.
    """
    reach = np.maximum(distance, neighbour_k_distance)  # NaN wins
    with np.errstate(divide="ignore", over="ignore"):
        total = _sum_in_order(reach) + distance.shape[1] * added_distance
        return np.asarray(distance.shape[1] / total, dtype=np.float64)


def outlier_factors(density: Floats, neighbour_density: Floats) -> Floats:
    """Compute the local outlier factor of points from their density and those of their k nearest.

    Parameters
    ----------
    density : (n,) float64, densities of the points; may be infinite, NaN where unknown.
    neighbour_density : (n, k) float64, densities of the k nearest, ordered by (distance, neighbour).

    Returns
    -------
    (n,) float64: 1 where the density is infinite (more than k equal points; R's dbscan package decides inf /
    inf in the same way), infinite where only a neighbour's density is, NaN where a density is unknown.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # inf / inf, and 0 of far points
        total = _sum_in_order(neighbour_density)
        factor: Floats = total / neighbour_density.shape[1] / density
    factor[np.isinf(density) & ~np.isnan(total)] = 1.0
    return factor


def _sum_in_order(columns: Floats) -> Floats:
    """Add each row from left to right; NumPy's own sum groups the terms differently for different k."""
    total = columns[:, 0].copy()
    for column in columns.T[1:]:
        total += column
    return total
