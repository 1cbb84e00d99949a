"""Clusters from pairs on Spark: the definition, by the driver and by the tasks."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin import Cuts, get_metric
from epsjoin.errors import ArgumentError, EpsjoinError, TableError
from epsjoin.local.plan.sizes import MAPPED_POINT_BYTES, points_that_map
from epsjoin.params import RunParams
from epsjoin.spark.cluster import from_pairs
from epsjoin.spark.cluster.from_pairs import (
    FILE_BYTES,
    MAX_ON_DRIVER,
    LabelRows,
    cluster_pairs,
    connect_flagged,
)
from epsjoin.spark.join.frames import join_points
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.points.columns import points_of
from epsjoin.spark.rows.rows import FrameRows, collect_table, to_frame
from epsjoin.spark.tasks.shared import Shared, share
from oracles import cluster as slow_cluster
from oracles import join as slow
from tests.spark.lattice import LATTICE, columns_of, frame_of


@pytest.mark.parametrize(
    ("limits", "min_pts"),
    [
        pytest.param({}, 1, id="the driver connects, all points are core"),
        pytest.param({}, 4, id="the driver connects"),
        pytest.param({"max_on_driver": 0}, 4, id="Spark connects"),
        pytest.param({"max_on_driver": 0, "max_in_one_task": 20}, 4, id="no task holds all edges"),
        pytest.param({"max_on_driver": 0}, 1, id="Spark, all points are core", marks=pytest.mark.long),
        pytest.param(
            {"max_on_driver": 0, "max_in_one_task": 20}, 1, id="no task, all core", marks=pytest.mark.long
        ),
    ],
)
def test_cluster_pairs__are_the_same_whoever_connects_them(
    spark: SparkSession, limits: dict[str, int], min_pts: int
) -> None:
    points = np.concatenate([LATTICE, LATTICE[:30] + 0.1, [[90.0, 0.0, 0.0]]])
    found = points_of(frame_of(spark, points), columns_of(points), "id")
    metric, cuts = get_metric("euclidean"), Cuts(n_parts=3)
    joined = join_points(found, 1.0, metric, None, cuts, 10_000)
    done = ExitStack()
    clusters = cluster_pairs(found.ids(), found.n, joined, min_pts, done, **limits)
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, 1.0).items()]
    wanted = slow_cluster.dbscan(list(range(len(points))), pairs, min_pts)
    with done:
        rows = to_frame(clusters).collect()
    assert len(rows) == len(points)
    assert {row["id"]: (row["cluster_id"], row["role"], row["degree"]) for row in rows} == wanted


@pytest.mark.parametrize("max_on_driver", [10, 0])
@pytest.mark.parametrize(
    ("ids", "pair", "error", "says"),
    [
        ([0, 5, 9, 9], (0, 5, 1.0), ArgumentError, "the id 9 comes twice"),
        ([-1, 0, 5], (-1, 0, 1.0), ArgumentError, "the id -1 is kept for noise"),
        ([0, 5], (0, 77, 1.0), TableError, "the pairs name the point 77, which is not among the points"),
    ],
)
def test_cluster_pairs__refuse_ids_that_cannot_be_told_apart_and_pairs_of_nobody(
    spark: SparkSession,
    max_on_driver: int,
    ids: list[int],
    pair: tuple[int, int, float],
    error: type[Exception],
    says: str,
) -> None:
    of_points = FrameRows(spark.createDataFrame([(each,) for each in ids], "id long"))
    pairs = FrameRows(spark.createDataFrame([pair], PAIRS))
    with pytest.raises(error, match=says), ExitStack() as done:
        to_frame(cluster_pairs(of_points, len(ids), pairs, 2, done, max_on_driver)).collect()


def test_connect_by_join__sorts_what_a_lost_executor_would_have_to_make_again(spark: SparkSession) -> None:
    """The forests of a partition depend on the order of its rows where these come in several batches."""
    pairs = FrameRows(spark.createDataFrame([(0, 1, 1.0)], PAIRS))
    connected = from_pairs._connect_by_join(pairs, spark.createDataFrame([(0,)], "id long"))
    plan = connected._jdf.queryExecution().optimizedPlan().toString()
    assert re.search(r"MapInArrow.*\n.*Sort \[left_id#\d+L ASC NULLS FIRST, right_id#\d+L ASC", plan), plan


def test_cluster_pairs__refuse_what_the_disk_has_no_room_for_before_any_task_runs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise AssertionError("a task ran")

    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000))
    ids = FrameRows(spark.range(251))
    pairs = FrameRows(spark.createDataFrame([], "left_id long, right_id long, distance double"))
    monkeypatch.setattr(FrameRows, "run", run)
    with pytest.raises(EpsjoinError, match=r"need 10,040 bytes in .*, where 10,000 are free; .*LOCAL_DIRS"):
        cluster_pairs(ids, 251, pairs, 3, ExitStack())
    with pytest.raises(AssertionError, match="a task ran"):
        cluster_pairs(ids, 250, pairs, 3, ExitStack())


def test_connect_flagged__leaves_as_many_rows_whatever_the_batches() -> None:
    """Spark gives rows in batches of 10,000: each by itself would leave a row for nearly every pair."""
    left, right = np.triu_indices(60, 1)
    pairs = pa.record_batch({"left_id": left, "right_id": right, "distance": np.ones(left.size)})
    for side, rows in (("left", left), ("right", right)):
        is_core = pa.array(rows % 3 > 0, mask=rows % 3 == 0)
        pairs = pairs.append_column(f"is_{side}", is_core)
    whole = [batch.to_pydict() for batch in connect_flagged([pairs])]
    small = [pairs.slice(first, 7) for first in range(0, pairs.num_rows, 7)]
    assert [batch.to_pydict() for batch in connect_flagged(small)] == whole
    assert [len(batch["a"]) for batch in whole] == [39, 20]


def test_label_rows__of_any_range_are_those_of_all_points(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_pairs, "POINTS_OF_A_TASK", 7)
    monkeypatch.setattr(from_pairs, "BATCH_ROWS", 3)
    random = np.random.default_rng(0)
    ids = np.sort(random.choice(1000, 40, replace=False)) - 500
    home = random.integers(-1, 40, 40).astype(np.int32)
    degree = random.integers(1, 9, 40).astype(np.int32)
    rows = LabelRows(spark, share(spark, ids=ids), share(spark, home=home, degree=degree), 40, 5)
    found = collect_table(rows)
    assert found["id"].to_pylist() == ids.tolist()
    assert found["cluster_id"].to_pylist() == [ids[at] if at >= 0 else -1 for at in home]
    assert found["degree"].to_pylist() == degree.tolist()
    of_core = {True: "core", False: "border"}
    wanted = [of_core[d >= 5] if at >= 0 or d >= 5 else "noise" for at, d in zip(home, degree, strict=True)]
    assert found["role"].to_pylist() == wanted
    assert to_frame(rows).toArrow().equals(found)


def test_cluster_pairs__share_the_bytes_that_limits_are_made_of(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: dict[str, int] = {}

    def counted(spark: SparkSession, **arrays: np.ndarray) -> Shared:
        shared.update({name: array.nbytes for name, array in arrays.items()})
        return share(spark, **arrays)

    monkeypatch.setattr(from_pairs, "share", counted)
    n = 1000
    pairs = spark.createDataFrame([(0, 1, 0.5)], "left_id long, right_id long, distance double")
    with ExitStack() as done:
        cluster_pairs(FrameRows(spark.range(n)), n, FrameRows(pairs), 2, done)
    assert shared["ids"] + shared["is_core"] == MAPPED_POINT_BYTES * n
    given = 16 * n  # of each point at most a node with its root, or a core point and its distance
    assert sum(shared.values()) + given <= FILE_BYTES * n
    assert points_that_map(RunParams.worker_memory_mb) >= MAX_ON_DRIVER
    assert points_that_map(300) == 0
