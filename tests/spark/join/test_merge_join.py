"""The step merge_join: the same pairs however the space is cut; what does not fit together is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from scipy.spatial import cKDTree

from epsjoin.errors import BudgetError, TableError
from epsjoin.lake import schemas, slices
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.targets import Target
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import merge_join, parts, replicate
from epsjoin.spark.join.replicas import REPLICAS, replicas_read_by
from epsjoin.spark.join.replicate import make_encoder
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.tasks.reports import TaskReport
from tests import open_sets
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.spark.ingest.here import reading_here
from tests.spark.real_data import JOIN_STEPS, job_on, pair_set
from tests.tiny import RUN, has_slice


@pytest.mark.long
def test_merge_join__joins_heavy_duplicates(make_job: JobMaker, tmp_path: Path) -> None:
    """21 million pairs of equal rows: no part and no batch may grow with them."""
    expected = open_sets.EXPECTED["skin"]["joins"][1]
    job = job_on(make_job, tmp_path, open_sets.read("skin"), {"eps": expected["eps"]})
    for step in JOIN_STEPS:
        step(job)
    assert slices.count_rows(job.lake, Slice("pairs", RUN)) == expected["self_pairs_i_lt_j"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """Real points with their eps, and no plan yet; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("fitted")
    points = open_sets.read("pendigits")[:3000, :5]
    job = job_on(partial(new_job, spark, folder), folder, points, {"eps": 0.11})
    with reading_here():
        for step in JOIN_STEPS[:2]:
            step(job)
    return job


@pytest.mark.parametrize(
    "params",
    [
        {"n_parts": 1},
        {"n_parts": 7},
        pytest.param({"n_parts": 64, "replication_budget": 50.0}, marks=pytest.mark.long),
        {"cuts": "regular", "k": 0, "decisions": "global"},
        {"cuts": "regular", "rule": "k<=3 and generation<=1", "n_parts": 7},
        pytest.param({"cuts": "regular", "n_parts": 7}, marks=pytest.mark.long),
        {"cuts": "regular", "k": 2, "msl": 62, "n_parts": 64, "replication_budget": 50.0},
    ],
)
def test_merge_join__finds_the_same_pairs_however_the_space_is_cut(
    fitted: Job, tmp_path: Path, params: dict[str, Any]
) -> None:
    job = copy_of(fitted, tmp_path / "copy")
    job = replace(job, params=replace(job.params, **params))
    for step in JOIN_STEPS[2:]:
        step(job)
    by_scipy = cKDTree(open_sets.read("pendigits")[:3000, :5]).query_pairs(0.11, output_type="ndarray")
    np.testing.assert_array_equal(pair_set(job), by_scipy[np.lexsort((by_scipy[:, 1], by_scipy[:, 0]))])


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """Real points and their pairs; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("joined")
    job = job_on(partial(new_job, spark, folder), folder, open_sets.read("pendigits")[:500], {"eps": 0.3})
    for step in JOIN_STEPS:
        step(job)
    return job


def test_merge_join__takes_no_replicas_of_another_plan(
    joined: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if replicate had been killed between its two tables."""
    job = copy_of(joined, tmp_path / "copy")

    def killed(lake: Lake, table: str, *rest: object, **also: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slices, "write_slice", killed)
    with pytest.raises(KeyboardInterrupt):
        replicate.run(replace(job, params=replace(job.params, n_parts=3)))
    monkeypatch.undo()
    with pytest.raises(
        TableError, match="replicas of run 2023-06-01 was made from other tables .* run replicate again"
    ):
        merge_join.run(job)


def test_replicate_and_merge_join__notice_rows_lost_on_the_way(
    joined: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a task's report had not arrived, or a file had been read twice."""
    job = copy_of(joined, tmp_path / "copy")
    read, before = TaskReport.of_batches, set(tmp_path.rglob("*.parquet"))
    monkeypatch.setattr(TaskReport, "of_batches", lambda batches: read(batches)[1:])
    with pytest.raises(TableError, match="the parts joined another number of rows than replicas have"):
        merge_join.run(job)
    monkeypatch.setattr(TaskReport, "of_batches", lambda batches: read(batches) * 2)
    with pytest.raises(TableError, match="1,000 points were read, the log says 500"):
        replicate.run(job)
    assert set(tmp_path.rglob("*.parquet")) == before, "also those that no task told of"


def test_merge_join__stops_when_more_pairs_appear_than_allowed(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:1000], {"eps": 0.3})
    for step in JOIN_STEPS[:3]:
        step(job)
    small = replace(job, params=replace(job.params, max_pairs=100))
    with pytest.raises(
        BudgetError,
        match=r"eps 0.3 would give about .* 100 are allowed .* the largest eps that fits is about 0.17",
    ):
        merge_join.run(small)
    plan = slices.read_row(job.lake, Slice("join_plan", RUN)) | {"expected_pairs": 99.0}
    slices.write_slice(job.lake, Slice("join_plan", RUN), slices.table_of(job.lake, "join_plan", [plan]))
    with pytest.raises(
        BudgetError,
        match=r"more than 100 pairs \(max_pairs\) lie within eps 0.3, [\d,]+ were expected; .* is about 0.1",
    ):
        merge_join.run(small)
    assert not has_slice(job.lake, "pairs", RUN)
    assert any("replicas" in file.parts for file in tmp_path.rglob("*.parquet"))
    assert not any("pairs" in file.parts for file in tmp_path.rglob("*.parquet"))


def test_make_joiner__counts_the_start_of_the_kernels_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first join of a worker loads and compiles: here for 8 seconds, and joins for half a second."""
    points, ids = np.random.default_rng(0).random((200, 2)), np.arange(200)
    plan = plan_join(points, ids, 200, 0.1, get_metric("euclidean"), Cuts())
    replicas, pairs = (
        Target(name, (tmp_path / name).as_uri(), schemas.parse_ddl(ddl), partitioned, {"run": RUN})
        for name, ddl, partitioned in (("replicas", REPLICAS, ("part",)), ("pairs", parts.PAIRS, ()))
    )
    encode = make_encoder(plan.to_json(), replicas_read_by(Reading(("x", "y"), 2, is_checked=True)), replicas)
    (encoded,) = TaskReport.of_batches(encode([pa.record_batch({"id": ids, "point": to_binary(points)})]))
    join_part, now, takes = parts.join_part, [0.0], iter([8.0, 0.5])

    def slow(*arguments: Any, **options: Any) -> Any:
        now[0] += next(takes)
        yield from join_part(*arguments, **options)

    monkeypatch.setattr(parts, "join_part", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    work = parts.make_joiner(plan.to_json(), replicas.location, pairs, 10**6)
    (joined,) = TaskReport.of_batches(work(parts.Part(0, encoded.files)))
    seconds = {name: joined.counters[f"{name}_seconds"] for name in ("starting", "joining", "writing")}
    assert seconds == {"starting": 8.0, "joining": 0.5, "writing": 0.0}
    assert joined.counters["rows"] == 200
    assert joined.counters["pairs"] == len(cKDTree(points).query_pairs(0.1))
