"""Distance-based outliers: points that most other points are far from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools
from epsjoin.kernels.cluster.density import count_ends
from epsjoin.local.arguments import as_number
from epsjoin.local.coordinates import check_points
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric
from epsjoin.local.progress import ProgressArgument


def db_outliers(
    points: npt.ArrayLike,
    eps: float,
    share: float,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
) -> Bools:
    """Find the distance-based outliers: points with a given fraction of all points farther than eps.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    eps : threshold in the metric's unit, finite and above 0. A point at exactly eps is not beyond it.
    share : fraction of all n points that must be farther than eps, above 0 and at most 1. The point itself is
        one of the n points, and never farther than eps.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    weights : (d,) numbers of at least 0 that weigh the dimensions, see :func:`epsjoin.self_join`.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.

    Returns
    -------
    (n,) bool, in the order of the points.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point.

    See Also
    --------
    lof : how much sparser the surroundings of a point are than those of its neighbours.

    Notes
    -----
    The cost is that of the join; pairs are counted and not kept, in 9 bytes per point. A point is an outlier
    if ``(n - degree) / n >= share`` in float64, where its degree is the number of points within eps. So with
    a share of 0.9, 9 of 10 points are enough.

    References
    ----------
    Knorr, Ng, VLDB 1998, section 2: DB(p, D)-outliers, with p the share and D eps.

    Examples
    --------
    >>> db_outliers([[0.0], [1.0], [2.0], [9.0]], eps=2.0, share=0.75).tolist()
    [False, False, False, True]
    """
    least = as_number(share)
    if not 0 < least <= 1:
        raise ArgumentError(f"share must be a number above 0 and at most 1, not {share!r}")
    values = check_points("points", points)
    n = len(values)
    degree, is_crowded = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    how: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs, "progress": progress}
    for left, right, _ in iter_self_join(values, eps, metric, **how):
        count_ends(left, right, n, degree, is_crowded)
    return np.asarray((n - degree) / max(n, 1) >= least)
