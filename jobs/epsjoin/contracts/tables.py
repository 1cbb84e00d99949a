"""Contracts of tables: the columns of each table and the rules that every slice of it must meet.

A table's contract is ``data_contracts/tables/<table>.odcs.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epsjoin.contracts.odcs import Column, key_of, read_contract, to_column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ContractError

SEVERITIES = ("error", "warning")
"""Severities of a rule: an error stops the run, a warning is reported."""


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
    """Read the contract of a table; ``points`` also has the columns of its source.

    These files are the project's own: ``make check`` holds them against the standard, a job that starts does
    not, unless it cannot read one.

    Raises
    ------
    ContractError
        No such file, not an ODCS file, or a value that is not allowed.
    """
    file = contracts / "tables" / f"{name}.odcs.yaml"
    try:
        return _to_table(file, name, read_contract(file, checked=False), source)
    except (KeyError, TypeError, AttributeError):
        read_contract(file)  # which says what is wrong, and where
        raise


def _to_table(file: Path, name: str, body: Mapping[str, Any], source: SourceContract | None) -> TableContract:
    table = body["schema"][0]
    properties = table.get("properties") or []
    columns = tuple(to_column(file, p, p.get("physicalType", "")) for p in properties)
    if name == "points" and source is not None:
        physical = {"integer": "long", "number": "double"}
        own = {column.name for column in columns}
        from_source = tuple(
            replace(c, type=physical.get(c.type, c.type)) for c in source.columns if c.name not in own
        )
        columns = columns[:2] + from_source + columns[2:]
    partitioned = sorted(
        (p.get("partitionKeyPosition", 1), p["name"]) for p in properties if p.get("partitioned")
    )
    return TableContract(
        name=name,
        description=str(table.get("description", "")).strip(),
        columns=columns,
        partitioned=tuple(column for _, column in partitioned),
        key=key_of(properties),
        rules=tuple(_to_rule(file, body) for body in table.get("quality") or []),
    )


def _to_rule(file: Path, body: Mapping[str, Any]) -> Rule:
    name = str(body.get("name") or "")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ContractError(f"{file}: a quality rule's name is in snake case, not {name!r}")
    if body.get("type") != "sql" or not isinstance(body.get("mustBe"), (int, float)):
        raise ContractError(f"{file}: rule {name}: of a table, type must be sql with a number for mustBe")
    if body.get("severity") not in SEVERITIES:
        raise ContractError(f"{file}: rule {name}: severity must be one of {', '.join(SEVERITIES)}")
    return Rule(name, str(body["query"]).strip(), float(body["mustBe"]), str(body["severity"]))
