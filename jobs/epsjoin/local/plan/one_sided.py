"""Parts for semi joins: each left row goes to one part, and all its possible partners go there, too.

A pair is made where the cubes of both rows, of side eps, meet, and either row may go to several parts. Then
one can say whether a left row has a partner only after all its parts. Here the left row is sent once, as a
point, and each right row to all parts that its cube of side 2 eps touches: one part knows all about a left
row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.plan.cuts import CutTree, assign, hash_to_unit, holding_parts
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.spread import Replicas, as_points

_MARGIN = 1.0 + 2.0**-30
"""Factor of eps that covers the rounding of sums of up to a million terms (:func:`holding_parts`)."""


def planned(cuts: Cuts) -> Cuts:
    """Return the same settings with planned cuts: regular cuts have no one-sided replicas."""
    return replace(cuts, kind="planned", k=None, msl=None, rule=None)


def hold(points: Floats, ids: Ints, plan: JoinPlan) -> Replicas:
    """Send each left row to the part that holds it.

    Parameters
    ----------
    points, ids, plan : see :func:`epsjoin.local.plan.spread.replicate`; the plan's cuts are planned.

    Returns
    -------
    Replicas
        Each row once, sorted by part, then by row; the masks are 0.

    Raises
    ------
    ArgumentError
        Points with another number of coordinates than the plan's; a plan of regular cuts.
    """
    embedded = plan.get_metric().embed(as_points(points, plan))
    part = holding_parts(embedded, hash_to_unit(np.asarray(ids, np.int64)), _tree_of(plan))
    row = np.argsort(part, kind="stable")
    return Replicas(row, part[row].astype(np.int32), np.zeros(len(row), np.int64))


def reach(points: Floats, ids: Ints, plan: JoinPlan) -> Replicas:
    """Send each right row to every part that holds a left row within eps of it.

    Parameters
    ----------
    points, ids, plan : see :func:`hold`.

    Returns
    -------
    Replicas
        Each row once or more, sorted by part, then by row; the masks are 0.

    Raises
    ------
    ArgumentError
        As :func:`hold`.
    """
    metric = plan.get_metric()
    embedded = metric.embed(as_points(points, plan))
    side = 2.0 * metric.embedded_eps(plan.eps) * _MARGIN
    both_ways_at_hashes = np.full(len(ids), -1.0)
    row, part, _ = assign(embedded, both_ways_at_hashes, side, _tree_of(plan))
    order = np.argsort(part, kind="stable")
    return Replicas(row[order], part[order].astype(np.int32), np.zeros(len(row), np.int64))


def _tree_of(plan: JoinPlan) -> CutTree:
    if plan.tree is None:
        raise ArgumentError("whether rows have a partner is found by planned cuts, not by regular ones")
    return plan.tree
