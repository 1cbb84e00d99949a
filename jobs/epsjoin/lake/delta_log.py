"""The Delta log of a table: how it is made, and how a slice is replaced in one transaction."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from epsjoin.contracts.row_rules import OURS
from epsjoin.errors import TableError
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, Target, in_one_line, target, write_empty_file, writing
from epsjoin.lake.uris import uri_for
from epsjoin.pipeline import tables_of, writer_of

MOST_TRIES = 20
"""To set a table's constraints, where each time another job was faster."""

_CHECK = "delta.constraints."


def begin(lake: Lake, job: str) -> Lake:
    """The lake for a job that begins: of two jobs that make one slice at once, the first to commit wins.

    The tables that the job writes are looked at now. Its commits fail when somebody else has changed their
    slices since, instead of putting older rows over newer ones.

    Raises
    ------
    TableError
        The log of a table cannot be written, or the table holds rows that break its contract as it is now.
    """
    versions = {}
    for table in tables_of(job):
        log = open_log(lake.location(table))
        if log is None:  # it will begin with an empty version, and one more for its constraints
            versions[table] = min(1, len(lake.checks(table)))
        else:
            with writing(table, lake.location(table)):
                versions[table] = _constrain(log, table, lake.checks(table)).version()
    return replace(lake, versions=versions)


def commit(lake: Lake, replaced: Mapping[Slice, Sequence[File]]) -> None:
    """Replace slices of one table by these files, all in one transaction.

    A slice without rows gets one file without rows: an empty slice is a result, a missing one is an error.

    Parameters
    ----------
    lake : the tables; where it names a version, the slices must be as they were then.
    replaced : the files of each slice. The slices fix the same partition columns and differ in the run alone;
        files of other tables are left out.

    Raises
    ------
    TableError
        Somebody else changed one of these slices meanwhile, or the log cannot be written; the table is as it
        was.

    Notes
    -----
    Delta sees a conflict where two commits remove the same files. Two that make a slice for the first time
    remove none, and both would stay: the slice's own transaction id, which no two commits may follow from
    one version, makes them conflict as well.
    """
    table = next(iter(replaced)).table
    into = {where: target(lake, where) for where in replaced}
    with writing(table, lake.location(table)):
        log = open_or_create(lake, table)
        if table in lake.versions:
            log.load_as_version(lake.versions[table])
        files = []
        for where, written in replaced.items():
            mine = [file for file in written if file.table == table]
            files += mine or [write_empty_file(into[where])]
        _commit(log, next(iter(into.values())), files, [where.partition for where in replaced])


def replace_table(into: Target, files: Sequence[File]) -> list[File]:
    """Make a table of these files outside of a lake, or replace all that is in it, in one transaction.

    Parameters
    ----------
    into : without partitions.
    files : written by it.

    Returns
    -------
    The table's files: these, or one without rows.

    Raises
    ------
    TableError
        There is a table of other columns, or partitioned; somebody else changes it just now; it cannot be
        written.
    """
    with writing(into.table, into.location):
        log = _alike(open_log(into.location) or _create(into.location, into.schema, (), into.table, ""), into)
        files = list(files) or [write_empty_file(into)]
        _commit(log, into, files, [])
    return files


def refuse_other_columns(into: Target) -> None:
    """Look whether a table outside of a lake, where there is one, may be replaced.

    Raises
    ------
    TableError
        It has other columns, or is partitioned, or cannot be read.
    """
    with writing(into.table, into.location):
        log = open_log(into.location)
        if log is not None:
            _alike(log, into)


def _alike(log: DeltaTable, into: Target) -> DeltaTable:
    found = pa.schema(log.schema().to_arrow())
    if [(column.name, column.type) for column in found] != [(c.name, c.type) for c in into.schema]:
        raise TableError(f"{into.location} is a table of other columns ({', '.join(found.names)})")
    partitioned = log.metadata().partition_columns
    if partitioned:
        raise TableError(f"{into.location} is partitioned by {', '.join(partitioned)}; take another folder")
    return log


def _commit(
    log: DeltaTable, into: Target, files: Sequence[File], replaced: Sequence[Mapping[str, str]]
) -> None:
    """Replace slices, each named by its partition values, that are still as they are in this version.

    No slice means the whole table.
    """
    actions: list[AddAction | RemoveAction] = [
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
    named = ["/".join(f"{name}={value}" for name, value in each.items()) for each in replaced] or ["all"]
    begun = state_of_slices(log, replaced)
    for _ in range(MOST_TRIES):
        own = [Transaction(name, log.version() + 1) for name in named]
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
    runs = ", ".join(each["run"] for each in replaced)
    what = f"{into.table} of run {runs}" if runs else into.location
    writer = replaced[0].get("job", writer_of(into.table)) if replaced else into.table
    raise TableError(
        f"another job changed {what} while this one ran, so nothing was written to it "
        f"({in_one_line(refusal)}); run {writer} again when that one has ended"
    ) from refusal


def _filters(replaced: Sequence[Mapping[str, str]]) -> list[tuple[str, str, Any]] | None:
    """The files that a commit removes: where one run is replaced by its value, else by the list of runs."""
    if not replaced:
        return None
    filters: list[tuple[str, str, Any]] = []
    for name in replaced[0]:
        values = list(dict.fromkeys(each[name] for each in replaced))
        filters.append((name, "=", values[0]) if len(values) == 1 else (name, "in", values))
    return filters


def state_of_slices(log: DeltaTable, slices: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], list[str]]:
    """What a commit to slices builds on: the settings of the table, and the files of the slices.

    Without slices, all files of the table.
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
    """The table with its contract's constraints; made empty, with its columns, if it does not exist yet.

    Raises
    ------
    TableError
        It holds rows that break its contract as it is now.
    """
    location, contract = lake.location(table), lake.contract(table)
    log = open_log(location) or _create(
        location, lake.schema(table), contract.partitioned, table, contract.description
    )
    return _constrain(log, table, lake.checks(table))


def _constrain(log: DeltaTable, table: str, checks: Mapping[str, str]) -> DeltaTable:
    """The table with these constraints in its log, and no others that came from a contract.

    A log that has them is only looked at. Of two jobs that set them at once one is refused, and looks
    again; a job that began before, under another contract, has its commit refused and is tried again.

    Notes
    -----
    deltalake takes no constraint when it makes a table: they come in a commit of their own, always before
    the first rows. When they change, it looks at all rows there are, once.
    """
    for _ in range(MOST_TRIES):
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
                f"{table}: rows of earlier runs break its contract as it is now ({in_one_line(error)}); "
                f"run {writer_of(table)} again for them, or use another lake"
            ) from error
        log = DeltaTable(log.table_uri)
    raise TableError(f"{table}: other jobs change its log all the time; run this one again")


def open_log(location: str) -> DeltaTable | None:
    """The table's log as it is now; None where there is no table.

    Raises
    ------
    TableError
        The log cannot be read.
    """
    try:
        return DeltaTable(uri_for("deltalake", location))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        why = in_one_line(error).partition(": 0: ")[0]  # a trace of Rust's follows
        raise TableError(f"the Delta log of {location} cannot be read ({why})") from error


def _create(
    location: str, schema: pa.Schema, partitioned: Sequence[str], name: str, description: str
) -> DeltaTable:
    with suppress(CommitFailedError):  # another run made it at the same moment
        return DeltaTable.create(
            uri_for("deltalake", location),
            Schema.from_arrow(schema),
            mode="ignore",
            partition_by=list(partitioned),
            name=name,
            description=description,
            # deltalake cannot read tables with deletion vectors, and a slice is replaced as a whole anyway
            configuration={"delta.enableDeletionVectors": "false"},
            # tried again it would become version 1, and to all other commits the table would be another one
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    return DeltaTable(uri_for("deltalake", location))
