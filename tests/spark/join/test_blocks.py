"""Joins of frames by pairs of blocks equal the definition bit for bit, however rows are dealt to blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import epsjoin.spark
from epsjoin.errors import BudgetError
from epsjoin.lake.arrow import pair_columns
from epsjoin.local.metric import get_metric
from epsjoin.local.plan import block_planner, blocks
from epsjoin.local.plan.block_planner import plan_blocks
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.product import ProductPlan
from epsjoin.local.plan.sizes import WORKER_BYTES
from epsjoin.local.plan.ways import Tables
from epsjoin.local.sweep.sweeping import add_counts
from epsjoin.spark.join import blocks as sending
from epsjoin.spark.join.blocks import join_task, make_sender
from epsjoin.spark.join.plan import plan_pairs
from epsjoin.spark.points.columns import points_of
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.tasks.arrow import from_ipc
from epsjoin.spark.tasks.reports import TaskReport
from oracles import join as twin
from tests.local.join.many_dimensions import KINDS, any_space, awkward_rows, features
from tests.spark.lattice import no_pairs, pairs_of
from tests.spark.test_frames import shuffles


def plan_of(
    left: Any, right: Any, eps: float, metric: str, task_rows: int, axes: int = 5, seed: int = 0
) -> BlockPlan:
    """A plan for workers that hold so many rows, of filter rows that no planner would choose."""
    space = any_space(left, metric, axes, seed)
    n_right = 0 if right is None else len(right)
    tables = Tables(left, right, len(left), n_right)
    row_bytes = 2 * left.shape[1] * left.itemsize + 4 * space.size + block_planner._ROW_BYTES
    worker_bytes = WORKER_BYTES + task_rows * row_bytes
    product = ProductPlan(space, 0.0, 0.0)
    return plan_blocks(tables, product, eps, get_metric(metric), left.itemsize, worker_bytes, 10.0)


def batches_of(rows: Any, ids: Any) -> Iterator[pa.RecordBatch]:
    """The rows as Spark gives them to tasks, some at a time."""
    for begin in range(0, len(rows), 37):
        some = slice(begin, begin + 37)
        points = pa.array(list(rows[some]), pa.list_(pa.from_numpy_dtype(rows.dtype)))
        yield pa.record_batch({"id": ids[some], "point": points})


def joined(left: Any, right: Any, plan: BlockPlan) -> tuple[list[tuple[int, int, float]], dict[str, int]]:
    """What tasks find, without Spark: senders, a shuffle, joiners; the counters of all tasks."""
    d = left.shape[1]
    by_task: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    totals = {"largest_task_rows": 0}
    for is_right, table in enumerate([left] if right is None else [left, right]):
        ids = np.arange(len(table)) * 7 - 3
        send = make_sender(plan, Reading(("at",), d), is_right=bool(is_right))
        for sent in send(batches_of(table, ids)):
            for task, stream, report in zip(*(column.to_pylist() for column in sent.columns), strict=True):
                if stream is None:
                    add_counts(totals, sent_rows=int(TaskReport.from_json(report).counters["rows"]))
                else:
                    by_task[task] += from_ipc(stream)
    found = []
    for task, rows in by_task.items():
        counters: dict[str, int] = {}
        for pairs in join_task(rows[::-1], task, plan, 10**9, counters):
            found += list(zip(*(column.tolist() for column in pair_columns(pairs)), strict=True))
        assert counters["rows"] == sum(batch.num_rows for batch in rows)
        totals["largest_task_rows"] = max(totals["largest_task_rows"], counters["rows"])
        add_counts(totals, **counters)
    return sorted(found), totals


def by_definition(left: Any, right: Any, eps: float, metric: str) -> list[tuple[int, int, float]]:
    other = left if right is None else right
    distances = twin.all_distances(left.astype(np.float64), other.astype(np.float64), metric)
    near = distances <= eps
    if right is None:
        near &= np.arange(len(left))[:, None] < np.arange(len(left))
    return [(7 * i - 3, 7 * j - 3, float(distances[i, j])) for i, j in np.argwhere(near).tolist()]


@pytest.fixture
def free_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cells be worth while among few rows: nothing costs but products."""
    for module in (blocks, block_planner):
        monkeypatch.setattr(module, "BLOCK_NS_PER_TASK", 1e-3)
    monkeypatch.setattr(blocks, "BLOCK_NS_PER_BYTE", 0.0)
    monkeypatch.setattr(blocks, "PRODUCT_NS_PER_COORDINATE", 0.0)


@pytest.mark.usefixtures("free_tasks")
@pytest.mark.parametrize("task_rows", [60, 4000])
@pytest.mark.parametrize("has_right", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_join_task__of_all_pairs_of_blocks_is_the_definition_bit_for_bit(
    kind: str, has_right: bool, task_rows: int
) -> None:
    metric = ("euclidean", "cosine")[KINDS.index(kind) % 2]
    rows = awkward_rows(kind, 120, 40, task_rows).astype(np.float32)
    if metric == "cosine":
        rows[~rows.any(axis=1)] = 1.0
    left, right = (rows[:80], rows[80:]) if has_right else (rows, None)
    distances = np.unique(twin.all_distances(rows.astype(np.float64), rows.astype(np.float64), metric))
    distances = distances[distances > (1e-15 if metric == "cosine" else 1e-150)]
    eps = float(distances[len(distances) // 6])  # a distance that comes: at eps is within
    plan = plan_of(left, right, eps, metric, task_rows, seed=task_rows)
    found, counters = joined(left, right, plan)
    assert found == by_definition(left, right, eps, metric) != []
    assert counters["sent_rows"] == counters["rows"]
    assert counters["candidates"] <= (80 * 40 if has_right else 120 * 119 // 2)
    assert plan.n_parts > (10 if task_rows == 60 else 0)
    assert counters["largest_task_rows"] <= task_rows


@pytest.mark.usefixtures("free_tasks")
def test_plan_blocks__leaves_out_blocks_that_are_too_far_apart() -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((600, 40)).astype(np.float32)
    rows[:, 3] += 400.0 * random.integers(0, 4, 600)
    plan = plan_of(rows, None, 8.0, "euclidean", 80, axes=0)
    found, counters = joined(rows, None, plan)
    assert found == by_definition(rows, None, 8.0, "euclidean") != []
    assert plan.cells.size >= 4
    assert counters["candidates"] < 600 * 600 / 2 / 3
    assert counters["sent_rows"] == pytest.approx(plan.expected_rows, rel=0.1)
    assert counters["candidates"] == pytest.approx(plan.products.sum(), rel=0.1)


def test_plan_blocks__makes_blocks_of_the_whole_matrix_without_structure() -> None:
    rows = awkward_rows("noise", 2000, 64, 5).astype(np.float32)
    tables = Tables(rows, None, 10**6, 0)
    space = any_space(rows, "cosine", 0, 1)
    of = ProductPlan(space, 0.0, 0.0), 0.9, get_metric("cosine"), 4, float(1 << 30), 1e6
    plan = plan_blocks(tables, *of)
    n_blocks = int(plan.buckets.sum())
    assert plan.cells.size == 1
    assert plan.n_parts == n_blocks * (n_blocks + 1) // 2, "blocks on and above the diagonal"
    assert plan.expected_rows == pytest.approx(n_blocks * 10**6)
    assert plan.products.sum() == pytest.approx(1e12 / 2)
    assert plan.parts.rows.max() * plan.row_bytes < (1 << 30) - WORKER_BYTES
    assert plan.parts.pairs.sum() == pytest.approx(1e6)
    with pytest.raises(BudgetError, match=r"pairs of blocks, 10,000 are allowed: 5e\+19 products"):
        plan_blocks(tables._replace(n_left=10**10), *of)


def test_make_sender__sends_no_more_at_once_than_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows of one block go to many tasks, too."""
    monkeypatch.setattr(sending, "FLUSH_BYTES", 1 << 14)
    rows = awkward_rows("noise", 200, 40, 5)
    plan = plan_of(rows, None, 0.9, "euclidean", 20)
    send = make_sender(plan, Reading(("at",), 40), is_right=False)
    sent = [batch.column("ipc").drop_null().to_pylist() for batch in send(batches_of(rows, np.arange(200)))]
    assert max(len(plan.tasks_of[block]) for block in range(len(plan.tasks_of))) > 4
    assert max(map(len, sent)) > 1
    assert all(len(streams) <= 1 or sum(map(len, streams)) <= 1 << 14 for streams in sent)


def frame_of_vectors(spark: SparkSession, rows: Any, kind: str = "float") -> DataFrame:
    table = pa.table({"id": np.arange(len(rows)), "at": pa.array(list(rows))})
    return spark.createDataFrame(table).selectExpr("id", f"cast(at as array<{kind}>) at").repartition(3)


def test_similarity_join__of_embeddings_is_that_of_the_library(spark: SparkSession, tmp_path: Path) -> None:
    rows = features(1500, 64)
    left, right = rows[:900], rows[700:]
    frames = frame_of_vectors(spark, left), frame_of_vectors(spark, right, "double")
    kinds: dict[str, Any] = {"eps": 0.1, "columns": "at", "metric": "cosine"}
    plan = plan_pairs(points_of(frames[0], "at", "id"), None, 0.1, get_metric("cosine"), None, None, 1e9).plan
    assert isinstance(plan, BlockPlan)
    assert plan.sent_bytes == 64 * 4, "float32 travels as float32"
    lazy = epsjoin.spark.similarity_join(frames[0], **kinds)
    assert shuffles(lazy) - shuffles(frames[0]) == 1
    alone = epsjoin.self_join(left, 0.1, "cosine")
    expected = {(i, j): t for i, j, t in zip(*(column.tolist() for column in alone), strict=True)}
    # as one of two frames, and coalesced, its tasks have other numbers
    assert pairs_of(no_pairs(spark).union(lazy.coalesce(2))) == expected != {}
    written = epsjoin.spark.similarity_join(*frames, to=str(tmp_path / "pairs"), **kinds)
    both = epsjoin.join(left, right, 0.1, "cosine")
    assert pairs_of(written) == {
        (i, j): t for i, j, t in zip(*(column.tolist() for column in both), strict=True)
    }


@pytest.mark.parametrize(
    "how", ["outer", *(pytest.param(how, marks=pytest.mark.long) for how in ("left", "right"))]
)
def test_similarity_join__of_embeddings_keeps_rows_without_a_partner(spark: SparkSession, how: str) -> None:
    rows = features(900, 64)
    left, right = rows[:500], rows[400:]
    frames = frame_of_vectors(spark, left), frame_of_vectors(spark, right)
    both = [points_of(frame, "at", "id") for frame in frames]
    metric = get_metric("cosine")
    assert isinstance(plan_pairs(both[0], both[1], 0.03, metric, None, None, 1e9).plan, BlockPlan)
    distances = twin.all_distances(left.astype(np.float64), right.astype(np.float64), "cosine")
    is_pair = distances <= 0.03
    pairs = {(i, j): distances[i, j] for i, j in np.argwhere(is_pair).tolist()}
    alone = {(i, None): None for i in np.flatnonzero(~is_pair.any(axis=1)).tolist()}
    others = {(None, j): None for j in np.flatnonzero(~is_pair.any(axis=0)).tolist()}
    assert min(len(pairs), len(alone), len(others)) > 20
    expected = {"left": pairs | alone, "right": pairs | others, "outer": pairs | alone | others}
    found = epsjoin.spark.similarity_join(*frames, eps=0.03, columns="at", metric="cosine", how=how)
    assert pairs_of(found) == expected[how]


def test_estimate__of_embeddings_says_what_their_blocks_cost(spark: SparkSession) -> None:
    frame = frame_of_vectors(spark, features(1500, 64))
    expected = epsjoin.spark.estimate(frame, eps=0.1, columns="at", metric="cosine")
    assert expected.tasks is not None
    assert expected.candidates == pytest.approx(1500 * 1500 / 2)
    assert expected.sent_bytes == expected.rows * 64 * 4
    assert expected.seconds is not None
    assert expected.seconds > 0.0
    with pytest.raises(BudgetError, match="are allowed"):
        epsjoin.spark.similarity_join(frame, eps=1.9, columns="at", metric="cosine", max_pairs=1000)
