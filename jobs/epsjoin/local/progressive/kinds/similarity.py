"""The similarity join as a condition that rows are joined on, under planned and under regular cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.local.coordinates import check_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.progressive.kinds.kind import Fitted, JoinCondition, SweepKind, check_lower
from epsjoin.local.progressive.kinds.points import PointsInCells, PointsInMemory, PointsInParts
from epsjoin.local.progressive.rows import Values
from epsjoin.local.scale import scale_metric


@dataclass(frozen=True)
class Similarity(JoinCondition):
    """Points within eps.

    Parameters
    ----------
    eps : threshold in the metric's unit; or (d,), one per dimension. See :func:`epsjoin.self_join`.
    metric : name of a metric, or a :class:`epsjoin.Metric`; "euclidean" by default.
    weights : see :func:`epsjoin.self_join`.
    cuts : "planned" (the default): parts are planned on a sample, and each is swept by a window. "regular":
        the keys are the papers' codes, and each is swept by a stack.
    k, msl, replication_budget : see :class:`epsjoin.Cuts`; k and msl are for regular cuts.

    Raises
    ------
    ArgumentError
        An argument is out of its range, or the metric is unknown.

    Examples
    --------
    >>> from epsjoin import progressive_join
    >>> with progressive_join([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], on=Similarity(5.0)) as found:
    ...     [pairs.distance.tolist() for pairs, *_ in found]
    [[5.0]]
    """

    eps: float | ArrayLike
    metric: str | Metric = "euclidean"
    weights: ArrayLike | None = None
    cuts: Literal["planned", "regular"] = "planned"
    k: int | None = None
    msl: int | None = None
    replication_budget: float = 4.0
    joins_equals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Cuts(self.cuts, k=self.k, msl=self.msl, replication_budget=self.replication_budget)
        if np.ndim(self.eps) == 0:
            self._metric.check_eps(self.eps)

    @property
    def _metric(self) -> Metric:
        return get_metric(self.metric)

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinCondition`."""
        points = check_points(name, values)
        self._metric.check(points, name)
        return points

    def fit(self, sample: Values, n_rows: int) -> SweepKind:
        """See :class:`JoinCondition`."""
        metric, eps = scale_metric(self._metric, sample, self.eps, self.weights)
        if self.cuts == "planned":
            return PointsInMemory(metric, eps, self.replication_budget)
        cuts = Cuts("regular", 1, self.k, self.msl, self.replication_budget)
        n_rows = max(n_rows, len(sample))
        return PointsInCells.of(plan_join(sample, np.arange(len(sample)), n_rows, eps, metric, cuts, 0.0))

    def restored(self, state: dict[str, Any]) -> Fitted:
        """See :class:`JoinCondition`."""
        plan = JoinPlan.from_json(state["plan"])
        if self.cuts == "regular":
            return Fitted(PointsInCells.of(plan))
        cut = PointsInParts.of(plan)
        return Fitted(PointsInMemory(cut.metric, cut.eps, self.replication_budget), cut)

    def lowered(self, eps: float) -> Similarity:
        """See :class:`JoinCondition`."""
        if np.ndim(self.eps) or self.weights is not None:
            raise ArgumentError(
                "with weights, or one eps per dimension, eps cannot be lowered while a join runs"
            )
        lower = check_lower(eps, float(np.asarray(self.eps)))
        self._metric.check_eps(lower)
        return replace(self, eps=lower)
