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
from epsjoin.kernels import sweep
from epsjoin.kernels.cuts import CutTree, assign, grow_tree, hash_ids
from epsjoin.kernels.grid import count_pairs, window_rows
from epsjoin.kernels.replicate import CodedRows, carry, choose_boundaries, replicate_cubes, stack_rows
from epsjoin.kernels.split_rule import make_split_rule
from epsjoin.local.metric import Metric, get_metric
from epsjoin.params import CUTS

# Work, measured on one core (design, 3.1): only the ratio matters.
_NS_PER_ROW, _NS_PER_CANDIDATE = 250.0, 2.5
_FEW_ROWS, _ENOUGH_PAIRS = 4096, 200_000  # of a sample: more pairs would only make the plan slower


class Pairs(NamedTuple):
    """Pairs within eps.

    Parameters
    ----------
    left, right : (m,) int64 ids, ``left < right``.
    distance : (m,) float64, in the metric's unit.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.float64]


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
    k, msl, replication_budget : regular cuts: the split rule. Planned cuts: only the budget counts.
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
    k: int
    msl: int
    replication_budget: float
    boundaries: NDArray[np.uint8]
    expected_rows: float
    expected_candidates: float
    expected_pairs: float
    sample_rows: int

    def to_json(self) -> str:
        """Give the plan as one JSON object; :meth:`from_json` gives back the same plan, bit for bit.

        Floats are written by ``repr``, which is exact; boundaries in hexadecimal.
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
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"this is no join plan: {error}") from error

    def get_metric(self) -> Metric:
        """Give the plan's metric."""
        return get_metric(self.metric, self.p)


_PLAIN_FIELDS = (
    *("kind", "eps", "metric", "p", "n_parts", "dimensions", "width", "levels", "k", "msl"),
    *("expected_rows", "expected_candidates", "expected_pairs", "sample_rows"),
)


def plan_join(
    sample: NDArray[np.float64],
    sample_ids: NDArray[np.int64],
    n_rows: int,
    eps: float,
    metric: Metric,
    *,
    cuts: str = "planned",
    n_parts: int = 1,
    k: int = 3,
    msl: int = 2,
    replication_budget: float = 4.0,
    seed: int = 0,
) -> JoinPlan:
    """Choose the cuts of a join on a sample of its rows.

    Parameters
    ----------
    sample : (m, d) float64, original coordinates, finite; not modified. A uniform sample of the rows.
    sample_ids : (m,) int64.
    n_rows : rows of the whole input, at least m.
    eps : threshold in the metric's unit.
    metric : from :func:`epsjoin.local.metric.get_metric`.
    cuts : "planned" or "regular".
    n_parts : parts to aim at; there are fewer when rows or the budget do not allow more.
    k, msl : regular cuts: the split rule (:mod:`epsjoin.kernels.split_rule`).
    replication_budget : rows per point. Regular cuts: no cube becomes more rows than this before it is
        carried over part borders. Planned cuts: the sample's average stays below it. May be infinite.
    seed : chooses the rows on which pairs are counted when the sample has very many.

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
    _check_plan_arguments(sample, sample_ids, cuts, n_parts, k, msl, replication_budget)
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
    if cuts == "planned":
        grown = grow_tree(
            embedded,
            hash_ids(sample_ids),
            embedded_eps,
            n_parts,
            rows_per_row=scale,
            row_cost=_NS_PER_ROW,
            candidate_cost=_NS_PER_CANDIDATE,
            max_rows=m + (replication_budget - 1.0) * 0.9 * m,
        )
        tree = grown.tree
        axes = np.unique(tree.axis[(tree.part < 0) & (tree.axis >= 0)])
        parts, rows, compared = grown.n_parts, float(grown.rows), float(grown.candidates)
    else:
        levels = codes_.deepest_level(width, embedded_eps, n_embedded)
        coded = _encode(embedded, axes, low, width, embedded_eps, levels, k, msl, replication_budget)
        row_cost, candidate_cost = _NS_PER_ROW * scale, _NS_PER_CANDIDATE * scale * scale
        boundaries, compared = choose_boundaries(coded.codes, n_parts, row_cost, candidate_cost)
        parts, rows = len(boundaries) + 1, float(len(carry(coded.codes, boundaries).coded))
    return JoinPlan(
        kind=cuts,
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
        k=k,
        msl=msl,
        replication_budget=float(replication_budget),
        boundaries=boundaries,
        expected_rows=rows * scale,
        expected_candidates=compared * scale * scale,
        expected_pairs=_expected_pairs(points, embedded, n_rows, eps, metric, seed),
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
        split = (plan.k, plan.msl, plan.replication_budget)
        coded = _encode(embedded, plan.axes, plan.low, plan.width, eps, plan.levels, *split)
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
    counters: dict[str, int] | None = None,
) -> Iterator[Pairs]:
    """All pairs that this part reports; over all parts each pair within eps appears exactly once.

    Parameters
    ----------
    points : (n, d), original coordinates of the part's rows, as for :func:`replicate`; not modified.
    ids : (n,) int64, their ids.
    key : their keys from :func:`replicate`.
    part : number of the part.
    plan : from :func:`plan_join`.
    batch_rows : most pairs in one batch, at least 1.
    counters : added to as the batches come: ``rows``, ``carried_rows``, ``candidates``,
        ``distance_computations``, ``pairs``, and ``largest_stack``, which keeps the maximum
        (:mod:`epsjoin.kernels.sweep` defines them).

    Yields
    ------
    Pairs
        In no particular order; never empty. Memory beyond the rows is bounded by ``batch_rows``.

    Raises
    ------
    ArgumentError
        As for :func:`replicate`.
    """
    counters = {} if counters is None else counters
    metric = plan.get_metric()
    original = _as_points(points, plan)
    embedded = metric.embed(original)
    ids = np.asarray(ids, np.int64)
    eps = metric.embedded_eps(plan.eps)
    rows: sweep.StackRows | sweep.WindowRows
    run: Any
    if plan.tree is not None:
        order, rows = window_rows(original, embedded, np.asarray(key, np.int64), eps)
        run, carried = sweep.window_sweep, int(np.count_nonzero(rows.mask & 1))
    else:
        codes = np.ascontiguousarray(key, np.uint8).reshape(len(ids), plan.boundaries.shape[1])
        corners = codes_.cube_corners(embedded, plan.axes, plan.low, plan.width, eps)
        order, rows = stack_rows(original, embedded, codes, *corners, plan.boundaries, part)
        run, carried = sweep.stack_sweep, int(np.count_nonzero(rows.is_carried))
    sorted_ids = ids[order]
    room = min(batch_rows, max(1, len(ids) * (len(ids) - 1) // 2))
    batch = sweep.PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float64))
    counts = np.zeros(4, np.int64)
    state = sweep.new_state(len(ids))
    decision = metric.decision(plan.eps)
    _add(counters, rows=len(ids), carried_rows=carried)
    while not sweep.is_done(state):
        counts[:] = 0
        n = run(state, rows, eps, decision, batch, counts)
        candidates, computed, largest, pairs = counts.tolist()
        _add(counters, candidates=candidates, distance_computations=computed, pairs=pairs)
        counters["largest_stack"] = max(counters.get("largest_stack", 0), largest)
        if n:
            left, right = sorted_ids[batch.left[:n]], sorted_ids[batch.right[:n]]
            yield Pairs(np.minimum(left, right), np.maximum(left, right), batch.distance[:n].copy())


def _tree_from_lists(columns: dict[str, list[Any]]) -> CutTree:
    kinds = {name: np.float64 if name == "position" else np.int64 for name in CutTree._fields}
    arrays: list[Any] = [np.array(columns[name], kind) for name, kind in kinds.items()]
    return CutTree(*arrays)


def _add(counters: dict[str, int], **values: int) -> None:
    for name, value in values.items():
        counters[name] = counters.get(name, 0) + value


def _as_points(points: NDArray[np.float64], plan: JoinPlan) -> NDArray[np.float64]:
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or points.shape[1] != plan.dimensions:
        raise ArgumentError(f"points must be (n, {plan.dimensions}) as the plan's, not {points.shape}")
    return points


def _check_plan_arguments(
    sample: NDArray[np.float64],
    sample_ids: NDArray[np.int64],
    cuts: str,
    n_parts: int,
    k: int,
    msl: int,
    replication_budget: float,
) -> None:
    if np.ndim(sample) != 2 or len(sample) != len(sample_ids):
        raise ArgumentError(f"sample must be (m, d) with m ids, not {np.shape(sample)}, {len(sample_ids)}")
    if cuts not in CUTS:
        raise ArgumentError(f"cuts must be one of {', '.join(CUTS)}, not {cuts!r}")
    for name, value, least in (("n_parts", n_parts, 1), ("k", k, 0), ("msl", msl, 0)):
        if value < least:
            raise ArgumentError(f"{name} must be at least {least}, not {value}")
    if not replication_budget >= 1.0:
        raise ArgumentError(f"replication_budget must be at least 1 row per point, not {replication_budget}")


def _encode(
    embedded: NDArray[np.float64],
    axes: NDArray[np.int64],
    low: NDArray[np.float64],
    width: float,
    eps: float,
    levels: int,
    k: int,
    msl: int,
    replication_budget: float,
) -> CodedRows:
    """Points to coded rows under regular cuts."""
    lower, upper = codes_.cube_corners(embedded, axes, low, width, eps)
    try:
        return replicate_cubes(lower, upper, levels, make_split_rule(k, msl, replication_budget))
    except OverflowError as error:
        raise BudgetError(f"{error}; lower k, msl or replication_budget") from error


def _expected_pairs(
    points: NDArray[np.float64],
    embedded: NDArray[np.float64],
    n_rows: int,
    eps: float,
    metric: Metric,
    seed: int,
) -> float:
    """Pairs of the whole input, from those of the sample, or of 4096 of its rows when these have enough."""
    m = len(points)
    limits = metric.embedded_eps(eps), metric.decision(eps)
    pairs = -1
    if m > _FEW_ROWS:
        few = np.random.default_rng(seed).permutation(m)[:_FEW_ROWS]
        pairs = count_pairs(points[few], embedded[few], *limits)
        m = _FEW_ROWS
    if pairs < _ENOUGH_PAIRS:
        m = len(points)
        pairs = count_pairs(points, embedded, *limits)
    return pairs * (n_rows / m) * ((n_rows - 1) / (m - 1)) if m > 1 else 0.0
