"""Slices of tables, from the log and by the driver: their files, their counts, their few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from epsjoin.errors import TableError
from epsjoin.lake.delta_log import commit, open_log
from epsjoin.lake.lake import Lake
from epsjoin.lake.parquet import File, read_file, target
from epsjoin.pipeline import WRITERS


def write_slice(lake: Lake, table: str, run: str, rows: pa.Table, /, stamp: str = "", **also: str) -> None:
    """Replace the run's slice by a few rows that the driver holds."""
    inner = rows.drop_columns([name for name in ("run", *also) if name in rows.column_names])
    written = target(lake, table, run, stamp).write([inner], **dict[str, Any](also))
    commit(lake, table, run, [written] if written else [], stamp, **also)


def rows_of(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows as an Arrow table of the contract's types, without the column ``run``."""
    schema = lake.schema(table)
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([c for c in schema if c.name != "run"])
    )


def files_of(lake: Lake, table: str, run: str, stamp: str = "") -> list[File]:
    """The files of the run's slice, by path.

    Raises
    ------
    TableError
        The run has no slice in this table: the job that writes it has not run. Or its files bear another
        stamp: what they were made from has changed since.
    """
    return slice_of(lake, table, run, stamp)[1]


def slice_of(lake: Lake, table: str, run: str, stamp: str) -> tuple[int, list[File]]:
    """The table's version, and the files of the run's slice in it."""
    log = open_log(lake.location(table))
    found = []
    if log is not None:
        partitioned = lake.contract(table).partitioned
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            values = {name: str(action[f"partition.{name}"]) for name in partitioned}
            if values["run"] == run:
                found.append(
                    File(table, unquote(action["path"]), action["size_bytes"], action["num_records"], values)
                )
    if log is None or not found:
        raise TableError(f"{table} has no slice of run {run}; run {WRITERS[table]} for it first")
    if not all(file.path.rpartition("/")[2].startswith(stamp) for file in found):
        raise TableError(
            f"{table} of run {run} was made from other tables than these; run {WRITERS[table]} again"
        )
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


def count(lake: Lake, table: str, run: str, stamp: str = "") -> int:
    """Rows of the run's slice, from the log alone."""
    return sum(file.rows for file in files_of(lake, table, run, stamp))


def read_small(
    lake: Lake, table: str, run: str, columns: Sequence[str] | None = None, stamp: str = ""
) -> pa.Table:
    """The run's slice, read by the driver itself: for tables of a few rows, or a few columns of more."""
    wanted = (
        lake.schema(table) if columns is None else pa.schema([lake.schema(table).field(c) for c in columns])
    )
    parts = [
        read_file(lake.location(table), file, [c for c in wanted.names if c not in file.partition], wanted)
        for file in files_of(lake, table, run, stamp)
    ]
    return pa.concat_tables(parts)


def read_row(lake: Lake, table: str, run: str, stamp: str = "") -> dict[str, Any]:
    """The only row of the run's slice.

    Raises
    ------
    TableError
        There is no slice, or one with another stamp or without a row.
    """
    rows = read_small(lake, table, run, stamp=stamp).to_pylist()
    if len(rows) != 1:
        raise TableError(f"{table} has {len(rows)} rows for run {run}, not one; run {WRITERS[table]} again")
    return dict(rows[0])
