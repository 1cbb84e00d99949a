"""The planner, which chooses the cuts of a join on a sample.

:func:`plan_join` sees a sample; :func:`~epsjoin.local.plan.spread.replicate` and
:func:`~epsjoin.local.join.parts.join_part` need nothing but the plan and their rows, so each may run
anywhere, in any order, on any part of the rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Bytes, Floats, Ints
from epsjoin.kernels.join import codes as join_codes
from epsjoin.kernels.join.cuts import CutTree, hash_to_unit
from epsjoin.kernels.join.projection import Projection
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
from epsjoin.local.plan.decided_pairs import decided_pairs
from epsjoin.local.plan.encode import Space, encode
from epsjoin.local.plan.expected import draw_rows, expect_pairs, expect_pairs_between
from epsjoin.local.plan.grow_tree import GrownTree, grow_tree
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.own_rule import Rule
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.regular import choose_rule, cut
from epsjoin.local.plan.spread import replicate
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
    expected_pairs : pairs of all rows, where the caller knows more than the sample's own count.
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
    (:mod:`epsjoin.local.plan.grow_tree`).
    Work: per row 100 ns and 27 ns per embedded coordinate, 1.5 ns per candidate, 25 ns per pair that is
    decided; pairs are counted on the sample, scaled by (n_rows / m)². The model of the dissertation (eq. 3.3)
    assumes uniform data.
    """
    max_rows = math.inf if cuts.most_part_rows is None else cuts.most_part_rows
    plan = _plan_once(sample, sample_ids, n_rows, eps, metric, cuts, expected_pairs, sides, ranges)
    n_parts = cuts.n_parts
    while plan.expected_part_rows > max_rows:
        # parts are of equal work, not of equal rows: some more than the ratio of rows
        n_parts = math.ceil(max(n_parts, plan.n_parts) * min(4.0, 1.2 * plan.expected_part_rows / max_rows))
        cuts = replace(cuts, n_parts=n_parts, least_part_seconds=0.0)
        finer = _plan_once(sample, sample_ids, n_rows, eps, metric, cuts, plan.expected_pairs, sides, ranges)
        if finer.n_parts <= plan.n_parts or finer.n_parts > len(sample):
            raise BudgetError(
                f"the largest of {plan.n_parts:,} parts would have about {plan.expected_part_rows:,.0f} "
                f"rows, {max_rows:,} are allowed, and at {cuts.replication_budget:g} rows per point "
                "(replication_budget) no more parts can be cut; allow larger parts (worker_memory_mb), "
                "or more rows per point"
            )
        plan = finer
    return plan


def _plan_once(
    sample: Floats,
    sample_ids: Ints,
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
    expected_pairs: float | None,
    sides: SampledSides | None,
    ranges: Ranges,
) -> JoinPlan:
    """Plan with the parts that ``cuts`` aims at, however many rows the largest has."""
    eps = metric.check_eps(eps)
    if np.ndim(sample) != 2 or len(sample) != len(sample_ids):
        raise ArgumentError(f"sample must be (m, d) with m ids, not {np.shape(sample)}, {len(sample_ids)}")
    m, d = sample.shape
    points = np.ascontiguousarray(sample, np.float64)
    embedded = metric.embed(points)
    n_embedded = metric.dimensions(d)
    embedded_eps = metric.embedded_eps(eps)
    low = embedded.min(axis=0) if m else np.zeros(n_embedded)
    with np.errstate(over="ignore"):
        width = float((embedded.max(axis=0) - low).max()) if m else 0.0
    width = width if math.isfinite(width) else 0.0  # one cell: slow but exact
    scale = n_rows / m if m else 0.0
    in_one_part = choose_projection(embedded, m, embedded_eps, metric.norm, ranges=ranges)
    projection = in_one_part.projection
    pairs = expected_pairs
    if pairs is None:
        pairs = _expect_pairs(points, n_rows, eps, metric, cuts, sides)
    if cuts.least_part_seconds:
        candidates = in_one_part.candidates * scale * scale
        if sides is not None:
            candidates = sides.pair_weight * count_between(embedded, sides.is_right, embedded_eps, projection)
        expected = window_seconds(n_rows, n_embedded, candidates, pairs)
        affordable = min(cuts.n_parts, expected / cuts.least_part_seconds)
        cuts = replace(cuts, n_parts=max(1, math.ceil(affordable)))
    if cuts.kind == "planned":
        of = n_rows, eps, metric, cuts, projection, ranges
        made = _cut_planned(grow_parts(points, embedded, sample_ids, *of))
    else:
        made = _cut_regular(embedded, low, width, embedded_eps, cuts, n_rows)
    plan = JoinPlan(
        kind=cuts.kind,
        eps=eps,
        metric=metric.name,
        p=metric.p if metric.name == "minkowski" else None,
        n_parts=made.n_parts,
        dimensions=d,
        low=low,
        width=width,
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
        sample_rows=m,
        scale=metric.scale if isinstance(metric, ScaledMetric) else None,
    )
    if sides is not None:
        return expect_between(plan, points, sample_ids, sides)
    in_parts = np.bincount(replicate(points, sample_ids, plan).part, minlength=1)
    return replace(plan, expected_part_rows=float(in_parts.max()) * scale)


def _expect_pairs(
    points: Floats, n_rows: int, eps: float, metric: Metric, cuts: Cuts, sides: SampledSides | None
) -> float:
    """Expect as many pairs of all rows as the sample has for its own."""
    if sides is None:
        m = len(points)
        return expect_pairs(points[draw_rows(m, m, cuts.seed)], n_rows, eps, metric).pairs
    of_tables = points[~sides.is_right], points[sides.is_right]
    return expect_pairs_between(*of_tables, sides.n_rows, eps, metric).pairs


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


def _cut_planned(grown: GrownTree) -> _CutSample:
    """Planned cuts: the tree that was grown."""
    axes = np.unique(grown.tree.axis[(grown.tree.part < 0) & (grown.tree.axis >= 0)])
    return _CutSample(grown.n_parts, float(grown.rows), grown.candidates, axes, grown.tree)


def _cut_regular(
    embedded: Floats, low: Floats, width: float, embedded_eps: float, cuts: Cuts, n_rows: int
) -> _CutSample:
    """Regular cuts: choose the rule, as far as it is not set, and the boundaries of the parts."""
    m, n_embedded = embedded.shape
    axes = np.arange(n_embedded, dtype=np.int64)
    levels = join_codes.deepest_level(width, embedded_eps, n_embedded)
    space = Space(axes, low, width, embedded_eps, levels, cuts.decisions)
    rule, n_parts = cuts.split_rule(), cuts.n_parts
    if rule is None:
        rule, n_parts = choose_rule(embedded, space, cuts, n_rows)
    codes = encode(embedded, space, rule).codes
    levels = -(-max(map(join_codes.code_bits, codes), default=0) // n_embedded)
    codes = encode(embedded, space._replace(levels=levels), rule).codes  # shorter
    boundaries, rows, compared = cut(codes, n_parts, n_rows / m if m else 0.0)
    return _CutSample(
        len(boundaries) + 1, rows, compared, axes, levels=levels, rule=rule, boundaries=boundaries
    )


def grow_parts(
    points: Floats,
    embedded: Floats,
    ids: Ints,
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
    projection: Projection,
    ranges: Ranges = in_one_range,
) -> GrownTree:
    """Fit a tree of planned cuts to a sample, or some of its rows; the work of its parts is in nanoseconds.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; ids : (m,) int64. Not modified.
    n_rows, eps, metric, cuts, ranges : see :func:`plan_join`.
    projection : for a window sweep over the sample.
    """
    n_sample, n_embedded = embedded.shape
    m = max(_MIN_TREE_ROWS, _TREE_ROWS_PER_PART * cuts.n_parts)
    if 2 * m > n_sample:
        m = n_sample
    else:
        few = np.sort(draw_rows(n_sample, m, cuts.seed))
        points, embedded, ids = points[few], embedded[few], ids[few]
    reach = metric.embedded_eps(eps)
    rows_per_row = n_rows / m if m else 0.0
    max_leaf_rows = math.inf if cuts.most_part_rows is None or not m else cuts.most_part_rows / rows_per_row
    grown = grow_tree(
        embedded,
        hash_to_unit(ids),
        reach,
        cuts.n_parts,
        norm=metric.norm,
        decided=decided_pairs(points, embedded, reach, projection, cuts.seed),
        rows_per_row=rows_per_row,
        row_cost=WINDOW_NS_PER_ROW + WINDOW_NS_PER_COORDINATE * n_embedded,
        candidate_cost=WINDOW_NS_PER_CANDIDATE,
        decision_cost=WINDOW_NS_PER_DECISION,
        move_cost=NS_PER_MOVED_ROW,
        term_cost=NS_PER_TERM,
        max_rows=max_sample_rows(m, cuts.replication_budget),
        max_leaf_rows=max_leaf_rows,
        ranges=ranges,
    )
    times = n_sample / m if m else 1.0
    return grown._replace(rows=round(times * grown.rows), candidates=times**2 * grown.candidates)
