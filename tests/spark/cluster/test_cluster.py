"""The step cluster: of these points' pairs, and of all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import TableError
from epsjoin.lake import delta_log
from epsjoin.spark import tasks
from epsjoin.spark.cluster import cluster, from_pairs
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers
from epsjoin.spark.stored import StoredSlice
from tests.spark.conftest import STEPS, JobMaker
from tests.spark.real_data import JOIN_STEPS, column, job_on, pendigits


def test_cluster__takes_no_pairs_of_points_that_are_gone(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in (*JOIN_STEPS, ingest.run):
        step(job)
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
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a task, or the driver, had not read its file, or had read it twice."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3, "n_parts": 2})
    for step in [*JOIN_STEPS, cluster.run]:
        step(job)
    versions = [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")]
    run, of = tasks.run_tasks, StoredSlice.of
    for change in (lambda files: files[1:], lambda files: [*files, files[0]]):

        def lossy(spark: Any, items: Any, work: Any, change: Any = change) -> Any:
            of_pairs = all(isinstance(item, list) and item[0].file.table == "pairs" for item in items)
            return run(spark, change(list(items)) if of_pairs else items, work)

        def lossy_slice(job: Any, where: Any, change: Any = change) -> StoredSlice:
            found = of(job, where)
            return replace(found, files=change(list(found.files))) if where.table == "pairs" else found

        monkeypatch.setattr(tasks, "run_tasks", lossy)
        monkeypatch.setattr(outliers, "StoredSlice", SimpleNamespace(of=lossy_slice))
        with pytest.raises(TableError, match=r"neighbours together, not two for each of"):
            cluster.run(job)
        with pytest.raises(TableError, match=r"nearest neighbours were found in the pairs"):
            outliers.run(job)
    assert [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")] == versions


def test_cluster__more_points_than_a_worker_can_map_go_to_spark_and_get_the_same_labels(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3, "worker_memory_mb": 768})
    for step in [*JOIN_STEPS, cluster.run]:
        step(job)
    by_driver = column(job, "clusters", "id", "cluster_id", "role", "degree")
    asked: list[int] = []

    def none_fit(worker_memory_mb: int) -> int:
        asked.append(worker_memory_mb)
        return 499

    def fail(*_: object) -> None:
        raise AssertionError("the driver labels more points than fit")

    monkeypatch.setattr(cluster, "points_that_map", none_fit)
    monkeypatch.setattr(from_pairs, "_cluster_on_driver", fail)
    cluster.run(job)
    by_spark = column(job, "clusters", "id", "cluster_id", "role", "degree")
    assert asked == [768]
    for mine, theirs in zip(by_driver, by_spark, strict=True):
        np.testing.assert_array_equal(mine, theirs)
