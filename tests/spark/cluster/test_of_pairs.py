"""Clusters of pairs that a caller has, on DataFrames: the definition, and refusals of what no join gives."""

from __future__ import annotations

import random
from functools import partial

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin.errors import ArgumentError, DataRefusedError, TableError
from epsjoin.spark.cluster import of_pairs
from epsjoin.spark.join.pairs import PAIRS
from oracles import cluster as slow_cluster
from tests.local.test_strings import some

Pair = tuple[int, int, float]


def rows_of(clusters: DataFrame) -> dict[int, tuple[int, str, int]]:
    assert clusters.is_cached
    found = {row["id"]: (row["cluster_id"], row["role"], row["degree"]) for row in clusters.collect()}
    clusters.unpersist()
    return found


def some_pairs(ids: list[int], n: int, seed: int) -> list[Pair]:
    """Pairs of neighbours in a row of ids, few of them far apart; many are equally far."""
    draw = random.Random(seed)
    found: dict[tuple[int, int], float] = {}
    while len(found) < n:
        at = draw.randrange(len(ids))
        other = min(len(ids) - 1, at + draw.choice([1, 1, 2, 3]))
        if at != other:
            left, right = sorted((ids[at], ids[other]))
            found[left, right] = draw.choice([0.0, 0.5, 1.0, 2.5])
    return [(*pair, distance) for pair, distance in found.items()]


@pytest.mark.parametrize(
    ("min_pts", "has_distance", "max_on_driver"),
    [(2, False, 10**6), (4, True, 10**6), (4, True, 0), (4, False, 0)],
)
def test_dbscan_pairs__is_the_definition(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    min_pts: int,
    has_distance: bool,
    max_on_driver: int,
) -> None:
    few = partial(of_pairs.cluster_pairs, max_on_driver=max_on_driver)
    monkeypatch.setattr(of_pairs, "cluster_pairs", few)
    ids = [7 * i - 300 for i in range(120)]
    pairs = some_pairs(ids, 110, min_pts)
    given = spark.createDataFrame(pairs, "a long, b int, far float").repartition(3)
    records = spark.createDataFrame([(each, "x") for each in reversed(ids)], "number long, text string")
    found = epsjoin.spark.dbscan_pairs(
        given,
        records,
        min_pts=min_pts,
        id="number",
        left_id="a",
        right_id="b",
        distance="far" if has_distance else None,
    )
    wanted = slow_cluster.dbscan(
        ids, [(*pair[:2], pair[2] if has_distance else 0.0) for pair in pairs], min_pts
    )
    assert {role for _, role, _ in wanted.values()} == {"core", "noise", *(["border"] if min_pts > 2 else [])}
    assert rows_of(found) == wanted


def test_dbscan_pairs__groups_strings_within_some_edits(spark: SparkSession) -> None:
    strings = some(3, 90)
    frame = spark.createDataFrame(list(enumerate(strings)), "id long, string string")
    pairs = epsjoin.spark.string_join(frame, 1)
    found = rows_of(epsjoin.spark.dbscan_pairs(pairs, frame, min_pts=2))
    within = epsjoin.string_join(strings, 1)
    groups = slow_cluster.components(zip(within.left.tolist(), within.right.tolist(), strict=True))
    assert len(set(groups.values())) > 2
    assert {id_: cluster for id_, (cluster, *_) in found.items()} == {
        id_: groups.get(id_, -1) for id_ in range(90)
    }


def test_dbscan_pairs__of_no_pairs_is_noise_and_of_no_record_is_nothing(spark: SparkSession) -> None:
    none = spark.createDataFrame([], PAIRS)
    assert rows_of(epsjoin.spark.dbscan_pairs(none, spark.range(2), min_pts=2)) == {
        0: (-1, "noise", 1),
        1: (-1, "noise", 1),
    }
    assert rows_of(epsjoin.spark.dbscan_pairs(none, spark.range(2), min_pts=1))[1] == (1, "core", 1)
    assert rows_of(epsjoin.spark.dbscan_pairs(none, spark.range(0), min_pts=2)) == {}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([(3, 1, 0.0)], r"a pair must have the smaller id on the left, and no record twice: \(3, 1, 0.0\)"),
        ([(1, 1, 0.0)], r"a pair must have the smaller id on the left, and no record twice: \(1, 1, 0.0\)"),
        ([(1, None, 0.0)], r"a pair has a value that is null: \(1, None, 0.0\)"),
        ([(1, 2, None)], r"a pair has a value that is null: \(1, 2, None\)"),
        ([(1, 2, -0.5)], r"a pair must have a distance of at least 0: \(1, 2, -0.5\)"),
        ([(1, 2, float("nan"))], r"a pair must have a distance of at least 0: \(1, 2, nan\)"),
        ([(0, 2, 3.0)], r"the pair \(0, 2\) comes 2 times"),
    ],
)
def test_dbscan_pairs__refuses_pairs_that_no_join_gives(
    spark: SparkSession, wrong: list[tuple[int, int | None, float | None]], says: str
) -> None:
    spark.catalog.clearCache()
    pairs = spark.createDataFrame([(0, 1, 1.0), (0, 2, 1.0), *wrong], PAIRS)
    with pytest.raises(DataRefusedError, match=says):
        epsjoin.spark.dbscan_pairs(pairs, spark.range(5), min_pts=2)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept in memory"


def test_dbscan_pairs__refuses_wrong_columns_and_ids(spark: SparkSession) -> None:
    pairs, records = spark.createDataFrame([(0, 1, 1.0)], PAIRS), spark.range(3)
    find = partial(epsjoin.spark.dbscan_pairs, min_pts=2)
    text = F.lit("x").alias("distance")
    for given, of, error, says in (
        (pairs.drop("distance"), records, ArgumentError, "no column 'distance'"),
        (pairs.select("left_id", "right_id", text), records, ArgumentError, "must hold numbers, not string"),
        (pairs.withColumn("left_id", text), records, ArgumentError, "column 'left_id' must hold whole"),
        (pairs, records.withColumnRenamed("id", "key"), ArgumentError, "no column 'id'"),
        (pairs, records.union(records), ArgumentError, "the id 0 comes twice"),
        (pairs, spark.range(-1, 3), ArgumentError, "the id -1 is kept for noise"),
        (pairs, spark.range(1), TableError, "the pairs name the point 1, which is not among the points"),
        (
            pairs,
            records.select(F.lit(None).cast("long").alias("id")),
            DataRefusedError,
            "row is null in .*'id'",
        ),
    ):
        with pytest.raises(error, match=says):
            find(given, of)
    with pytest.raises(ArgumentError, match="min_pts must be a whole number"):
        find(pairs, records, min_pts=0)
