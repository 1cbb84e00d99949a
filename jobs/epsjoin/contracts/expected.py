"""What a contract expects of a table: sentences, each with the number that must be measured.

All but the rules are about columns, and their number counts the columns or rows that break them. The number
of a rule is what its query returns.
"""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.row_rules import column_conditions
from epsjoin.contracts.tables import Rule, TableContract

COLUMNS = "columns are those of the contract"
"""The expectation that a table has all columns of its contract and no others."""


class Expected(NamedTuple):
    """One expectation.

    Parameters
    ----------
    name : the sentence, or a rule's name; unique within a table.
    severity : one of ``SEVERITIES``.
    must_be : the number that must be measured.
    """

    name: str
    severity: str
    must_be: float


def expected_of(contract: TableContract) -> list[Expected]:
    """List what a contract expects: columns, types, then of each column its values, the key, the rules."""
    names = [COLUMNS, *map(type_words, contract.columns)]
    for column in contract.columns:
        names += [missing_words(column)] if column.required else []
        names += [words for words, _ in column_conditions(column)]
    rules = [Expected(rule.name, rule.severity, rule.must_be) for rule in rules_of(contract)]
    return [*(Expected(name, "error", 0.0) for name in names), *rules]


def type_words(column: Column) -> str:
    """The sentence that a column has its type."""
    return f"{column.name} is of type {column.type}"


def missing_words(column: Column) -> str:
    """The sentence that a column has a value in every row."""
    return f"{column.name} is never missing"


def rules_of(contract: TableContract) -> list[Rule]:
    """The rules of a contract, after a rule that no two rows have the same key."""
    key = [name for name in contract.key if name not in contract.partitioned]
    if not key:
        return list(contract.rules)
    names = ", ".join(f"`{name}`" for name in key)
    counted = f"SELECT COUNT(*) AS n FROM ${{object}} GROUP BY {names}"  # noqa: S608  # names of a contract
    duplicates = f"SELECT COALESCE(SUM(n), 0) FROM ({counted}) AS t WHERE n > 1"  # noqa: S608  # as above
    unique = Rule(f"rows differ in {', '.join(key)}", duplicates, 0.0, "error")
    return [unique, *contract.rules]
