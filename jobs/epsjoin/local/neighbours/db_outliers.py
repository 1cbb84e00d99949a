"""Distance-based outliers: points that most other points are far from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.cluster.density import count_ends
from epsjoin.local.arguments import check_points
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric
from epsjoin.local.progress import ProgressArgument


def db_outliers(
    points: npt.ArrayLike,
    eps: float,
    share: float,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
) -> npt.NDArray[np.bool_]:
    """Find the distance-based outliers DB(share, eps): at least this share of all points is farther than eps.

    Parameters
    ----------
    points : (n, d) floats or integers, see :func:`epsjoin.local.arguments.check_points`; not modified.
    eps : threshold in the metric's unit, finite and above 0; a point at exactly eps is not farther.
    share : of all n points, the point itself among them though never far from itself; above 0, at most 1.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    n_jobs, progress : of the join, see :func:`epsjoin.local.join.arrays.iter_self_join`.

    Returns
    -------
    (n,) bool.

    Raises
    ------
    ArgumentError
        A wrong argument, a value that is NaN or infinite, a point for which the metric is not defined.

    Notes
    -----
    The join, and O(pairs); 9 bytes per point, no pair is kept. Decided as ``(n - degree) / n >= share`` in
    float64, so that a share of 0.9 is 9 points of 10.

    References
    ----------
    Knorr, Ng, VLDB 1998, section 2: DB(p, D)-outliers.

    Examples
    --------
    >>> db_outliers([[0.0], [1.0], [2.0], [9.0]], eps=2.0, share=0.75).tolist()
    [False, False, False, True]
    """
    if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 < share <= 1:
        raise ArgumentError(f"share must be a number above 0 and at most 1, not {share!r}")
    values = check_points("points", points)
    n = len(values)
    degree, is_crowded = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    for left, right, _ in iter_self_join(values, eps, metric, n_jobs=n_jobs, progress=progress):
        count_ends(left, right, n, degree, is_crowded)
    return np.asarray((n - degree) / max(n, 1) >= share)
