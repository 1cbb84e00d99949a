"""Send rows to the parts in which they must be joined, by a plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints, Ints32
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys


class Replicas(NamedTuple):
    """Rows by part.

    Parameters
    ----------
    row : (m,) int64, index of the point.
    part : (m,) int32, ascending.
    key : planned cuts: (m,) int64 masks; regular cuts: (m, w) uint8 codes.
    """

    row: Ints
    part: Ints32
    key: Keys


def replicate(points: Floats, ids: Ints, plan: JoinPlan) -> Replicas:
    """Send points to the parts in which they must be joined.

    Parameters
    ----------
    points : (n, d) float64 (or float32, or integers), original coordinates, finite; not modified.
    ids : (n,) int64.
    plan : from :func:`plan_join`.

    Returns
    -------
    Replicas
        Sorted by part, within a part by point. What a point becomes depends on nothing but the point, its id
        and the plan, so any division of the input gives the same replicas.

    Raises
    ------
    ArgumentError
        Points with another number of coordinates than the plan's, or for which the metric is not defined.
    BudgetError
        An unlimited split rule makes more than a million rows of one cube.
    """
    metric = plan.get_metric()
    embedded = metric.embed(as_points(points, plan))
    eps = metric.embedded_eps(plan.eps)
    row, part, key = plan.key.assign(embedded, np.asarray(ids, np.int64), eps)
    # numbers of 16 bits are sorted by their digits, in a fifth of the time
    order = np.argsort(part.astype(np.uint16) if plan.n_parts <= 1 << 16 else part, kind="stable")
    return Replicas(row[order], part[order].astype(np.int32), key[order])


def as_points(points: Floats, plan: JoinPlan) -> Floats:
    """Convert points to (n, d) float64 in C order; ArgumentError where d is not the plan's."""
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] != plan.dimensions:
        raise ArgumentError(f"points must be (n, {plan.dimensions}) as the plan's, not {points.shape}")
    return points
