"""Semi and anti joins of frames: no pairs are made, and each left row is in one part."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import epsjoin.spark
from epsjoin import Cuts, get_metric
from epsjoin.errors import BudgetError
from epsjoin.local.plan.one_sided import hold
from epsjoin.spark.join.carried import RowFile, can_travel
from epsjoin.spark.join.plan import plan_frames
from epsjoin.spark.join.replicas import replicas_read_by
from epsjoin.spark.join.semi import Sides, find_rows
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points.columns import points_of
from epsjoin.spark.rows.rows import to_frame
from oracles import join as slow
from tests.spark.lattice import LATTICE, columns_of, frame_of


@pytest.mark.parametrize("how", ["semi", pytest.param("anti", marks=pytest.mark.long)])
def test_similarity_join__semi_of_one_frame_has_the_ends_of_its_pairs(spark: SparkSession, how: str) -> None:
    points, eps = LATTICE[:40], 1.0
    asked = {"columns": columns_of(points), "cuts": Cuts(n_parts=5)}
    found = epsjoin.spark.similarity_join(frame_of(spark, points), eps=eps, how=how, **asked)
    ends = {row for pair in slow.brute_force(points, eps) for row in pair}
    assert 0 < len(ends) < len(points)
    rows = ends if how == "semi" else set(range(len(points))) - ends
    assert sorted(row["id"] for row in found.collect()) == sorted(rows)


def shuffles(found: DataFrame) -> list[str]:
    """What rows are shuffled by, in the plan as it was before anything ran; not what the frames do."""
    plan = str(found._jdf.queryExecution().executedPlan().toString())
    return sorted(re.findall(r"\bExchange \w+\((?:\w+\()?([_a-z]\w*)", plan))


def columns_of_many_types() -> dict[str, Column]:
    """Columns by their names, of what a lattice frame has."""
    return {
        "text": F.concat(F.lit("\u00e9"), F.col("id")),
        "none": F.when(F.col("id") % 3 > 0, F.col("id")),
        "exact": F.col("id").cast("decimal(12, 3)") / 7,
        "day": F.date_add(F.lit("1969-12-30").cast("date"), F.col("id").cast("int")),
        "moment": F.timestamp_seconds(F.col("id") * 86_400.5),
        "list": F.array(F.col("x0"), F.lit(None).cast("double")),
        "inner": F.struct(F.col("x0").alias("x"), F.map_from_arrays(F.array("id"), F.array("x1")).alias("y")),
        "bytes": F.col("id").cast("string").cast("binary"),
    }


@pytest.mark.parametrize("how", ["anti", pytest.param("semi", marks=pytest.mark.long)])
def test_similarity_join__semi_shuffles_the_rows_of_left_once_at_most(spark: SparkSession, how: str) -> None:
    """Few ids are broadcast; of more, rows travel with their points; rows that cannot are shuffled again."""
    left, right = (
        frame_of(spark, LATTICE[:50]).withColumns(columns_of_many_types()),
        frame_of(spark, LATTICE[40:]),
    )
    asked = {"eps": 2.0, "columns": columns_of(LATTICE), "cuts": Cuts(n_parts=4), "how": how}
    found_ids = {row for row, _ in slow.between(LATTICE[:50], LATTICE[40:], 2.0)}
    ids = sorted(found_ids if how == "semi" else set(range(50)) - found_ids)
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    try:
        spark.conf.set(name, 8 * 50)
        assert shuffles(epsjoin.spark.similarity_join(left, right, **asked)) == ["part"], "of points"
        spark.conf.set(name, 8 * 50 - 1)
        found = epsjoin.spark.similarity_join(left, right, **asked)
        assert shuffles(found) == ["part"], "of points, and of the rows of left with theirs"
        assert found.schema == left.schema
        wanted = {row["id"]: row for row in left.collect()}
        some = found.coalesce(2)  # whose tasks have other numbers than the parts
        assert sorted(some.collect(), key=lambda row: row["id"]) == [wanted[each] for each in ids]
        vectors = left.withColumn("vector", array_to_vector(F.array("x0", "x1")))
        found = epsjoin.spark.similarity_join(vectors, right, **asked)
        assert shuffles(found) == ["_left_id", "id", "part"]
        assert sorted(row["id"] for row in found.select("id").collect()) == ids
    finally:
        spark.conf.set(name, before)


def test_can_travel__knows_what_tasks_give_back() -> None:
    one = T.StructField("a", T.LongType())
    assert can_travel(T.StructType([one]))
    for wrong in (VectorUDT(), T.CalendarIntervalType(), T.NullType(), T.StructType([])):
        kinds = [wrong, T.ArrayType(wrong), T.MapType(T.LongType(), wrong)]
        assert not any(can_travel(T.StructType([one, T.StructField("b", kind)])) for kind in kinds)
    assert not can_travel(T.StructType([one, one])), "two columns of one name"


def test_row_file__gives_rows_of_any_batch_and_keeps_no_others() -> None:
    rows = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 3, "b": None}])
    batch = pa.record_batch({"id": pa.array([7, 8, 9]), "row": rows})
    with RowFile() as file:
        assert list(file.take(np.array([7]))) == []
        file.add(batch)
        file.add(batch.slice(1))
        found = list(file.take(np.array([9, 7])))
    assert pa.Table.from_batches(found).to_pylist() == [
        *({"a": 1, "b": "x"}, {"a": 3, "b": None}, {"a": 3, "b": None})
    ]


def test_similarity_join__semi_is_not_refused_and_moves_each_left_row_once(spark: SparkSession) -> None:
    left, right, eps, cuts = LATTICE[:50], LATTICE[40:], 2.0, Cuts(n_parts=4)
    rows = sorted({row for row, _ in slow.between(left, right, eps)})
    frames = frame_of(spark, left), frame_of(spark, right)
    asked = {"eps": eps, "columns": columns_of(left), "cuts": cuts, "max_pairs": 1}
    with pytest.raises(BudgetError):
        epsjoin.spark.similarity_join(*frames, **asked)
    assert epsjoin.spark.similarity_join(*frames, how="semi", **asked).count() == len(rows)
    points, others = (points_of(frame, columns_of(left), "id") for frame in frames)
    plan = plan_frames(points, others, eps, get_metric("euclidean"), None, cuts, float("inf"))
    assert plan.n_parts > 1
    sent = replicate_frame(points, plan, False, replicas_read_by(points.reading, hold)).collect()
    streams = [row["ipc"] for row in sent if row["ipc"] is not None]
    assert sum(len(pa.ipc.open_stream(bytes(stream)).read_all()) for stream in streams) == len(left)
    ids = [row["left_id"] for row in to_frame(find_rows(Sides(points, others), plan, "semi")).collect()]
    assert sorted(ids) == rows, "at most one row per left point beyond the replicas"
