"""``make bench-parts``: is the work of a join spread evenly over its parts, and do the parts hold few rows.

Each set is cut into 16 planned parts, as from a sample of 20,000 rows, and every part joined alone, on one
thread: the CPU's time, and what was counted. ``--fit`` prints what a row, a candidate and a decision cost.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epsjoin import get_metric
from epsjoin.kernels.plan.cuts import HASH_AXIS
from epsjoin.local.join.parts import join_part
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import grow_parts, look_at, plan_join
from epsjoin.local.plan.spread import Replicas, replicate

from .measure import clocked
from .page import count, machine, put, table
from .sets import SETS, SKEWED, Points, Set

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/planner.md"
BEGIN, END = "<!-- parts:begin -->", "<!-- parts:end -->"
N_PARTS = 16
ROUNDS = 5  # of each part the fastest counts: other programs only make it slower
MIN_SECONDS = 2.0  # to be measured: what takes milliseconds takes more rounds


class Part(NamedTuple):
    """One part: CPU seconds of its join, the work that was expected in nanoseconds, what was counted."""

    seconds: float
    expected: float
    rows: int
    candidates: int
    distances: int
    pairs: int


class Cut(NamedTuple):
    """A set in parts."""

    name: str
    n_points: int
    n_embedded: int
    n_hash_cuts: int
    n_turned_cuts: int
    plan_seconds: float
    parts: list[Part]


def measure(chosen: Set, n_parts: int = N_PARTS) -> Cut:
    """Plan, replicate, and join each part alone."""
    points, eps = chosen.make(), chosen.eps
    assert eps is not None
    n = len(points)
    metric, cuts, ids = get_metric(chosen.metric), Cuts(n_parts=n_parts), np.arange(n)
    sample = cuts.sample(n)
    plan_join(points[sample[:500]], sample[:500], n, eps, metric, cuts)  # compiles
    plan_seconds, _, plan = clocked(lambda: plan_join(points[sample], sample, n, eps, metric, cuts))
    expected = grow_parts(look_at(points[sample], sample, n, eps, metric), cuts).work
    rows = replicate(points, ids, plan)
    slices = [np.flatnonzero(rows.part == part) for part in range(plan.n_parts)]
    joined = [_join(points, ids, rows, here, plan) for here in slices]  # warms up
    fastest, measured, rounds = [math.inf] * plan.n_parts, 0.0, 0
    while rounds < ROUNDS or measured < MIN_SECONDS:
        # part after part, not round after round of one: a slow moment of the machine hits all of them
        taken = [_join(points, ids, rows, here, plan)[0] for here in slices]
        fastest = list(map(min, fastest, taken))
        measured, rounds = measured + sum(taken), rounds + 1
    names = ("rows", "candidates", "distance_computations", "pairs")
    parts = [
        Part(seconds, work, *(counters[name] for name in names))
        for seconds, work, (_, counters) in zip(fastest, expected.tolist(), joined, strict=True)
    ]
    assert plan.tree is not None
    n_embedded = metric.dimensions(points.shape[1])
    axes = plan.tree.axis[plan.tree.part < 0]
    hash_cuts, turned_cuts = np.count_nonzero(axes == HASH_AXIS), np.count_nonzero(axes >= n_embedded)
    return Cut(chosen.name, n, n_embedded, int(hash_cuts), int(turned_cuts), plan_seconds, parts)


def _join(
    points: Points, ids: np.ndarray, rows: Replicas, here: np.ndarray, plan: JoinPlan
) -> tuple[float, dict[str, int]]:
    """CPU seconds of the join of these rows, and what was counted."""
    row, key, part = rows.row[here], rows.key[here], int(rows.part[here[0]])
    own, own_ids = points[row], ids[row]
    counters: dict[str, int] = {}

    def work() -> None:
        for _ in join_part(own, own_ids, key, part, plan, counters=counters):
            pass

    return clocked(work).cpu, counters


def _largest(values: list[float]) -> str:
    return f"{max(values) / np.mean(values):.2f}"


def row_of(cut: Cut) -> list[str]:
    parts = cut.parts
    return [
        cut.name,
        str(len(parts)),
        f"{sum(part.rows for part in parts) / cut.n_points:.2f}",
        _largest([part.seconds for part in parts]),
        _largest([part.expected for part in parts]),
        str(cut.n_hash_cuts),
        str(cut.n_turned_cuts),
        f"{sum(part.seconds for part in parts):.2f}",
        f"{cut.plan_seconds:.2f}",
        count(sum(part.pairs for part in parts)),
    ]


HEAD = (
    *("set", "parts", "rows per point", "largest / mean CPU", "largest / mean work expected"),
    *("cuts by hash", "along principal axes", "CPU s of all parts", "CPU s of the plan", "pairs"),
)


def fit(cuts: list[Cut]) -> str:
    """Nanoseconds per row, candidate, decision, coordinates of both, and part: least relative squares."""
    from scipy.optimize import nnls

    parts = [(part, cut.n_embedded) for cut in cuts for part in cut.parts]
    counts = np.array(
        [[p.rows, p.rows * e, p.candidates, p.distances, p.distances * e, 1.0] for p, e in parts], np.float64
    )
    taken = np.array([part.seconds for part, _ in parts]) * 1e9
    costs, _ = nnls(counts / taken[:, None], np.ones(len(taken)))
    error = float(np.median(np.abs(counts @ costs / taken - 1.0)))
    names = ("row", "coordinate of a row", "candidate", "decision", "coordinate of a decision", "part")
    found = ", ".join(f"{cost:.3g} per {name}" for name, cost in zip(names, costs, strict=True))
    return f"ns: {found}; median error {error:.0%} of {len(parts)} parts"


def main(
    arguments: list[str] | None = None,
    docs: Path = DOCS,
    sets: tuple[Set, ...] = (*SETS, SKEWED),
) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one set, printed")
    parser.add_argument("--fit", action="store_true", help="print what a row and a pair cost")
    wished = parser.parse_args(arguments)
    chosen = [one for one in sets if wished.only in (None, one.name)]
    if not chosen:
        parser.error(f"--only must be one of {', '.join(one.name for one in sets)}, not {wished.only!r}")
    cuts = []
    for one in chosen:
        cuts.append(measure(one))
        print(row_of(cuts[-1]), file=sys.stderr, flush=True)
    text = table(HEAD, [row_of(cut) for cut in cuts])
    if wished.fit:
        print(fit(cuts))
    if wished.only:
        print("\n".join(text))
    else:
        put(docs / PAGE, "\n".join([f"Measured on {machine()}.", "", *text]), (BEGIN, END))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
