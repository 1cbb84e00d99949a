"""Rules that another engine than Spark may answer: those of the pipeline, and none that it would twist."""

from __future__ import annotations

import math

import pytest

from epsjoin.contracts.expected import rules_of
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.portable import rows_held, to_datafusion
from epsjoin.contracts.tables import load_table
from epsjoin.paths import CONTRACTS
from epsjoin.pipeline import TABLES

SOURCE = load_source(CONTRACTS, "navaids")
TYPES = {
    name: {column.name: column.type for column in load_table(CONTRACTS, name, SOURCE).columns}
    for name in TABLES
}
TYPES["points"]["seen"] = "timestamp"
TYPES["value_counts_before"] = TYPES["value_counts"]


@pytest.mark.parametrize("table", TABLES)
def test_portable__is_every_rule_of_the_pipeline(table: str) -> None:
    for rule in rules_of(load_table(CONTRACTS, table, SOURCE)):
        if table == "matches" and "_records" in rule.query:
            continue  # asks about rows that are in no table of the lake
        assert to_datafusion(rule.query.replace("${object}", table), TYPES) is not None, rule.name


@pytest.mark.parametrize(
    "condition",
    [
        "ident = 5",  # Spark: the text as a number, or an error
        "ident < id",
        "id IN ('1', '2')",
        "id = '1'",
        "seen < '2020-01-01'",  # Spark: the text as a time
        "upper(ident) = 'X'",
        "ident LIKE '%'",
        "ident RLIKE 'x'",
        "id % 2 = 0",
        "id DIV 2 = 0",
        "CAST(ident AS INT) = 1",
        "latitude_deg > (SELECT MAX(latitude_deg) FROM points)",  # of NaN
        "coalesce(ident, id) = 1",
        "no_column > 1",
        "id > (SELECT MAX(id) FROM nowhere)",
        "id = 1 LIMIT 1",
        "-",
    ],
)
def test_portable__is_nothing_that_may_mean_something_else(condition: str) -> None:
    assert to_datafusion(f"SELECT COUNT(*) FROM points WHERE {condition}", TYPES) is None


def test_portable__keeps_texts_names_and_decimals() -> None:
    condition = "`ident` = 'it''s \\\\' OR latitude_deg < 0.25 OR id > -(0.57 * 3)"
    translated = to_datafusion(f"SELECT COUNT(*) FROM points AS t WHERE {condition}", TYPES)
    assert translated is not None
    assert translated.endswith(
        """FROM "points" AS "table t" WHERE "table t"."ident" = 'it''s \\' """
        """OR "table t"."latitude_deg" < 0.25 OR "table t"."id" > -(CAST('0.57' AS DECIMAL(2, 2)) * 3)"""
    )


@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("SELECT COUNT(*) FROM a WHERE x > 1", 0),
        ("SELECT COUNT(*) FROM a JOIN b WHERE a.x > b.y", 10),
        ("SELECT COUNT(*) FROM b WHERE y <> (SELECT COUNT(*) FROM a)", 0),
        ("SELECT COUNT(*) FROM a JOIN b ON a.x = b.y", 110),
        ("SELECT COUNT(*) FROM a LEFT ANTI JOIN b ON a.x = b.y", 110),
        ("SELECT COUNT(DISTINCT x) FROM a", 100),
        ("SELECT COUNT(*) FROM (SELECT x FROM a) AS t JOIN b", 110),
        ("SELECT COUNT(*) FROM a WHERE x IN (SELECT y FROM b)", 110),
        ("SELECT COUNT(*) FROM a WHERE x NOT IN (SELECT y FROM b)", 110),
        ("SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.y = a.x) > 1", 110),
        ("SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y = a.x)", 110),
        ("SELECT COUNT( FROM a", math.inf),
    ],
)
def test_rows_held__are_those_of_all_tables_unless_rows_are_only_read_through(
    query: str, held: float
) -> None:
    assert rows_held(query, {"a": 100, "b": 10}) == held
