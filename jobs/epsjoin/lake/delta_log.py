"""The Delta log of a table: how it is opened, created, and brought up to the table's contract."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from epsjoin.console import say
from epsjoin.contracts.row_rules import OURS
from epsjoin.errors import TableError, UnfitTableError, remedy_of_unreadable, to_one_line
from epsjoin.lake.lake import Lake
from epsjoin.lake.protocol import CHECK, advice, refuse_append_only, refuse_unhonoured
from epsjoin.lake.targets import translate_write_errors
from epsjoin.lake.uris import filesystem_of, uri_for
from epsjoin.pipeline import tables_of, writer_of

MAX_TRIES = 20
"""Maximum number of tries to change a log while other jobs change it, too."""

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
        The log of a table cannot be written.
    UnfitTableError
        A table asks for what the jobs cannot do.
    """
    versions, unmet = {}, set[str]()
    for table in tables_of(job, lake.source.chain):
        log = open_log(lake.location(table))
        if log is None:  # it will begin with an empty version, and one more for its constraints
            versions[table] = min(1, len(lake.checks(table)))
        else:
            refuse_append_only(log, table, lake.source.chain)
            with translate_write_errors(table, lake.location(table), lake.source.chain):
                log, broken = _sync_contract(log, lake, table)
            versions[table] = log.version()
            unmet |= broken
    return replace(lake, versions=versions, unmet=frozenset(unmet))


def open_or_create(lake: Lake, table: str) -> DeltaTable:
    """Open a table with the constraints of its contract; create it, without rows, if there is none.

    Raises
    ------
    TableError
        The log cannot be written.
    """
    location, contract = lake.location(table), lake.contract(table)
    log = open_log(location) or create_log(
        location, lake.schema(table), contract.partitioned, table, contract.description
    )
    return _sync_contract(log, lake, table)[0]


def newest(opened: DeltaTable, table: str) -> Iterator[DeltaTable]:
    """Yield an opened log, then its newest version for each further try while other jobs change it, too.

    Parameters
    ----------
    table : what messages call it.

    Raises
    ------
    TableError
        After ``MAX_TRIES``.
    """
    for _ in range(MAX_TRIES):
        yield opened
        opened = DeltaTable(opened.table_uri)
    raise TableError(f"{table}: other jobs change its log all the time; run this one again")


def _sync_contract(opened: DeltaTable, lake: Lake, table: str) -> tuple[DeltaTable, set[str]]:
    """Bring a table's log up to its contract: optional columns that are new, then the constraints on rows.

    Returns
    -------
    tuple
        The log, and the names of constraints that it does not have since rows break them.

    Raises
    ------
    UnfitTableError
        The rows lack a column that the contract requires, or have it in other letters.
    """
    for log in newest(opened, table):
        present = {field.name for field in log.schema().fields}
        absent = [field for field in lake.schema(table) if field.name not in present]
        new = [field for field in absent if field.nullable]
        lost = [field.name for field in absent if not field.nullable]
        if lost:
            raise UnfitTableError(
                f"{table}: its rows have no column {', '.join(lost)}, which the contract requires; name the "
                "columns in the contract as they were, or use another lake (or remove the data set's folder "
                "from this one, with all its runs)"
            )
        if not new:
            break
        renamed = [field.name for field in new if field.name.lower() in map(str.lower, present)]
        if renamed:
            raise UnfitTableError(
                f"{table}: column {renamed[0]} is there in other letters (upper and lower case are the same "
                "to Spark); name it in the contract as it was, or use another lake"
            )
        with suppress(CommitFailedError):  # another job adds them at this moment
            log.alter.add_columns(list(Schema.from_arrow(pa.schema(new)).fields))
    return _sync_constraints(log, lake, table)


def _sync_constraints(opened: DeltaTable, lake: Lake, table: str) -> tuple[DeltaTable, set[str]]:
    """Make the constraints in a table's log those of its contract; foreign constraints stay.

    What rows in the table break is left out, until a job finds that they have been made again: it would keep
    the job from making them. What is known to be broken, ``lake.unmet``, is not tried.

    A log that has them already is not changed. If two jobs change them at the same time, one is refused and
    tries again. A job that began under another contract has its commit refused; Airflow runs it again.

    Returns
    -------
    tuple
        The log, and the names of the constraints that are left out.

    Notes
    -----
    deltalake cannot set constraints when it creates a table. They come in a commit of their own, before
    the first rows. When constraints change, deltalake checks all rows of the table once; and once in each
    job as long as some break them.
    """
    checks, unmet = lake.checks(table), set(lake.unmet)
    for log in newest(opened, table):
        known = log.metadata().configuration
        present = {name.removeprefix(CHECK) for name in known if name.startswith(CHECK)}
        wrong = sorted(name for name in present - checks.keys() if OURS.search(name))
        missing = {name: check for name, check in checks.items() if name not in present | unmet}
        if not wrong and not missing:
            break
        try:
            for name in wrong:
                log.alter.drop_constraint(name)
            if missing:
                log.alter.add_constraint(missing)
        except CommitFailedError:  # another job does the same at this moment
            pass
        except DeltaError as error:
            broken = set[str]()
            with suppress(DeltaError):  # if it cannot be read, that is the error
                broken.update(_broken(log, lake, table, missing))
            if not broken:
                raise TableError(
                    f"{table}: the conditions of its contract cannot be put into its log "
                    f"({to_one_line(error)}); run this job again; if that does not help, mend the contract"
                ) from error
            unmet |= broken
    return log, unmet


def _broken(log: DeltaTable, lake: Lake, table: str, checks: Mapping[str, str]) -> Iterator[str]:
    """Find constraints that rows of a table break, and say which runs have such rows."""
    engine = QueryBuilder().register("t", log)
    for name, check in checks.items():
        broken = f"SELECT DISTINCT run FROM t WHERE NOT ({check}) ORDER BY run"  # noqa: S608  # the contract's own
        found = engine.execute(broken)
        runs = pa.table(found)["run"].to_pylist()
        if runs:
            shown = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
            say(
                f"{table}: rows of {shown} break the contract as it is now, which wants {check}; the log "
                f"will have this condition when {writer_of(table, lake.source.chain)} has made them again"
            )
            yield name


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
    except (DeltaError, OSError) as error:
        raise _unreadable(location, error) from error
    refuse_unhonoured(log, location)
    return log


def _unreadable(location: str, error: Exception) -> TableError:
    why = to_one_line(error).partition(": 0: ")[0]  # a trace of Rust's follows
    broken = _find_broken_commit(location)
    remedy = remedy_of_unreadable(why, f"where nobody can mend it, {advice(location)}")
    if broken is not None:
        cause = "its newest commit is broken, as by a loss of power"
        remedy = f"{cause}: move {broken} away and run the last job again"
    return TableError(f"the Delta log of {location} cannot be read ({why}); {remedy}")


def _find_broken_commit(location: str) -> str | None:
    """Find the file of the newest commit, if it is broken and others are before it: the table without it."""
    filesystem, path = filesystem_of(f"{location}/_delta_log")
    with suppress(OSError):  # what is told is that the log cannot be read
        files = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        commits = sorted(file.path for file in files if re.fullmatch(r"\d{20}\.json", file.base_name))
        if len(commits) > 1:
            with filesystem.open_input_stream(commits[-1]) as stream:
                lines = stream.read().splitlines()
            try:
                for line in lines:
                    json.loads(line)
            except ValueError:
                return str(commits[-1])
    return None


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
