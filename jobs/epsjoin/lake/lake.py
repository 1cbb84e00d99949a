"""The lake of one data set, and the slices of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from epsjoin.contracts.load_source import load_partner
from epsjoin.contracts.row_rules import checks_of
from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.tables import TableContract, load_table
from epsjoin.lake.schemas import ARROW_TYPES


@dataclass(frozen=True)
class Lake:
    """Where the tables of one data set lie.

    Parameters
    ----------
    uri : folder of all data sets, as a URI (file, s3a, hdfs, ...).
    contracts : folder of the contracts.
    source : the data set's own contract.
    versions : pinned versions by table: a commit fails if its slice has changed since then. Commits to other
        tables follow the newest version.
    unmet : names of constraints that rows in the tables break, which the logs therefore do not have.
    logs : what the tables' logs said when each was first read, for readers of many runs; see
        :func:`epsjoin.lake.slices.as_now`. ``None``: every look reads the log again.
    """

    uri: str
    contracts: Path
    source: SourceContract
    versions: Mapping[str, int] = field(default_factory=dict)
    unmet: frozenset[str] = frozenset()
    logs: dict[str, Any] | None = field(default=None, compare=False)

    def location(self, table: str) -> str:
        """Return the URI of a table's folder."""
        return f"{self.uri.rstrip('/')}/{self.source.name}/{table}"

    def partner(self) -> Lake:
        """Return the lake of the data set with which this one is matched.

        Raises
        ------
        ContractError
            The contract has no section ``match``, or the other one does not fit.
        """
        return Lake(self.uri, self.contracts, load_partner(self.contracts, self.source)[1])

    def contract(self, table: str) -> TableContract:
        """Load the contract of a table."""
        return load_table(self.contracts, table, self.source)

    def schema(self, table: str) -> pa.Schema:
        """Return the Arrow schema of a table, by its contract."""
        return pa.schema(
            [
                pa.field(column.name, ARROW_TYPES[column.type], nullable=not column.required)
                for column in self.contract(table).columns
            ]
        )

    def checks(self, table: str) -> Mapping[str, str]:
        """Return the CHECK constraints of a table by name, as its Delta log must have them."""
        return checks_of(self.contract(table))


@dataclass(frozen=True)
class Slice:
    """The rows of a table that one job of one run replaces; a value that says which rows are meant.

    Parameters
    ----------
    table : name of the table.
    run : logical date of the run, ISO.
    also : names and values of further partition columns, for tables that several jobs of a run write.
    fingerprint : what the names of its files begin with, see :mod:`epsjoin.lake.fingerprints`. Readers refuse
        files with another one; the empty text fits all.
    """

    table: str
    run: str
    also: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""

    @property
    def partition(self) -> dict[str, str]:
        """Names and values of the partition columns that the slice fixes."""
        return {"run": self.run, **dict(self.also)}

    def __str__(self) -> str:
        """Return what messages call it."""
        return f"{self.table} of run {self.run}"
