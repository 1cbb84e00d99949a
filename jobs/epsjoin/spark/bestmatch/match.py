"""The step ``match``: the best matches of the records of a run, and the criterion that the others lack."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Literal

import numpy as np
import pyarrow as pa

from epsjoin.console import counted, say
from epsjoin.contracts.matches import Criterion, Match
from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.times import run_after
from epsjoin.errors import BudgetError, TableError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.lake import delta_log, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, BestPairs, bestmatch_join
from epsjoin.local.bestmatch.orders import Closest
from epsjoin.local.join.arrays import NO_ROW
from epsjoin.spark.bestmatch.sides import Side, Sides, read_sides
from epsjoin.spark.job.job import Job

MAX_BYTES = 256 << 20
"""Maximum number of bytes of the values of both sides, which the driver holds and matches by itself."""
MAX_ROUNDS = 20
"""Maximum number of times that slices are made again because points have changed meanwhile."""

_BEST_FOR = np.array(["nobody", "left", "right", "both"])


def run(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``matches``.

    Where runs follow one another, the slice of the next run is replaced, too, if it was made from other
    points of this run, or from none.

    Raises
    ------
    ContractError
        The contract has no section ``match``, or it does not fit the other data set.
    TableError
        A data set has no points of the run, or another job has changed the slice.
    DataRefusedError
        A record arrived later than the contract says.
    BudgetError
        There are more candidates than ``max_pairs``, or more records than fit.
    """
    counters: dict[str, float] = {}
    lake = job.lake
    for _ in range(MAX_ROUNDS):
        wrong = [run for run in _runs_that_read(lake, job.run) if not Fingerprints(lake, run).has("matches")]
        if counters and not wrong:
            break
        for run in wrong if counters else dict.fromkeys([job.run, *wrong]):
            found = _replace(lake, run, job.params.max_pairs)
            counters = counters or found
        lake = delta_log.pin_versions(job.lake, "match")
    else:
        raise TableError(f"the points of run {job.run} change all the time; run match again")
    say(f"match: {describe(lake.source, counters)}")
    return counters


def describe(source: SourceContract, counters: Mapping[str, float]) -> str:
    """Say how many of the records that are asked for have a match, with ``outer`` of both sides."""
    match = source.match
    n_left, n_right, matched, unmatched = (
        counters[name] for name in ("left_rows", "right_rows", "matched", "unmatched")
    )
    told = []
    if match is None or match.how != "right":
        told.append(f"{counted(n_left, 'record')} of {source.name}, {matched:,.0f} with a match")
    if match is not None and match.how in ("right", "outer"):
        lonely = unmatched - (n_left - matched if match.how == "outer" else 0.0)
        told.append(f"{counted(n_right, 'record')} of {match.partner}, {n_right - lonely:,.0f} with a match")
    return f"{'; '.join(told)}; {counted(counters['pairs'], 'match', 'matches')} in all"


def _runs_that_read(lake: Lake, run: str) -> list[str]:
    """The runs whose slices are made from a run's points: its own, and the next one if it is there."""
    if lake.source.match is None or lake.source.match.order is None:
        return [run]
    after = run_after(lake.source.interval, date.fromisoformat(run)).isoformat()
    return [run, after] if after in slices.list_runs(lake, "matches") else [run]


def _replace(lake: Lake, run: str, max_candidates: int) -> dict[str, float]:
    where = Fingerprints(lake, run).slice("matches")
    sides = read_sides(lake, run)
    rows, counters = find_matches(sides, max_candidates)
    slices.write_slice(lake, where, rows)
    return counters


def find_matches(sides: Sides, max_candidates: int) -> tuple[pa.Table, dict[str, float]]:
    """Find the rows of ``matches`` (without run), sorted by the ids, and count.

    Raises
    ------
    BudgetError
        There are more candidates than allowed, or more records than fit.
    """
    match, left, right = sides.match, sides.left, sides.right
    n_bytes = left.values.nbytes + right.values.nbytes
    if n_bytes > MAX_BYTES:
        raise BudgetError(
            f"the values of {left.ids.size + right.ids.size:,} records take {n_bytes:,} bytes, {MAX_BYTES:,} "
            "are allowed; match shorter intervals"
        )
    work: dict[str, int] = {}
    # only if both sides are asked can one tell for which of its records a pair is the best match
    how: Literal["inner", "outer"] = "inner" if match.how == "inner" else "outer"
    best = bestmatch_join(
        left.values,
        right.values,
        how=how,
        orders=_orders(match.criteria),
        take=match.take,
        max_candidates=max_candidates,
        counters=work,
    )
    best = _take(best, _is_wanted(best, match, left, right))
    lonely = best.best_for == 0
    rows = _to_rows(best, match, left, right, _find_lacking(best, match, left, right, max_candidates))
    asked = np.count_nonzero(left.is_asked)
    counters = {
        "left_rows": float(left.ids.size if match.how in ("right", "inner") else asked),
        "right_rows": float(right.ids.size),
        "candidates": float(work.get("candidates", 0)),
        "within": float(work.get("within", 0)),
        "comparisons": float(work.get("comparisons", 0)),
        "pairs": float(np.count_nonzero(~lonely)),
        "matched": float(np.unique(best.left[~lonely]).size),
        "unmatched": float(np.count_nonzero(lonely)),
    }
    return rows, counters


def _orders(criteria: tuple[Criterion, ...]) -> list[Closest]:
    orders, place = [], 0
    for criterion in criteria:
        if criterion.metric:
            orders.append(Closest((place, place + 1), eps=criterion.eps, metric=criterion.metric))
            place += 2
        else:
            orders.append(Closest(place, eps=criterion.eps))
            place += 1
    return orders


def _take(best: BestPairs, rows: Bools | Ints) -> BestPairs:
    return BestPairs(best.left[rows], best.right[rows], best.values[rows], best.best_for[rows])


def _is_wanted(best: BestPairs, match: Match, left: Side, right: Side) -> Bools:
    """Which rows of the outer result are asked for: pairs that are best for a side, lonely rows of it."""
    if match.how == "inner":
        return np.ones(best.left.size, np.bool_)
    wanted = np.zeros(best.left.size, np.bool_)
    for side, bit, rows in ((left, FOR_LEFT, best.left), (right, FOR_RIGHT, best.right)):
        is_there = rows != NO_ROW
        is_asked = np.zeros(rows.size, np.bool_)
        is_asked[is_there] = side.is_asked[rows[is_there]]
        wanted |= is_asked & ((best.best_for & bit > 0) | (best.best_for == 0))
    return wanted


def _find_lacking(
    best: BestPairs, match: Match, left: Side, right: Side, max_candidates: int
) -> list[str | None]:
    """For each row without a match, the criterion that excludes its last candidates; None for the others."""
    lacking: list[str | None] = [None] * best.left.size
    for mine, others, rows in ((left, right, best.left), (right, left, best.right)):
        at = np.flatnonzero((best.best_for == 0) & (rows != NO_ROW))
        for number, criterion in enumerate(match.criteria, 1):
            if not at.size:
                break
            orders = _orders(match.criteria[:number])
            if any(np.isfinite(order.eps) for order in orders):
                # the values of the criteria up to this one come first
                found = bestmatch_join(
                    mine.values[rows[at]],
                    others.values,
                    orders=orders,
                    take="one",
                    max_candidates=max_candidates,
                )
                is_lonely = np.isin(np.arange(at.size), found.left[found.right == NO_ROW])
            else:
                is_lonely = np.full(at.size, others.ids.size == 0)
            for place in at[is_lonely]:
                lacking[place] = criterion.name
            at = at[~is_lonely]
    return lacking


def _to_rows(best: BestPairs, match: Match, left: Side, right: Side, lacking: list[str | None]) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "left_id": _ids(left, best.left),
        "right_id": _ids(right, best.right),
    }
    is_lonely = best.best_for == 0
    for place, criterion in enumerate(match.criteria):
        values: Floats = best.values[:, place]
        columns[criterion.in_table] = pa.array(values, pa.float64(), mask=is_lonely)
    columns["best_for"] = pa.array(_BEST_FOR[best.best_for].tolist(), pa.string())
    columns["lacking"] = pa.array(lacking, pa.string())
    return pa.table(columns).sort_by([("left_id", "ascending"), ("right_id", "ascending")])


def _ids(side: Side, rows: Ints) -> pa.Array:
    is_nobody = rows == NO_ROW
    ids = np.zeros(rows.size, np.int64)
    ids[~is_nobody] = side.ids[rows[~is_nobody]]
    return pa.array(ids, mask=is_nobody)
