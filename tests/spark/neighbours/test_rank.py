"""Ranked outliers on Spark: the definition, by the driver and by the tasks."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from pyspark.sql import SparkSession

from epsjoin.spark.cluster.from_pairs import CLUSTERS
from epsjoin.spark.join.merge_join import PAIRS
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.points import points_of
from epsjoin.spark.rows import FrameRows, to_frame
from oracles import cluster as slow_cluster
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.spark.lattice import LATTICE, columns_of, frame_of


@pytest.mark.parametrize("max_on_driver", [10**6, 0])
def test_rank_points__are_the_same_whoever_scores_them(spark: SparkSession, max_on_driver: int) -> None:
    points = np.concatenate([LATTICE, [[50.0, 0.0, 0.0], [60.0, 0.0, 0.0]]])
    eps, k, ids = 2.0, 3, list(range(len(points)))
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, eps).items()]
    labels = slow_cluster.dbscan(ids, pairs, 4)
    clusters = FrameRows(spark.createDataFrame([(i, *labels[i]) for i in ids], CLUSTERS))
    found = points_of(frame_of(spark, points), columns_of(points), "id")
    stored = FrameRows(spark.createDataFrame(pairs, PAIRS))
    with ExitStack() as done:
        ranked = rank_points(found, LATTICE, clusters, stored, eps, k, ["a", "b", "c"], done, max_on_driver)
        rows = sorted(to_frame(ranked).collect(), key=lambda row: row["rank"])
    scores = slow_outliers.lof(ids, pairs, k)
    wanted = slow_outliers.rank([(i, *scores[i], labels[i][2]) for i in ids])
    assert {row["id"]: row["rank"] for row in rows} == wanted
    assert [row["rank"] for row in rows] == [i + 1 for i in ids]
    for row in rows:
        assert (row["k_distance"], row["lof"]) == pytest.approx(scores[row["id"]])
        assert (row["k_distance_above"] == eps) == (row["k_distance"] is None)
        assert (row["degree"], row["is_noise"]) == (labels[row["id"]][2], labels[row["id"]][1] == "noise")
    assert {row["id"] for row in rows if row["k_distance"] is None} >= {len(points) - 1, len(points) - 2}
    assert rows[0]["dimensions"].startswith("a +")
