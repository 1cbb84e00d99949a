"""The Delta log of a table: how a table is created, and how slices are replaced in one transaction."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from epsjoin.contracts.row_rules import OURS
from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake.completeness import is_incomplete, mark_complete
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, to_one_line
from epsjoin.lake.phases import phase
from epsjoin.lake.protocol import advice, refuse_append_only, refuse_unhonoured
from epsjoin.lake.targets import Target, target_of, translate_write_errors, write_empty_file
from epsjoin.lake.uris import filesystem_of, uri_for
from epsjoin.pipeline import tables_of, writer_of

MAX_TRIES = 20
"""Maximum number of tries to change a log while other jobs change it, too."""

_CHECK = "delta.constraints."
"""Prefix of the table properties that hold CHECK constraints."""


_PROPERTIES = {
    # deltalake cannot read tables with deletion vectors, and a slice is replaced as a whole anyway
    "delta.enableDeletionVectors": "false",
    # whoever opens a table reads all commits since its last checkpoint, and deltalake would let them be 100
    "delta.checkpointInterval": "10",
}
"""Properties of every table."""


def pin_versions(lake: Lake, job: str) -> Lake:
    """Pin the tables that a job writes to their present versions (optimistic concurrency control).

    The job's commits fail if another job has changed the same slices since then, so that of two jobs that
    make a slice at the same time the first to commit wins, and older rows never replace newer ones.

    Returns
    -------
    Lake
        The same lake with the pinned versions.

    Raises
    ------
    TableError
        The log of a table cannot be written, or the table has rows that break its present contract.
    UnfitTableError
        A table asks for what the jobs cannot do.
    """
    versions = {}
    for table in tables_of(job, lake.source.chain):
        log = open_log(lake.location(table))
        if log is None:  # it will begin with an empty version, and one more for its constraints
            versions[table] = min(1, len(lake.checks(table)))
        else:
            refuse_append_only(log, table)
            with translate_write_errors(table, lake.location(table)):
                versions[table] = _sync_contract(log, lake, table).version()
    return replace(lake, versions=versions)


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
    with translate_write_errors(table, lake.location(table)), phase("commit"):
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
        It has other columns, is partitioned, or cannot be read.
    """
    with translate_write_errors(into.table, into.location):
        log = open_log(into.location)
        if log is not None:
            check_columns(log, into)


def check_columns(log: DeltaTable, into: Target) -> DeltaTable:
    """Return the log of a table outside of a lake; TableError if it has other columns or partitions."""
    found = pa.schema(log.schema().to_arrow())
    if [(column.name, column.type) for column in found] != [(c.name, c.type) for c in into.schema]:
        raise TableError(f"{into.location} is a table of other columns ({', '.join(found.names)})")
    partitioned = log.metadata().partition_columns
    if partitioned:
        raise TableError(f"{into.location} is partitioned by {', '.join(partitioned)}; take another folder")
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
        # to Delta, who replaces a slice has read the whole table: it refuses what another slice's job removed
        if state_of_slices(log, replaced) != begun:
            break
        if log.version() == version:
            raise UnfitTableError(
                f"{into.table}: the Delta log of {into.location} takes no new slice "
                f"({to_one_line(refusal)}); {advice(into.location)}"
            ) from refusal
        version = log.version()
    runs = ", ".join(dict.fromkeys(each["run"] for each in replaced))
    what = f"{into.table} of run {runs}" if runs else into.location
    writer = replaced[0].get("job", writer_of(into.table)) if replaced else into.table
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

    None where the log does not say: earlier versions of this package did not write it, nor does it stand for
    a part of what a job replaces as a whole.
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


def open_or_create(lake: Lake, table: str) -> DeltaTable:
    """Open a table with the constraints of its contract; create it, without rows, if there is none.

    Raises
    ------
    TableError
        The table has rows that break its present contract.
    """
    location, contract = lake.location(table), lake.contract(table)
    log = open_log(location) or create_log(
        location, lake.schema(table), contract.partitioned, table, contract.description
    )
    return _sync_contract(log, lake, table)


def _sync_contract(log: DeltaTable, lake: Lake, table: str) -> DeltaTable:
    """Bring a table's log up to its contract: optional columns that are new, then the constraints on rows."""
    for _ in range(MAX_TRIES):
        present = {field.name for field in log.schema().fields}
        new = [field for field in lake.schema(table) if field.nullable and field.name not in present]
        if not new:
            break
        with suppress(CommitFailedError):  # another job adds them at this moment
            log.alter.add_columns(list(Schema.from_arrow(pa.schema(new)).fields))
        log = DeltaTable(log.table_uri)
    return _sync_constraints(log, table, lake.checks(table))


def _sync_constraints(log: DeltaTable, table: str, checks: Mapping[str, str]) -> DeltaTable:
    """Make the constraints in a table's log those of its contract; foreign constraints stay.

    A log that has them already is not changed. If two jobs change them at the same time, one is refused and
    tries again. A job that began under another contract has its commit refused; Airflow runs it again.

    Notes
    -----
    deltalake cannot set constraints when it creates a table. They come in a commit of their own, before
    the first rows. When constraints change, deltalake checks all rows of the table once.
    """
    for _ in range(MAX_TRIES):
        known = log.metadata().configuration
        present = {name.removeprefix(_CHECK) for name in known if name.startswith(_CHECK)}
        wrong = sorted(name for name in present - checks.keys() if OURS.search(name))
        missing = {name: check for name, check in checks.items() if name not in present}
        if not wrong and not missing:
            return log
        try:
            for name in wrong:
                log.alter.drop_constraint(name)
            if missing:
                log.alter.add_constraint(missing)
        except CommitFailedError:  # another job does the same at this moment
            pass
        except DeltaError as error:
            raise TableError(
                f"{table}: rows of earlier runs break its contract as it is now ({to_one_line(error)}); "
                f"run {writer_of(table)} again for them, or use another lake"
            ) from error
        log = DeltaTable(log.table_uri)
    raise TableError(f"{table}: other jobs change its log all the time; run this one again")


def open_log(location: str) -> DeltaTable | None:
    """Open the present version of a table's log; None where there is no table.

    Raises
    ------
    TableError
        The log cannot be read.
    UnfitTableError
        The table asks its readers for what the jobs do not honour.
    """
    try:
        log = DeltaTable(uri_for("deltalake", location))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise _unreadable(location, error) from error
    refuse_unhonoured(log, location)
    return log


def _unreadable(location: str, error: Exception) -> TableError:
    why = to_one_line(error).partition(": 0: ")[0]  # a trace of Rust's follows
    return TableError(
        f"the Delta log of {location} cannot be read ({why}); where nobody can mend it, {advice(location)}"
    )


LogFiles = frozenset[tuple[str, int | None, int | None]]
"""Files of a log: path, size in bytes, time of the last change in nanoseconds since 1970."""


def log_files(location: str) -> LogFiles:
    """List the files of a table's log; empty where there is no table.

    While these are the same, the log is: a commit adds a file, and none is ever written again but the pointer
    to the last checkpoint. To list them costs a small part of reading them.

    Raises
    ------
    TableError
        They cannot be listed.
    """
    filesystem, path = filesystem_of(f"{location}/_delta_log")
    try:
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    except OSError as error:
        raise _unreadable(location, error) from error
    return frozenset((file.path, file.size, file.mtime_ns) for file in found)


def create_log(
    location: str,
    schema: pa.Schema,
    partitioned: Sequence[str],
    name: str,
    description: str,
    properties: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Create a table without rows, with further properties; open it where another run has just made it."""
    with suppress(CommitFailedError):  # another run made it at the same moment
        return DeltaTable.create(
            uri_for("deltalake", location),
            Schema.from_arrow(schema),
            mode="ignore",
            partition_by=list(partitioned),
            name=name,
            description=description,
            configuration={**_PROPERTIES, **(properties or {})},
            raise_if_key_not_exists=False,
            # tried again it would become version 1, and to all other commits the table would be another one
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    return DeltaTable(uri_for("deltalake", location))
