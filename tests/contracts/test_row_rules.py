"""Constraints: a contract's conditions on single rows mean the same in Delta's log and before a write."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.row_rules import Constraint, condition_of, constraints_of
from epsjoin.contracts.tables import Rule, TableContract, load_table
from epsjoin.paths import CONTRACTS
from oracles import examples

OPTIONAL = frozenset({"a", "b", "c"})
NUMBERS = st.none() | st.integers(-3, 3)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | st.sampled_from(["x", "y", "it's"])), max_size=6)
CONDITIONS = [
    "a < b",
    "a <= b - 1",
    "a > 1",
    "a >= -1 + b",
    "a = b",
    "a <> b + 1",
    "a - -1 < b",
    "a IS NULL",
    "a is not null",
    "c IN ('x', 'it''s')",
    "c NOT IN ('x', 'it''s')",
    "c = 'it''s'",
    "c not in ('x')",
    "a < b OR b < 0 AND c = 'x'",
    "(a < b OR b < 0) AND c = 'x'",
    "a IS NULL AND b IS NULL OR a IS NOT NULL AND b IS NOT NULL",
    "a + b - 1 > 2 OR c IS NULL",
]


def sqlite(condition: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    """What another engine says of each row: 1, 0 or None."""
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        return [row[0] for row in base.execute(f"SELECT {condition} FROM t")]


@pytest.mark.parametrize("condition", CONDITIONS)
@examples(30)
@given(rows=ROWS)
def test_constraint__means_the_same_to_pyarrow_and_to_sql(
    condition: str, rows: list[tuple[int | None, int | None, str | None]]
) -> None:
    constraint = Constraint("it holds", condition, OPTIONAL)
    table = pa.table(
        [
            pa.array([row[i] for row in rows], kind)
            for i, kind in enumerate((pa.int64(), pa.int64(), pa.string()))
        ],
        ["a", "b", "c"],
    )
    broken = [answer == 1 for answer in sqlite(condition, rows)]
    assert constraint.first_breach(lambda name: table[name]) == (broken.index(True) if any(broken) else None)
    assert sqlite(constraint.check, rows) == [int(not each) for each in broken], "and it is never null"


def test_constraint__of_a_required_column_asks_for_no_missing_value() -> None:
    assert Constraint("it holds", "a >= b OR isnan(a)", frozenset("b")).check == (
        "(b IS NULL OR a < b) AND (NOT isnan(a))"
    )


def rule(where: str, severity: str = "error", must_be: float = 0) -> Rule:
    return Rule("it_holds", f"SELECT COUNT(*) FROM ${{object}} WHERE {where}", must_be, severity)


@pytest.mark.parametrize(
    "other",
    [
        rule("a < b", severity="warning"),
        rule("a < b", must_be=1),
        rule("a < (SELECT MAX(a) FROM points)"),
        rule("(a = 1) <> (b = 2)"),
        rule("a - (b - 1) > 0"),
        rule("a < b < c"),
        rule("NOT a < b"),
        rule("a < d"),
        rule("a BETWEEN 1 AND 2"),
        rule("c LIKE 'x'"),
        rule("a"),
        rule("a < "),
        rule("t.a < 1"),
        Rule("one_row", "SELECT COUNT(*) - 1 FROM ${object}", 0, "error"),
        Rule("apart", "SELECT COUNT(*) FROM ${object} JOIN points WHERE a < b", 0, "error"),
    ],
)
def test_condition_of__leaves_to_the_gates_what_is_not_about_single_rows(other: Rule) -> None:
    """Brackets that deltalake drops, and a null that Delta takes for a breach, are among these."""
    assert condition_of(other, {"a", "b", "c"}) is None
    assert condition_of(rule("a < b"), {"a", "b", "c"}) == "a < b"


def test_constraints_of__the_projects_own_tables() -> None:
    found = {
        file.name.split(".")[0]: [
            each.words for each in constraints_of(load_table(CONTRACTS, file.name.split(".")[0]))
        ]
        for file in (CONTRACTS / "tables").glob("*.odcs.yaml")
    }
    assert found["pairs"] == ["distance is at least 0", "left_is_below_right"]
    assert found["clusters"][2:] == ["noise_is_in_no_cluster"]
    assert found["outliers"][-1] == "degree is at least 1"
    assert found["snapshots"][-1] == "rows_add_up"
    assert found["quarantine"] == []


def contract(*columns: Column) -> TableContract:
    return TableContract("t", "", columns, (), (), ())


def test_constraints_of__a_range_keeps_nan_out() -> None:
    (of_double,) = constraints_of(contract(Column("x", "double", minimum=-0.5, maximum=2)))
    assert of_double.broken == "`x` < -0.5 OR `x` > 2 OR isnan(`x`)"
    nan = pa.array([0.0, None, float("nan")])
    assert of_double.first_breach(lambda _: nan) == 2
    (of_long,) = constraints_of(contract(Column("x", "long", maximum=2)))
    assert of_long.broken == "`x` > 2"


@pytest.mark.parametrize(
    ("kind", "minimum", "maximum", "broken", "values", "first"),
    [
        ("long", 0.5, 9.5, "`x` < 1 OR `x` > 9", [1, 9, 0], 2),
        ("long", 0.5, None, "`x` < 1", [2**60 + 1, 0], 1),
        ("long", 3, 2**63, "`x` < 3", [2**63 - 1, 2], 1),
        ("double", None, 1e16, "`x` > 1e+16 OR isnan(`x`)", [1e16, 1.1e16], 1),
        ("double", None, 1e300, "`x` > 1e+300 OR isnan(`x`)", [1e20, 1e301], 1),
    ],
)
def test_constraints_of__limits_are_numbers_of_the_columns_type(
    tmp_path: Path,
    kind: str,
    minimum: float | None,
    maximum: float | None,
    broken: str,
    values: list[float],
    first: int,
) -> None:
    """In the log, too, in which deltalake writes 0 for a limit of 0.5 to integers."""
    (found,) = constraints_of(contract(Column("x", kind, minimum=minimum, maximum=maximum)))
    assert found.broken == broken
    column = pa.array(values, pa.int64() if kind == "long" else pa.float64())
    assert found.first_breach({"x": column}.__getitem__) == first
    table = DeltaTable.create(tmp_path, schema=pa.schema([("x", column.type)]))
    table.alter.add_constraint({found.name: found.check})
    write_deltalake(table, pa.table({"x": column.slice(0, first)}), mode="append")
    with pytest.raises(DeltaError, match="failed validation check"):
        write_deltalake(table, pa.table({"x": column.slice(first)}), mode="append")


@pytest.mark.parametrize(
    ("name", "fits"),
    [("lat_deg", True), ("selected", True)]
    + [(name, False) for name in ("Lat", "a-b", "null", "select", "distinct", "with", "some", "returning")],
)
def test_is_for_delta__unless_deltalake_cannot_name_the_column(name: str, fits: bool) -> None:
    found = constraints_of(contract(Column(name, "long", minimum=0)))
    assert [each.is_for_delta for each in found] == [fits]
    assert found[0].columns == {name}
    assert found[0].first_breach({name: pa.array([0, -1])}.__getitem__) == 1


def test_values__with_a_backslash_are_as_they_stand() -> None:
    allowed = ("C:\\", "a\\n", "it's")
    (found,) = constraints_of(contract(Column("c", "string", values=allowed)))
    assert found.first_breach(lambda _: pa.array([*allowed, None])) is None
    for other in ("C:", "a\n", "an", "C:\\\\"):
        assert found.first_breach(lambda _, other=other: pa.array([other])) == 0
    assert not found.is_for_delta, "to deltalake a backslash begins nothing"
    assert "'C:\\\\'" in found.check


def test_name__is_another_for_another_condition() -> None:
    """A changed rule must replace the one in the log, which deltalake has put in words of its own."""
    one, other = (Constraint("it_holds", condition, frozenset()) for condition in ("a < b", "a <= b"))
    assert one.name.startswith("it_holds__")
    assert one.name != other.name
    assert pickle.loads(pickle.dumps(one)) == one
