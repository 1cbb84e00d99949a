"""The history of a table as a frame, and what held at a date."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import epsjoin.spark
from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake.history import KEYS, open_view, read_rows
from epsjoin.lake.lake import Lake
from oracles import versions as oracle
from tests.histories import RUNS, as_oracle, draw_states, states_of, write_retyped, write_states


def history(lake: Lake, table: str) -> DataFrame:
    return epsjoin.spark.history(lake.uri, "tiny", table, contracts=lake.contracts)


def as_of(lake: Lake, table: str, run: str) -> DataFrame:
    return epsjoin.spark.as_of(lake.uri, "tiny", table, run, contracts=lake.contracts)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_history__is_that_of_the_oracle_in_whatever_order_the_runs_came(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    states = draw_states(seed)
    lake = write_states(tmp_path, states, np.random.default_rng(seed).permutation(RUNS).tolist())
    for table in KEYS:
        found = as_oracle(table, [row.asDict() for row in history(lake, table).collect()])
        assert len(found) == len(set(found)) > 12
        assert set(found) == oracle.ranges(states_of(states, table))


def test_as_of__is_the_slice_of_the_latest_run_until_then(spark: SparkSession, tmp_path: Path) -> None:
    lake = write_states(tmp_path, draw_states(5), RUNS[::-1])
    for table in KEYS:
        view = open_view(lake, table)
        for date, run in (
            ("2022-03-01", "2022-03-01"),
            ("2022-04-30", "2022-04-01"),
            ("2099-01-01", RUNS[-1]),
        ):
            found = as_of(lake, table, date)
            assert found.columns == view.columns.names
            rows = [
                {k: bytes(v) if k == "point" else v for k, v in r.asDict().items()} for r in found.collect()
            ]
            expected = read_rows(lake, view, run).to_pylist()
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    with pytest.raises(TableError, match="points has no run until 2021-12-31; the first one is 2022-01-01"):
        as_of(lake, "points", "2021-12-31")
    for wrong in ("2022-3-1", "2022-13-45", "junk", "2022-03"):
        with pytest.raises(ArgumentError, match=f"run must be a date like 2023-06-01, not '{wrong}'"):
            as_of(lake, "points", wrong)


def test_history__reads_a_run_of_another_type_as_today(spark: SparkSession, tmp_path: Path) -> None:
    lake = write_retyped(tmp_path, ["1", "two"], [1, 2])
    found = [
        (row["id"], row["n"], row["from_run"], row["to_run"]) for row in history(lake, "points").collect()
    ]
    first, then = RUNS[:2]
    assert sorted(found, key=str) == [(0, 1, first, None), (1, 2, then, None), (1, None, first, then)]
    assert sorted(row["id"] for row in as_of(lake, "points", first).where("n IS NULL").collect()) == [1]
