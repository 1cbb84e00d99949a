"""The property of a table outside of a lake that says whether all of its files are in it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from epsjoin.errors import TableError
from epsjoin.lake.parquet import to_one_line
from epsjoin.lake.targets import Target
from epsjoin.lake.uris import uri_for

COMPLETE = "epsjoin.complete"
"""Property of a table outside of a lake: "false" while files are to come, otherwise "true" or not there."""

_MAX_TRIES = 20
"""Maximum number of tries to set the property while other jobs change the table, too."""


def is_incomplete(log: DeltaTable) -> bool:
    """Whether the table says that files are to come."""
    return log.metadata().configuration.get(COMPLETE) == "false"


def mark_incomplete(log: DeltaTable) -> DeltaTable:
    """Let a table say that files are to come, and return the log of a version in which it does.

    Raises
    ------
    TableError
        Other jobs complete the table again and again.
    """
    for _ in range(_MAX_TRIES):
        if is_incomplete(log):
            return log
        log.alter.set_table_properties({COMPLETE: "false"}, raise_if_not_exists=False)
        log = DeltaTable(log.table_uri)
    raise TableError(f"other jobs change {log.table_uri} all the time; run this one again")


def mark_complete(into: Target, paths: AbstractSet[str]) -> None:
    """Let a table say that all of its files are in it, if these are its files.

    Parameters
    ----------
    paths : of all files of the table, as its log names them.

    Raises
    ------
    TableError
        The table has other files: another job has changed it. It says nothing new then.

    Notes
    -----
    The commit that says so follows the version whose files were looked at, or it is refused: by itself Delta
    would let it follow a version in which another job has replaced them.
    """
    why = "other jobs change it all the time"
    for _ in range(_MAX_TRIES):
        log = DeltaTable(uri_for("deltalake", into.location))
        if paths_of(log) != paths:
            raise changed(into, "its files are others")
        try:
            log.alter.set_table_properties(
                {COMPLETE: "true"},
                raise_if_not_exists=False,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError as error:
            why = to_one_line(error)
        else:
            return
    raise changed(into, why)


def paths_of(log: DeltaTable) -> set[str]:
    """Paths of all files of a table, as its log names them."""
    return set(pa.table(log.get_add_actions())["path"].to_pylist())


def changed(into: Target, why: str) -> TableError:
    """Make the error of a job that finds the table of another one."""
    return TableError(
        f"another job changed {into.location} while this one wrote to it ({why}), so that it is not what "
        "this one has made; run this one again when that one has ended"
    )
