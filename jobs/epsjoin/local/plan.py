"""The plan of a join, and its two steps: replicate rows into parts, join one part.

``plan_join`` looks at a sample; ``replicate`` and ``join_part`` need nothing but the plan and the rows
they are given, so each may run anywhere, in any order, on any share of the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels import codes as codes_
from epsjoin.kernels.choice import choose_projection
from epsjoin.kernels.cuts import CutTree, assign, hash_ids
from epsjoin.kernels.growing import GrownTree, grow_tree
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.replicate import (
    DECISIONS,
    CodedRows,
    carry,
    choose_boundaries,
    replicate_cubes,
    stack_rows,
)
from epsjoin.kernels.split_rule import (
    OwnRule,
    Rule,
    SplitRule,
    make_split_rule,
    parse_split_rule,
    rule_from_json,
)
from epsjoin.kernels.window import BLOCK, window_rows
from epsjoin.local.columns import check_count
from epsjoin.local.expected import decided_pairs, expected_pairs
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.sweeping import Counters, Pairs, check_batch_rows, sweep_stack, sweep_window
from epsjoin.params import CUTS

# Work, measured on one core; only the ratios matter. Of the stack sweep under regular cuts:
_NS_PER_ROW, _NS_PER_COMPARISON = 250.0, 2.5
# and of the window sweep under planned cuts, between what fits to small and to large parts give
# (`python -m benchmarks.parts --fit` prints one to all):
_NS_PER_ROW_AT_ALL, _NS_PER_COORDINATE, _NS_PER_CANDIDATE, _NS_PER_DECISION = 100.0, 27.0, 1.5, 25.0
_NS_PER_TERM = 0.5  # of a product of a row and a direction
_NS_PER_MOVE = 1000.0  # a row is written by one task and read by another: not measured, rows are worth saving
_TRIED_K, _TRIED_MSL = range(6), range(5)  # regular cuts: and the deepest level
_RULE_ROWS = 5000  # of a sample, for choosing among some thirty rules: tenths of a second
_MOST_CHOSEN = 32  # rows of a cube under a chosen rule: even an infinite budget must not make trying it dear
_BUDGET_SHARE = 0.9  # of the rows that a budget adds, for the sample: all rows may need a few more


@dataclass(frozen=True)
class Cuts:
    """How to cut a join into parts.

    Parameters
    ----------
    kind : "planned" (a tree fitted to a sample) or "regular" (the papers' halving). The pairs are the same.
    n_parts : parts to aim at; there are fewer when rows or the budget do not allow more.
    least_part_seconds : fewer parts are aimed at where each would be expected to have less than so many
        seconds of work: to plan it and to start it would take longer.
    k, msl : regular cuts: split where a cube crosses at most k cuts of a level, down to level msl. What is
        None is chosen on the sample: k up to 5, msl up to 4 or the deepest level, 32 rows of a cube at most.
    replication_budget : rows per point. Regular cuts: no cube becomes more rows than this before it is
        carried over part borders. Planned cuts, and regular ones with a chosen k or msl: the sample's
        average stays below it, carried rows included. May be infinite.
    sample_rows : rows that the plan looks at.
    seed : of the sample.
    rule : regular cuts: a split rule in place of ``k`` and ``msl``, or its text, such as
        ``"k<=3 and not level>2"``; the budget holds for it, too.
    decisions : regular cuts: "global" decides all dimensions of a level together (quadtree), "local" one
        after the other (binary tree).
    most_part_rows : rows that no part should exceed, as far as the sample shows; more parts are made until
        none does. None: no limit.

    Raises
    ------
    ArgumentError
        A value is out of its range.

    Examples
    --------
    >>> str(Cuts("regular", k=1, msl=3).split_rule())
    'k<=1 and level<=3'
    >>> from epsjoin import self_join
    >>> len(self_join([[0.0], [1.0], [4.0]], eps=3.0, cuts=Cuts(n_parts=2)).left)  # as without cuts
    2
    """

    kind: str = "planned"
    n_parts: int = 1
    k: int | None = None
    msl: int | None = None
    replication_budget: float = 4.0
    sample_rows: int = 20_000
    seed: int = 0
    rule: Rule | str | None = None
    decisions: str = "global"
    most_part_rows: int | None = None
    least_part_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in CUTS:
            raise ArgumentError(f"cuts must be one of {', '.join(CUTS)}, not {self.kind!r}")
        for name, least in (("n_parts", 1), ("sample_rows", 1), ("seed", 0)):
            check_count(name, getattr(self, name), least)
        for name, least in (("k", 0), ("msl", 0), ("most_part_rows", 1)):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least)
        if not 0.0 <= self.least_part_seconds < math.inf:
            raise ArgumentError(
                f"least_part_seconds must be finite and at least 0, not {self.least_part_seconds}"
            )
        if not self.replication_budget >= 1.0:
            raise ArgumentError(
                f"replication_budget must be at least 1 row per point, not {self.replication_budget}"
            )
        if self.decisions not in DECISIONS:
            raise ArgumentError(f"decisions must be one of {', '.join(DECISIONS)}, not {self.decisions!r}")
        self.split_rule()

    def split_rule(self) -> Rule | None:
        """Give the rule for regular cuts, under the budget; None where :func:`plan_join` chooses k or msl.

        Raises
        ------
        ArgumentError
            ``rule`` is no rule, or no text of one.
        """
        if self.rule is None:
            if self.k is None or self.msl is None:
                return None
            return make_split_rule(self.k, self.msl, self.replication_budget)
        rule = parse_split_rule(self.rule) if isinstance(self.rule, str) else self.rule
        if not isinstance(rule, (SplitRule, OwnRule)):
            raise ArgumentError(f"rule must be a split rule or its text, not {rule!r}")
        return rule.within(self.replication_budget)

    def sample(self, n_rows: int) -> NDArray[np.int64]:
        """Give the rows to look at, ascending."""
        if n_rows <= self.sample_rows:
            return np.arange(n_rows)
        return np.sort(np.random.default_rng(self.seed).choice(n_rows, self.sample_rows, replace=False))


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


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """Everything that ``replicate`` and ``join_part`` need besides rows; a few KB.

    Parameters
    ----------
    kind : "planned" or "regular".
    eps : threshold in the metric's unit.
    metric, p : see :func:`epsjoin.local.metric.get_metric`; p is None but for minkowski.
    n_parts : parts, numbered from 0; may be fewer than were asked for.
    dimensions : coordinates of a point.
    low : (e,) float64, lower corner of the sample's bounding box in embedded coordinates.
    width : its largest side. Points outside the box are no trouble.
    tree : planned cuts, else None.
    axes : (a,) int64, axes in use: of the tree (e and more: its directions), or of the codes, in code order.
    levels : regular cuts: the deepest level that a cube of the sample reaches; 0 for planned cuts.
    replication_budget : rows per point, see :class:`Cuts`.
    rule, decisions : regular cuts: see :class:`Cuts`; the rule is None for planned cuts.
    boundaries : (n_parts - 1, w) uint8, regular cuts: the first key of each part but part 0.
    expected_rows : replicas in all parts.
    expected_part_rows : replicas in the largest part.
    expected_candidates : pairs of rows looked at: the papers' number, the counter
        ``candidates`` of :func:`join_part`.
    expected_pairs : pairs in the result.
    sample_rows : rows that the plan looked at; the expectations are scaled from them.
    """

    kind: str
    eps: float
    metric: str
    p: float | None
    n_parts: int
    dimensions: int
    low: NDArray[np.float64]
    width: float
    tree: CutTree | None
    axes: NDArray[np.int64]
    levels: int
    replication_budget: float
    rule: Rule | None
    decisions: str
    boundaries: NDArray[np.uint8]
    expected_rows: float
    expected_part_rows: float
    expected_candidates: float
    expected_pairs: float
    sample_rows: int

    def to_json(self) -> str:
        """Give the plan as one JSON object; :meth:`from_json` gives back the same plan, bit for bit.

        Floats are written by ``repr``, which is exact; boundaries in hexadecimal.

        Raises
        ------
        ArgumentError
            The split rule is a function, which has no text.
        """
        tree = None if self.tree is None else {name: a.tolist() for name, a in self.tree._asdict().items()}
        budget = None if math.isinf(self.replication_budget) else self.replication_budget
        return json.dumps(
            {
                **{name: getattr(self, name) for name in _PLAIN_FIELDS},
                "low": self.low.tolist(),
                "axes": self.axes.tolist(),
                "tree": tree,
                "boundaries": [row.tobytes().hex() for row in self.boundaries],
                "key_bytes": self.boundaries.shape[1],
                "replication_budget": budget,  # JSON has no infinity
                "rule": None if self.rule is None else _rule_text(self.rule),
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> JoinPlan:
        """Give the plan that :meth:`to_json` wrote.

        Raises
        ------
        ArgumentError
            The text is no such plan.
        """
        try:
            given = json.loads(text)
            tree = None if given["tree"] is None else _tree_from_lists(given["tree"])
            keys = [np.frombuffer(bytes.fromhex(key), np.uint8) for key in given["boundaries"]]
            budget = given["replication_budget"]
            return cls(
                **{name: given[name] for name in _PLAIN_FIELDS},
                low=np.array(given["low"], np.float64),
                axes=np.array(given["axes"], np.int64),
                tree=tree,
                boundaries=np.array(keys, np.uint8).reshape(len(keys), given["key_bytes"]),
                replication_budget=math.inf if budget is None else budget,
                rule=None if given["rule"] is None else rule_from_json(given["rule"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"this is no join plan: {error}") from error

    @property
    def expected_seconds(self) -> float:
        """Seconds that one core sweeps, by the costs that the cuts were chosen by; a rough guess."""
        if self.kind == "planned":
            rows, candidates = self.expected_rows, self.expected_candidates
            return _window_seconds(rows, len(self.low), candidates, self.expected_pairs)
        return (_NS_PER_ROW * self.expected_rows + _NS_PER_COMPARISON * self.expected_candidates) / 1e9

    def get_metric(self) -> Metric:
        """Give the plan's metric."""
        return get_metric(self.metric, self.p)


_PLAIN_FIELDS = (
    *("kind", "eps", "metric", "p", "n_parts", "dimensions", "width", "levels", "decisions"),
    *("expected_rows", "expected_part_rows", "expected_candidates", "expected_pairs", "sample_rows"),
)


def plan_join(
    sample: NDArray[np.float64],
    sample_ids: NDArray[np.int64],
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
) -> JoinPlan:
    """Choose the cuts of a join on a sample of its rows.

    Parameters
    ----------
    sample : (m, d) float64, original coordinates, finite; not modified. A uniform sample of the rows.
    sample_ids : (m,) int64.
    n_rows : rows of the whole input, at least m.
    eps : threshold in the metric's unit.
    metric : from :func:`epsjoin.local.metric.get_metric`.
    cuts : what is wished.

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
        ``most_part_rows``, however many are asked for: the replication budget ends the cutting.

    Notes
    -----
    Planned cuts: the leaf with the most estimated work for each part that it becomes is cut (:mod:`growing`).
    Work: per row 100 ns and 27 ns per embedded coordinate, 1.5 ns per candidate, 25 ns per pair that is
    decided; pairs are counted on the sample, scaled by (n_rows / m)². The model of the dissertation (eq. 3.3)
    assumes uniform data.
    """
    most = math.inf if cuts.most_part_rows is None else cuts.most_part_rows
    plan = _plan_once(sample, sample_ids, n_rows, eps, metric, cuts)
    wished = cuts.n_parts
    while plan.expected_part_rows > most:
        # parts are of equal work, not of equal rows: so many more, and a few
        wished = math.ceil(wished * min(4.0, 1.2 * plan.expected_part_rows / most))
        cuts = replace(cuts, n_parts=wished, least_part_seconds=0.0)
        finer = _plan_once(sample, sample_ids, n_rows, eps, metric, cuts)
        if finer.n_parts <= plan.n_parts or finer.n_parts > len(sample):
            raise BudgetError(
                f"the largest of {plan.n_parts:,} parts would have about {plan.expected_part_rows:,.0f} "
                f"rows, {most:,} are allowed, and at {cuts.replication_budget:g} rows per point "
                "(replication_budget) no more parts can be cut; allow larger parts (worker_memory_mb), "
                "or more rows per point"
            )
        plan = finer
    return plan


def _plan_once(
    sample: NDArray[np.float64],
    sample_ids: NDArray[np.int64],
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
) -> JoinPlan:
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
    in_one_part = choose_projection(embedded, m, embedded_eps, metric.norm)
    projection = in_one_part.projection
    pairs = expected_pairs(points, embedded, n_rows, eps, metric, projection, cuts.seed)
    if cuts.least_part_seconds:
        expected = _window_seconds(n_rows, n_embedded, in_one_part.candidates * scale * scale, pairs)
        affordable = min(cuts.n_parts, expected / cuts.least_part_seconds)
        cuts = replace(cuts, n_parts=max(1, math.ceil(affordable)))
    tree: CutTree | None = None
    boundaries = np.empty((0, 0), np.uint8)
    axes = np.arange(n_embedded, dtype=np.int64)
    levels = 0
    rule: Rule | None = None
    if cuts.kind == "planned":
        grown = grow_parts(points, embedded, sample_ids, n_rows, eps, metric, cuts, projection)
        tree = grown.tree
        axes = np.unique(tree.axis[(tree.part < 0) & (tree.axis >= 0)])
        parts, rows, compared = grown.n_parts, float(grown.rows), grown.candidates
    else:
        levels = codes_.deepest_level(width, embedded_eps, n_embedded)
        space = _Space(axes, low, width, embedded_eps, levels, cuts.decisions)
        rule, most_parts = cuts.split_rule(), cuts.n_parts
        if rule is None:
            rule, most_parts = _choose_rule(embedded, space, cuts, n_rows)
        codes = _encode(embedded, space, rule).codes
        levels = -(-max(map(codes_.code_bits, codes), default=0) // n_embedded)
        codes = _encode(embedded, space._replace(levels=levels), rule).codes  # shorter
        boundaries, rows, compared = _cut(codes, most_parts, scale)
        parts = len(boundaries) + 1
    plan = JoinPlan(
        kind=cuts.kind,
        eps=eps,
        metric=metric.name,
        p=metric.p if metric.name == "minkowski" else None,
        n_parts=parts,
        dimensions=d,
        low=low,
        width=width,
        tree=tree,
        axes=axes,
        levels=levels,
        replication_budget=float(cuts.replication_budget),
        rule=rule,
        decisions=cuts.decisions,
        boundaries=boundaries,
        expected_rows=rows * scale,
        expected_part_rows=0.0,
        expected_candidates=compared * scale * scale,
        expected_pairs=pairs,
        sample_rows=m,
    )
    in_parts = np.bincount(replicate(points, sample_ids, plan).part, minlength=1)
    return replace(plan, expected_part_rows=float(in_parts.max()) * scale)


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
    embedded = metric.embed(_as_points(points, plan))
    eps = metric.embedded_eps(plan.eps)
    key: NDArray[np.int64] | NDArray[np.uint8]
    if plan.tree is not None:
        rows = assign(embedded, hash_ids(np.asarray(ids, np.int64)), eps, plan.tree)
        row, part, key = rows.row, rows.part, rows.mask
    else:
        rule = plan.rule if plan.rule is not None else make_split_rule(0, 0, 1.0)
        space = _Space(plan.axes, plan.low, plan.width, eps, plan.levels, plan.decisions)
        coded = _encode(embedded, space, rule)
        carried = carry(coded.codes, plan.boundaries)
        row, part, key = coded.row[carried.coded], carried.part, coded.codes[carried.coded]
    order = np.argsort(part, kind="stable")
    return Replicas(row[order], part[order].astype(np.int32), key[order])


def join_part(
    points: NDArray[np.float64],
    ids: NDArray[np.int64],
    key: NDArray[np.int64] | NDArray[np.uint8],
    part: int,
    plan: JoinPlan,
    batch_rows: int = 1 << 18,
    counters: Counters | None = None,
    n_jobs: int = 1,
    is_right: NDArray[np.bool_] | None = None,
) -> Iterator[Pairs]:
    """All pairs that this part reports; over all parts each pair within eps appears exactly once.

    Parameters
    ----------
    points : (n, d), original coordinates of the part's rows, as for :func:`replicate`; not modified.
    ids : (n,) int64, their ids.
    key : their keys from :func:`replicate`.
    part : number of the part.
    plan : from :func:`plan_join`.
    batch_rows : most pairs in one batch, at least 32.
    counters : added to as the batches come: ``rows``, ``carried_rows``, ``candidates``,
        ``distance_computations``, ``pairs``, and ``largest_stack``, which keeps the maximum
        (:mod:`epsjoin.kernels.sweep` defines them).
    n_jobs : threads, for planned cuts; the papers' sweep has one.
    is_right : (n,) bool, for two tables: rows of the right one; a pair is then (left id, right id).

    Yields
    ------
    Pairs
        In no particular order; never empty. Memory beyond the rows is bounded by ``batch_rows``.

    Raises
    ------
    ArgumentError
        As for :func:`replicate`; batch_rows is too small.
    """
    counters = {} if counters is None else counters
    batch_rows = min(check_batch_rows(batch_rows), _most_pairs(len(ids)))
    metric = plan.get_metric()
    original = _as_points(points, plan)
    embedded = metric.embed(original)
    ids = np.asarray(ids, np.int64)
    eps = metric.embedded_eps(plan.eps)
    decision = metric.decision(plan.eps)
    if plan.tree is not None:
        projection = choose_projection(embedded, len(ids), eps, metric.norm).projection
        rows = window_rows(original, embedded, ids, np.asarray(key, np.int64), eps, projection, is_right)
        yield from sweep_window(rows, decision, batch_rows, counters, n_jobs)
    else:
        codes = np.ascontiguousarray(key, np.uint8).reshape(len(ids), plan.boundaries.shape[1])
        corners = codes_.cube_corners(embedded, plan.axes, plan.low, plan.width, eps)
        side = None if is_right is None else is_right.astype(np.int8)
        order, stacked = stack_rows(original, embedded, codes, *corners, plan.boundaries, part, side)
        yield from sweep_stack(stacked, ids[order], eps, decision, batch_rows, counters)


def grow_parts(
    points: NDArray[np.float64],
    embedded: NDArray[np.float64],
    ids: NDArray[np.int64],
    n_rows: int,
    eps: float,
    metric: Metric,
    cuts: Cuts,
    projection: Projection,
) -> GrownTree:
    """Fit a tree of planned cuts to a sample; the work of its parts is in nanoseconds.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; ids : (m,) int64. Not modified.
    n_rows, eps, metric, cuts : see :func:`plan_join`.
    projection : for a window sweep over the sample.
    """
    m, n_embedded = embedded.shape
    reach = metric.embedded_eps(eps)
    return grow_tree(
        embedded,
        hash_ids(ids),
        reach,
        cuts.n_parts,
        norm=metric.norm,
        decided=decided_pairs(points, embedded, reach, projection, cuts.seed),
        rows_per_row=n_rows / m if m else 0.0,
        row_cost=_NS_PER_ROW_AT_ALL + _NS_PER_COORDINATE * n_embedded,
        candidate_cost=_NS_PER_CANDIDATE,
        decision_cost=_NS_PER_DECISION,
        move_cost=_NS_PER_MOVE,
        term_cost=_NS_PER_TERM,
        max_rows=_most_rows(m, cuts.replication_budget),
    )


def _window_seconds(rows: float, dimensions: int, candidates: float, pairs: float) -> float:
    """Of window sweeps over rows of so many embedded coordinates, on one core."""
    of_row = _NS_PER_ROW_AT_ALL + _NS_PER_COORDINATE * dimensions
    return (of_row * rows + _NS_PER_CANDIDATE * candidates + _NS_PER_DECISION * pairs) / 1e9


def _rule_text(rule: Rule) -> str:
    if isinstance(rule, SplitRule):
        return rule.to_json()
    raise ArgumentError("a plan with a split rule of your own cannot be written as text: it is a function")


def _most_pairs(n_rows: int) -> int:
    """Room for all pairs of so few rows."""
    return max(BLOCK, n_rows * (n_rows - 1) // 2 + BLOCK)


def _tree_from_lists(columns: dict[str, list[Any]]) -> CutTree:
    kinds = {**dict.fromkeys(CutTree._fields, np.int64), "position": np.float64, "basis": np.float64}
    arrays: dict[str, Any] = {name: np.array(columns[name], kind) for name, kind in kinds.items()}
    basis = arrays["basis"]
    return CutTree(**{**arrays, "basis": basis if basis.ndim == 2 else np.empty((0, 0))})


def _as_points(points: NDArray[np.float64], plan: JoinPlan) -> NDArray[np.float64]:
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] != plan.dimensions:
        raise ArgumentError(f"points must be (n, {plan.dimensions}) as the plan's, not {points.shape}")
    return points


class _Space(NamedTuple):
    """How regular cuts divide the space, but for the rule; see :class:`JoinPlan`."""

    axes: NDArray[np.int64]
    low: NDArray[np.float64]
    width: float
    eps: float
    levels: int
    decisions: str


def _encode(embedded: NDArray[np.float64], space: _Space, rule: Rule) -> CodedRows:
    """Points to coded rows under regular cuts."""
    lower, upper = codes_.cube_corners(embedded, space.axes, space.low, space.width, space.eps)
    try:
        return replicate_cubes(lower, upper, space.levels, rule, space.decisions)
    except OverflowError as error:
        raise BudgetError(f"{error}; lower k, msl or replication_budget") from error


def _most_rows(m: int, replication_budget: float) -> float:
    """Rows that a sample of m may become, so that all rows stay within the budget."""
    return m + (replication_budget - 1.0) * _BUDGET_SHARE * m if m else 0.0


def _cut(codes: NDArray[np.uint8], n_parts: int, scale: float) -> tuple[NDArray[np.uint8], float, float]:
    """Boundaries of parts, rows of the sample in all parts, carried ones included, and comparisons."""
    row_cost, candidate_cost = _NS_PER_ROW * scale, _NS_PER_COMPARISON * scale * scale
    boundaries, compared = choose_boundaries(codes, n_parts, row_cost, candidate_cost)
    return boundaries, float(len(carry(codes, boundaries).coded)), compared


def _choose_rule(
    embedded: NDArray[np.float64], space: _Space, cuts: Cuts, n_rows: int
) -> tuple[SplitRule, int]:
    """Choose what is None of k and msl, and the parts to aim at.

    Every rule is tried on some rows of the sample, the one with the least work is taken: 250 ns per row,
    carried ones included, and 2.5 ns per comparison; ties go to the smaller k, then to the smaller msl. A
    rule with more rows than the budget allows is none; where all have more, half the parts are tried: in
    one part nothing is carried, and k = 0 gives one row per point.
    """
    looked = embedded
    if len(looked) > _RULE_ROWS:
        some = np.random.default_rng(cuts.seed).choice(len(looked), _RULE_ROWS, replace=False)
        looked = looked[np.sort(some)]
    m = len(looked)
    scale = n_rows / m if m else 0.0
    deepest = max(space.levels - 1, 0)
    all_k = [k for k in _TRIED_K if k <= len(space.axes)] if cuts.k is None else [cuts.k]
    all_msl = sorted({*(msl for msl in _TRIED_MSL if msl < deepest), deepest})
    coded = []
    for k in all_k:
        tried = all_msl[: 1 if k == 0 else None] if cuts.msl is None else [cuts.msl]
        for msl in tried:
            rule = make_split_rule(k, msl, min(cuts.replication_budget, _MOST_CHOSEN))
            coded.append((rule, _encode(looked, space, rule).codes))
    most_rows = _most_rows(m, cuts.replication_budget)
    n_parts = cuts.n_parts
    while True:
        allowed: list[tuple[float, int]] = []
        for number, (_, codes) in enumerate(coded):
            _, rows, compared = _cut(codes, n_parts, scale)
            if rows <= most_rows:
                work = _NS_PER_ROW * rows * scale + _NS_PER_COMPARISON * compared * scale * scale
                allowed.append((work, number))
        if allowed or n_parts == 1:  # none: a given k makes too many rows in any case, the first the fewest
            return coded[min(allowed, default=(0.0, 0))[1]][0], n_parts
        n_parts //= 2
