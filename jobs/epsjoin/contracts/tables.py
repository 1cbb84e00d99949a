"""Contracts of tables: the columns of each table and the rules that every slice of it must meet.

A table's contract is ``data_contracts/tables/<table>.odcs.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from epsjoin.contracts.matches import Match
from epsjoin.contracts.names import SNAKE_CASE
from epsjoin.contracts.odcs import (
    Column,
    check_choice,
    key_of,
    parse_contract,
    read_contract,
    text_of,
    to_column,
)
from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.trees import TREE
from epsjoin.errors import ContractError

SEVERITIES = ("error", "warning")
"""Severities of a rule: an error stops the run, a warning is reported."""


_TREE_WORDS = "The document as a tree: of each node its label's 64-bit hash, its size, whether it is a list."


@dataclass(frozen=True)
class Rule:
    """A rule that every run's slice of a table must meet, besides the conditions on its columns.

    Parameters
    ----------
    name : a statement that holds, in snake case.
    query : SQL that returns one number, mostly the number of rows that break the rule. ``${object}`` is the
        slice; other tables are called by their names.
    must_be : the number that the query must return.
    severity : one of ``SEVERITIES``.
    """

    name: str
    query: str
    must_be: float
    severity: str


@dataclass(frozen=True)
class TableContract:
    """What one table holds.

    Parameters
    ----------
    partitioned : partition columns, in their order.
    key : columns that identify a row.
    rules : the rules that every slice must meet.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    partitioned: tuple[str, ...]
    key: tuple[str, ...]
    rules: tuple[Rule, ...]


def load_table(contracts: Path, name: str, source: SourceContract | None = None) -> TableContract:
    """Read the contract of a table; ``points`` also has the columns of its source, ``matches`` the distances.

    The points of a source of documents have the column ``tree``, too.

    These files are the project's own: ``make check`` holds them against the standard, a job that starts does
    not, unless it cannot read one.

    Raises
    ------
    ContractError
        No such file, not an ODCS file, or a value that is not allowed.
    """
    file = contracts / "tables" / f"{name}.odcs.yaml"
    try:
        return _to_table(file, name, text_of(file), _from_source(name, source), _match_of(name, source))
    except (KeyError, TypeError, AttributeError):
        read_contract(file)  # which says what is wrong, and where
        raise


def _from_source(name: str, source: SourceContract | None) -> tuple[Column, ...]:
    """The columns that a table has of its source."""
    if name != "points" or source is None:
        return ()
    physical = {"integer": "long", "number": "double", "time": "double", "object": "string"}
    trees = (Column(TREE, "binary", _TREE_WORDS, required=True),) if source.tree else ()
    return (*(replace(c, type=physical.get(c.type, c.type)) for c in source.columns), *trees)


def _match_of(name: str, source: SourceContract | None) -> Match | None:
    return source.match if name == "matches" and source is not None else None


@cache
def _to_table(
    file: Path, name: str, text: str, from_source: tuple[Column, ...], match: Match | None
) -> TableContract:
    """The contract in a file's text, made once: each look at a table asks for it."""
    body = parse_contract(file, text, checked=False)
    table = body["schema"][0]
    properties = table.get("properties") or []
    columns = tuple(to_column(file, p, p.get("physicalType", "")) for p in properties)
    own = {column.name for column in columns}
    columns = columns[:2] + tuple(c for c in from_source if c.name not in own) + columns[2:]
    rules = [_to_rule(file, body) for body in table.get("quality") or []]
    if match is not None:
        columns = columns[:3] + match.columns + columns[3:]
        rules += _rules_of_match(match)
    partitioned = sorted(
        (p.get("partitionKeyPosition", 1), p["name"]) for p in properties if p.get("partitioned")
    )
    return TableContract(
        name=name,
        description=str(table.get("description", "")).strip(),
        columns=columns,
        partitioned=tuple(column for _, column in partitioned),
        key=key_of(properties),
        rules=tuple(rules),
    )


def _rules_of_match(match: Match) -> Iterator[Rule]:
    """Rules that have the names of the criteria in them: what is best is not beaten by a stored pair."""
    names = [criterion.in_table for criterion in match.criteria]
    as_near = " AND ".join(f"o.{name} <= t.{name}" for name in names)
    nearer = " OR ".join(f"o.{name} < t.{name}" for name in names)
    for side in ("left", "right"):
        yield Rule(
            f"no_best_match_of_a_{side}_record_is_beaten",
            f"SELECT COUNT(*) FROM ${{object}} AS t JOIN ${{object}} AS o ON t.{side}_id = o.{side}_id "  # noqa: S608  # names of a contract
            f"WHERE t.best_for IN ('{side}', 'both') AND o.best_for <> 'nobody' AND {as_near} AND ({nearer})",
            0.0,
            "error",
        )
    for name in names:
        yield Rule(
            f"{name}_is_that_of_a_match",
            f"SELECT COUNT(*) FROM ${{object}} WHERE best_for = 'nobody' AND {name} IS NOT NULL "  # noqa: S608  # as above
            f"OR best_for <> 'nobody' AND {name} IS NULL",
            0.0,
            "error",
        )


def _to_rule(file: Path, body: Mapping[str, Any]) -> Rule:
    name = str(body.get("name") or "")
    if not SNAKE_CASE.fullmatch(name):
        raise ContractError(f"{file}: a quality rule's name is in snake case, not {name!r}")
    if body.get("type") != "sql" or not isinstance(body.get("mustBe"), (int, float)):
        raise ContractError(f"{file}: rule {name}: of a table, type must be sql with a number for mustBe")
    check_choice(f"{file}: rule {name}", "severity", body.get("severity"), SEVERITIES)
    return Rule(name, str(body["query"]).strip(), float(body["mustBe"]), str(body["severity"]))
