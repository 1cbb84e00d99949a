"""Kinds of similarity joins, fitted to their points: in memory, in planned parts, in the cells of codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.codes import as_keys
from epsjoin.kernels.plan.cuts import (
    SIDES_ARE_GIVEN,
    CutTree,
    all_turned_sides,
    assign,
    assign_rows,
    cube_sides,
    hash_to_unit,
)
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import CodeKey, MaskKey
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.split_rules.encode import encode
from epsjoin.local.progressive.kinds.kind import CutKind, Keyed, SweepKind
from epsjoin.local.progressive.kinds.point_areas import PartnerArea, StackArea, WindowArea
from epsjoin.local.progressive.rows import Keys, SweepRows, Values

_MIN_SAMPLE_PER_PART = 16
"""Minimum number of rows of the sample for each part that is planned."""


@dataclass(frozen=True)
class PointsInMemory(SweepKind):
    """Points of one part, which is swept by a window.

    Parameters
    ----------
    metric : with its weights.
    eps : threshold in the metric's unit.
    replication_budget : of the parts that are cut, see :class:`epsjoin.Cuts`.
    """

    metric: Metric
    eps: float
    replication_budget: float

    def keyed(self, values: Values, ids: Ints) -> Keyed:  # noqa: ARG002  # as of PointsInParts
        """See :class:`SweepKind`; all have one key."""
        n = len(values)
        return Keyed(np.arange(n), np.zeros(n, np.int32), np.zeros(n, np.int64))

    def new_area(self, counters: dict[str, Any], two_tables: bool) -> WindowArea:
        """See :class:`SweepKind`."""
        return WindowArea(self, counters, two_tables, 1)

    def new_partner_area(
        self, counters: dict[str, Any], two_tables: bool, lack_partner: Callable[[SweepRows], Bools]
    ) -> PartnerArea:
        """See :class:`SweepKind`."""
        return PartnerArea(self, counters, two_tables, lack_partner)

    def lowered(self, eps: float) -> PointsInMemory:
        """See :class:`SweepKind`."""
        return replace(self, eps=eps)

    def cut(self, sample: Values, ids: Ints, n_rows: int, part_rows: int) -> PointsInParts:
        """See :class:`SweepKind`."""
        n_parts = min(max(1, -(-n_rows // part_rows)), max(1, len(sample) // _MIN_SAMPLE_PER_PART))
        cuts = Cuts(n_parts=n_parts, replication_budget=self.replication_budget)
        return PointsInParts.of(plan_join(sample, ids, max(n_rows, len(sample)), self.eps, self.metric, cuts))


@dataclass(frozen=True)
class PointsInParts(CutKind):
    """Points with the parts that their cubes touch.

    Parameters
    ----------
    metric, eps : see :class:`PointsInMemory`.
    reach : threshold in embedded coordinates of the plan, by which cubes are assigned; a lower eps leaves it.
    tree : the plan's cuts.
    plan : of the cuts.
    """

    metric: Metric
    eps: float
    reach: float
    tree: CutTree
    plan: JoinPlan

    @classmethod
    def of(cls, plan: JoinPlan) -> PointsInParts:
        """The parts of a plan with planned cuts."""
        if not isinstance(plan.key, MaskKey):
            raise TypeError("these are no planned cuts")
        metric = plan.get_metric()
        return cls(metric, plan.eps, metric.embedded_eps(plan.eps), plan.key.tree, plan)

    def keyed(self, values: Values, ids: Ints) -> Keyed:
        """See :class:`SweepKind`; a row for each part that the cube touches, marked with its mask."""
        row, part, mask = assign(self.metric.embed(values), hash_to_unit(ids), self.reach, self.tree)
        return Keyed(row, part.astype(np.int32), mask)

    def new_area(self, counters: dict[str, Any], two_tables: bool) -> WindowArea:
        """See :class:`SweepKind`."""
        return WindowArea(self, counters, two_tables, 1 + int(self.tree.bit.max(initial=0)))

    def new_partner_area(
        self, counters: dict[str, Any], two_tables: bool, lack_partner: Callable[[SweepRows], Bools]
    ) -> PartnerArea:
        """See :class:`SweepKind`."""
        return PartnerArea(self, counters, two_tables, lack_partner)

    def lowered(self, eps: float) -> PointsInParts:
        """See :class:`SweepKind`."""
        return replace(self, eps=eps)

    def state(self) -> dict[str, Any]:
        """See :class:`SweepKind`."""
        return {"plan": self.plan.to_json()}

    def pair_keys(self, rows: SweepRows, first: Ints, second: Ints) -> Keys:
        """See :class:`CutKind`: the part that holds the reference point."""
        metric, tree, half = self.metric, self.tree, self.reach / 2.0
        x, y = metric.embed(rows.values[first]), metric.embed(rows.values[second])
        lower = [
            np.maximum(
                cube_sides(np.ascontiguousarray(x[:, i]), half)[0],
                cube_sides(np.ascontiguousarray(y[:, i]), half)[0],
            )
            for i in range(x.shape[1])
        ]
        if len(tree.basis):
            turned = [all_turned_sides(points, tree.basis, half)[0] for points in (x, y)]
            lower += list(np.maximum(*turned))
        corner = np.ascontiguousarray(np.stack(lower, axis=1))
        hashes = np.maximum(hash_to_unit(rows.ids[first]), hash_to_unit(rows.ids[second]))
        none = np.empty(0, np.int64)
        total = assign_rows(corner, corner, SIDES_ARE_GIVEN, hashes, tree, none, none, none, False)
        row, part, mask = (np.empty(total, np.int64) for _ in range(3))
        assign_rows(corner, corner, SIDES_ARE_GIVEN, hashes, tree, row, part, mask, True)
        return part[np.searchsorted(row, np.arange(len(first)))].astype(np.int32)


@dataclass(frozen=True)
class PointsInCells(SweepKind):
    """Points with the codes of the cells that cover their cubes, swept by a stack.

    Parameters
    ----------
    metric, eps : see :class:`PointsInMemory`.
    codes : how points become codes.
    plan : of the cuts.
    """

    metric: Metric
    eps: float
    codes: CodeKey
    plan: JoinPlan

    @classmethod
    def of(cls, plan: JoinPlan) -> PointsInCells:
        """The cells of a plan with regular cuts."""
        if not isinstance(plan.key, CodeKey):
            raise TypeError("these are no regular cuts")
        return cls(plan.get_metric(), plan.eps, plan.key, plan)

    def keyed(self, values: Values, ids: Ints) -> Keyed:  # noqa: ARG002  # as of PointsInParts
        """See :class:`SweepKind`; a row for each cell."""
        coded = encode(self.metric.embed(values), self.codes.space, self.codes.rule)
        return Keyed(coded.row, as_keys(coded.codes), np.empty(0, np.int64))

    def new_area(self, counters: dict[str, Any], two_tables: bool) -> StackArea:
        """See :class:`SweepKind`."""
        return StackArea(self, counters, two_tables, self.codes.space)

    def lowered(self, eps: float) -> PointsInCells:
        """See :class:`SweepKind`."""
        return replace(self, eps=eps)

    def state(self) -> dict[str, Any]:
        """See :class:`SweepKind`."""
        return {"plan": self.plan.to_json()}
