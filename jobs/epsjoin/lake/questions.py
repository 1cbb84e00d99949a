"""Ask SQL about slices of tables, answered on the driver by DataFusion, the engine within deltalake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, Field, QueryBuilder
from deltalake.schema import PrimitiveType

_NAME = re.compile(r'"([^"]+)"')
"""A name in a query that quotes all of them."""


class Stored(NamedTuple):
    """A slice in a version of a table.

    Parameters
    ----------
    log : the table's log in that version.
    partition : names and values of the partition columns that the slice fixes.
    before : earlier runs whose rows queries find under the name of the table with ``_before`` behind it;
        ``None``: there is no such name.
    n_rows, n_rows_before : numbers of rows of the slice, and of those runs.
    """

    log: DeltaTable
    partition: Mapping[str, str]
    before: Sequence[str] | None = None
    n_rows: int = 0
    n_rows_before: int = 0


class UnansweredError(Exception):
    """The engine could not answer; the text is its own."""


class Questions:
    """Slices that queries may call by the names of their tables.

    Notes
    -----
    The engine does not verify the checksums of pages. Whoever asks has the files read by
    :mod:`epsjoin.lake.parquet` before.
    """

    def __init__(self, tables: Mapping[str, Stored]) -> None:
        self._engine = QueryBuilder()
        for name, stored in tables.items():
            self._engine.register(f"all_{name}", stored.log)
            columns = ", ".join(map(_plain_column, stored.log.schema().fields))
            where = " AND ".join(f"\"{column}\" = '{value}'" for column, value in stored.partition.items())
            views = {name: where}
            if stored.before is not None:
                runs = ", ".join(f"'{run}'" for run in stored.before)
                views[f"{name}_before"] = f"run IN ({runs})" if runs else "FALSE"
            for view, which in views.items():
                self._ask(f'CREATE VIEW "{view}" AS SELECT {columns} FROM "all_{name}" WHERE {which}')  # noqa: S608  # of a contract

    def number(self, query: str) -> float | None:
        """Return the one number that a query returns.

        Raises
        ------
        UnansweredError
            The engine does not understand the query, or cannot read a table.
        """
        value = self._ask(query).column(0)[0].as_py()
        return None if value is None else float(value)

    def hold(self, queries: Iterable[str], columns: Mapping[str, Collection[str]]) -> None:
        """Read into memory what the queries to come need of tables where several name the same column.

        Parameters
        ----------
        queries : all queries to come, with quotes around every name: a table that is held has no column but
            those that they name.
        columns : the columns of each table.

        Notes
        -----
        This takes 8 bytes for a number, 16 for a text, plus the text's own bytes if it has more than 12.
        """
        named = [set(_NAME.findall(query)) for query in queries]
        for table, all_columns in columns.items():
            times = Counter(name for names in named if table in names for name in names & set(all_columns))
            if max(times.values(), default=0) > 1:
                held = ", ".join(f'"{name}"' for name in sorted(times))
                self._ask(f'CREATE TABLE "held_{table}" AS SELECT {held} FROM "{table}"')  # noqa: S608  # of a contract
                self._ask(f'CREATE OR REPLACE VIEW "{table}" AS SELECT * FROM "held_{table}"')  # noqa: S608  # as above

    def _ask(self, query: str) -> pa.Table:
        try:
            return pa.table(self._engine.execute(query).read_all())
        except Exception as error:
            raise UnansweredError(str(error)) from error


def _quote(name: str) -> str:
    """A name as SQL has it: a column that somebody added may have any, and is no part of a query."""
    return '"' + name.replace('"', '""') + '"'


def _plain_column(field: Field) -> str:
    """A column with one NaN only: to the engine a negative NaN is another one, and below all numbers."""
    name = _quote(field.name)
    is_double = field.type == PrimitiveType("double")
    return f"nanvl({name}, CAST('NaN' AS DOUBLE)) AS {name}" if is_double else name
