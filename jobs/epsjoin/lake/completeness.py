"""The property of a table outside of a lake that says whether all of its files are in it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from epsjoin.errors import TableError, to_one_line
from epsjoin.lake.delta_log import MAX_TRIES, newest
from epsjoin.lake.targets import Target
from epsjoin.lake.uris import uri_for

COMPLETE = "epsjoin.complete"
"""Property of a table outside of a lake: "false" while files are to come, otherwise "true" or not there."""


def is_incomplete(log: DeltaTable) -> bool:
    """Whether the table says that files are to come."""
    return log.metadata().configuration.get(COMPLETE) == "false"


def mark_incomplete(opened: DeltaTable) -> DeltaTable:
    """Let a table say that files are to come, and return the log of a version in which it does.

    Parameters
    ----------
    opened : its log.

    Raises
    ------
    TableError
        Other jobs complete the table again and again.
    """
    for log in newest(opened, opened.table_uri):
        if is_incomplete(log):
            break
        with suppress(CommitFailedError):  # another job changes it at this moment
            log.alter.set_table_properties({COMPLETE: "false"}, raise_if_not_exists=False)
    return log


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

    def commit(log: DeltaTable) -> None:
        once = CommitProperties(max_commit_retries=0)
        log.alter.set_table_properties({COMPLETE: "true"}, raise_if_not_exists=False, commit_properties=once)

    commit_if_unchanged(into, paths, commit)


def commit_if_unchanged(into: Target, paths: AbstractSet[str], commit: Callable[[DeltaTable], None]) -> None:
    """Make a commit to a table while its files are these; of two at the same time one is tried again.

    Parameters
    ----------
    paths : of all files of the table, as its log names them.
    commit : makes the commit after a version, or raises deltalake's ``CommitFailedError``.

    Raises
    ------
    TableError
        The table has other files: another job has changed it. Or other jobs change it all the time.
    """
    why = ""
    for _ in range(MAX_TRIES):
        log = DeltaTable(uri_for("deltalake", into.location))
        if paths_of(log) != paths:
            raise changed(into, "its files are others")
        try:
            commit(log)
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
