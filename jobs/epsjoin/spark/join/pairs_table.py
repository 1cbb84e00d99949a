"""The table of the pairs of a join: replaced once all are known, or growing while parts are joined."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from epsjoin.errors import BudgetError
from epsjoin.lake import targets, transactions
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.join.pairs import check_left_out, to_batch
from epsjoin.spark.rows.write import Written


class PairsTable:
    """A table that is replaced, in one transaction, once all pairs are known.

    Parameters
    ----------
    into : the table.

    Attributes
    ----------
    first : pairs that were in the table before a part began, which the parts leave out; None: there are none.
    n_first : number of these.
    """

    first: Pairs | None = None

    def __init__(self, into: Target) -> None:
        self.into = into
        self._first_files: list[File] = []

    @property
    def n_first(self) -> int:
        """Number of pairs that were in the table before a part began."""
        return sum(file.rows for file in self._first_files)

    def deleted_on_error(self) -> AbstractContextManager[None]:
        """Delete what was written and is in no table, if there is an error or an interrupt in the block."""
        return targets.deleted_on_error(self.into)

    def grow(self, files: Iterable[File]) -> None:
        """Add the pairs of parts that are done, if it is time."""

    def check(self, written: Written, max_pairs: int) -> list[File]:
        """Check what all parts wrote, and return all files of the table.

        Raises
        ------
        BudgetError
            There are more than ``max_pairs`` pairs.
        DataRefusedError
            See :func:`epsjoin.spark.join.pairs.check_left_out`.
        """
        files = [*self._first_files, *written.files]
        n_pairs = sum(file.rows for file in files)
        if n_pairs > max_pairs:
            raise BudgetError(f"{n_pairs:,} pairs at least were found, {max_pairs:,} are allowed (max_pairs)")
        check_left_out(self.first, written.counters)
        return files

    def complete(self, files: Sequence[File]) -> list[File]:
        """Commit all files, or one without rows if there are none, and return what was committed.

        If this fails, nothing may be deleted: the commit may have been made all the same.

        Raises
        ------
        TableError
            The table cannot be written, or another job has changed it.
        """
        return transactions.replace_table(self.into, files)


class GrowingPairsTable(PairsTable):
    """A table to which the pairs of parts that are done are added while others run.

    Parameters
    ----------
    into : the table; what is in it is replaced by the first pairs that are added.
    seconds : between two commits.
    first : pairs to begin with; None: there are none.
    """

    def __init__(self, into: Target, seconds: float, first: Pairs | None) -> None:
        super().__init__(into)
        self.first = first
        self._seconds, self._grown = seconds, -math.inf
        self._table = GrowingTable(into)
        with self._table.deleted_on_error():
            file = None if first is None else into.write([to_batch(first)])
            if file is not None:
                self._first_files = [file]
                self._table.add(self._first_files)

    def deleted_on_error(self) -> AbstractContextManager[None]:
        """As for any table; what was added stays, and nothing more is added."""
        return self._table.deleted_on_error()

    def grow(self, files: Iterable[File]) -> None:
        """Add the pairs of parts that are done, if it is time.

        Raises
        ------
        TableError
            The table cannot be written, or another job has changed it.
        """
        if time.monotonic() - self._grown < self._seconds:
            return
        new = self._table.left_of(files)
        if new:
            self._table.add(new)
            self._grown = time.monotonic()

    def complete(self, files: Sequence[File]) -> list[File]:
        """Add the files that the table does not have yet, and mark it as complete."""
        return self._table.complete(files)
