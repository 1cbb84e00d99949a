"""The tables of a progressive join: their rows are read in the ratio of their sizes, checked and numbered."""

from __future__ import annotations

import time
import zlib

import numpy as np

from epsjoin.errors import ArgumentError, DataRefusedError, EpsjoinError
from epsjoin.local.progressive.kinds.kind import JoinCondition, Keyed, SweepKind
from epsjoin.local.progressive.rows import HAS_MORE, IS_NULL, IS_RIGHT, NO_RUN, SweepRows, concat
from epsjoin.local.progressive.running import combinations
from epsjoin.local.progressive.sources import NUMBERS, PAUSE, Chunk, Source


class Tables:
    """The table, or the left and the right one, and how far they have been read.

    Parameters
    ----------
    sources : the table, or the left and the right one.
    is_kept : whether a later process may continue from what was read: then checksums of rows are kept.

    Attributes
    ----------
    expected : for each table, how many of its rows an earlier process had read, and their checksums, since
        something known of them was taken over from that process; ``None`` as soon as they have been read
        here.
    """

    def __init__(self, sources: list[Source], is_kept: bool = False) -> None:
        self.sources = sources
        self.two = len(sources) == 2
        self.read_rows = [0, 0]
        self.checksums = [[0, 0], [0, 0]]  # of the values and of the ids that were read
        self.expected: list[tuple[int, list[int]] | None] = [None, None]
        self._is_kept = is_kept
        self._kind: str | None = None  # of the rows that were read, see Chunk
        self.ended = [False] * len(sources)

    @property
    def all_ended(self) -> bool:
        """Whether everything has been read."""
        return all(self.ended)

    @property
    def everything(self) -> float | None:
        """Combinations of all rows; None if the number of rows is unknown."""
        n_rows: list[float] = []
        for side, source in enumerate(self.sources):
            n = self.read_rows[side] if self.ended[side] else source.n_rows
            if n is None:
                return None
            n_rows.append(max(n, self.read_rows[side]))
        return combinations((n_rows[0], n_rows[-1]), self.two)

    def read(self, most: int, on: JoinCondition) -> tuple[list[SweepRows], bool]:
        """Read rows of both tables, in the ratio of their sizes if known; and whether one had nothing."""
        goes_on = [side for side, ended in enumerate(self.ended) if not ended]
        sizes = [self.sources[side].n_rows for side in goes_on]
        known = all(n is not None for n in sizes) and sum(n or 0 for n in sizes) > 0
        found: list[SweepRows] = []
        is_idle = False
        for side, n in zip(goes_on, sizes, strict=True):
            fraction = (n or 0) / sum(n or 0 for n in sizes) if known else 1.0 / len(goes_on)
            room = max(1, round(most * fraction))
            while room > 0:
                expected = self.expected[side]
                chunk = self.sources[side].read(
                    room if expected is None else min(room, expected[0] - self.read_rows[side])
                )
                if chunk is None:
                    if expected is not None:
                        raise _fewer(expected[0])
                    self.ended[side] = True
                    break
                if not len(chunk.values):
                    is_idle = True
                    break
                found.append(self._take(on, side, chunk))
                room -= found[-1].n
                self._check_expected(side)
            if self.read_rows[side] == self.sources[side].n_rows:
                self.ended[side] = True
        return found, is_idle

    def sample(self, on: JoinCondition, most: int) -> list[SweepRows] | None:
        """Draw so many rows of all tables at most; None where there are none, or one is not read twice."""
        drawn = [source.sample(max(1, most // len(self.sources))) for source in self.sources]
        try:
            found = [
                self._rows(on, side, 0, chunk._replace(ids=None))
                for side, chunk in enumerate(drawn)
                if chunk is not None
            ]
        except (ArgumentError, DataRefusedError):  # reading finds it, too, and says which row it is
            return None
        is_one_kind = len({(rows.values.dtype, rows.values.shape[1]) for rows in found}) == 1
        if len(found) < len(drawn) or not is_one_kind or not any(rows.n for rows in found):
            return None
        return found

    def _take(self, on: JoinCondition, side: int, chunk: Chunk) -> SweepRows:
        """Rows of a table behind those before.

        Raises
        ------
        ArgumentError
            They are times and earlier rows are not, or in another unit; or the two ends of a row differ like
            this.
        """
        if on.has_ends and chunk.units is not None:
            half = len(chunk.units) // 2
            for begin, end in zip(chunk.units[:half], chunk.units[half:], strict=False):
                if begin != end:
                    raise ArgumentError(
                        f"a row must begin and end in values of one kind, not {begin} and {end}; "
                        "convert those of one column"
                    )
        is_number = chunk.kind == NUMBERS and not on.takes_times  # in the unit of the times, if there are any
        kind = self._kind if is_number else chunk.kind
        self._kind = self._kind or kind
        if kind != self._kind:
            raise ArgumentError(
                f"all rows must be of one kind, not {self._kind} and {kind}; convert those of one table"
            )
        rows = self._rows(on, side, self.read_rows[side], chunk)
        self.read_rows[side] += rows.n
        if self._is_kept:
            before = self.checksums[side]
            ids = np.where(rows.flags & IS_NULL, ~rows.ids, rows.ids)  # a null is not the value in its place
            self.checksums[side] = [
                zlib.crc32(np.ascontiguousarray(column).reshape(-1).view(np.uint8).data, checksum)
                for column, checksum in zip((rows.values, ids), before, strict=True)
            ]
        return rows

    def _rows(self, on: JoinCondition, side: int, first: int, chunk: Chunk) -> SweepRows:
        """Checked rows of a table, numbered from ``first`` on."""
        name = ("left", "right")[side] if self.two else "points"
        values, ids, is_null, _ = chunk
        if is_null is not None and is_null.any() and not on.takes_nulls:
            rule = f"must have no missing values to be joined on {type(on).__name__}"
            row = int(is_null.argmax())
            raise self._refusal(side, first, chunk, row, rule, " has one; leave such rows out")
        try:
            checked = on.check(name, values)
        except ArgumentError as error:
            if values.dtype.kind != "f" or np.isfinite(values).all():
                raise
            is_bad = ~np.isfinite(values.reshape(len(values), -1))
            row, column = divmod(int(is_bad.argmax()), is_bad.shape[1])
            names = self.sources[side].names
            called = repr(names[column]) if names else column
            what = f", column {called} is {values.reshape(is_bad.shape)[row, column]}"
            raise self._refusal(side, first, chunk, row, "must be finite", what) from error
        n = len(checked)
        number = np.arange(first, first + n)
        flags = np.full(n, IS_RIGHT if side else 0, np.uint8)
        if is_null is not None:
            flags[is_null] |= IS_NULL
        none = np.empty(0, np.int64)
        run = np.full(n, NO_RUN, np.int32)
        return SweepRows(none, number if ids is None else ids, number, flags, checked, none, run)

    def _refusal(self, side: int, first: int, chunk: Chunk, row: int, rule: str, what: str) -> EpsjoinError:
        """What is wrong with a row of a chunk that begins at row ``first`` of its table."""
        source = self.sources[side]
        at = f"row {first + row:,}"
        if source.seed is not None and chunk.ids is not None:  # rows come shuffled
            at = f"the row with the id {chunk.ids[row]}"
        if source.file is None:
            name = ("left", "right")[side] if self.two else "points"
            return ArgumentError(f"{name} {rule}; {at}{what}")
        return DataRefusedError(f"{source.file}: its rows {rule}; {at}{what}")

    def skip(self, on: JoinCondition, side: int, n: int, checksums: list[int]) -> None:
        """Read rows of a table that an earlier process has joined already.

        Parameters
        ----------
        n, checksums : of what that process had read.

        Raises
        ------
        ArgumentError
            The table has fewer rows than that process had read, or different ones.
        """
        while self.read_rows[side] < n:
            chunk = self.sources[side].read(n - self.read_rows[side])
            if chunk is None:
                raise _fewer(n)
            if len(chunk.values):
                self._take(on, side, chunk)
            else:
                time.sleep(PAUSE)
        self._compare(side, n, checksums)

    def expect(self, side: int, n: int, checksums: list[int]) -> None:
        """Have the first rows of a table compared, once they are read, with those of an earlier process.

        Parameters
        ----------
        n, checksums : see :meth:`skip`.

        Raises
        ------
        ArgumentError
            They have been read, and are different.
        """
        if n:
            self.expected[side] = n, checksums
            self._check_expected(side)

    def _check_expected(self, side: int) -> None:
        expected = self.expected[side]
        if expected is not None and self.read_rows[side] == expected[0]:
            self._compare(side, *expected)
            self.expected[side] = None

    def _compare(self, side: int, n: int, checksums: list[int]) -> None:
        if self.checksums[side] != checksums:
            raise ArgumentError(
                f"spill is of a join that had read {n:,} rows, and the first {n:,} of the input are others "
                "now; give it the same input, or another folder"
            )


def _fewer(n: int) -> ArgumentError:
    return ArgumentError(f"spill is of a join that had read {n:,} rows, and the input has fewer now")


def of_one_kind(found: list[SweepRows]) -> SweepRows:
    """Rows of both tables in one piece.

    Raises
    ------
    ArgumentError
        If they differ in type or in the number of columns.
    """
    if len({rows.values.dtype for rows in found}) > 1 or len({rows.values.shape[1] for rows in found}) > 1:
        kinds = " and ".join(f"{rows.values.shape[1]} columns of {rows.values.dtype}" for rows in found)
        raise ArgumentError(f"all rows must be of one kind, not {kinds}")
    return concat(found)


def _keyed(kind: SweepKind, rows: SweepRows) -> Keyed:
    """The keys of rows, of which those that are null have none."""
    keyed = kind.keyed(rows.values, rows.ids)
    is_null = (rows.flags & IS_NULL).astype(np.bool_)
    if not is_null.any():
        return keyed
    has_key = ~is_null[keyed.row]
    return Keyed(*(column[has_key] if len(column) else column for column in keyed))


def leave_out(kind: SweepKind, rows: SweepRows) -> tuple[SweepRows, SweepRows | None]:
    """Rows with a key, and those without, which join with nothing."""
    has_key = np.zeros(rows.n, np.bool_)
    has_key[_keyed(kind, rows).row] = True
    return (rows, None) if has_key.all() else (rows.take(has_key), rows.take(~has_key))


def sorted_by_key(kind: SweepKind, raw: SweepRows) -> SweepRows:
    """Rows of a kind, sorted by key."""
    row, key, mark = _keyed(kind, raw)
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        row, key, mark = row[order], key[order], mark[order] if len(mark) else mark
    is_all = len(row) == raw.n and bool((row == np.arange(raw.n)).all())
    rows = (raw if is_all else raw.take(row))._replace(key=key, mark=mark)
    if len(row) > raw.n:
        last = np.empty(raw.n, np.int64)
        last[row] = np.arange(len(row))  # the last of several wins
        flags = rows.flags | HAS_MORE
        flags[last[row]] &= ~HAS_MORE
        rows = rows._replace(flags=flags)
    return rows
