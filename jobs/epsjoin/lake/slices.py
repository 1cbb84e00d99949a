"""Slices of tables, from the log and by the driver: their files, their counts, their few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from epsjoin.errors import TableError
from epsjoin.lake.delta_log import commit, open_log
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, read_file, target
from epsjoin.pipeline import writer_of


def write_slice(lake: Lake, where: Slice, rows: pa.Table) -> None:
    """Replace a slice by a few rows that the driver holds."""
    inner = rows.drop_columns([name for name in where.partition if name in rows.column_names])
    written = target(lake, where).write([inner])
    commit(lake, {where: [written] if written else []})


def rows_of(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows as an Arrow table of the contract's types, without the column ``run``."""
    schema = lake.schema(table)
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([c for c in schema if c.name != "run"])
    )


def files_of(lake: Lake, where: Slice) -> list[File]:
    """The files of a slice, by path.

    Raises
    ------
    TableError
        The run has no slice in this table: the job that writes it has not run. Or its files have another
        fingerprint: what they were made from has changed since.
    """
    return version_and_files(lake, where)[1]


def version_and_files(lake: Lake, where: Slice) -> tuple[int, list[File]]:
    """The table's version, and the files of the slice in it; see :func:`files_of`."""
    log = open_log(lake.location(where.table))
    found = []
    if log is not None:
        partitioned = lake.contract(where.table).partitioned
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            values = {name: str(action[f"partition.{name}"]) for name in partitioned}
            if where.partition.items() <= values.items():
                path, size, rows = unquote(action["path"]), action["size_bytes"], action["num_records"]
                found.append(File(where.table, path, size, rows, values))
    writer = writer_of(where.table)
    if log is None or not found:
        raise TableError(f"{where.table} has no slice of run {where.run}; run {writer} for it first")
    if not all(file.path.rpartition("/")[2].startswith(where.fingerprint) for file in found):
        raise TableError(f"{where} was made from other tables than these; run {writer} again")
    return log.version(), sorted(found, key=lambda file: file.path)


def rows_by_run(lake: Lake, table: str) -> dict[str, int]:
    """Rows of every run's slice, oldest run first, from the log alone; empty where there is no table."""
    log = open_log(lake.location(table))
    rows: dict[str, int] = {}
    for action in [] if log is None else pa.table(log.get_add_actions(flatten=True)).to_pylist():
        run = str(action["partition.run"])
        rows[run] = rows.get(run, 0) + action["num_records"]
    return dict(sorted(rows.items()))


def runs_of(lake: Lake, table: str) -> list[str]:
    """The runs that have a slice in this table, from the log alone; the oldest first."""
    log = open_log(lake.location(table))
    if log is None:
        return []
    return sorted({str(row["run"]) for row in log.partitions()})


def count(lake: Lake, where: Slice) -> int:
    """Rows of a slice, from the log alone."""
    return sum(file.rows for file in files_of(lake, where))


def read_small(lake: Lake, where: Slice, columns: Sequence[str] | None = None) -> pa.Table:
    """A slice, read by the driver itself: for tables of a few rows, or a few columns of more."""
    schema, location = lake.schema(where.table), lake.location(where.table)
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    parts = [
        read_file(location, file, [name for name in wanted.names if name not in file.partition], wanted)
        for file in files_of(lake, where)
    ]
    return pa.concat_tables(parts)


def read_row(lake: Lake, where: Slice) -> dict[str, Any]:
    """The only row of a slice.

    Raises
    ------
    TableError
        There is no slice, or one with another fingerprint, or it has not one row.
    """
    rows = read_small(lake, where).to_pylist()
    if len(rows) != 1:
        raise TableError(
            f"{where.table} has {len(rows)} rows for run {where.run}, not one; "
            f"run {writer_of(where.table)} again"
        )
    return dict(rows[0])
