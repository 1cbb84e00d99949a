"""What the public functions on DataFrames take as arguments, and how they refuse what is none."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts
from epsjoin.errors import ArgumentError, DataRefusedError
from oracles import join as slow
from tests.spark.lattice import LATTICE, LATTICE_EPS, columns_of, frame_of, pairs_of, shrinking_frame


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"columns": ["x0", "y"]}, "no column 'y'; it has id, x0, x1, x2, word, a.b, c`d e, twice"),
        ({"columns": ["x0", "word"]}, "'word' must hold numbers, not string"),
        ({"columns": []}, "columns must name at least one column"),
        ({"columns": "a.b"}, "the column 'a.b' must be given in backticks, `a.b`: to Spark its dot means a"),
        (
            {"columns": "c`d e"},
            "the column 'c`d e' must be given in backticks, `c``d e`: to Spark its backtick",
        ),
        ({"columns": "twice"}, "the frame has several columns 'twice'"),
        ({"columns": ["x0", "x1", "X0"]}, "columns names a column twice: x0, x1, X0"),
        ({"id": "word"}, "'word' must hold whole numbers, not string"),
        ({"eps": 0.0}, "eps must be"),
        ({"metric": "hamming"}, "metric"),
        ({"how": "left"}, "needs two frames"),
        ({"how": "full"}, "how must be one of inner"),
    ],
)
def test_similarity_join__names_the_wrong_argument(
    spark: SparkSession, bad: dict[str, Any], message: str
) -> None:
    others = [F.lit(name).alias(name) for name in ("word", "a.b", "c`d e", "twice", "twice")]
    frame = frame_of(spark, LATTICE).select("*", *others)
    given: dict[str, Any] = {"eps": 1.0, "columns": columns_of(LATTICE), **bad}
    with pytest.raises(ArgumentError, match=message):
        epsjoin.spark.similarity_join(frame, **given)


def test_similarity_join__refuses_other_frames(spark: SparkSession) -> None:
    with pytest.raises(ArgumentError, match="a frame of a classic Spark session is needed, not"):
        epsjoin.spark.similarity_join(LATTICE, eps=1.0, columns="x")
    left, right = frame_of(spark, LATTICE), frame_of(spark, LATTICE[:, :2])
    with pytest.raises(ArgumentError, match="the same dimensions, not 3 and 2"):
        epsjoin.spark.similarity_join(
            left, right, eps=1.0, columns=columns_of(LATTICE), right_columns=["x0", "x1"]
        )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"columns": [0, 1]}, r"columns must be a column's name or a list of names, not \[0, 1\]"),
        ({"columns": None}, "columns must be a column's name or a list of names, not None"),
        ({"columns": "*"}, r"the frame has no column '\*'; it has id, x0"),
        ({"id": None}, "id must be the name of a column, not None"),
        ({"max_pairs": "x"}, "max_pairs must be a whole number, at least 0, not 'x'"),
        ({"max_pairs": -1}, "max_pairs must be a whole number, at least 0, not -1"),
        ({"cuts": "regular"}, "cuts must be epsjoin.Cuts, not 'regular'"),
        ({"cuts": Cuts(seed=2**63)}, r"seed of cuts must be below 2\*\*63 on Spark, not 9223"),
        ({"to": 5}, "to must be a text, a URI or an absolute path, not 5"),
    ],
)
def test_similarity_join__takes_names_and_numbers_alone(
    spark: SparkSession, changed: dict[str, Any], sentence: str
) -> None:
    asked: dict[str, Any] = {"eps": 1.0, "columns": columns_of(LATTICE)} | changed
    with pytest.raises(ArgumentError, match=sentence):
        epsjoin.spark.similarity_join(frame_of(spark, LATTICE), **asked)


def test_public_functions__take_names_in_any_list_and_limits_of_any_number(spark: SparkSession) -> None:
    frame, names, truth = (
        frame_of(spark, LATTICE),
        columns_of(LATTICE),
        slow.brute_force(LATTICE, LATTICE_EPS),
    )
    for columns, max_pairs in ((np.array(names), 1e9), (dict.fromkeys(names).keys(), math.inf)):
        found = epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns, max_pairs=max_pairs)
        assert pairs_of(found) == truth


def test_public_functions__refuse_a_stream_and_name_what_takes_one(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ArgumentError, match="a streaming frame has rows to come; .*foreachBatch"):
        epsjoin.spark.similarity_join(stream, eps=1.0, columns="value", id="value")
    still = spark.range(3).withColumnRenamed("id", "value")
    for frames in ((stream, still), (still, stream)):
        with pytest.raises(ArgumentError, match="a streaming frame has rows to come; .*foreachBatch"):
            epsjoin.spark.snapshot_diff(*frames, key="value")


def test_public_functions__find_columns_as_spark_does(spark: SparkSession) -> None:
    """Upper and lower case are one, unless the session was told otherwise."""
    frame = frame_of(spark, LATTICE)
    given: dict[str, Any] = {"eps": LATTICE_EPS, "id": "ID"}
    found = epsjoin.spark.similarity_join(frame, columns=["X0", "X1", "X2"], **given)
    assert pairs_of(found) == slow.brute_force(LATTICE, LATTICE_EPS)
    spark.sql("SET spark.sql.caseSensitive=TRUE")
    try:
        with pytest.raises(ArgumentError, match="the frame has no column 'ID'; it has id, x0"):
            epsjoin.spark.similarity_join(frame, columns=columns_of(LATTICE), **given)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("is_array", [False, True])
def test_similarity_join__refuses_decimals_that_float64_does_not_tell_apart(
    spark: SparkSession, is_array: bool
) -> None:
    """Three that lie 1 and 2 apart would all be at distance 0."""
    number = F.expr("cast(90071992547409920 + id AS decimal(20, 0))")
    small = F.expr("cast(id / 10 AS decimal(38, 5))")
    frame = spark.range(3).select("id", number.alias("x"), small.alias("y"))
    if is_array:
        frame = frame.select("id", F.array("x").alias("x"), F.array("y").alias("y"))
    with pytest.raises(DataRefusedError, match="'x' is 9007199254740992. where the id is .*beyond 2..53"):
        epsjoin.spark.similarity_join(frame, eps=0.5, columns="x")
    found = pairs_of(epsjoin.spark.similarity_join(frame, eps=0.1, columns="y"))
    assert found == {(0, 1): 0.1, (1, 2): 0.1}, "as float64 has them"


def test_knn_join__refuses_frames_of_other_dimensions(spark: SparkSession) -> None:
    """Of a column that is not there, memory was taken as it was."""
    left, right = frame_of(spark, LATTICE).select("id", "x0"), frame_of(spark, LATTICE)
    whole = right.select("id", F.array("x0", "x1").alias("x0"))
    for others, columns, d in ((right, columns_of(LATTICE), 3), (whole, "x0", 2)):
        with pytest.raises(ArgumentError, match=f"must have the same dimensions, not 1 and {d}"):
            epsjoin.spark.knn_join(left, others, 1, columns="x0", right_columns=columns)


@pytest.mark.parametrize("changing", ["left", "right"])
def test_knn_join__refuses_a_frame_that_changes_while_it_is_joined(
    spark: SparkSession, tmp_path: Path, changing: str
) -> None:
    rows = {"left": spark.range(5), "right": spark.range(5)}
    rows[changing] = shrinking_frame(spark, tmp_path / "readings")
    left, right = (frame.selectExpr("id", "cast(id AS double) AS x0") for frame in rows.values())
    with pytest.raises(
        DataRefusedError, match="were 9 rows when they were counted, [78] when they were read"
    ):
        epsjoin.spark.knn_join(left, right, 2, columns="x0")


def test_names_in_the_right_frame__are_taken_as_they_are(spark: SparkSession) -> None:
    """What is empty was taken for that of the left frame."""
    frame, given = frame_of(spark, LATTICE), {"columns": columns_of(LATTICE)}
    functions = (
        partial(epsjoin.spark.similarity_join, frame, eps=1.0, **given),
        partial(epsjoin.spark.estimate, frame, eps=1.0, **given),
        partial(epsjoin.spark.knn_join, frame, k=1, **given),
    )
    for function in functions:
        with pytest.raises(ArgumentError, match="right_id is for a join of two frames: give right, too"):
            function(right=None, right_id="key")
        with pytest.raises(ArgumentError, match="columns must .* at least one"):
            function(right=frame, right_columns=[])
    with pytest.raises(ArgumentError, match="the frame has no column ''"):
        epsjoin.spark.bestmatch_join(frame, frame, eps=1.0, right_id="", **given)


@pytest.mark.parametrize("function", [epsjoin.spark.estimate, epsjoin.spark.bestmatch_join])
def test_cuts__are_checked_before_rows_are_counted(spark: SparkSession, function: Any) -> None:
    frame, names = frame_of(spark, LATTICE), columns_of(LATTICE)
    for cuts, sentence in (
        ("regular", "cuts must be epsjoin.Cuts, "),
        (Cuts(seed=2**63), "seed of cuts"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            function(frame, right=frame, eps=1.0, columns=names, cuts=cuts)


def test_bestmatch_join__takes_a_limit_of_any_number(spark: SparkSession) -> None:
    frame, names = frame_of(spark, LATTICE), columns_of(LATTICE)
    found = epsjoin.spark.bestmatch_join(frame, frame, eps=0.75, columns=names, max_candidates=math.inf)
    assert {row.left_id for row in found.collect()} == set(range(len(LATTICE)))


def test_knn_join__refuses_rows_with_one_id_that_are_neighbours(spark: SparkSession) -> None:
    twice = spark.createDataFrame([(1, 1.0), (1, 1.0), (2, 5.0)], "id long, x0 double")
    with pytest.raises(
        ArgumentError, match="in the column 'id' an id comes twice, so that a row would be its"
    ):
        epsjoin.spark.knn_join(twice, None, 1, columns="x0")
    assert epsjoin.spark.knn_join(twice, twice, 1, columns="x0").count() == 3


def test_knn_join__takes_a_session_that_passes_large_texts(spark: SparkSession) -> None:
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(name, "true")
    try:
        found = epsjoin.spark.knn_join(frame_of(spark, LATTICE), None, 2, columns=columns_of(LATTICE))
        assert found.count() == 2 * len(LATTICE)
    finally:
        spark.conf.unset(name)
