"""Distances of given pairs of rows, however far apart."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import Decision, decide


@njit
def paired_distances(decision: Decision, points: Floats, left: Ints, right: Ints) -> Floats:
    """Measure each pair ``(points[left[i]], points[right[i]])``, -1 where it is beyond the bound.

    Parameters
    ----------
    decision : metric and bound; with an infinite bound every distance is returned.
    points : (n, d) float64, not modified.
    left, right : (n_pairs,) int64, rows of points.

    Returns
    -------
    (n_pairs,) float64, in the metric's unit.

    Notes
    -----
    O(n_pairs d), rows are not gathered.
    """
    distances = np.empty(left.size)
    for i in range(left.size):
        distances[i] = decide(decision, points, left[i], points, right[i])
    return distances
