"""Differences of DataFrames against two dictionaries."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin.errors import ArgumentError
from oracles import differ as oracle

SCHEMA = "a string, b string, x double, name string"


def _history(seed: int) -> list[list[tuple[Any, ...]]]:
    """Two snapshots whose keys are 1|11 and 11|1 and the like, with nulls, NaNs and both zeros."""
    draw = random.Random(seed)
    values = [0.0, 1.5, float("nan"), None]
    files = []
    for _ in range(2):
        keys = draw.sample([(a, b) for a in ("1", "11", "111", "") for b in ("1", "11", "111", "|")], 12)
        files.append([(*key, draw.choice(values), draw.choice(["", None, "z"])) for key in keys])
    return files


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_snapshot_diff__equals_two_dictionaries(spark: SparkSession, seed: int) -> None:
    files = _history(seed)
    frames = [spark.createDataFrame(rows, SCHEMA) for rows in files]
    found = epsjoin.spark.snapshot_diff(*frames, key=["a", "b"]).collect()
    expected = oracle.difference(*([((a, b), (repr(x), name)) for a, b, x, name in rows] for rows in files))
    expected.pop("same")
    kinds: dict[str, set[Any]] = {kind: set() for kind in expected}
    before, now = ({row[:2]: row[2:] for row in rows} for rows in files)
    for row in found:
        key = (row.a, row.b)
        kinds[row.kind].add(key)
        assert (row.before is None, row.now is None) == (row.kind == "inserted", row.kind == "deleted")
        if row.kind == "updated":
            differs = [repr(one) != repr(other) for one, other in zip(before[key], now[key], strict=True)]
            assert row["columns"] == [
                name for name, is_other in zip(("x", "name"), differs, strict=True) if is_other
            ]
            assert (repr(row.before.x), row.before.name) == (repr(before[key][0]), before[key][1])
    assert kinds == expected
    assert len(found) == sum(map(len, expected.values()))


def test_snapshot_diff__takes_both_zeros_for_one(spark: SparkSession) -> None:
    frames = [spark.createDataFrame([("1", x)], "a string, x double") for x in (0.0, -0.0)]
    assert epsjoin.spark.snapshot_diff(*frames, key="a").collect() == []


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [(["1", "1"], "rows of new have one key, a 1"), (["1", None], "a row of new has no a")],
)
def test_snapshot_diff__ends_at_a_key_that_comes_twice_or_is_none(
    spark: SparkSession, keys: list[str | None], sentence: str
) -> None:
    old, new = (spark.createDataFrame([(each,) for each in rows], "a string") for rows in (["1"], keys))
    with pytest.raises(PySparkException, match=sentence):
        epsjoin.spark.snapshot_diff(old, new, key="a").collect()


def test_snapshot_diff__refuses_what_cannot_be_compared(spark: SparkSession) -> None:
    old, new = (
        spark.createDataFrame([("1", 1)], "a string, x int"),
        spark.createDataFrame([("1", 1)], "a string, x long"),
    )
    with pytest.raises(ArgumentError, match="column 'x' is int in old and bigint in new"):
        epsjoin.spark.snapshot_diff(old, new, key="a")
    with pytest.raises(ArgumentError, match="old has no column 'b'; it has a, x"):
        epsjoin.spark.snapshot_diff(old, new, key="b")
    for of in ("INTERVAL '1' YEAR", "make_interval(1)", "named_struct('b', 1, 'b', 2)"):
        odd = old.selectExpr("a", f"{of} AS x")
        with pytest.raises(ArgumentError, match=r"column 'x' has the type (interval|struct).*; leave it out"):
            epsjoin.spark.snapshot_diff(odd, odd, key="a")
        with pytest.raises(ArgumentError, match="the key column 'x' is (interval|struct).* cannot be comp"):
            epsjoin.spark.snapshot_diff(odd, odd, key="x")
    nested = old.selectExpr("a", "struct(x) AS x")
    with pytest.raises(ArgumentError, match="column 'x' has the type struct.* cannot be compared; leave it"):
        epsjoin.spark.snapshot_diff(nested, nested, key="a")
    with pytest.raises(ArgumentError, match="new must be a DataFrame of Spark, not list"):
        epsjoin.spark.snapshot_diff(old, old.collect(), key="a")
    with pytest.raises(ArgumentError, match="at least one column"):
        epsjoin.spark.snapshot_diff(old, new, key=[])
    for wrong, sentence in (
        ("kind", "key column must not be called kind"),
        (["a", "A"], "names the column a more"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            epsjoin.spark.snapshot_diff(old, old, key=wrong)
    with pytest.raises(ArgumentError, match="columns must be a column's name or a list of names, not 5"):
        epsjoin.spark.snapshot_diff(old, old, key="a", columns=5)


def test_snapshot_diff__compares_texts_by_their_bytes_whatever_their_collation(spark: SparkSession) -> None:
    """By a collation that takes A for a, a row differed and none of its columns did."""
    collated = "a string COLLATE UTF8_LCASE, t string COLLATE UTF8_LCASE"
    old = spark.createDataFrame([("a", "x"), ("b", "x"), ("c", "x")], collated)
    new = spark.createDataFrame([("A", "x"), ("b", "X"), ("c", "x")], collated)
    found = epsjoin.spark.snapshot_diff(old, new, key="a").collect()
    assert sorted((row.a, row.kind, row["columns"]) for row in found) == [
        ("A", "inserted", None),
        ("a", "deleted", None),
        ("b", "updated", ["t"]),
    ]


def test_snapshot_diff__refuses_a_key_that_is_a_map(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("map(id, id) AS m", "id")
    with pytest.raises(ArgumentError, match="the key column 'm' is map<bigint,bigint>, which cannot be"):
        epsjoin.spark.snapshot_diff(frame, frame, key="m")


def test_snapshot_diff__takes_columns_of_any_name(spark: SparkSession) -> None:
    """Names with dots and backticks, those that are used within, and upper and lower case."""
    names = ["_digest", "a.b", "c`d", "_old", "Kind"]
    old = spark.createDataFrame([(1, 2, 3, 4, 5)], "k int, a int, b int, c int, d int").toDF(*names)
    new = old.toDF("_DIGEST", *names[1:]).withColumns({"c`d": F.lit(30), "Kind": F.lit(None).cast("int")})
    [found] = epsjoin.spark.snapshot_diff(old, new, key=["_digest", "a.b"]).collect()
    assert found.kind == "updated"
    assert found["columns"] == ["c`d", "Kind"]
    assert found.before.asDict() == dict(zip(names, (1, 2, 3, 4, 5), strict=True))
    assert found.now.asDict() == dict(zip(names, (1, 2, 30, 4, None), strict=True))
    assert epsjoin.spark.snapshot_diff(old, new, key="_digest", columns="a.b").count() == 0
    twice = epsjoin.spark.snapshot_diff(old, new, key="_digest", columns=["Kind", "kind"])
    assert [row["columns"] for row in twice.collect()] == [["kind"]], "of one column"


def test_snapshot_diff__compares_times(spark: SparkSession) -> None:
    old, new = (spark.range(2).selectExpr("id", f"timestamp'2024-01-0{day} 00:00:00' AS t") for day in (1, 2))
    found = epsjoin.spark.snapshot_diff(old, new, key="id").collect()
    assert [row["columns"] for row in found] == [["t"]] * 2
