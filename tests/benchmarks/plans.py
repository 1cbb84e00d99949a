"""``make bench-plans``: what the planner expects of each set, what comes, what the papers' model expects.

Nothing is timed. The planner sees a sample of 20,000 rows; counted is the whole set.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from epsjoin import Cuts, estimate, get_metric, self_join
from epsjoin.kernels import codes
from epsjoin.kernels.sweep.stack_sweep import stack_comparisons
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.split_rules.encode import replicate_cubes
from epsjoin.local.plan.split_rules.own_rule import Rule
from epsjoin.local.plan.split_rules.rules import make_split_rule
from epsjoin.local.plan.spread import replicate

from .experiments.cost_model import expected_work
from .page import put, table
from .sets import SETS, Points, Set

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/planner.md"
N_PARTS = 16
RULES = ((0, 2), (3, 2))  # k, msl
BUDGET = 4.0
REGULAR_ROWS = 250_000  # more rows take long to code on all axes, and say no more
FACTOR = 2.0


def of(expected: float, found: float) -> str:
    return f"{_short(expected)} / {_short(found)}"


def _short(value: float) -> str:
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def is_near(expected: float, found: float) -> bool:
    """Within the factor that is promised; of a handful anything may come."""
    return max(expected, found) <= FACTOR * min(expected, found) + 10


def planned(chosen: Set, points: Points, eps: float) -> tuple[list[str], bool]:
    """Pairs, candidates in one part, and rows in 16 parts: expected / found."""
    expected = estimate(points, eps, chosen.metric)
    counters: dict[str, int] = {}
    self_join(points, eps, chosen.metric, counters=counters)  # in few dimensions batches go another way
    cuts = Cuts(n_parts=N_PARTS)
    sample, ids = cuts.sample(len(points)), np.arange(len(points))
    plan = plan_join(points[sample], sample, len(points), eps, get_metric(chosen.metric), cuts)
    rows = len(replicate(points, ids, plan).row)
    both = [
        (expected.pairs, counters["pairs"]),
        (expected.candidates, counters["candidates"]),
        (plan.expected_rows, rows),
    ]
    row = [f"{chosen.name}, {points.shape[0]:,} × {points.shape[1]}", f"{eps:g}"]
    return [*row, *(of(*one) for one in both), f"{rows / len(points):.2f}"], all(
        is_near(*one) for one in both
    )


def modelled(chosen: Set, points: Points, eps: float) -> list[str]:
    """Comparisons of MSJ and GESS in one part: the dissertation's model / counted, and with stops inside."""
    n, d = points.shape
    low = points.min(axis=0)
    width = float((points.max(axis=0) - low).max())
    levels = codes.deepest_level(width, eps, d)
    corners = codes.cube_corners(points, np.arange(d), low, width, eps)
    cuts = Cuts("regular", replication_budget=BUDGET)
    sample = cuts.sample(n)
    rule = plan_join(points[sample], sample, n, eps, get_metric(chosen.metric), cuts).rule
    assert rule is not None
    cells = []

    def count(one: Rule, decisions: str) -> tuple[float, float]:
        coded = replicate_cubes(*corners, levels, one, decisions)
        compared = stack_comparisons(coded.codes[codes.code_order(coded.codes)])
        return float(compared.sum()), len(coded.row) / n

    for k, msl in RULES:
        gess = make_split_rule(k, msl, BUDGET)
        counted = count(gess, "global")[0]
        inside = count(gess, "inside")[0]
        cells += [of(expected_work(n, d, eps / width, k, msl).comparisons, counted), _short(inside)]
    compared, rows_per_point = count(rule, cuts.decisions)
    cells += [str(rule), f"{_short(compared)}, {rows_per_point:.2f}"]
    return [f"{chosen.name}, {n:,} × {d}", f"{eps:g}", *cells]


def main(docs: Path = DOCS, sets: tuple[Set, ...] = SETS) -> int:
    plans, models, are_near = [], [], True
    for chosen in sets:
        points, eps = chosen.make(), chosen.eps
        assert eps is not None
        row, near = planned(chosen, points, eps)
        plans.append(row)
        are_near &= near
        if chosen.metric == "euclidean" and len(points) <= REGULAR_ROWS:
            models.append(modelled(chosen, points, eps))
        print(row, file=sys.stderr, flush=True)
    parts = f"rows in {N_PARTS} parts"
    text = [
        "## Expected from a sample / found",
        "",
        *table(["set", "eps", "pairs", "candidates", parts, "rows per point"], plans),
        "",
        "## The papers' comparisons: the dissertation's model / counted",
        "",
        *table(
            [
                *("set", "eps", "MSJ (k = 0)", "inside"),
                *(f"GESS (k = 3, msl = 2, at most {BUDGET:g} rows)", "inside"),
                *("the rule chosen", "its comparisons counted, rows per point"),
            ],
            models,
        ),
    ]
    put(docs / PAGE, "\n".join(text))
    if not are_near:
        print(f"an expectation is off by more than a factor of {FACTOR:g}", file=sys.stderr)
    return 0 if are_near else 1


if __name__ == "__main__":
    raise SystemExit(main())
