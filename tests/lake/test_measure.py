"""What is measured of rows: every expectation about a table's columns finds what breaks it, with examples."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.contracts.expected import COLUMNS, expected_of, missing_words, type_words
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.row_rules import column_conditions, range_words
from epsjoin.contracts.tables import TableContract, load_table
from epsjoin.lake.lake import Lake
from epsjoin.lake.measure import Measured, add_measured, measure_rows, measure_schema
from epsjoin.paths import CONTRACTS
from epsjoin.pipeline import TABLES
from epsjoin.spark.checks.judge import judge
from tests.lake.rows import lake_of_pairs


def columns_of(table: str) -> TableContract:
    """The contract of a table, without what needs a query."""
    return replace(load_table(CONTRACTS, table, load_source(CONTRACTS, "navaids")), key=(), rules=())


def measured(rows: pa.Table, contract: TableContract) -> dict[str, Measured]:
    return {**measure_schema(rows.schema, contract), **measure_rows(rows, contract)}


def failing(rows: pa.Table, contract: TableContract) -> set[str]:
    outcomes = judge([contract], {contract.name: measured(rows, contract)})[contract.name]
    return {outcome.expectation for outcome in outcomes if not outcome.success}


def rows_of(lake: Lake, contract: TableContract, *values: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(values), lake.schema(contract.name))


def odd(column: Column) -> object:
    if column.values:
        return "another"
    if column.minimum is not None:
        return column.minimum - 1
    return None if column.maximum is None else column.maximum + 1


@pytest.mark.parametrize("table", TABLES)
def test_measure__finds_what_breaks_each_expectation(table: str, tmp_path: Path) -> None:
    """Values below and above a range, other or missing values; other columns, other types."""
    lake = replace(lake_of_pairs(tmp_path), source=load_source(CONTRACTS, "navaids"))
    contract = columns_of(table)
    missing = {column.name: None for column in contract.columns}
    broken = rows_of(lake, contract, missing, {column.name: odd(column) for column in contract.columns})
    ranged = {each for column in contract.columns for each, _ in column_conditions(column)}
    assert failing(broken, contract) == ranged | {missing_words(c) for c in contract.columns if c.required}
    above = {
        c.name: math.nan if c.type == "double" else c.maximum and c.maximum + 1 for c in contract.columns
    }
    with_range = [c for c in contract.columns if c.minimum is not None or c.maximum is not None]
    assert failing(rows_of(lake, contract, above), contract) >= {
        range_words(c) for c in with_range if c.maximum is not None or c.type == "double"
    }
    others = pa.table({**{name: pa.nulls(1, pa.decimal128(5, 2)) for name in missing}, "more": [1]})
    assert failing(others, contract) >= {COLUMNS, *map(type_words, contract.columns)}
    assert failing(pa.table({"more": [1]}), contract) == {each.name for each in expected_of(contract)}


def test_measure__counts_rows_and_gives_the_least_values_that_break_it() -> None:
    contract = columns_of("pairs")
    rows = pa.table({"distance": [0.5, -1.0, None, np.nan, -2.5, -3.0]})
    found = measure_rows(rows, contract)
    assert str(found["distance is at least 0"]) == "4 rows, such as -3.0, -2.5, -1.0"
    assert str(measure_rows(rows.slice(2, 2), contract)["distance is at least 0"]) == "1 rows, such as nan"
    assert str(found["distance is never missing"]) == "1 rows"
    assert str(found["left_id is never missing"]) == "there is no column left_id"
    assert str(measure_rows(rows.slice(0, 1), contract)["distance is at least 0"]) == ""
    texts = measure_rows(pa.table({"distance": ["far"]}), contract)["distance is at least 0"]
    assert texts.number == math.inf
    assert "string" in texts.words


def test_measure__counts_rows_that_break_a_rule_one_by_one() -> None:
    contract = load_table(CONTRACTS, "pairs", load_source(CONTRACTS, "navaids"))
    rows = pa.table({"left_id": [1, 2, 3, 4], "right_id": [2, 2, 1, 9], "distance": [0.0] * 4})
    found = add_measured(measure_rows(rows.slice(begin, 2), contract) for begin in (0, 2))
    assert str(found["left_is_below_right"]) == "2 rows"
    assert "left_is_a_point" not in found, "that takes another table"
    gone = measure_rows(rows.drop_columns(["right_id"]), contract)["left_is_below_right"]
    assert gone == Measured(math.inf, words="there is no column right_id")


def test_measured__of_parts_adds_up_to_that_of_the_whole() -> None:
    contract = columns_of("pairs")
    values = [None, -1.0, 2.0, -3.0, 0.0, -4.0, None, -5.0]
    rows = pa.table({"left_id": range(8), "right_id": range(8), "distance": values, "run": ["r"] * 8})
    whole = measure_rows(rows, contract)
    assert whole["distance is at least 0"] == Measured(4, (-5.0, -4.0, -3.0))
    for size in (1, 3, 8):
        parts = [measure_rows(rows.slice(begin, size), contract) for begin in range(0, 8, size)]
        assert add_measured(parts) == add_measured(parts[::-1]) == whole


def test_judge__has_the_library_write_what_an_expectation_says_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contract = columns_of("clusters")
    suite = expected_of(contract)
    numbers = {each.name: Measured(each.must_be) for each in suite}
    judge([contract], {contract.name: numbers})  # imports the library
    from great_expectations.expectations.expectation import Expectation

    written, write = [], Expectation.configuration.fget

    def note(expectation: Expectation) -> Any:
        written.append(expectation)
        return write(expectation)

    monkeypatch.setattr(Expectation, "configuration", property(note))
    assert all(outcome.success for outcome in judge([contract], {contract.name: numbers})[contract.name])
    assert len(suite) <= len(written) <= 6 * len(suite), "not forty times"
