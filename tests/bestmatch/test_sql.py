from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from epsjoin import bestmatch_sql
from epsjoin.errors import ArgumentError
from oracles import bestmatch as twin

HOWS = ("inner", "left", "right", "outer")
Points = np.ndarray[Any, np.dtype[np.float64]]
Run = Callable[[str, dict[str, Points]], list[tuple[Any, ...]]]


def run_in_sqlite(query: str, tables: dict[str, Points]) -> list[tuple[Any, ...]]:
    """The rows of a query; tables have a column ``id`` and columns y1, y2 and so on."""
    with sqlite3.connect(":memory:") as base:
        for name, points in tables.items():
            columns = ", ".join(f"y{i + 1} REAL" for i in range(points.shape[1]))
            base.execute(f'CREATE TABLE "{name}" (id INTEGER, {columns})')
            marks = ", ".join("?" * (points.shape[1] + 1))
            rows = [(i, *row) for i, row in enumerate(points.tolist())]
            base.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        return base.execute(query).fetchall()


def run_in_duckdb(query: str, tables: dict[str, Points]) -> list[tuple[Any, ...]]:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is tried where it is installed; no lock has it")
    base = duckdb.connect()
    for name, points in tables.items():
        columns = ", ".join(f"y{i + 1} DOUBLE" for i in range(points.shape[1]))
        base.execute(f'CREATE TABLE "{name}" (id INTEGER, {columns})')
        for i, row in enumerate(points.tolist()):
            base.execute(f'INSERT INTO "{name}" VALUES ({", ".join(map(repr, [i, *row]))})')
    return list(base.execute(query).fetchall())


def cases(n: int) -> Iterator[tuple[Points, Points, list[float]]]:
    """Few rows on a grid of tenths, where ties abound and ``|x - y| = eps`` is decided by float64."""
    for seed in range(n):
        random = np.random.default_rng(seed)
        d = int(random.integers(1, 4))
        left, right = (random.integers(-3, 4, (int(random.integers(0, 8)), d)) * 0.1 for _ in range(2))
        yield left, right, random.choice([0.0, 0.1, 0.3, math.inf], d).tolist()


def expected(left: Points, right: Points, eps: Sequence[float], how: str) -> set[tuple[Any, ...]]:
    """The rows by the definition: ids, and the differences."""
    criteria = [
        twin.closest(lambda i, j, k=k: abs(float(left[i, k]) - float(right[j, k])), eps[k])
        for k in range(len(eps))
    ]
    best = twin.best_matches(len(left), len(right), criteria)
    rows = twin.joined(best, len(left), len(right), how)
    nothing = (None,) * len(eps)
    return {
        (i if i >= 0 else None, j if j >= 0 else None, *best.within.get((i, j), nothing)) for i, j, _ in rows
    }


@pytest.mark.parametrize(("dialect", "run"), [("sqlite", run_in_sqlite), ("duckdb", run_in_duckdb)])
@pytest.mark.parametrize("how", HOWS)
def test_bestmatch_sql__finds_what_the_definition_says(dialect: str, run: Run, how: Any) -> None:
    n_rows = 0
    for left, right, eps in cases(60):
        criteria = [(f"y{k + 1}", threshold) for k, threshold in enumerate(eps)]
        rows = run(bestmatch_sql("R", "S", criteria, how, dialect), {"R": left, "S": right})
        assert len(rows) == len(set(rows))
        assert set(rows) == expected(left, right, eps, how)
        n_rows += len(rows)
    assert n_rows > 50


def test_bestmatch_sql__quotes_names_whatever_they_are() -> None:
    with sqlite3.connect(":memory:") as base:
        base.execute('CREATE TABLE "a ""b; c" ("k-1" INTEGER, "from" REAL)')
        base.execute('CREATE TABLE candidates ("select" INTEGER, "t\'" REAL)')
        base.execute('INSERT INTO "a ""b; c" VALUES (7, 1.0), (8, 50.0)')
        base.execute("INSERT INTO candidates VALUES (1, 2.0), (2, 3.0), (3, 90.0)")
        query = bestmatch_sql(
            'a "b; c',
            ["main", "candidates"],
            [("from", "t'", 5.0)],
            "outer",
            "sqlite",
            id="k-1",
            right_id="select",
        )
        found = base.execute(query)
        assert [column[0] for column in found.description] == ["left_id", "right_id", "d_from"]
        rows = [(7, 1, 1.0), (7, 2, 2.0), (8, None, None), (None, 3, None)]
        assert sorted(found.fetchall(), key=str) == sorted(rows, key=str)


def test_bestmatch_sql__takes_a_row_without_a_value_for_one_without_a_partner() -> None:
    with sqlite3.connect(":memory:") as base:
        for name in ("R", "S"):
            base.execute(f"CREATE TABLE {name} (id INTEGER, y REAL)")
            base.execute(f"INSERT INTO {name} VALUES (1, NULL), (2, 2.0)")
        query = bestmatch_sql("R", "S", [("y", math.inf)], dialect="sqlite")
        assert sorted(base.execute(query)) == [(1, None, None), (2, 2, 0.0)]


@pytest.mark.parametrize("how", HOWS[1:])
def test_bestmatch_sql__takes_a_row_with_nan_or_infinity_for_one_without_a_partner(
    tmp_path: Path, how: Any
) -> None:
    engine = QueryBuilder()  # of DataFusion, where NaN equals NaN and is above infinity, as in most engines
    values = {"r": [0.0, math.nan, math.inf, None, -math.inf], "s": [1.0, math.nan, math.inf, -math.inf]}
    for name, column in values.items():
        table = pa.table({"id": range(len(column)), "y": pa.array(column, from_pandas=False)})
        write_deltalake(tmp_path / name, table)
        engine.register(name, DeltaTable(tmp_path / name))
    query = bestmatch_sql("r", "s", [("y", math.inf)], how, "postgres")
    rows = pa.table(engine.execute(query).read_all()).to_pylist()
    alone = [(row["left_id"], row["right_id"]) for row in rows if row["d_y"] is None]
    assert [row for row in rows if row["d_y"] is not None] == [{"left_id": 0, "right_id": 0, "d_y": 1.0}]
    lefts = [(i, None) for i in range(1, 5)] if how != "right" else []
    rights = [(None, i) for i in range(1, 4)] if how != "left" else []
    assert sorted(alone, key=str) == sorted(lefts + rights, key=str)


PRINTED = """
SELECT r.id, s.id FROM R AS r, S AS s WHERE NOT EXISTS (
  SELECT * FROM R AS r2, S AS s2
  WHERE abs(r2.y1 - s2.y1) <= abs(r.y1 - s.y1) AND abs(r2.y2 - s2.y2) <= abs(r.y2 - s.y2)
    AND r.y1 <> r2.y1 AND r.y2 <> r2.y2 AND s.y1 <> s2.y1 AND s.y2 <> s2.y2)
"""
"""The query of section 2.2, of which only the names r' and s' are changed."""


def test_printed_sql__keeps_pairs_that_are_dominated() -> None:
    random = np.random.default_rng(6)
    tables = {"R": random.integers(0, 20, (8, 2)) * 1.0, "S": random.integers(0, 20, (9, 2)) * 1.0}
    right = expected(*tables.values(), [math.inf] * 2, "inner")
    printed = set(run_in_sqlite(PRINTED, tables))
    assert {row[:2] for row in right} < printed
    assert (len(printed), len(right)) == (11, 5)
    # "analogously" for the left-outer: with r' = r no value of r differs from itself, so nothing is dominated
    of_left = PRINTED.replace("R AS r2, S AS s2", "S AS s2").replace("r2.", "r.")
    assert len(run_in_sqlite(of_left, tables)) == 8 * 9
    assert len(expected(*tables.values(), [math.inf] * 2, "left")) == 25


def test_printed_definition__has_two_equal_distances_dominate_each_other() -> None:
    left, right = np.zeros((1, 1)), np.array([[-1.0], [1.0]])
    # "smaller or equal in each dimension, and not equal", of tuples: each pair has one that is so
    values = {(0, j): abs(float(left[0, 0] - right[j, 0])) for j in range(2)}
    assert all(any(values[q] <= values[p] and right[q[1]] != right[p[1]] for q in values) for p in values)
    query = bestmatch_sql("R", "S", [("y1", math.inf)], dialect="sqlite")
    assert len(run_in_sqlite(query, {"R": left, "S": right})) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"criteria": []}, "criteria must be one or more"),
        ({"criteria": [("x", 1.0), ("X", "y", 1.0)]}, "each of another left column"),
        ({"criteria": [("x", -1.0)]}, "eps of x must be a number, at least 0, not -1.0"),
        ({"criteria": [("x", math.nan)]}, "eps of x must be a number, at least 0, not nan"),
        ({"criteria": [("x", True)]}, "eps of x must be a number, at least 0, not True"),
        ({"criteria": 5}, r"a criterion must be \(name, eps\) or .*, not 5"),
        ({"criteria": ["xy"]}, "a criterion must be .*, not 'xy'"),
        ({"criteria": [("x",)]}, r"a criterion must be .*, not \('x',\)"),
        ({"criteria": [(1, 1.0)]}, r"a criterion must be .*, not \(1, 1.0\)"),
        ({"criteria": [("x", "y", "z", 1.0)]}, r"a criterion must be .*, not \('x', 'y', 'z', 1.0\)"),
        ({"criteria": ("x", 1.0)}, "a criterion must be .*, not 'x'"),
        ({"left": 5}, "left must be the name of a table, or the parts of one, not 5"),
        ({"left": []}, r"left must be the name of a table, or the parts of one, not \[\]"),
        ({"right": ["lake", ""]}, "right must be the name of a table, or the parts of one"),
        ({"id": 5}, "id must be the name of a column, not 5"),
        ({"right_id": ""}, "right_id must be the name of a column, not ''"),
        ({"dialect": 5}, "dialect must be one of .*, not 5"),
        ({"how": "full"}, "how must be one of inner, left, right, outer, not 'full'"),
        ({"dialect": "cobol"}, "dialect must be one of .*duckdb.*spark.*, not 'cobol'"),
    ],
)
def test_bestmatch_sql__refuses_wrong_arguments(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        bestmatch_sql(**{"left": "R", "right": "S", "criteria": [("x", 1.0)], **arguments})
