"""The parts of a join as rows of a table, by which other systems join and drop repeated pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints, Ints32
from epsjoin.local.coordinates import check_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from epsjoin.local.scale import scale_metric


class Parts(NamedTuple):
    """Rows of points in the parts of a join; made by :func:`parts`.

    Parameters
    ----------
    row : (m,) int64, row number of the point; a point whose cube is cut has several rows.
    part : (m,) int32, number of the part, from 0 on, ascending; within a part by ``row``.
    mask : (m,) int64. A part reports a pair of its rows only if their masks have no bit in common.
    """

    row: Ints
    part: Ints32
    mask: Ints

    @property
    def owns(self) -> Bools:
        """(m,) bool: whether the part owns the point; of the rows of a point exactly one does."""
        return np.asarray(self.mask == 0)


def parts(
    points: ArrayLike,
    eps: float | ArrayLike,
    cuts: Cuts,
    metric: str | Metric = "euclidean",
    *,
    weights: ArrayLike | None = None,
) -> Parts:
    """Send every point to the parts in which it must be joined, for a join by another system.

    Two points within eps are both in at least one part, and in exactly one of these parts their masks have no
    bit in common. So ``ON a.part = b.part WHERE a.mask & b.mask = 0 AND distance <= eps`` finds each pair
    within eps once, in DuckDB, Polars, Spark or a database.

    Parameters
    ----------
    points : (n, d) array of points, as for :func:`epsjoin.self_join`. For two tables pass one below the
        other: the rows from ``len(left)`` on are the right one's.
    eps, metric, weights : see :func:`epsjoin.self_join`.
    cuts : planned cuts. If a system compares all rows of a part with each other, more parts mean fewer
        comparisons: parts of some hundred points each are a good beginning.

    Returns
    -------
    Parts
        Row, part and mask, sorted by part, then by row.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.self_join`. Or the cuts are regular ones: these have codes, and no masks.
    BudgetError
        ``most_part_rows`` cannot be kept within ``replication_budget``.

    See Also
    --------
    self_join : the pairs themselves, and far fewer candidates: inside a part it sweeps a window.
    Cuts : how many parts, and how many rows a point may become.

    Notes
    -----
    O(n log parts) after a plan on a sample of ``cuts.sample_rows`` points. The reference point method
    (Dittrich's dissertation, definition 9) as a bit mask: ``epsjoin.kernels.plan.cuts`` has the proof.

    Examples
    --------
    >>> square = np.random.default_rng(1).random((1000, 2))
    >>> cut = parts(square, 0.01, Cuts(n_parts=4))
    >>> np.unique(cut.part), bool(len(cut.row) > 1000), int(cut.owns.sum())
    (array([0, 1, 2, 3], dtype=int32), True, 1000)
    """
    if not isinstance(cuts, Cuts):
        raise ArgumentError(f"cuts must be epsjoin.Cuts(...), not {cuts!r}")
    if cuts.kind != "planned":
        raise ArgumentError(f"cuts must be planned, not {cuts.kind}: only planned cuts have masks")
    values = check_points("points", points)
    chosen = get_metric(metric)
    chosen, threshold = scale_metric(chosen, values, eps, weights)
    chosen.check(values, "points")
    ids, sample = np.arange(len(values)), cuts.sample(len(values))
    plan = plan_join(values[sample], sample, len(values), threshold, chosen, cuts)
    row, part, mask = replicate(values, ids, plan)
    return Parts(row, part, np.asarray(mask, np.int64))
