"""The step cluster: of these points' pairs, and of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake import delta_log
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark.cluster import cluster, from_pairs, on_driver
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers
from epsjoin.spark.rows.rows import Rows
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.tasks import tasks
from tests import open_sets
from tests.spark.conftest import STEPS, JobMaker, copy_of, new_job
from tests.spark.real_data import JOIN_STEPS, column, job_on


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """Real points and their pairs; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("joined")
    params = {"eps": 0.3, "worker_memory_mb": 768, "n_parts": 3}
    job = job_on(partial(new_job, spark, folder), folder, open_sets.read("pendigits")[:500], params)
    for step in JOIN_STEPS:
        step(job)
    return job


@pytest.fixture
def job(joined: Job, tmp_path: Path) -> Job:
    """The same, to be changed."""
    return copy_of(joined, tmp_path / "copy")


def test_cluster__takes_no_pairs_of_points_that_are_gone(job: Job) -> None:
    ingest.run(job)
    for step in (replicate.run, merge_join.run, cluster.run):
        with pytest.raises(TableError, match="epsilon of run 2023-06-01 .* run fit_epsilon again"):
            step(job)
    fit_epsilon.run(job)
    for step, table in ((merge_join.run, "replicas"), (cluster.run, "pairs")):
        with pytest.raises(TableError, match=f"{table} of run 2023-06-01 was made from other tables"):
            step(job)


def test_cluster__min_pts_of_one_makes_every_point_core(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, np.array([[0.0], [1.0], [5.0]]), {"eps": 1.5, "min_pts": 1})
    for step in STEPS.values():
        step(job)
    cluster_id, role, degree = column(job, "clusters", "id", "cluster_id", "role", "degree")
    assert cluster_id.tolist() == [0, 0, 2]
    assert role.tolist() == ["core"] * 3
    assert degree.tolist() == [2, 2, 1]


def test_cluster_and_outliers__notice_pairs_lost_on_the_way(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the driver, or a task, had not read its file, or had read it twice."""
    cluster.run(job)
    versions = [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")]
    run, of = tasks.run_tasks, StoredSlice.of
    for change in (lambda files: files[1:], lambda files: [*files, files[0]]):

        def lossy(spark: Any, items: Any, work: Any, change: Any = change) -> Any:
            of_pairs = all(isinstance(item, list) and item[0].file.table == "pairs" for item in items)
            return run(spark, change(list(items)) if of_pairs else items, work)

        def lossy_driver(points: Any, pairs: StoredSlice, min_pts: int, change: Any = change) -> Rows:
            return on_driver.cluster_on_driver(points, _with(pairs, change), min_pts)

        def lossy_slice(job: Any, where: Any, change: Any = change) -> StoredSlice:
            found = of(job, where)
            return _with(found, change) if where.table == "pairs" else found

        monkeypatch.setattr(tasks, "run_tasks", lossy)
        monkeypatch.setattr(cluster, "cluster_on_driver", lossy_driver)
        monkeypatch.setattr(outliers, "StoredSlice", SimpleNamespace(of=lossy_slice))
        for max_pairs in (on_driver.MAX_PAIRS, 0):
            monkeypatch.setattr(on_driver, "MAX_PAIRS", max_pairs)
            with pytest.raises(TableError, match=r"neighbours together, not two for each of"):
                cluster.run(job)
        with pytest.raises(TableError, match=r"^[\d,]+ neighbours were found in the pairs"):
            outliers.run(job)
    assert [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")] == versions


@pytest.mark.parametrize("step", [cluster, outliers])
def test_cluster_and_outliers__whose_rows_do_not_add_up_leave_no_file(
    job: Job, step: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run(job)
    write = step.write_files

    def miscount(*arguments: Any) -> tuple[list[File], dict[str, float]]:
        files, counters = write(*arguments)
        assert files
        return files, {**counters, "rows": counters["rows"] - 1}

    monkeypatch.setattr(step, "write_files", miscount)
    before = set(job.project.rglob("*.parquet"))
    with pytest.raises(
        TableError, match=rf"499 points (have|were) .* run {step.__name__.split('.')[-1]} again"
    ):
        step.run(job)
    assert set(job.project.rglob("*.parquet")) == before


def _with(pairs: StoredSlice, change: Callable[[list[File]], list[File]]) -> StoredSlice:
    return replace(pairs, files=change(list(pairs.files)))


def test_cluster__by_threads_by_tasks_and_by_spark_gives_the_same_labels(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads need no session; more pairs go to tasks, more points than a worker maps to Spark."""

    def refuse(*_: object) -> Any:
        raise AssertionError("a way that was not to be taken")

    def labels(job: Job = job) -> list[np.ndarray]:
        cluster.run(job)
        return column(job, "clusters", "id", "cluster_id", "role", "degree")

    found = [labels(replace(job, session=refuse))]
    n_pairs = StoredSlice.of(job, Fingerprints(job.lake, job.run).slice("pairs")).n
    monkeypatch.setattr(cluster, "cluster_on_driver", refuse)
    monkeypatch.setattr(on_driver, "MAX_PAIRS", n_pairs - 1)
    found.append(labels())
    asked: list[int] = []
    monkeypatch.setattr(cluster, "points_that_map", lambda megabytes: asked.append(megabytes) or 499)
    monkeypatch.setattr(from_pairs, "_cluster_on_driver", refuse)
    found.append(labels())
    assert asked == [768]
    for ids, *others in zip(*found, strict=True):
        for each in others:
            np.testing.assert_array_equal(ids, each)


def test_cluster__on_the_driver_takes_no_more_than_it_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair waits only if it may have an end that is not core: of each point min_pts - 2 at most."""
    monkeypatch.setattr(on_driver, "MAX_ON_DRIVER_BYTES", 81 * 1000 + 16 * 2000)
    fits = on_driver.fits_driver
    assert fits(1000, 2000, 5)
    assert not fits(1000, 2001, 5)
    assert fits(1000, 200_000_000, 4)
    assert not fits(1000, 200_000_001, 4)
    assert not fits(1401, 0, 5)


def test_cluster__on_the_driver_refuses_ids_that_cannot_name_clusters_and_unknown_ends(
    joined: Job,
) -> None:
    points = StoredSlice.of(joined, Slice("points", joined.run))
    pairs = StoredSlice.of(joined, Fingerprints(joined.lake, joined.run).slice("pairs"))
    with pytest.raises(ArgumentError, match="the id 0 comes twice"):
        on_driver.cluster_on_driver(_with(points, lambda files: [*files, files[0]]), pairs, 3)
    with pytest.raises(TableError, match=r"the pairs name the point \d+, which is not among the points"):
        on_driver.cluster_on_driver(_with(points, lambda _: []), pairs, 3)
