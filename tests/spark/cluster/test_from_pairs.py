"""Clusters from pairs on Spark: the definition, by the driver and by the tasks."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from pyspark.sql import SparkSession

from epsjoin import Cuts, get_metric
from epsjoin.spark.cluster.from_pairs import cluster_pairs
from epsjoin.spark.join.frames import join_points
from epsjoin.spark.points import points_of
from epsjoin.spark.rows import to_frame
from oracles import cluster as slow_cluster
from oracles import join as slow
from tests.spark.lattice import LATTICE, columns_of, frame_of


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_on_driver": 0},
        {"max_on_driver": 0, "max_shared_cores": 0, "max_in_one_task": 20},
    ],
    ids=["the driver connects", "tasks share core ids", "no task holds all core points nor all edges"],
)
@pytest.mark.parametrize("min_pts", [1, 4])
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
