"""The plan of a join of frames: how many parts, and on how many rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from epsjoin import get_metric
from epsjoin.local.plan import sizes
from epsjoin.spark.join.plan import plan_frames
from epsjoin.spark.points.columns import points_of
from tests.spark.lattice import frame_of


@pytest.mark.parametrize(("n", "n_parts"), [(50_000, 1), (10_000_000, 8)])
def test_plan_frames__makes_one_part_of_a_small_join(spark: SparkSession, n: int, n_parts: int) -> None:
    points = points_of(frame_of(spark, np.random.default_rng(0).random((3000, 2))), ["x0", "x1"], "id")
    plan = plan_frames(replace(points, n=n), None, 1e-4, get_metric("euclidean"), None, None, 10**12)
    assert plan.n_parts == n_parts


@pytest.mark.parametrize("n_frames", [1, 2])
def test_plan_frames__plans_very_many_parts_on_more_rows(
    spark: SparkSession, n_frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many parts there are follows from the dimensions, which the sample shows."""
    frame = spark.range(25_000).select("id", F.array(F.rand(1), F.rand(2)).alias("at")).persist()
    sides = [points_of(frame, "at", "id") for _ in range(n_frames)]
    left, right = (*sides, None)[:2]
    rows = []
    monkeypatch.setattr(sizes, "rows_that_fit", lambda _, d: 1000 * n_frames if d == 2 else 10**6)
    for per_part in (100, 900):
        monkeypatch.setattr(sizes, "SAMPLE_ROWS_PER_PART", per_part)
        plan = plan_frames(left, right, 1e-3, get_metric("euclidean"), None, None, 10**9)
        rows.append(plan.sample_rows)
    assert rows == [20_000, 22_500]
    frame.unpersist()
