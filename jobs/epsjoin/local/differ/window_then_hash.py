"""The default: a window over both files, and a hash join of what it pushes out; exact whatever the order is.

If the order of the files is kept, both are read once and hardly a row waits. A row that is pushed out of the
window is not taken for a change but held back as an entry of 40 bytes, and matched at the end: in memory, or
if that is too small in buckets, as by PHC2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import ENTRY, Entries, Matched, match
from epsjoin.local.differ.partitioned_hash import Buckets

MIN_ROWS = 1 << 14
"""Minimum number of rows that are read from each file at a time; one if fewer rows may wait."""


class _Side:
    """One of the two files: its rows that wait, and those that were held back."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._held: list[Entries] = []
        self._buckets: Buckets | None = None
        self.waiting = np.empty(0, ENTRY)

    def push_out(self, places: int) -> None:
        """Hold back the rows that wait longest, so that at most ``places`` wait."""
        n = max(0, len(self.waiting) - places)
        if not n:
            return
        out, self.waiting = self.waiting[:n], self.waiting[n:].copy()
        if self._buckets is None and (self._n_held() + n) * ENTRY.itemsize <= self._disk.memory_bytes // 4:
            self._held.append(out)
            return
        if self._buckets is None:
            self._buckets = Buckets(self._disk, ENTRY)
        for part in (*self._held, out):
            self._buckets.append(part)
        self._held = []

    def rest(self, is_cut: bool) -> Iterator[Entries]:
        """Whatever has no partner yet: all at once, or bucket by bucket."""
        if not is_cut:
            yield np.concatenate([*self._held, self.waiting])
            return
        self.push_out(0)
        if self._buckets is None:
            self._buckets = Buckets(self._disk, ENTRY)
            for part in self._held:
                self._buckets.append(part)
        for file in self._buckets.files:
            yield file.read_all()

    @property
    def is_cut(self) -> bool:
        """Whether what was held back lies in buckets."""
        return self._buckets is not None

    def _n_held(self) -> int:
        return sum(map(len, self._held))


class Window:
    """The rows of two files that wait for their partners, and those that were pushed out and held back.

    Parameters
    ----------
    disk : an eighth of its memory is for the rows that wait in each of the two buffers.
    """

    def __init__(self, disk: Disk) -> None:
        self._places = max(1, disk.room(ENTRY) // 8)
        self._sides = _Side(disk), _Side(disk)

    @property
    def step_rows(self) -> int:
        """The number of rows of each file to bring at a time: at least as many as wait."""
        return max(min(MIN_ROWS, self._places), *(len(side.waiting) for side in self._sides))

    def meet(self, *fresh: Entries) -> Matched:
        """Let rows of the old and of the new file wait, match them, and push out those that wait longest."""
        for side, part in zip(self._sides, fresh, strict=True):
            side.waiting = np.concatenate([side.waiting, part])
        matched, *are_left = match(*(side.waiting for side in self._sides))
        for side, is_left in zip(self._sides, are_left, strict=True):
            side.waiting = side.waiting[is_left]
            side.push_out(self._places)
        return matched

    def match_rest(self) -> Iterator[Matched]:
        """Match whatever has no partner yet, when all rows have come."""
        is_cut = any(side.is_cut for side in self._sides)
        for one, other in zip(*(side.rest(is_cut) for side in self._sides), strict=True):
            yield match(one, other)[0]


class _Reader:
    """Entries of a file that are read up to a number of rows."""

    def __init__(self, parts: Iterable[Entries]) -> None:
        self._parts = iter(parts)
        self.n_read = 0

    def advance(self, until: int) -> Entries:
        """Read on until ``until`` rows are read, or the file ends."""
        fresh = [np.empty(0, ENTRY)]
        while self.n_read < until and (part := next(self._parts, None)) is not None:
            self.n_read += len(part)
            fresh.append(part)
        return np.concatenate(fresh)


def differ(old: Iterable[Entries], new: Iterable[Entries], disk: Disk) -> Iterator[Matched]:
    """Match the rows of two files.

    Parameters
    ----------
    old, new : entries of the two files, in their order.
    disk : see :class:`Window`.

    Notes
    -----
    In each step as many rows are read as wait, so a row is looked at a few times at most, however many wait.
    """
    window = Window(disk)
    readers = _Reader(disk.scan(old)), _Reader(disk.scan(new))
    until = 0
    while any(reader.n_read >= until for reader in readers):
        until += window.step_rows
        yield window.meet(*(reader.advance(until) for reader in readers))
    yield from window.match_rest()
