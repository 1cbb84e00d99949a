"""The text of ``bestmatch_sql``, run by Spark, is a third opinion: it, the library and the frames agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts, bestmatch_join, bestmatch_sql

COLUMNS = ["y1", "y2", "y3"]
EPS = [0.3, math.inf, 0.2]
LEFT, RIGHT = (np.random.default_rng(seed).integers(-4, 5, (60, 3)) * 0.1 for seed in (1, 2))


@pytest.mark.parametrize(
    "how", ["inner", "outer", *(pytest.param(how, marks=pytest.mark.long) for how in ("left", "right"))]
)
def test_bestmatch_sql__run_by_spark_is_the_join_of_arrays_and_of_frames(
    spark: SparkSession, how: Any
) -> None:
    frames = []
    for name, points in (("left_rows", LEFT), ("right_rows", RIGHT)):
        table = pa.table({"id": np.arange(len(points)), **dict(zip(COLUMNS, points.T, strict=True))})
        frames.append(spark.createDataFrame(table).coalesce(1))
        frames[-1].createOrReplaceTempView(name)
    criteria = list(zip(COLUMNS, EPS, strict=True))
    by_sql = [
        tuple(row) for row in spark.sql(bestmatch_sql("left_rows", "right_rows", criteria, how)).collect()
    ]
    best = bestmatch_join(LEFT, RIGHT, EPS, how)
    wanted = [
        (left if left >= 0 else None, right if right >= 0 else None, *(values if best_for else (None,) * 3))
        for left, right, values, best_for in zip(*(column.tolist() for column in best), strict=True)
    ]
    assert len(by_sql) == len(wanted)
    assert set(by_sql) == set(wanted)
    found = epsjoin.spark.bestmatch_join(
        *frames, eps=EPS, columns=COLUMNS, how=how, cuts=Cuts(n_parts=2, replication_budget=math.inf)
    )
    rows = found.select("left_id", "right_id", *(F.col(f"d_{name}") for name in COLUMNS)).collect()
    assert {tuple(row) for row in rows} == set(wanted)
    assert len(rows) == len(wanted)
