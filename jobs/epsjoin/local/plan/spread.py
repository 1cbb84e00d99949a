"""Rows to the parts in which they must be joined, by a plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.join.cuts import assign, hash_ids
from epsjoin.kernels.join.regular import carry
from epsjoin.local.plan.encode import Space, encode
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.rules import make_split_rule


class Replicas(NamedTuple):
    """Rows by part.

    Parameters
    ----------
    row : (m,) int64, index of the point among the points given.
    part : (m,) int32, ascending.
    key : planned cuts: (m,) int64 masks; regular cuts: (m, w) uint8 codes.
    """

    row: NDArray[np.int64]
    part: NDArray[np.int32]
    key: NDArray[np.int64] | NDArray[np.uint8]


def replicate(points: NDArray[np.float64], ids: NDArray[np.int64], plan: JoinPlan) -> Replicas:
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
    key: NDArray[np.int64] | NDArray[np.uint8]
    if plan.tree is not None:
        rows = assign(embedded, hash_ids(np.asarray(ids, np.int64)), eps, plan.tree)
        row, part, key = rows.row, rows.part, rows.mask
    else:
        rule = plan.rule if plan.rule is not None else make_split_rule(0, 0, 1.0)
        space = Space(plan.axes, plan.low, plan.width, eps, plan.levels, plan.decisions)
        coded = encode(embedded, space, rule)
        carried = carry(coded.codes, plan.boundaries)
        row, part, key = coded.row[carried.coded], carried.part, coded.codes[carried.coded]
    order = np.argsort(part, kind="stable")
    return Replicas(row[order], part[order].astype(np.int32), key[order])


def as_points(points: NDArray[np.float64], plan: JoinPlan) -> NDArray[np.float64]:
    """The points as (n, d) float64 in C order; ArgumentError where d is not the plan's."""
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] != plan.dimensions:
        raise ArgumentError(f"points must be (n, {plan.dimensions}) as the plan's, not {points.shape}")
    return points
