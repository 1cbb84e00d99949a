"""Differential by sorting: the new file is sorted by key and merged with the sorted old one.

Algorithms 3.1 (SM), 3.2 (SMC1) and 3.3 (SMC2) of the paper. They differ in one thing: which rows are carried
in full, and which as entries.

References
----------
Labio and Garcia-Molina: Efficient snapshot differential algorithms for data warehousing, VLDB 1996.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from epsjoin.local.differ.disk import Disk, File
from epsjoin.local.differ.entries import ENTRY, Entries, Matched, cast, fill_memory, match


def keep(rows: Iterable[Entries], disk: Disk, carried: np.dtype[Any], kept: np.dtype[Any]) -> File:
    """Sort a file, and keep it for the next differential.

    Parameters
    ----------
    rows : entries of the file, in its order.
    carried, kept : the dtypes in which rows are sorted, and stored in the end.
    """
    file = disk.file(kept)
    for part in _sorted(disk.scan(rows), disk, carried):
        file.append(part)
    return file


def differ(
    old: File, new: Iterable[Entries], disk: Disk, carried: np.dtype[Any], kept: np.dtype[Any]
) -> Iterator[Matched]:
    """Match the rows of a kept file and of a new one; the new one is written sorted on the way.

    Parameters
    ----------
    old : what :func:`keep` has made.
    new, carried, kept : see :func:`keep`.
    """
    file = disk.file(kept)

    def sorted_and_kept() -> Iterator[Entries]:
        for part in _sorted(disk.scan(new), disk, carried):
            file.append(part)
            yield part

    ahead = _Ahead(old.read(_ahead_rows(disk, 2))), _Ahead(sorted_and_kept())
    while left := [side for side in ahead if side.fill()]:
        end = min(side.last() for side in left)
        yield match(*(cast(side.take(end), disk.compressed) for side in ahead))[0]


def _sorted(rows: Iterable[Entries], disk: Disk, dtype: np.dtype[Any]) -> Iterator[Entries]:
    """The rows by ascending key: runs that fit into memory are sorted, then merged."""
    runs = [_to_run(part, disk) for part in fill_memory(rows, disk.room(dtype), dtype)]
    fan = max(2, disk.memory_bytes // disk.block_bytes - 1)
    while len(runs) > fan:  # the paper's bound on memory is not met: the runs are merged more than once
        groups = [runs[i : i + fan] for i in range(0, len(runs), fan)]
        runs = [_merge_to_run(group, disk) for group in groups]
    return _merge(runs, disk)


def _to_run(rows: Entries, disk: Disk) -> File:
    run = disk.file(rows.dtype)
    run.append(_sort(rows))
    return run


def _merge_to_run(runs: Sequence[File], disk: Disk) -> File:
    merged = disk.file(runs[0].dtype)
    for part in _merge(runs, disk):
        merged.append(part)
    return merged


def _merge(runs: Sequence[File], disk: Disk) -> Iterator[Entries]:
    ahead = [_Ahead(run.read(_ahead_rows(disk, len(runs)))) for run in runs]
    while left := [side for side in ahead if side.fill()]:
        end = min(side.last() for side in left)
        yield _sort(np.concatenate([side.take(end) for side in left]))


def _ahead_rows(disk: Disk, n_files: int) -> int:
    """Rows of each of some files that are read at a time."""
    return max(1, disk.room(disk.full) // max(1, n_files))


def _sort(rows: Entries) -> Entries:
    return rows[np.lexsort((rows["key"][:, 1], rows["key"][:, 0]))]


class _Ahead:
    """What has been read ahead of a sorted file."""

    def __init__(self, parts: Iterator[Entries]) -> None:
        self._parts = parts
        self._held = np.empty(0, ENTRY)

    def fill(self) -> bool:
        """Whether there is another row."""
        while not len(self._held):
            part = next(self._parts, None)
            if part is None:
                return False
            self._held = part
        return True

    def last(self) -> tuple[int, int]:
        """The last key that has been read."""
        first, second = self._held["key"][-1].tolist()
        return first, second

    def take(self, end: tuple[int, int]) -> Entries:
        """Take the rows whose key is not beyond ``end``."""
        key = self._held["key"]
        first = np.uint64(end[0])
        begin, stop = (int(np.searchsorted(key[:, 0], first, side)) for side in ("left", "right"))
        n = begin + int(np.searchsorted(key[begin:stop, 1], np.uint64(end[1]), "right"))
        taken, self._held = self._held[:n], self._held[n:]
        return taken
