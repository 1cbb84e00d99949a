"""The planner, which chooses the cuts of a join on a sample.

:func:`plan_join` sees a sample; :func:`~epsjoin.local.plan.spread.replicate` and
:func:`~epsjoin.local.join.parts.join_part` need nothing but the plan and their rows, so each may run
anywhere, in any order, on any part of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels import codes as join_codes
from epsjoin.kernels.arrays import Bytes, Floats, Ints
from epsjoin.kernels.plan.cuts import CutTree, hash_to_unit
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.local.metric import Metric
from epsjoin.local.plan.costs import (
    NS_PER_MOVED_ROW,
    NS_PER_TERM,
    WINDOW_NS_PER_CANDIDATE,
    WINDOW_NS_PER_COORDINATE,
    WINDOW_NS_PER_DECISION,
    WINDOW_NS_PER_ROW,
    max_sample_rows,
    window_seconds,
)
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expectation.decided_pairs import decided_pairs
from epsjoin.local.plan.expectation.expected import draw_rows, expect_pairs, expect_pairs_between
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.projection import Choice, choose_projection
from epsjoin.local.plan.regular import choose_rule, cut
from epsjoin.local.plan.split_rules.encode import Space, encode
from epsjoin.local.plan.split_rules.own_rule import Rule
from epsjoin.local.plan.spread import replicate
from epsjoin.local.plan.tree.cut_leaf import Costs
from epsjoin.local.plan.tree.grow_tree import GrownTree, grow_tree
from epsjoin.local.plan.two_tables import SampledSides, count_between, expect_between
from epsjoin.local.scale import ScaledMetric

_MIN_TREE_ROWS, _TREE_ROWS_PER_PART = 8_000, 250
"""Number of rows to which a tree is fitted where a sample has twice as many or more: at least, and for each
part. With more rows planning takes longer, and parts do not become more even."""


def plan_join(
    sample: Floats,
    sample_ids: Ints,
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
    expected_pairs: float | None = None,
    sides: SampledSides | None = None,
    ranges: Ranges = in_one_range,
) -> JoinPlan:
    """Choose the cuts of a join on a sample of its rows.

    Parameters
    ----------
    sample : (m, d) float64, original coordinates, finite; not modified. A uniform sample of the rows.
    sample_ids : (m,) int64.
    n_rows : rows of the whole input, at least m.
    eps : threshold in the metric's unit.
    metric : from :func:`epsjoin.local.metric.get_metric`.
    cuts : how to cut.
    expected_pairs : pairs of all rows, if the caller knows more than the sample's own count.
    sides : of two tables: whose rows the sample has. Then the sample's rows are in random order, pairs, rows
        and candidates are expected of the join of both, and a part's largest number of rows is of both. The
        cuts are fitted to all rows, whatever table they are of. By default one table is joined with itself.
    ranges : how ranges of axes, and of leaves, are worked on.

    Returns
    -------
    JoinPlan
        The same for the same arguments.

    Raises
    ------
    ArgumentError
        A wrong argument, or points for which the metric is not defined.
    BudgetError
        An unlimited split rule makes more than a million rows of one cube. A part stays larger than
        ``most_part_rows``, however many parts are aimed at: the replication budget ends the cutting.

    Notes
    -----
    Planned cuts: the leaf with the most estimated work for each part that it becomes is cut
    (:mod:`epsjoin.local.plan.tree.grow_tree`).
    Work: per row 100 ns and 27 ns per embedded coordinate, 1.5 ns per candidate, 25 ns per pair that is
    decided; pairs are counted on the sample, scaled by (n_rows / m)². The model of the dissertation (eq. 3.3)
    assumes uniform data.
    """
    rows = look_at(sample, sample_ids, n_rows, eps, metric, sides, ranges)
    pairs = _expect_pairs(rows, cuts.seed) if expected_pairs is None else expected_pairs
    n_parts = cuts.n_parts
    if cuts.least_part_seconds:
        affordable = min(n_parts, _expect_seconds(rows, pairs) / cuts.least_part_seconds)
        cuts = replace(cuts, n_parts=max(1, math.ceil(affordable)))
    plan = _plan_parts(rows, cuts, pairs)
    max_rows = math.inf if cuts.most_part_rows is None else cuts.most_part_rows
    while plan.expected_part_rows > max_rows:
        # parts are of equal work, not of equal rows: some more than the ratio of rows
        n_parts = math.ceil(max(n_parts, plan.n_parts) * min(4.0, 1.2 * plan.expected_part_rows / max_rows))
        cuts = replace(cuts, n_parts=n_parts)
        finer = _plan_parts(rows, cuts, plan.expected_pairs)
        if finer.n_parts <= plan.n_parts or finer.n_parts > len(sample):
            raise BudgetError(
                f"the largest of {plan.n_parts:,} parts would have about {plan.expected_part_rows:,.0f} "
                f"rows, {max_rows:,} are allowed, and at {cuts.replication_budget:g} rows per point "
                "(replication_budget) no more parts can be cut; allow larger parts (most_part_rows; in a run "
                "worker_memory_mb), or more rows per point"
            )
        plan = finer
    return plan


@dataclass(frozen=True)
class SampledRows:
    """What is known of the rows of a join before they are cut; the arguments are those of :func:`plan_join`.

    Parameters
    ----------
    embedded, reach : the points, and eps, in embedded coordinates.
    low, width : the embedded space: its lower corner and its longest side.
    in_one_part : the projection for a sweep over the sample, and what it will filter.
    """

    points: Floats
    ids: Ints
    n_rows: int
    eps: float
    metric: Metric
    sides: SampledSides | None
    ranges: Ranges
    embedded: Floats
    reach: float
    low: Floats
    width: float
    in_one_part: Choice

    @property
    def scale(self) -> float:
        """How many rows a row of the sample stands for."""
        return self.n_rows / len(self.points) if len(self.points) else 0.0


def look_at(
    sample: Floats,
    ids: Ints,
    n_rows: int,
    eps: float,
    metric: Metric,
    sides: SampledSides | None = None,
    ranges: Ranges = in_one_range,
) -> SampledRows:
    """Check a sample, and measure what no cut changes; the arguments are those of :func:`plan_join`."""
    eps = metric.check_eps(eps)
    if np.ndim(sample) != 2 or len(sample) != len(ids):
        raise ArgumentError(f"sample must be (m, d) with m ids, not {np.shape(sample)}, {len(ids)}")
    m, d = sample.shape
    n_embedded = metric.dimensions(d)
    points = np.ascontiguousarray(sample, np.float64)
    embedded, reach = metric.embed(points), metric.embedded_eps(eps)
    low = embedded.min(axis=0) if m else np.zeros(n_embedded)
    with np.errstate(over="ignore"):
        width = float((embedded.max(axis=0) - low).max()) if m else 0.0
    width = width if math.isfinite(width) else 0.0  # one cell: slow but exact
    in_one_part = choose_projection(embedded, m, reach, metric.norm, ranges=ranges)
    return SampledRows(
        points, ids, n_rows, eps, metric, sides, ranges, embedded, reach, low, width, in_one_part
    )


def _expect_pairs(rows: SampledRows, seed: int) -> float:
    """Expect as many pairs of all rows as the sample has for its own."""
    points, sides = rows.points, rows.sides
    if sides is None:
        m = len(points)
        return expect_pairs(points[draw_rows(m, m, seed)], rows.n_rows, rows.eps, rows.metric).pairs
    of_tables = points[~sides.is_right], points[sides.is_right]
    return expect_pairs_between(*of_tables, sides.n_rows, rows.eps, rows.metric).pairs


def _expect_seconds(rows: SampledRows, pairs: float) -> float:
    """How long one sweep over all rows would take."""
    if rows.sides is None:
        candidates = rows.in_one_part.candidates * rows.scale * rows.scale
    else:
        found = count_between(rows.embedded, rows.sides.is_right, rows.reach, rows.in_one_part.projection)
        candidates = rows.sides.pair_weight * found
    return window_seconds(rows.n_rows, rows.embedded.shape[1], candidates, pairs)


def _plan_parts(rows: SampledRows, cuts: Cuts, pairs: float) -> JoinPlan:
    """Plan with the number of parts that ``cuts`` aims at, however many rows the largest part has."""
    metric, scale = rows.metric, rows.scale
    made = _cut_planned(rows, cuts) if cuts.kind == "planned" else _cut_regular(rows, cuts)
    plan = JoinPlan(
        kind=cuts.kind,
        eps=rows.eps,
        metric=metric.name,
        p=metric.p if metric.name == "minkowski" else None,
        n_parts=made.n_parts,
        dimensions=rows.points.shape[1],
        low=rows.low,
        width=rows.width,
        tree=made.tree,
        axes=made.axes,
        levels=made.levels,
        replication_budget=float(cuts.replication_budget),
        rule=made.rule,
        decisions=cuts.decisions,
        boundaries=made.boundaries,
        expected_rows=made.rows * scale,
        expected_part_rows=0.0,
        expected_candidates=made.candidates * scale * scale,
        expected_pairs=pairs,
        sample_rows=len(rows.points),
        scale=metric.scale if isinstance(metric, ScaledMetric) else None,
    )
    if rows.sides is not None:
        return expect_between(plan, rows.points, rows.ids, rows.sides)
    in_parts = np.bincount(replicate(rows.points, rows.ids, plan).part, minlength=1)
    return replace(plan, expected_part_rows=float(in_parts.max()) * scale)


class _CutSample(NamedTuple):
    """The cuts of a sample, as fields of :class:`JoinPlan`, and its rows and candidates under them."""

    n_parts: int
    rows: float
    candidates: float
    axes: Ints
    tree: CutTree | None = None
    levels: int = 0
    rule: Rule | None = None
    boundaries: Bytes = np.empty((0, 0), np.uint8)


def _cut_planned(rows: SampledRows, cuts: Cuts) -> _CutSample:
    """Planned cuts: those of a tree."""
    grown = grow_parts(rows, cuts)
    axes = np.unique(grown.tree.axis[(grown.tree.part < 0) & (grown.tree.axis >= 0)])
    return _CutSample(grown.n_parts, float(grown.rows), grown.candidates, axes, grown.tree)


def _cut_regular(rows: SampledRows, cuts: Cuts) -> _CutSample:
    """Regular cuts: choose the rule, as far as it is not set, and the boundaries of the parts."""
    embedded, n_embedded = rows.embedded, rows.embedded.shape[1]
    axes = np.arange(n_embedded, dtype=np.int64)
    levels = join_codes.deepest_level(rows.width, rows.reach, n_embedded)
    space = Space(axes, rows.low, rows.width, rows.reach, levels, cuts.decisions)
    rule, n_parts = cuts.split_rule(), cuts.n_parts
    if rule is None:
        rule, n_parts = choose_rule(embedded, space, cuts, rows.n_rows)
    codes = encode(embedded, space, rule).codes
    levels = -(-max(map(join_codes.code_bits, codes), default=0) // n_embedded)
    codes = encode(embedded, space._replace(levels=levels), rule).codes  # shorter
    boundaries, n_rows, compared = cut(codes, n_parts, rows.scale)
    return _CutSample(
        len(boundaries) + 1, n_rows, compared, axes, levels=levels, rule=rule, boundaries=boundaries
    )


def grow_parts(rows: SampledRows, cuts: Cuts) -> GrownTree:
    """Fit a tree of planned cuts to a sample, or to some of it; the work of its parts is in nanoseconds."""
    points, embedded, ids = rows.points, rows.embedded, rows.ids
    n_sample, n_embedded = embedded.shape
    m = max(_MIN_TREE_ROWS, _TREE_ROWS_PER_PART * cuts.n_parts)
    if 2 * m > n_sample:
        m = n_sample
    else:
        few = np.sort(draw_rows(n_sample, m, cuts.seed))
        points, embedded, ids = points[few], embedded[few], ids[few]
    rows_per_row = rows.n_rows / m if m else 0.0
    max_leaf_rows = math.inf if cuts.most_part_rows is None or not m else cuts.most_part_rows / rows_per_row
    grown = grow_tree(
        embedded,
        hash_to_unit(ids),
        rows.reach,
        cuts.n_parts,
        norm=rows.metric.norm,
        decided=decided_pairs(points, embedded, rows.reach, rows.in_one_part.projection, cuts.seed),
        rows_per_row=rows_per_row,
        costs=Costs(
            row=WINDOW_NS_PER_ROW + WINDOW_NS_PER_COORDINATE * n_embedded,
            candidate=WINDOW_NS_PER_CANDIDATE,
            decision=WINDOW_NS_PER_DECISION,
            move=NS_PER_MOVED_ROW,
            turn=NS_PER_TERM * n_embedded,
        ),
        max_rows=max_sample_rows(m, cuts.replication_budget),
        max_leaf_rows=max_leaf_rows,
        ranges=rows.ranges,
    )
    times = n_sample / m if m else 1.0
    return grown._replace(rows=round(times * grown.rows), candidates=times**2 * grown.candidates)
