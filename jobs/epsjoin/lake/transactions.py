"""Transactions of a table: slices, or a whole table outside of a lake, are replaced at once or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from epsjoin.errors import TableError, UnfitTableError, to_one_line
from epsjoin.lake.completeness import is_incomplete, mark_complete
from epsjoin.lake.delta_log import MAX_TRIES, create_log, open_log, open_or_create
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.phases import phase
from epsjoin.lake.protocol import advice, refuse_rules
from epsjoin.lake.targets import (
    Target,
    find_strange,
    target_of,
    translate_write_errors,
    write_empty_file,
)
from epsjoin.pipeline import run_again, writer_of


def commit(lake: Lake, replaced: Mapping[Slice, Sequence[File]]) -> None:
    """Replace slices of one table by new files, all in one transaction.

    A slice without files gets one file without rows: an empty slice is a result, a missing one is an error.

    Parameters
    ----------
    lake : the tables. Where it pins a version of this table, the slices must not have changed since then.
    replaced : the new files of each slice; files of other tables are ignored. The slices fix the same
        partition columns and differ in one of them only.

    Raises
    ------
    TableError
        Another job has changed one of these slices, or the log cannot be written. The table is unchanged.
    UnfitTableError
        The table's own rules refuse the commit, whoever makes it.

    Notes
    -----
    Delta detects a conflict of two commits that remove the same files. Two commits that create the same slice
    remove none, and both would succeed. They conflict because each carries a transaction id of the slice,
    which only one commit per version may have. Its number tells how many rows the slice must have, whatever
    other programs do to its files afterwards; see :func:`rows_committed`.
    """
    table = next(iter(replaced)).table
    into = {where: target_of(lake, where) for where in replaced}
    with translate_write_errors(table, lake.location(table), lake.source.chain), phase("commit"):
        log = open_or_create(lake, table)
        if table in lake.versions:
            log.load_as_version(lake.versions[table])
        files = []
        for where, written in replaced.items():
            mine = [file for file in written if file.table == table]
            files += mine or [write_empty_file(into[where])]
        replace_slices(log, next(iter(into.values())), files, [where.partition for where in replaced])


def replace_table(into: Target, files: Sequence[File]) -> list[File]:
    """Create a table outside of a lake, or replace its whole content, in one transaction.

    Parameters
    ----------
    into : the table, without partition columns.
    files : the new files.

    Returns
    -------
    list[File]
        The files of the table: ``files``, or one file without rows.

    Raises
    ------
    TableError
        There is a table with other columns or with partitions, another job changes it at the same time, or it
        cannot be written.
    """
    with translate_write_errors(into.table, into.location), phase("commit"):
        found = open_log(into.location) or create_log(into.location, into.schema, (), into.table, "")
        log = check_columns(found, into)
        files = list(files) or [write_empty_file(into)]
        replace_slices(log, into, files, [])
        if is_incomplete(DeltaTable(log.table_uri)):  # it was, or another job has begun to write to it
            mark_complete(into, {file.path for file in files})
    return files


def check_replaceable(into: Target) -> None:
    """Check that a table outside of a lake may be replaced; one that does not exist may.

    Raises
    ------
    TableError
        It has other columns, is partitioned, or cannot be read; or its folder is no table, and has files that
        a vacuum of the table would delete.
    """
    with translate_write_errors(into.table, into.location):
        log = open_log(into.location)
        if log is not None:
            check_columns(log, into)
        elif strange := find_strange(into):
            raise UnfitTableError(
                f"{into.location} is no table, but a folder that has {strange}; give the table a folder of "
                "its own"
            )


def check_columns(log: DeltaTable, into: Target) -> DeltaTable:
    """Return the log of a table outside of a lake; refuse one of other columns, with partitions or rules."""
    found = pa.schema(log.schema().to_arrow())
    if [(column.name, column.type) for column in found] != [(c.name, c.type) for c in into.schema]:
        wanted = ", ".join(f"{column.name} {column.type}" for column in into.schema)
        there = ", ".join(f"{column.name} {column.type}" for column in found)
        raise UnfitTableError(
            f"{into.location} is a table of other columns ({there}; in this order must be {wanted})"
        )
    partitioned = log.metadata().partition_columns
    if partitioned:
        raise UnfitTableError(
            f"{into.location} is partitioned by {', '.join(partitioned)}; take another folder"
        )
    refuse_rules(log, into.location, [column.name for column in into.schema if not column.nullable])
    return log


def replace_slices(
    log: DeltaTable, into: Target, files: Sequence[File], replaced: Sequence[Mapping[str, str]]
) -> None:
    """Replace slices, each named by its partition values; without slices the whole table.

    Fails if one of them has changed since the version of ``log``.
    """
    actions = add_actions(into, files)
    own = [
        Transaction(
            transaction_of(each),
            sum(file.rows for file in files if each.items() <= file.partition.items()),
        )
        for each in replaced or [{}]
    ]
    begun, version = state_of_slices(log, replaced), log.version()
    for _ in range(MAX_TRIES):
        try:
            log.create_write_transaction(
                actions,
                mode="overwrite",
                schema=Schema.from_arrow(into.schema),
                partition_by=list(into.partitioned),
                partition_filters=_filters(replaced),
                commit_properties=CommitProperties(app_transactions=own),
            )
            return
        except CommitFailedError as error:
            refusal = error
        log = DeltaTable(log.table_uri)
        # to Delta, a job that replaces a slice has read the whole table: it is refused if another slice's job
        # removed files
        if state_of_slices(log, replaced) != begun:
            break
        if log.version() == version:
            raise UnfitTableError(
                f"the Delta log of {into.location} takes no new slice "
                f"({to_one_line(refusal)}); {advice(into.location)}"
            ) from refusal
        version = log.version()
    else:
        raise TableError(
            f"other jobs committed to {into.location} {MAX_TRIES} times while this one tried to "
            f"({to_one_line(refusal)}); {run_again(into.table, into.chain)}"
        ) from refusal
    runs = ", ".join(dict.fromkeys(each["run"] for each in replaced))
    what = f"{into.table} of run {runs}" if runs else into.location
    writer = replaced[0].get("job", writer_of(into.table, into.chain)) if replaced else into.table
    raise TableError(
        f"another job changed {what} while this one ran, so nothing was written to it "
        f"({to_one_line(refusal)}); run {writer} again when that one has ended"
    ) from refusal


def add_actions(into: Target, files: Sequence[File]) -> list[AddAction | RemoveAction]:
    """Make what a commit says of new files."""
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={name: file.partition[name] for name in into.partitioned},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )
        for file in files
    ]


def transaction_of(partition: Mapping[str, str]) -> str:
    """Return the transaction id of a slice, without partition values of the whole table."""
    return f"rows of {'/'.join(f'{name}={value}' for name, value in partition.items()) or 'all'}"


def rows_committed(log: DeltaTable, partition: Mapping[str, str]) -> int | None:
    """Return the number of rows that the last commit of a job gave to a slice.

    None where the log does not say: earlier versions of this package did not write it, and a part of what a
    job replaces as a whole has no number.
    """
    return log.transaction_version(transaction_of(partition))


def _filters(replaced: Sequence[Mapping[str, str]]) -> list[tuple[str, str, Any]] | None:
    """Return the filters for the files that a commit removes; None: all files of the table."""
    if not replaced:
        return None
    filters: list[tuple[str, str, Any]] = []
    for name in replaced[0]:
        values = list(dict.fromkeys(each[name] for each in replaced))
        filters.append((name, "=", values[0]) if len(values) == 1 else (name, "in", values))
    return filters


def state_of_slices(log: DeltaTable, slices: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Return what a commit to slices relies on: the table's properties, and the paths of the slices' files.

    Without slices, the paths of all files of the table.
    """
    files = pa.table(log.get_add_actions(flatten=True)).to_pylist()
    wanted = [{f"partition.{name}": value for name, value in each.items()} for each in slices] or [{}]
    mine = (
        file["path"]
        for file in files
        if any(all(str(file[name]) == value for name, value in each.items()) for each in wanted)
    )
    return log.metadata().configuration, sorted(mine)
