"""Best matches of two real catalogues: the numbers that other programs have found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts
from tests.earthquakes import COLUMNS, EXPECTED, ORDERS, read_catalogues


def frame_of(spark: SparkSession, rows: NDArray[np.float64]) -> DataFrame:
    columns = {"id": np.arange(len(rows)), **dict(zip(COLUMNS, rows.T, strict=True))}
    return spark.createDataFrame(pa.table(columns)).repartition(3)


@pytest.mark.parametrize(
    ("part", "n_parts"),
    [pytest.param("all", 16, marks=pytest.mark.long), ("without_source_iscgem", 2)],
)
def test_bestmatch_join__of_earthquakes_finds_what_other_programs_found(
    spark: SparkSession, part: str, n_parts: int
) -> None:
    left, right, is_copied = read_catalogues(since=1900)
    left = left[~is_copied] if part == "without_source_iscgem" else left
    wanted = EXPECTED[part]["float64"]
    frames = frame_of(spark, left), frame_of(spark, right)
    given: dict[str, Any] = {
        "columns": COLUMNS,
        "orders": ORDERS,
        "cuts": Cuts(n_parts=n_parts, replication_budget=math.inf),
    }
    outer = epsjoin.spark.bestmatch_join(*frames, how="outer", **given)
    pairs = F.col("best_for") > 0
    for_left, for_right = F.col("best_for").isin(1, 3), F.col("best_for").isin(2, 3)
    counted = outer.agg(
        F.count_if(pairs).alias("outer"),
        F.count_if(for_left).alias("best_for_left"),
        F.count_if(for_right).alias("best_for_right"),
        F.count_if(F.col("best_for") == 3).alias("mutual"),
        F.count_distinct(F.when(for_left, F.col("left_id"))).alias("left_rows_matched"),
        F.count_distinct(F.when(for_right, F.col("right_id"))).alias("right_rows_matched"),
        F.count_if(F.col("right_id").isNull()).alias("left_rows_unmatched"),
        F.count_if(F.col("left_id").isNull()).alias("right_rows_unmatched"),
        F.sum(F.when(for_left, F.col("d_time"))).alias("seconds"),
        F.sum(F.when(for_left, F.col("d_lat_lon"))).alias("km"),
    ).collect()[0]
    sums = EXPECTED[part]["sums_over_best_for_left"]
    for name in ("seconds", "km"):
        assert counted[name] == pytest.approx(sums[name], abs=1e-3)
    assert {name: counted[name] for name in counted.asDict() if name not in sums} == {
        name: wanted[name] for name in counted.asDict() if name not in sums
    }
    if part == "all":  # inner joins of few rows are tried in test_frames.py
        assert epsjoin.spark.bestmatch_join(*frames, how="inner", **given).count() == wanted["inner"]


def test_bestmatch_join__of_earthquakes_by_time_alone_is_merge_asof(spark: SparkSession) -> None:
    left, right, _ = read_catalogues(since=1900)
    found = epsjoin.spark.bestmatch_join(
        frame_of(spark, left),
        frame_of(spark, right),
        columns="time",
        eps=30.0003,
        cuts=Cuts(n_parts=4, replication_budget=math.inf),
    )
    wanted = EXPECTED["all"]["time_only_nearest"]
    counted = found.agg(
        F.count_if(F.col("right_id").isNotNull()).alias("pairs"),
        F.count_if(F.col("right_id").isNull()).alias("alone"),
        F.sum("d_time").alias("seconds"),
    ).collect()[0]
    assert counted["pairs"] == wanted["nearest_pairs_with_ties"]
    assert counted["alone"] == wanted["left_rows_unmatched"]
    assert counted["seconds"] == pytest.approx(wanted["sum_of_nearest_seconds"], abs=1e-3)
