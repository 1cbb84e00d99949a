"""What tasks do for best matches, without Spark: whatever the parts, the result is that of whole tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import epsjoin
from epsjoin import Closest, Cuts, Own, OwnOrder, Subset
from epsjoin.errors import DataRefusedError
from epsjoin.local.bestmatch.orders import orders_of
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.scale import scale_metric
from epsjoin.spark.bestmatch.matching import BITS, STAGES, Matching
from epsjoin.spark.bestmatch.records import Records, concat_records, read_records
from epsjoin.spark.join.parts import sort_rows
from epsjoin.spark.join.replicas import replicas_of
from epsjoin.spark.points.hashes import hash_ids
from oracles import examples
from tests.spark.bestmatch.results import Row, of_library

Table = NDArray[np.float64]


def plan_of(left: Table, right: Table, matching: Matching, cuts: Cuts) -> JoinPlan:
    """The plan that the driver would make of all rows."""
    columns, eps = zip(*(matching.search_columns("left", rows) for rows in (left, right)), strict=True)
    both = np.concatenate(columns)
    metric, one = scale_metric(get_metric("chebyshev"), both, np.where(eps[0] == 0, 1e-3, eps[0]), None)
    return plan_join(both, np.arange(len(both)), len(both), one, metric, cuts)


def send(
    left: Table, right: Table, ids: tuple[Any, Any], matching: Matching, plan: JoinPlan
) -> dict[int, list[Any]]:
    """The replicas of both tables by part."""
    parts: dict[int, list[Any]] = {}
    for is_right, (rows, of_side) in enumerate(zip((left, right), ids, strict=True)):
        search, _ = matching.search_columns("left", rows[:, : matching.dimensions])
        carry = lambda is_replicated, rows=rows: np.column_stack((rows, is_replicated))  # noqa: E731  # the rows of this side
        counters = {"points": 0.0, "rows": 0.0, "replicated_points": 0.0}
        for part, table in replicas_of(of_side, search, plan, counters, carry):
            sided = table.append_column("is_right", [[bool(is_right)] * len(table)])
            parts.setdefault(part, []).extend(sided.to_batches())
    return parts


def match_here(
    left: Table, right: Table, ids: tuple[Any, Any], matching: Matching, cuts: Cuts
) -> tuple[Records, int]:
    """The final records, and how many were compared again."""
    plan = plan_of(left[:, : matching.dimensions], right[:, : matching.dimensions], matching, cuts)
    parts = send(left, right, ids, matching, plan)
    held = [
        matching.match(sort_rows(batches, plan, matching.width), part, plan)
        for part, batches in parts.items()
    ]
    records, n_again = concat_records(held), 0
    if plan.n_parts > 1 or matching.how == "inner":
        for stage in STAGES[matching.how]:
            waits = (records.pending & BITS[stage]) > 0
            n_again += int(waits.sum())
            pending, settled = records.take(waits), [records.take(~waits)]
            of_stage = hash_ids(0, pending.right if stage == "right" else pending.left) % plan.n_parts
            for part in np.unique(of_stage if stage != "all" else of_stage * 0):
                mine = pending if stage == "all" else pending.take(of_stage == part)
                again = read_records(mine.to_table().to_batches())
                settled.append(matching.settle(again, stage))
            records = concat_records(settled)
    assert not records.pending.any() or plan.n_parts == 1
    return records, n_again


def rows_of(records: Records) -> list[Row]:
    rows = []
    for left, right, best_for, lonely, values in zip(
        records.left, records.right, records.best_for, records.lonely, records.values.tolist(), strict=True
    ):
        ids = (None if lonely == 2 else int(left), None if lonely == 1 else int(right))
        rows.append((*ids, int(best_for), () if lonely else tuple(values)))
    return sorted(rows, key=repr)


def numbers(n: int, seed: int) -> tuple[Table, NDArray[np.int64]]:
    """Rows on a coarse grid, where ties and pairs at exactly eps abound, and ids in another order."""
    random = np.random.default_rng(seed)
    points = random.integers(0, 12, (n, 4)) * [1.0, 0.1, 1.0, 1.0]
    points[:, 2:] = points[:, 2:] % 4
    return points, random.permutation(3 * n)[:n] - n


ORDERS = {
    "columns": lambda: [Closest(0, eps=3.0), Closest(1, eps=0.3)],
    "three": lambda: [Closest(0, eps=3.0), Closest(1, eps=0.3), Closest(2, eps=math.inf)],
    "together": lambda: [Closest((0, 1), eps=2.0), Closest(2, eps=1.0)],
    "equal": lambda: [Closest(0, eps=3.0), Closest(2, eps=0.0)],
    "one": lambda: [Closest(0, eps=2.0)],
    "one, any distance": lambda: [Closest(0)],
    "own": lambda: [Closest(0, eps=3.0), Own(lambda left, right: left[:, 3] - right[:, 3])],
    "marks": lambda: [Closest(0, eps=3.0), Subset(["marks"], ["marks"])],
    "own order": lambda: [Closest(0, eps=3.0), OwnOrder(lambda x, y: x[1][:, 3] <= y[1][:, 3])],
    "any distance": lambda: [Closest(0), Closest(1)],
}


@examples(400)
@given(
    st.sampled_from(list(ORDERS)),
    st.sampled_from(list(STAGES)),
    st.sampled_from(["all", "one"]),
    st.sampled_from(["planned", "regular"]),
    st.sampled_from([1, 2, 16]),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 2**32 - 1),
)
def test_parts__have_the_best_matches_of_the_whole_tables(name, how, take, kind, n_parts, sizes, seed):
    (left, left_ids), (right, right_ids) = numbers(sizes[0], seed), numbers(sizes[1], seed + 1)
    orders, words, dimensions = ORDERS[name](), (), 4
    if name == "marks":
        random, words = np.random.default_rng(seed), (1,)
        marks = [random.integers(0, 16, n).astype(np.uint64) << np.uint64(31) for n in sizes]
        left, right = (
            np.column_stack((rows, mask >> np.uint64(32), mask & np.uint64(0xFFFFFFFF))).astype(np.float64)
            for rows, mask in zip((left, right), marks, strict=True)
        )
        whole = [orders[0], Subset(*marks)]
    else:
        whole = orders
    matching = Matching(orders_of(None, orders, dimensions), dimensions, words, how, take, 10**9)
    cuts = Cuts(kind, n_parts, replication_budget=math.inf)
    records, _ = match_here(left, right, (left_ids, right_ids), matching, cuts)
    numbered = [i for i, order in enumerate(orders) if isinstance(order, (Closest, Own))]
    wanted = of_library(left[:, :4], right[:, :4], left_ids, right_ids, whole, how, take)
    assert rows_of(records) == sorted(
        [(i, j, best_for, tuple(values[c] for c in numbered if values)) for i, j, best_for, values in wanted],
        key=repr,
    )


def test_parts__compare_again_only_what_is_best_of_rows_in_several_parts() -> None:
    random = np.random.default_rng(4)
    left, right = random.random((3000, 2)), random.random((3000, 2))
    ids = np.arange(3000)
    matching = Matching(orders_of([0.02, 0.02], None, 2), 2, (), "left", "all", 10**9)
    plan = plan_of(left, right, matching, Cuts(n_parts=8))
    parts = [
        int(i)
        for batches in send(left, right, (ids, ids), matching, plan).values()
        for batch in batches
        if not batch["is_right"][0].as_py()
        for i in batch["id"].to_pylist()
    ]
    several = {i for i in parts if parts.count(i) > 1}
    _, n_again = match_here(left, right, (ids, ids), matching, Cuts(n_parts=8))
    best = epsjoin.bestmatch_join(left, right, [0.02, 0.02])
    of_several = np.isin(best.left, list(several))
    assert 0 < n_again <= 2 * of_several.sum() < len(best.left)


@pytest.mark.parametrize("kind", ["planned", "regular"])
def test_parts__refuse_two_rows_of_one_id(kind: Any) -> None:
    matching = Matching(orders_of([1.0, 1.0], None, 2), 2, (), "left", "all", 10**9)
    left, right = np.zeros((3, 2)), np.zeros((2, 2))
    left[1] = 0.5
    with pytest.raises(DataRefusedError, match="two rows of the left frame have the id 7; give each row"):
        match_here(left, right, (np.array([7, 7, 1]), np.array([7, 1])), matching, Cuts(kind, 1))
