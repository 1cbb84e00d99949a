"""Points of a frame: in every form that a column may have, and what is no point is refused by its id."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import epsjoin.spark
from epsjoin import Cuts
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.spark.points.columns import points_of
from oracles import join as slow
from tests.spark.lattice import LATTICE, LATTICE_EPS, pairs_of


@pytest.mark.parametrize("form", ["array", "floats", "vector", "ml_sparse", "binary"])
def test_points_of__takes_a_column_of_whole_points(spark: SparkSession, form: str) -> None:
    points = LATTICE.astype(np.float32).astype(np.float64)
    make = {
        "array": (list, T.ArrayType(T.DoubleType())),
        "floats": (list, T.ArrayType(T.FloatType())),
        "vector": (Vectors.dense, VectorUDT()),
        "ml_sparse": (lambda row: Vectors.sparse(3, dict(enumerate(row))), VectorUDT()),
        "binary": (lambda row: bytearray(np.array(row, "<f8").tobytes()), T.BinaryType()),
    }[form]
    schema = T.StructType([T.StructField("key", T.IntegerType()), T.StructField("at", make[1])])
    frame = spark.createDataFrame([(i, make[0](row)) for i, row in enumerate(points.tolist())], schema)
    for cuts in (None, Cuts(n_parts=4)):
        pairs = epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns="at", id="key", cuts=cuts)
        assert pairs_of(pairs) == slow.brute_force(points, LATTICE_EPS)


def test_points_of__refuses_a_point_for_which_the_metric_is_not_defined(spark: SparkSession) -> None:
    """Whoever takes a metric: the sample meets it."""
    frame = spark.createDataFrame([(1, 0.0), (5, 91.0)], "id long, lat double").withColumn("lon", F.lit(0.0))
    kinds: dict[str, Any] = {"columns": ["lat", "lon"], "metric": "haversine"}
    for call in (
        lambda: epsjoin.spark.similarity_join(frame, eps=1.0, **kinds),
        lambda: epsjoin.spark.knn_join(frame, None, 1, **kinds),
        lambda: epsjoin.spark.fit_epsilon(frame, **kinds),
    ):
        with pytest.raises(DataRefusedError, match="haversine needs a latitude .* the id 5 breaks this"):
            call()


def test_points_of__names_the_point_whose_vector_is_missing(spark: SparkSession) -> None:
    """Spark ends in Java where it makes an array of no vector."""
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("at", VectorUDT())])
    frame = spark.createDataFrame([(1, Vectors.dense(0.0, 1.0)), (7, None)], schema)
    with pytest.raises(DataRefusedError, match="the column 'at' is null where the id is 7"):
        epsjoin.spark.similarity_join(frame, eps=1.0, columns="at")


def test_points_of__counts_rows_and_partitions_in_one_stage(spark: SparkSession) -> None:
    """Every join of frames begins with it, and an aggregate would have two stages."""
    frame = spark.range(0, 100, 1, 3).selectExpr("id", "cast(id AS double) AS x")
    spark.sparkContext.setJobGroup("count", "count")
    points, empty = (points_of(each, "x", "id") for each in (frame, frame.limit(0)))
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert (points.n, points.n_partitions, empty.n, empty.n_partitions) == (100, 3, 0, 1)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # the tracker learns of jobs by it
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getJobInfo(number).stageIds for number in tracker.getJobIdsForGroup("count")]
    assert {len(of_job) for of_job in stages} == {0, 1}, "of the empty frame there is nothing to do"


def test_sample__refuses_a_frame_that_has_changed_since_it_was_counted(spark: SparkSession) -> None:
    """With more rows than all there are, nothing could be expected of the rest."""
    points = points_of(spark.range(9).selectExpr("id", "cast(id AS double) AS x"), "x", "id")
    for counted in (7, 11):
        changed = replace(points, n=counted)
        with pytest.raises(DataRefusedError, match=f"were {counted} rows when they were counted, 9 when"):
            changed.sample(100, 0)


@pytest.mark.parametrize("odd", range(4))
def test_points_of__names_the_point_that_has_not_the_dimensions_of_the_others(
    spark: SparkSession, odd: int
) -> None:
    """Whichever the sample meets first."""
    rows = [(i, [0.0] * (3 if i == odd else 2)) for i in range(4)]
    frame = spark.createDataFrame(rows, "id long, at array<double>")
    with pytest.raises(DataRefusedError, match=f"the id {odd} has 3 dimensions in 'at', another has 2"):
        epsjoin.spark.similarity_join(frame, eps=1.0, columns="at")


def test_points_of__a_point_of_other_dimensions_outside_the_sample_breaks_its_task(
    spark: SparkSession,
) -> None:
    """Also where a batch has that point alone, as in the second frame."""
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [1.0, 2.0, 3.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(20)
    for each in (frame, frame.where("id = 1000 or id < 11")):
        pairs = epsjoin.spark.similarity_join(each, eps=1.0, columns="at", cuts=Cuts(sample_rows=10))
        assert 1000 not in points_of(each, "at", "id").sample(10, Cuts().seed)[0]
        with pytest.raises(PySparkException, match="the id 1000 has 3 dimensions in 'at', another has 2"):
            pairs.collect()


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63)])
def test_points_of__refuses_a_whole_number_beyond_2_to_the_53(spark: SparkSession, number: int) -> None:
    """Two different ones might become equal, and a pair."""
    rows = [(1, 0, 2**53), (2, 1, -(2**53)), (5, number, 0)]
    frame = spark.createDataFrame(rows, "id long, x long, y long").withColumn("at", F.array("x", "y"))
    for columns, name in ((["x", "y"], "x"), ("at", "at")):
        with pytest.raises(DataRefusedError, match=f"'{name}' is {number} where the id is 5; beyond 2"):
            epsjoin.spark.similarity_join(frame, eps=1.0, columns=columns)
        fine = epsjoin.spark.similarity_join(frame.where("id < 5"), eps=1e20, columns=columns)
        assert pairs_of(fine) == {(1, 2): math.hypot(1.0, 2.0**54)}


def test_points_of__a_bad_row_outside_the_sample_breaks_its_task(spark: SparkSession) -> None:
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>")
    pairs = epsjoin.spark.similarity_join(frame, eps=1.0, columns="at", cuts=Cuts(sample_rows=10))
    with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan where the id is 1000"):
        pairs.collect()


def test_points_of__refuses_columns_that_hold_no_point(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None)], "id long, at array<double>")
    whole = [frame, spark.createDataFrame([(1, [])], frame.schema)]
    whole += [spark.createDataFrame([(1, b"not so long")], "id long, at binary")]
    for each in whole:
        with pytest.raises(
            DataRefusedError, match="the column 'at' holds no point in the 1 rows of the sample"
        ):
            epsjoin.spark.similarity_join(each, eps=1.0, columns="at")
    with pytest.raises(ArgumentError, match="'w' must hold numbers, not array<string>"):
        epsjoin.spark.similarity_join(
            spark.createDataFrame([(1, ["a"])], "id long, w array<string>"), eps=1.0, columns="w"
        )
