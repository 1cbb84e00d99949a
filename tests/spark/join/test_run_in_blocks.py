"""Runs in many dimensions go by pairs of blocks: stored once, joined exactly, and a base of increments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.plan import block_planner, blocks
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.stored import read_plan
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import merge_join, replicate
from oracles import join as twin
from tests.local.join.many_dimensions import features
from tests.spark.conftest import JobMaker
from tests.spark.join.test_blocks import plan_of
from tests.spark.real_data import JOIN_STEPS, column, content
from tests.tiny import key, list_of_coordinates

N, DIMENSIONS, EPS = 400, 48, 37.0
DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture
def job(make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Of two days: on the second a few vectors lie elsewhere. Few rows are worth two cells of some blocks."""
    for module in (blocks, block_planner):
        monkeypatch.setattr(module, "BLOCK_NS_PER_TASK", 1e-3)
    monkeypatch.setattr(block_planner, "_MAX_LEVELS", 1)
    rows = features(N, DIMENSIONS, seed=4)
    for day in DAYS:
        lists = pa.array(rows.tolist(), pa.list_(pa.float32()))
        pq.write_table(pa.table({"id": range(N), "vector": lists}), tmp_path / f"{day}.parquet")
        rows[5:20] = features(15, DIMENSIONS, seed=5)
    columns = [key(), list_of_coordinates("vector", DIMENSIONS)]
    files = {"path": str(tmp_path / "{date}.parquet"), "format": "parquet"}
    return make_job(columns, **files, run=DAYS[0], params={"eps": EPS})


def _expected(job: Job) -> list[tuple[int, int, float]]:
    points = np.column_stack(column(job, "points", "id", *job.lake.source.coordinates))
    distances = twin.all_distances(points, points, "euclidean")
    near = (distances <= EPS) & (np.arange(N)[:, None] < np.arange(N))
    return [(i, j, float(distances[i, j])) for i, j in np.argwhere(near).tolist()]


def _pairs(job: Job) -> list[tuple[int, int, float]]:
    found = content(job, "pairs")
    columns = (found[name].to_pylist() for name in ("left_id", "right_id", "distance"))
    return sorted(zip(*columns, strict=True))


def _plan_row(job: Job) -> dict[str, Any]:
    (row,) = content(job, "join_plan").to_pylist()
    return dict(row)


def test_run__of_vectors_stores_each_once_and_finds_the_pairs_of_the_definition(job: Job) -> None:
    for step in JOIN_STEPS[:2]:
        step(job)
    counters = replicate.run(job)
    row = _plan_row(job)
    plan = read_plan(row["plan"])
    assert isinstance(plan, BlockPlan)
    assert (row["kind"], row["n_parts"], row["sample_rows"]) == ("blocks", plan.n_parts, N)
    assert plan.n_blocks > 1
    assert counters["rows"] == slices.count_rows(job.lake, Slice("replicas", job.run)) == N
    assert row["expected_rows"] == pytest.approx(N)
    by_task = content(job, "replicas")
    assert sorted(by_task["id"].to_pylist()) == list(range(N))

    found = merge_join.run(job)
    assert 500 < found["pairs"] < N * N / 4
    assert _pairs(job) == _expected(job)
    sizes = np.bincount(by_task["part"].to_numpy(), minlength=plan.n_blocks)
    left, right = sizes[plan.tasks].T
    is_one = plan.tasks[:, 0] == plan.tasks[:, 1]
    assert found["rows"] == np.where(is_one, left, left + right).sum()
    assert found["candidates"] == np.where(is_one, left * (left - 1) // 2, left * right).sum() < N * N / 2

    by_part = replicate.run(job, max_files=0)
    assert content(job, "replicas") == by_task
    assert by_part["rows"] == N
    files = slices.files_of(job.lake, Slice("replicas", job.run))
    assert len(files) == plan.n_blocks
    merge_join.run(job)
    assert _pairs(job) == _expected(job)


def test_run__by_parts_or_regular_cuts_is_cut_where_that_is_asked_for(job: Job) -> None:
    for step in JOIN_STEPS[:2]:
        step(job)
    for given, kind in (({"n_parts": 3}, "planned"), ({"cuts": "regular", "k": 0}, "regular")):
        cut = replace(job, params=replace(job.params, **given))
        replicate.run(cut)
        assert _plan_row(job)["kind"] == kind
        merge_join.run(cut)
        assert _pairs(job) == _expected(job)


def test_run__after_one_in_blocks_is_an_increment(job: Job) -> None:
    second = replace(job, run=DAYS[1], params=replace(job.params, increment=0.5))
    for step in JOIN_STEPS:
        step(job)
    for step in JOIN_STEPS:
        step(second)
    row = _plan_row(second)
    assert (row["kind"], row["base"], row["placed"]) == ("increment", DAYS[0], 15)
    assert _pairs(second) == _expected(second) != _pairs(job)


def test_run__in_blocks_refuses_more_pairs_than_are_allowed(job: Job) -> None:
    for step in JOIN_STEPS:
        step(job)
    tight = replace(job, params=replace(job.params, max_pairs=100))
    with pytest.raises(BudgetError, match="pairs"):
        replicate.run(tight)
    row = {**_plan_row(job), "expected_pairs": 1.0}  # so that the join itself must find out
    slices.write_slice(job.lake, Slice("join_plan", job.run), slices.table_of(job.lake, "join_plan", [row]))
    fingerprint = Fingerprints(job.lake, job.run).slice("replicas", join_plan=row["plan"])
    assert slices.count_rows(job.lake, fingerprint) == N, "they are those of the plan"
    with pytest.raises(BudgetError, match=r"more than 100 pairs \(max_pairs\) lie within eps 37"):
        merge_join.run(tight)


def test_run__in_too_many_blocks_is_refused_with_what_helps(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in JOIN_STEPS[:2]:
        step(job)
    monkeypatch.setattr(block_planner, "MAX_TASKS", 1)
    with pytest.raises(BudgetError, match=r"pairs of blocks, 1 are allowed: .*; raise worker_memory_mb"):
        replicate.run(job)


def test_a_plan_of_blocks__is_read_as_it_was_written() -> None:
    left, right = features(300, 40, seed=1), features(100, 40, seed=2)
    for plan in (plan_of(left, None, 3.0, "euclidean", 60), plan_of(left, right, 0.2, "cosine", 60, axes=0)):
        text = plan.to_json()
        again = read_plan(text)
        assert isinstance(again, BlockPlan)
        assert again.to_json() == text
        assert (again.metric, again.eps, again.n_parts) == (plan.metric, plan.eps, plan.n_parts)
        ids = np.arange(len(left))
        np.testing.assert_array_equal(again.blocks_of(left, ids), plan.blocks_of(left, ids))
        for one, other in zip(again.parts, plan.parts, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    "change", [{"centre": None}, {"axes": {"type": "<f8"}}, {"metric": "?"}, {"kind": 1}]
)
def test_read_plan__refuses_what_is_none(change: dict[str, Any]) -> None:
    text = plan_of(features(60, 40), None, 3.0, "euclidean", 60).to_json()
    with pytest.raises(ArgumentError):
        read_plan(json.dumps({**json.loads(text), **change}))
    with pytest.raises(ArgumentError, match="this is no join plan"):
        read_plan("{")


def test_ingest__of_lists_splits_no_vector_that_it_refuses(job: Job, tmp_path: Path) -> None:
    """What a list lacks is said once for the record, not for each of its numbers."""
    file = tmp_path / f"{DAYS[0]}.parquet"
    table = pq.read_table(file)
    lists = table["vector"].to_pylist()
    lists[3] = lists[3][1:]
    pq.write_table(table.set_column(1, "vector", pa.array(lists, pa.list_(pa.float32()))), file)
    allowed = replace(job.lake.source, max_quarantine_share=0.5)
    counters = ingest.run(replace(job, lake=replace(job.lake, source=allowed)))
    assert (counters["rows_ok"], counters["rows_quarantined"]) == (N - 1, 1)
    (reason,) = content(job, "quarantine")["reason"].to_pylist()
    assert reason == f"vector: not a list of {DIMENSIONS} numbers: 'it has {DIMENSIONS - 1}'"
