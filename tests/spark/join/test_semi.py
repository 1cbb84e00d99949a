"""Semi and anti joins of frames: no pairs are made, and each left row is in one part."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import epsjoin.spark
from epsjoin import Cuts, get_metric
from epsjoin.errors import BudgetError
from epsjoin.local.plan.one_sided import hold
from epsjoin.spark.join.plan import plan_frames
from epsjoin.spark.join.replicas import replicas_read_by
from epsjoin.spark.join.semi import find_rows
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points import points_of
from epsjoin.spark.rows import to_frame
from oracles import join as slow
from tests.spark.lattice import LATTICE, columns_of, frame_of


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_similarity_join__semi_of_one_frame_has_the_ends_of_its_pairs(spark: SparkSession, how: str) -> None:
    points, eps = LATTICE[:40], 1.0
    asked = {"columns": columns_of(points), "cuts": Cuts(n_parts=5)}
    found = epsjoin.spark.similarity_join(frame_of(spark, points), eps=eps, how=how, **asked)
    ends = {row for pair in slow.brute_force(points, eps) for row in pair}
    assert 0 < len(ends) < len(points)
    rows = ends if how == "semi" else set(range(len(points))) - ends
    assert sorted(row["id"] for row in found.collect()) == sorted(rows)


def test_similarity_join__semi_leaves_the_rows_of_left_where_they_are(spark: SparkSession) -> None:
    left, right = frame_of(spark, LATTICE[:50]), frame_of(spark, LATTICE[40:])
    asked = {"eps": 2.0, "columns": columns_of(LATTICE), "cuts": Cuts(n_parts=4), "how": "semi"}
    rows = sorted({row for row, _ in slow.between(LATTICE[:50], LATTICE[40:], 2.0)})

    def shuffles(found: DataFrame) -> int:
        """Shuffles by id in the plan, which is as it was before anything ran."""
        return str(found._jdf.queryExecution().executedPlan().toString()).count("hashpartitioning(id")

    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    try:
        spark.conf.set(name, 8 * 50 - 1)
        assert shuffles(epsjoin.spark.similarity_join(left, right, **asked)) == 1
        spark.conf.set(name, 8 * 50)
        found = epsjoin.spark.similarity_join(left, right, **asked)
        assert shuffles(found) == 0
        assert sorted(row["id"] for row in found.collect()) == rows
    finally:
        spark.conf.set(name, before)


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
    ids = [row["left_id"] for row in to_frame(find_rows(points, others, plan, "semi")).collect()]
    assert sorted(ids) == rows, "at most one row per left point beyond the replicas"
