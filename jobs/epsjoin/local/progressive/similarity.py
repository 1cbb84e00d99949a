"""The similarity join as a kind of join, under planned and under regular cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.join.codes import as_keys, cube_corners, hold_cubes, range_ends
from epsjoin.kernels.join.cuts import (
    MAX_AXES,
    SIDES_ARE_GIVEN,
    all_turned_sides,
    assign_rows,
    cube_sides,
    hash_ids,
)
from epsjoin.kernels.join.window import window_rows
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.arguments import check_points
from epsjoin.local.join.options import BATCH_ROWS
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.encode import Space
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import CodeKey
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.progressive.kinds import JoinKind, Keyed, check_lower
from epsjoin.local.progressive.rows import NO_RUN, Keys, Met, SweepRows, Values, concat
from epsjoin.local.progressive.sweep_areas import SortedArea, SweepArea
from epsjoin.local.scale import scale_metric
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_window

_BATCH_FRACTION = 1 / 4
"""Pairs in a batch of a window sweep for each of its rows, at least."""
_MIN_BATCH = 1 << 12


class _Fitted(NamedTuple):
    """What is known after the first rows: the metric with its weights, its threshold, and the plan.

    ``reach`` is the threshold in embedded coordinates of the keys; a lower eps does not change it.
    """

    metric: Metric
    eps: float
    reach: float
    plan: JoinPlan | None


@dataclass(frozen=True)
class Similarity(JoinKind):
    """Points within eps.

    Parameters
    ----------
    eps : threshold in the metric's unit; or (d,), one per dimension. See :func:`epsjoin.self_join`.
    metric : name of a metric, or a :class:`epsjoin.Metric`; "euclidean" by default.
    weights : see :func:`epsjoin.self_join`.
    cuts : "planned" (the default): parts are planned on a sample, and each is swept by a window. "regular":
        the keys are the papers' codes, and candidates are compared one after the other; for experiments.
    k, msl, replication_budget : see :class:`epsjoin.Cuts`; k and msl are for regular cuts.
    fitted : set by the join: what it chose on the first rows.

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
    fitted: _Fitted | None = None

    def __post_init__(self) -> None:
        Cuts(self.cuts, k=self.k, msl=self.msl, replication_budget=self.replication_budget)
        chosen = self.metric if isinstance(self.metric, Metric) else get_metric(self.metric)
        if np.ndim(self.eps) == 0:
            chosen.check_eps(self.eps)

    @property
    def grouped(self) -> bool:  # type: ignore[override]
        """Whether keys are parts."""
        return not self._is_coded

    @property
    def _is_coded(self) -> bool:
        return self.cuts == "regular"

    @property
    def _set(self) -> _Fitted:
        if self.fitted is None:
            raise ValueError("fit comes first")
        return self.fitted

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinKind`."""
        points = check_points(name, values)
        metric = self.metric if isinstance(self.metric, Metric) else get_metric(self.metric)
        try:
            metric.check(points)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from None
        return points

    def fit(self, sample: Values) -> Similarity:
        """See :class:`JoinKind`."""
        if self.fitted is not None:
            return self
        metric = self.metric if isinstance(self.metric, Metric) else get_metric(self.metric)
        metric, eps = scale_metric(metric, sample, self.eps, self.weights)
        fitted = _Fitted(metric, eps, metric.embedded_eps(eps), None)
        if self._is_coded:
            cuts = Cuts("regular", 1, self.k, self.msl, self.replication_budget)
            plan = plan_join(sample, np.arange(len(sample)), len(sample), eps, metric, cuts, 0.0)
            fitted = fitted._replace(plan=plan)
        return replace(self, fitted=fitted)

    def cut(self, sample: Values, ids: Ints, n_rows: int, part_rows: int) -> Similarity:
        """See :class:`JoinKind`."""
        metric, eps, _, plan = self._set
        if plan is not None:
            return self
        n_parts = min(max(1, -(-n_rows // part_rows)), max(1, len(sample) // 16))
        cuts = Cuts(n_parts=n_parts, replication_budget=self.replication_budget)
        plan = plan_join(sample, ids, max(n_rows, len(sample)), eps, metric, cuts)
        return replace(self, fitted=self._set._replace(plan=plan))

    def keyed(self, values: Values, ids: Ints) -> Keyed:
        """See :class:`JoinKind`."""
        metric, _, reach, plan = self._set
        if plan is None:
            n = len(values)
            return Keyed(np.arange(n), np.zeros(n, np.int32), np.zeros(n, np.int64))
        row, part, key = plan.key.assign(metric.embed(values), ids, reach)
        if self._is_coded:
            return Keyed(row, as_keys(np.asarray(key, np.uint8)), np.empty(0, np.int64))
        return Keyed(row, part.astype(np.int32), np.asarray(key, np.int64))

    def key(self, values: Values) -> Keys:
        """See :class:`JoinKind`; of the first replica."""
        keyed = self.keyed(values, np.zeros(len(values), np.int64))
        first = np.searchsorted(keyed.row, np.arange(len(values)))
        return keyed.key[first]

    def expire(self, values: Values, is_right: Bools) -> Keys:
        """Not asked: replicas of a point expire at keys of their own, see :meth:`expire_of`."""
        raise NotImplementedError

    def joins(self, left: Values, right: Values) -> Floats:
        """See :class:`JoinKind`."""
        n = len(left)
        points = np.concatenate((left, right))
        metric, eps, *_ = self._set
        distance = paired_distances(metric.decision(eps), points, np.arange(n), np.arange(n, 2 * n))
        return np.where(distance < 0.0, np.nan, distance)

    def expire_of(self, rows: SweepRows) -> Keys:
        """See :class:`JoinKind`: the end of the code's range; of a part, the part."""
        if not self._is_coded:
            return rows.key
        width = rows.key.dtype.itemsize
        codes = np.ascontiguousarray(rows.key).view(np.uint8).reshape(rows.n, width)
        return as_keys(range_ends(codes))

    def meet(self, rows: SweepRows, first: Ints, second: Ints) -> Floats:
        """See :class:`JoinKind`."""
        metric, eps, *_ = self._set
        distance = paired_distances(metric.decision(eps), rows.values, first, second)
        found = np.flatnonzero(distance >= 0.0)
        first, second = first[found], second[found]
        answer = np.full(len(distance), np.nan)
        owned = (
            self._owns(rows, first, second) if self._is_coded else (rows.mark[first] & rows.mark[second]) == 0
        )
        answer[found[owned]] = distance[found[owned]]
        return answer

    def _space(self) -> Space:
        plan = self._set.plan
        assert plan is not None  # noqa: S101
        assert isinstance(plan.key, CodeKey)  # noqa: S101
        return plan.key.space

    def _owns(self, rows: SweepRows, first: Ints, second: Ints) -> Bools:
        """Whether no row is a replica, or the cells of both hold the reference point."""
        space, metric = self._space(), self._set.metric
        codes = np.ascontiguousarray(rows.key).view(np.uint8).reshape(rows.n, rows.key.dtype.itemsize)
        corners = (space.axes, space.low, space.width, space.eps)
        lower, upper = cube_corners(metric.embed(rows.values[first]), *corners)
        others, ends = cube_corners(metric.embed(rows.values[second]), *corners)
        whole = hold_cubes(codes[first], lower, upper) & hold_cubes(codes[second], others, ends)
        reference = np.maximum(lower, others)
        # in an area the longer code would be enough; condition 4.1 is about all rows
        held = hold_cubes(codes[first], reference, reference) & hold_cubes(
            codes[second], reference, reference
        )
        return np.asarray(whole | held)

    def pair_keys(self, rows: SweepRows, first: Ints, second: Ints) -> Keys:
        """See :class:`JoinKind`: the part that holds the reference point."""
        metric, _, reach, plan = self._set
        if plan is None or plan.tree is None:
            return np.zeros(len(first), np.int32)
        tree, half = plan.tree, reach / 2.0
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
        hashes = np.maximum(hash_ids(rows.ids[first]), hash_ids(rows.ids[second]))
        none = np.empty(0, np.int64)
        total = assign_rows(corner, corner, SIDES_ARE_GIVEN, hashes, tree, none, none, none, False)
        row, part, mask = (np.empty(total, np.int64) for _ in range(3))
        assign_rows(corner, corner, SIDES_ARE_GIVEN, hashes, tree, row, part, mask, True)
        return part[np.searchsorted(row, np.arange(len(first)))].astype(np.int32)

    def new_area(self, counters: dict[str, Any], two_tables: bool) -> SweepArea:
        """See :class:`JoinKind`."""
        if self._is_coded:
            return SortedArea(self, counters, two_tables)
        return WindowArea(self, counters, two_tables)

    def lowered(self, eps: float) -> Similarity:
        """See :class:`JoinKind`."""
        if np.ndim(self.eps) or self.weights is not None:
            raise ArgumentError(
                "with weights, or one eps per dimension, eps cannot be lowered while a join runs"
            )
        lower = check_lower(eps, float(np.asarray(self.eps)))
        metric = self.metric if isinstance(self.metric, Metric) else get_metric(self.metric)
        metric.check_eps(lower)
        fitted = None if self.fitted is None else self.fitted._replace(eps=lower)
        return replace(self, eps=lower, fitted=fitted)

    def state(self) -> dict[str, Any]:
        """See :class:`JoinKind`."""
        plan = None if self.fitted is None else self.fitted.plan
        return {"plan": None if plan is None else plan.to_json()}

    def with_state(self, state: dict[str, Any]) -> Similarity:
        """See :class:`JoinKind`."""
        if state["plan"] is None:
            return self
        plan = JoinPlan.from_json(state["plan"])
        metric = plan.get_metric()
        return replace(self, fitted=_Fitted(metric, plan.eps, metric.embedded_eps(plan.eps), plan))


class WindowArea:
    """The rows of one part, swept together by the compiled window sweep.

    Parameters
    ----------
    kind : fitted, under planned cuts.
    counters : ``candidates`` and ``distance_computations`` are added to them.
    two_tables : whether rows of the right table are compared with those of the left, not all with all.

    Notes
    -----
    Rows of one run are told apart by bits of the masks that the tree has left over: the sweep drops what
    shares a bit before the metric. Runs for which there is no bit are dropped behind it.
    """

    def __init__(self, kind: Similarity, counters: dict[str, Any], two_tables: bool) -> None:
        self.kind: Any = kind
        self._counters, self._two_tables = counters, two_tables
        self._held: list[SweepRows] = []

    @property
    def size(self) -> int:
        """See :class:`SweepArea`."""
        return sum(rows.n for rows in self._held)

    def expire(self, key: Any) -> SweepRows | None:
        """See :class:`SweepArea`."""
        dropped = [rows for rows in self._held if key is None or rows.key[-1] < key]
        self._held = [rows for rows in self._held if not (key is None or rows.key[-1] < key)]
        return concat(dropped) if dropped else None

    def insert(self, rows: SweepRows) -> None:
        """See :class:`SweepArea`."""
        if rows.n:
            self._held.append(rows)

    def query(self, rows: SweepRows) -> Iterator[Met]:
        """See :class:`SweepArea`."""
        fitted = self.kind._set
        both = concat([*self._held, rows])
        held = both.n - rows.n
        mask = _mark_runs(both, held, _first_free(fitted.plan))
        metric, reach = fitted.metric, fitted.metric.embedded_eps(fitted.eps)
        embedded = metric.embed(both.values)
        projection = choose_projection(embedded, both.n, reach, metric.norm).projection
        numbers = np.arange(both.n)
        is_right = both.is_right if self._two_tables else None
        ordered = window_rows(both.values, embedded, numbers, mask, reach, projection, is_right)
        counts: dict[str, int] = {}
        batch_rows = min(BATCH_ROWS, max(_MIN_BATCH, int(both.n * _BATCH_FRACTION)))
        try:
            for first, second, distance in sweep_window(
                ordered, metric.decision(fitted.eps), SweepOptions(batch_rows, counts)
            ):
                run = both.run[first]
                new = ((run == NO_RUN) | (run != both.run[second])) & ((first >= held) | (second >= held))
                yield (
                    Met(both, first[new], second[new], distance[new])
                    if not new.all()
                    else Met(both, first, second, distance)
                )
        finally:  # also when nobody asks for the rest
            for name in ("candidates", "distance_computations"):
                self._counters[name] = self._counters.get(name, 0) + counts.get(name, 0)


def _first_free(plan: JoinPlan | None) -> int:
    """The first mask bit that no cut of the tree uses."""
    return 1 if plan is None or plan.tree is None else 1 + int(plan.tree.bit.max(initial=0))


def _mark_runs(rows: SweepRows, n_held: int, free: int) -> Ints:
    """Masks of rows: the first free bit for those that were held, and one for each run of the others."""
    mask = rows.mark.copy() if len(rows.mark) else np.zeros(rows.n, np.int64)
    if free <= MAX_AXES:
        mask[:n_held] |= np.int64(1) << free
    bit = free + 1 + rows.run[n_held:].astype(np.int64)
    has_bit = (rows.run[n_held:] != NO_RUN) & (bit <= MAX_AXES)
    mask[n_held:] |= np.where(has_bit, np.int64(1) << np.where(has_bit, bit, 0), 0)
    return mask
