"""What is portable means the same to the driver's engine as to Spark, on values on which engines differ."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from epsjoin.spark.checks import measuring
from epsjoin.spark.checks.measuring import ask_driver, ask_spark
from tests.spark.checks.stored import store

NUMBERS = [0.0, -0.0, 1.0, -1.5, 0.9, 9.0, math.inf, math.nan, -math.nan, -math.inf, 5e-324, 1e300, None]
ROWS = pa.table(
    {
        "run": ["r"] * 13,
        "i": pa.array([0, 1, 1, -3, 10, 30, 70, 2**53 + 1, 2**63 - 1, -(2**63), None, None, 2], pa.int64()),
        "x": pa.array(NUMBERS, pa.float64()),
        "y": pa.array(NUMBERS[::-1], pa.float64()),
        "t": ["", "a", "A", "a ", "é", "z", "it's", "\\", "\\n", "ab", None, "10", "9"],
        "b": [True, False, None] * 4 + [True],
    }
)
TYPES = {"t1": {"run": "string", "i": "long", "x": "double", "y": "double", "t": "string", "b": "boolean"}}
CONDITIONS = [
    *("x < 0", "x <= 0", "x = 0", "x <> 0", "x > 1", "x >= 1e300", "x < y", "x = y", "x <> y", "isnan(x)"),
    *("NOT x < 0", "NOT isnan(x)", "x BETWEEN 0 AND 1", "x NOT BETWEEN -1.5 AND 0.9", "x IN (0, 9, 0.9)"),
    *(
        "x = 0.9",
        "x < 0.9",
        "x > 1e-9",
        "x * 2 > y + 1",
        "x / 4 < 1",
        "x - y > 0",
        "-x > 1",
        "x = i",
        "i < x",
    ),
    *(
        "i = 1",
        "i <> 1",
        "i > 0.9 * 70",
        "i * 0.9 = 9",
        "i = 0.9 * 30",
        "i < 0.5",
        "i / 4 > 2",
        "i IN (1, 10)",
    ),
    *(
        "t = 'a'",
        "t < 'a'",
        "t > 'Z'",
        "t IN ('it''s', '\\\\n')",
        "t <> ''",
        "t = 'é'",
        "t BETWEEN '1' AND '9'",
    ),
    *(
        "b",
        "NOT b",
        "b = TRUE",
        "b <> (t = 'a')",
        "b IS NULL",
        "x IS NULL OR b",
        "x > 0 AND b",
        "x IS NOT NULL",
        "x % 1 <> 0",
        "x % 2 = 1",
    ),
    *(
        "i IN (SELECT i FROM t1 WHERE x > 0)",
        "i NOT IN (SELECT i FROM t1 WHERE x > 0)",
        "coalesce(i, -5) = -5",
    ),
    *("coalesce(x, y) > 0", "CASE WHEN x > 0 THEN i ELSE 0 END > 1", "(x > 0) = (y > 0)"),
]
COUNTED = {condition: f"SELECT COUNT(*) FROM t1 WHERE {condition}" for condition in CONDITIONS}
QUERIES = [
    *COUNTED.values(),
    *("SELECT COUNT(i) FROM t1", "SELECT COUNT(DISTINCT i) FROM t1", "SELECT COUNT(DISTINCT x) FROM t1"),
    *(
        "SELECT COUNT(DISTINCT t) FROM t1",
        "SELECT MIN(i) FROM t1",
        "SELECT MAX(i) FROM t1 WHERE i > 99 AND x < 0",
    ),
    *("SELECT SUM(x) FROM t1 WHERE x BETWEEN -2 AND 9", "SELECT SUM(i) FROM t1 WHERE i BETWEEN 0 AND 99"),
    "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM t1 GROUP BY x HAVING COUNT(*) > 1) AS u",
    "SELECT COUNT(*) FROM t1 AS l JOIN t1 AS r ON l.x = r.y",
    "SELECT COUNT(*) FROM t1 AS l JOIN t1 AS r WHERE l.x > r.y AND l.i <> r.i",
    "SELECT COUNT(*) FROM t1 AS l LEFT JOIN t1 AS r ON l.i = r.i - 1 AND r.i > 0 WHERE r.i IS NULL",
    "SELECT COUNT(*) FROM t1 AS l LEFT ANTI JOIN t1 AS r ON l.x = r.y",
    "SELECT COUNT(*) FROM t1 AS l LEFT SEMI JOIN t1 AS r ON l.t = r.t AND l.b = r.b",
    "SELECT COUNT(*) FROM (SELECT x FROM t1 UNION ALL SELECT y FROM t1) AS u WHERE x > 0",
    "SELECT COUNT(*) FROM (SELECT x FROM t1 UNION SELECT y FROM t1) AS u",
    "SELECT (SELECT COUNT(*) FROM t1) / 4 - COUNT(DISTINCT t) * 2 FROM t1",
    "SELECT CASE WHEN MIN(CASE WHEN b THEN i END) <= MAX(CASE WHEN x > 0 THEN i END) THEN 1 END FROM t1",
]


def test_portable_queries__have_the_same_answers_by_either_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    stored, read = store({"t1": ROWS}, tmp_path, "r")
    asked = {("t1", query): query for query in QUERIES}
    by_driver = ask_driver(stored, TYPES, asked, read)
    assert list(by_driver) == list(asked), "all of them are portable"
    rows = spark.createDataFrame(ROWS)
    # one scan counts most conditions, which Spark would plan 60 queries for
    together = [condition for condition in CONDITIONS if "SELECT" not in condition]
    row = rows.selectExpr(*(f"count_if({condition})" for condition in together)).first()
    assert row is not None
    by_spark = {("t1", COUNTED[condition]): float(n) for condition, n in zip(together, row, strict=True)}
    by_spark |= ask_spark({"t1": rows}, {key: query for key, query in asked.items() if key not in by_spark})
    assert by_driver == by_spark


def test_spark__keeps_no_view_of_a_table_whose_query_failed(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="`nowhere` cannot be resolved"):
        ask_spark({"t1": spark.createDataFrame(ROWS)}, {("t1", "of none"): "SELECT MAX(nowhere) FROM t1"})
    assert not spark.catalog.tableExists("t1")


def test_driver__leaves_out_what_its_engine_cannot_answer(tmp_path: Path) -> None:
    stored, read = store({"t1": ROWS}, tmp_path, "r")
    queries = {
        ("t1", "like"): "SELECT COUNT(*) FROM t1 WHERE t LIKE 'a%'",
        ("t1", "all"): "SELECT COUNT(*) FROM t1",
    }
    assert ask_driver(stored, TYPES, queries, read) == {("t1", "all"): 13.0}
    beyond = {("t1", "sum"): "SELECT SUM(i) FROM t1 WHERE i > 0", ("t1", "add"): "SELECT MAX(i) + 1 FROM t1"}
    assert ask_driver(stored, TYPES, beyond, read) == {}, "Spark stops with an error here"
    shutil.rmtree(tmp_path / "t1")
    assert ask_driver(stored, TYPES, {("t1", "gone"): "SELECT COUNT(*) FROM t1 WHERE i = 1"}, read) == {}


def test_driver__reads_through_rows_of_which_it_would_not_remember_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five rows may be remembered: keys are counted, and large tables filtered, whatever their size."""
    monkeypatch.setattr(measuring, "MAX_HELD_ROWS", 5)
    large = pa.table({"run": ["r"] * 8, "i": [1, 1, 2, 3, 4, 5, 6, 9], "x": [0.5] * 7 + [4.0]})
    small = pa.table({"run": ["r"] * 2, "j": [1, 2], "z": [3.0, 3.0]})
    stored, find = store({"large": large, "small": small}, tmp_path, "r")
    types = {
        "large": {"run": "string", "i": "long", "x": "double"},
        "small": {"run": "string", "j": "long", "z": "double"},
    }
    answered = {
        "SELECT COALESCE(MAX(i), 0) - 2 * COUNT(DISTINCT i) + COUNT(*) FROM large": 3.0,
        "SELECT COUNT(*) FROM large AS t LEFT ANTI JOIN small AS o ON t.i = o.j": 5.0,
        "SELECT COUNT(*) FROM large AS t JOIN (SELECT MAX(j) AS m FROM small) AS s WHERE t.i = s.m": None,
        "SELECT COUNT(*) FROM large AS t JOIN small AS s WHERE t.x > s.z": 2.0,
        "SELECT COUNT(*) FROM small WHERE j < (SELECT COUNT(*) FROM large)": 2.0,
        "SELECT COUNT(DISTINCT i) FROM large": None,
        "SELECT COUNT(DISTINCT j) FROM small": 2.0,
        "SELECT COUNT(*) FROM large AS t JOIN small AS s ON t.i = s.j": None,
    }
    asked = {("large", query): query for query in answered}
    expected = {("large", query): number for query, number in answered.items() if number is not None}
    assert ask_driver(stored, types, asked, find) == expected
    monkeypatch.setattr(measuring, "MAX_HELD_ROWS", 10)
    assert list(ask_driver(stored, types, asked, find)) == list(asked)


def test_driver__counts_the_rows_of_earlier_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slice has one row, the run before it three, of which a query would remember the values."""
    rows = pa.table({"run": ["r"] + ["before"] * 3, "i": [1, 1, 2, 3]})
    stored, find = store({"t": rows}, tmp_path, "r")
    types = {name: {"run": "string", "i": "long"} for name in ("t", "t_before")}
    of_run = stored["t"]._replace(n_rows=1, before=["before"], n_rows_before=3)
    asked = {("t", "values"): "SELECT COUNT(DISTINCT i) FROM t_before"}
    for most, expected in ((3, {("t", "values"): 3.0}), (2, {})):
        monkeypatch.setattr(measuring, "MAX_HELD_ROWS", most)
        assert ask_driver({"t": of_run}, types, asked, find) == expected
