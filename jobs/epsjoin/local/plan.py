"""The plan of a join, and its two steps: replicate rows into parts, join one part.

``plan_join`` looks at a sample; ``replicate`` and ``join_part`` need nothing but the plan and the rows
they are given, so each may run anywhere, in any order, on any share of the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels import codes as codes_
from epsjoin.kernels.choice import choose_projection
from epsjoin.kernels.cuts import CutTree, assign, grow_tree, hash_ids
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
from epsjoin.kernels.window import BLOCK, count_pairs, window_rows
from epsjoin.local.columns import check_count
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.sweeping import Counters, Pairs, check_batch_rows, sweep_stack, sweep_window
from epsjoin.params import CUTS

# Work, measured on one core (design, 3.1): only the ratio matters.
_NS_PER_ROW, _NS_PER_CANDIDATE = 250.0, 2.5
_FEW_ROWS, _ENOUGH_PAIRS = 4096, 200_000  # of a sample: more pairs would only make the plan slower


@dataclass(frozen=True)
class Cuts:
    """How to cut a join into parts.

    Parameters
    ----------
    kind : "planned" (a tree fitted to a sample) or "regular" (the papers' halving). The pairs are the same.
    n_parts : parts to aim at; there are fewer when rows or the budget do not allow more.
    k, msl : regular cuts: split where a cube crosses at most k cuts of a level, down to level msl.
    replication_budget : rows per point. Regular cuts: no cube becomes more rows than this before it is
        carried over part borders. Planned cuts: the sample's average stays below it. May be infinite.
    sample_rows : rows that the plan looks at.
    seed : of the sample.
    rule : regular cuts: a split rule in place of ``k`` and ``msl``, or its text, such as
        ``"k<=3 and not level>2"``; the budget holds for it, too.
    decisions : regular cuts: "global" decides all dimensions of a level together (quadtree), "local" one
        after the other (binary tree).

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
    k: int = 3
    msl: int = 2
    replication_budget: float = 4.0
    sample_rows: int = 20_000
    seed: int = 0
    rule: Rule | str | None = None
    decisions: str = "global"

    def __post_init__(self) -> None:
        if self.kind not in CUTS:
            raise ArgumentError(f"cuts must be one of {', '.join(CUTS)}, not {self.kind!r}")
        for name, least in (("n_parts", 1), ("k", 0), ("msl", 0), ("sample_rows", 1), ("seed", 0)):
            check_count(name, getattr(self, name), least)
        if not self.replication_budget >= 1.0:
            raise ArgumentError(
                f"replication_budget must be at least 1 row per point, not {self.replication_budget}"
            )

        if self.decisions not in DECISIONS:
            raise ArgumentError(f"decisions must be one of {', '.join(DECISIONS)}, not {self.decisions!r}")
        self.split_rule()

    def split_rule(self) -> Rule:
        """Give the rule for regular cuts, under the budget.

        Raises
        ------
        ArgumentError
            ``rule`` is no rule, or no text of one.
        """
        if self.rule is None:
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
    axes : (a,) int64, embedded axes in use: of the tree, or of the codes, in code order.
    levels : regular cuts: the deepest level; 0 for planned cuts.
    replication_budget : rows per point, see :class:`Cuts`.
    rule, decisions : regular cuts: see :class:`Cuts`; the rule is None for planned cuts.
    boundaries : (n_parts - 1, w) uint8, regular cuts: the first key of each part but part 0.
    expected_rows : replicas in all parts.
    expected_candidates : pairs of rows looked at: the papers' number, the counter
        ``candidates`` of :func:`join_part`.
    expected_pairs : pairs in the result.
    sample_rows : rows that the plan looked at; the three expectations are scaled from them.
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

    def get_metric(self) -> Metric:
        """Give the plan's metric."""
        return get_metric(self.metric, self.p)


_PLAIN_FIELDS = (
    *("kind", "eps", "metric", "p", "n_parts", "dimensions", "width", "levels", "decisions"),
    *("expected_rows", "expected_candidates", "expected_pairs", "sample_rows"),
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
        An unlimited split rule makes more than a million rows of one cube.

    Notes
    -----
    Planned cuts: always the leaf with the most estimated work is cut: 250 ns per row, 2.5 ns per candidate,
    counted on the sample, scaled by (n_rows / m)². The model of seed 003 (eq. 3.3) assumes uniform data.
    """
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
    tree: CutTree | None = None
    boundaries = np.empty((0, 0), np.uint8)
    axes = np.arange(n_embedded, dtype=np.int64)
    levels = 0
    rule: Rule | None = None
    if cuts.kind == "planned":
        grown = grow_tree(
            embedded,
            hash_ids(sample_ids),
            embedded_eps,
            cuts.n_parts,
            norm=metric.norm,
            rows_per_row=scale,
            row_cost=_NS_PER_ROW,
            candidate_cost=_NS_PER_CANDIDATE,
            max_rows=m + (cuts.replication_budget - 1.0) * 0.9 * m,
        )
        tree = grown.tree
        axes = np.unique(tree.axis[(tree.part < 0) & (tree.axis >= 0)])
        parts, rows, compared = grown.n_parts, float(grown.rows), grown.candidates
    else:
        levels = codes_.deepest_level(width, embedded_eps, n_embedded)
        rule = cuts.split_rule()
        coded = _encode(embedded, axes, low, width, embedded_eps, levels, rule, cuts.decisions)
        row_cost, candidate_cost = _NS_PER_ROW * scale, _NS_PER_CANDIDATE * scale * scale
        boundaries, compared = choose_boundaries(coded.codes, cuts.n_parts, row_cost, candidate_cost)
        parts, rows = len(boundaries) + 1, float(len(carry(coded.codes, boundaries).coded))
    return JoinPlan(
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
        expected_candidates=compared * scale * scale,
        expected_pairs=expected_pairs(points, embedded, n_rows, eps, metric, cuts.seed),
        sample_rows=m,
    )


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
        where = plan.axes, plan.low, plan.width, eps, plan.levels
        coded = _encode(embedded, *where, rule, plan.decisions)
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


def expected_pairs(
    points: NDArray[np.float64],
    embedded: NDArray[np.float64],
    n_rows: int,
    eps: float,
    metric: Metric,
    seed: int,
) -> float:
    """Pairs of the whole input, from those of a sample, or of 4096 of its rows when these have enough.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    n_rows : rows of the whole input.
    eps : threshold in the metric's unit.
    metric : from :func:`epsjoin.local.metric.get_metric`.
    seed : chooses the rows on which pairs are counted when the sample has very many.
    """
    m = len(points)
    limits = metric.embedded_eps(eps), metric.decision(eps)
    projection = choose_projection(embedded, m, limits[0], metric.norm).projection
    pairs = -1
    if m > _FEW_ROWS:
        few = np.random.default_rng(seed).permutation(m)[:_FEW_ROWS]
        pairs = count_pairs(points[few], embedded[few], *limits, projection)
        m = _FEW_ROWS
    if pairs < _ENOUGH_PAIRS:
        m = len(points)
        pairs = count_pairs(points, embedded, *limits, projection)
    return pairs * (n_rows / m) * ((n_rows - 1) / (m - 1)) if m > 1 else 0.0


def _rule_text(rule: Rule) -> str:
    if isinstance(rule, SplitRule):
        return rule.to_json()
    raise ArgumentError("a plan with a split rule of your own cannot be written as text: it is a function")


def _most_pairs(n_rows: int) -> int:
    """Room for all pairs of so few rows."""
    return max(BLOCK, n_rows * (n_rows - 1) // 2 + BLOCK)


def _tree_from_lists(columns: dict[str, list[Any]]) -> CutTree:
    kinds = {name: np.float64 if name == "position" else np.int64 for name in CutTree._fields}
    arrays: list[Any] = [np.array(columns[name], kind) for name, kind in kinds.items()]
    return CutTree(*arrays)


def _as_points(points: NDArray[np.float64], plan: JoinPlan) -> NDArray[np.float64]:
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] != plan.dimensions:
        raise ArgumentError(f"points must be (n, {plan.dimensions}) as the plan's, not {points.shape}")
    return points


def _encode(
    embedded: NDArray[np.float64],
    axes: NDArray[np.int64],
    low: NDArray[np.float64],
    width: float,
    eps: float,
    levels: int,
    rule: Rule,
    decisions: str,
) -> CodedRows:
    """Points to coded rows under regular cuts."""
    lower, upper = codes_.cube_corners(embedded, axes, low, width, eps)
    try:
        return replicate_cubes(lower, upper, levels, rule, decisions)
    except OverflowError as error:
        raise BudgetError(f"{error}; lower k, msl or replication_budget") from error
