"""A table outside of a lake that grows, commit by commit, and says when it is complete."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from deltalake import CommitProperties, DeltaTable, Schema, Transaction

from epsjoin.lake.completeness import (
    COMPLETE,
    changed,
    commit_if_unchanged,
    mark_complete,
    mark_incomplete,
)
from epsjoin.lake.delta_log import create_log, open_log
from epsjoin.lake.parquet import File
from epsjoin.lake.phases import phase
from epsjoin.lake.targets import Target, deleted_on_error, translate_write_errors, write_empty_file
from epsjoin.lake.transactions import add_actions, check_columns, replace_slices, transaction_of


class GrowingTable:
    """Replaces the content of a table by files that come one after the other.

    The first commit says that the table is not complete (the property ``epsjoin.complete`` is "false"). The
    next one replaces what was in it by the first files, later ones add files. The last says that it is
    complete. So whoever finds it complete finds all files in it, whenever the writer was killed; and whoever
    reads its versions one after the other, from the first files on, gets each row once.

    Of two jobs that begin at the same time, the first to add files wins: the other one is refused. One that
    begins later replaces the files of the first, which is refused from then on. A table is never complete
    with files of both.

    Parameters
    ----------
    into : the table, without partition columns.

    Raises
    ------
    TableError
        There is a table with other columns or with partitions; or it cannot be written. Of the other methods:
        another job has changed the table since, or it cannot be written.
    """

    def __init__(self, into: Target) -> None:
        self._into = into
        self._rows: int | None = None
        self._paths: set[str] = set()
        self._offered: set[str] = set()  # a commit may have added them even if it said that it failed
        self._adding, self._is_closed = threading.Lock(), False
        with translate_write_errors(into.table, into.location), phase("commit"):
            log = open_log(into.location) or create_log(
                into.location, into.schema, (), into.table, "", {COMPLETE: "false"}
            )
            self._begun = mark_incomplete(check_columns(log, into))

    def left_of(self, files: Iterable[File]) -> list[File]:
        """Return those of the files that are not in the table yet."""
        return [file for file in files if file.path not in self._paths]

    def add(self, files: Sequence[File]) -> None:
        """Add files, in one commit; the first time they replace what was in the table."""
        into, paths = self._into, {file.path for file in files}
        with self._adding, translate_write_errors(into.table, into.location), phase("commit"):
            if self._is_closed:
                raise changed(into, "it was to end, as there was an error")
            self._offered |= paths
            if self._rows is None:
                replace_slices(self._begun, into, files, [])
            else:
                self._append(files)
            self._rows = (self._rows or 0) + sum(file.rows for file in files)
            self._paths |= paths

    @contextmanager
    def deleted_on_error(self) -> Iterator[None]:
        """Delete, if there is an error or an interrupt within, what was written and never added.

        Nothing is added then any more: another thread, which watches the tasks, may be about to.
        """
        with deleted_on_error(self._into, committed=self._offered):
            try:
                yield
            except BaseException:
                with self._adding:
                    self._is_closed = True
                raise

    def complete(self, files: Sequence[File]) -> list[File]:
        """Add those of all files that are not in the table yet, and say that it is complete.

        Parameters
        ----------
        files : all files of the table.

        Returns
        -------
        list[File]
            ``files``, or one file without rows where there are none.

        Raises
        ------
        TableError
            A file was added that is none of these; the table stays incomplete.
        """
        whole = list(files) or [write_empty_file(self._into)]
        strange = self._paths - {file.path for file in whole}
        if strange:
            raise changed(self._into, f"{len(strange)} files were added that no task says to have written")
        last = self.left_of(whole)
        if last:
            self.add(last)
        with translate_write_errors(self._into.table, self._into.location), phase("commit"):
            mark_complete(self._into, self._paths)
        return whole

    def _append(self, files: Sequence[File]) -> None:
        """Append files to those of this job; of two commits at the same time one is refused and tries again.

        Delta refuses it since both carry the same transaction id, whose number is that of all rows.
        """
        rows = (self._rows or 0) + sum(file.rows for file in files)
        own = CommitProperties(app_transactions=[Transaction(transaction_of({}), rows)])

        def commit(log: DeltaTable) -> None:
            log.create_write_transaction(
                add_actions(self._into, files),
                mode="append",
                schema=Schema.from_arrow(self._into.schema),
                commit_properties=own,
            )

        commit_if_unchanged(self._into, self._paths, commit)
