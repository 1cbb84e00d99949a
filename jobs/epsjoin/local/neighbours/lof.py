"""The local outlier factor of every point of an array, by a k-nearest-neighbour join.

It needs no eps, and no factor is unknown. The formulas are in ``densities.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import as_number
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.local.sweep.threads import in_any_order

_BLOCK = 1 << 17
"""Number of neighbours of the points whose factors are computed at once, in the cache."""


class Lof(NamedTuple):
    """Local outlier factors of points, in the order of the points; made by :func:`lof`.

    Parameters
    ----------
    lof : (n,) float64, the local outlier factor: about 1 inside a cluster, larger outside.
    k_distance : (n,) float64, distance to the k-th nearest neighbour.
    neighbour, distance : (n, k) int64 and float64, the k nearest neighbours, see :class:`epsjoin.KNearest`.
    """

    lof: Floats
    k_distance: Floats
    neighbour: Ints
    distance: Floats


def lof(
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
    added_distance: float = 0.0,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
) -> Lof:
    """Compute the local outlier factor of every point.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    k : number of neighbours of each point that count, the point itself not among them; 1 to n - 1.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    weights : (d,) numbers of at least 0 that weigh the dimensions, see :func:`epsjoin.self_join`.
    added_distance : number of at least 0 that is added to every mean reachability distance, 0 by default.
        With any number above 0, all factors are finite; scikit-learn adds 1e-10.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.

    Returns
    -------
    Lof
        A factor for each point, in the order of the points.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.knn_join`. Or added_distance is not a finite number of at least 0; or the squares
        of a point's distances do not fit into float64, so that its factor is undefined.

    See Also
    --------
    knn_join : the neighbours alone.
    db_outliers : points that are far from most others.

    Notes
    -----
    The costs are those of :func:`epsjoin.knn_join`, and about 40 bytes of memory per point and neighbour.

    Where more than k points are equal, the density there is infinite: their factor is 1, and points next to
    such a group get an infinite factor. They come first in any ranking, and means and plots of the factors
    break. ``added_distance=1e-10`` gives such points a large, finite factor, as in scikit-learn.

    Examples
    --------
    >>> found = lof([[0.0], [1.0], [2.0], [3.5], [9.0]], k=2)
    >>> found.lof.round(2).tolist(), found.k_distance.tolist()
    ([0.86, 1.08, 0.94, 1.14, 3.35], [2.0, 1.0, 1.5, 2.5, 7.0])
    """
    added = as_number(added_distance)
    if not 0 <= added < math.inf:
        raise ArgumentError(f"added_distance must be a finite number of at least 0, not {added_distance!r}")
    nearest = knn_join(None, points, k, metric, weights=weights, n_jobs=n_jobs, progress=progress)
    found = lof_of_nearest(nearest, added, check_n_jobs(n_jobs))
    unknown = np.flatnonzero(np.isnan(found.lof))
    if len(unknown):
        raise ArgumentError(
            f"points: row {unknown[0]} (one of {len(unknown):,}) has neighbours so far away that the squares "
            "of the distances do not fit into float64; divide all coordinates by one number"
        )
    return found


def lof_of_nearest(nearest: KNearest, added_distance: float = 0.0, n_jobs: int = 1) -> Lof:
    """Compute the local outlier factors of points whose k nearest are known.

    Parameters
    ----------
    nearest : the k nearest of every point, in the order of the points.
    added_distance : see :func:`lof`.
    n_jobs : number of threads.

    Returns
    -------
    Lof
        In the order of the points.

    Notes
    -----
    O(n k); beside the result 8 bytes for each point, and for each thread arrays of a block of points.
    """
    k_distance = nearest.distance[:, -1].copy()
    density, factor = np.empty(len(k_distance)), np.empty(len(k_distance))
    step = max(1, _BLOCK // nearest.distance.shape[1])
    blocks = [slice(begin, begin + step) for begin in range(0, len(k_distance), step)]

    def add_density(block: slice) -> None:
        # all are valid rows: "clip" skips the check of each
        of_neighbours = k_distance.take(nearest.neighbour[block], mode="clip")
        density[block] = reach_densities(nearest.distance[block], of_neighbours, added_distance)

    def add_factor(block: slice) -> None:
        of_neighbours = density.take(nearest.neighbour[block], mode="clip")
        factor[block] = outlier_factors(density[block], of_neighbours)

    for add in (add_density, add_factor):
        in_any_order(blocks, add, n_jobs)
    return Lof(factor, k_distance, *nearest)
