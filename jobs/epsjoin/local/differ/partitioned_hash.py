"""Differential by partitioned hash: both files are cut into buckets by key, each is matched in memory.

Appendices A (PH) and B (PHC1, PHC2) of the paper. They differ in which rows are carried in full, and which as
entries; where the kept entries of the old file fit into memory, nothing is cut at all.

References
----------
Labio and Garcia-Molina: Efficient snapshot differential algorithms for data warehousing, VLDB 1996.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Entries, Matched, cast, fill_memory, match

MAX_BUCKETS = 64
"""Maximum number of buckets; one of them must fit into memory."""


class Buckets:
    """Entries cut by key into files."""

    def __init__(self, disk: Disk, dtype: np.dtype[Any]) -> None:
        n = min(MAX_BUCKETS, max(1, disk.memory_bytes // disk.block_bytes - 1))
        self.files = [disk.file(dtype) for _ in range(n)]

    @property
    def n_bytes(self) -> int:
        """The length of all files."""
        return sum(file.n_bytes for file in self.files)

    def append(self, entries: Entries) -> None:
        """Put each entry into its bucket."""
        bucket = (entries["key"][:, 1] % np.uint64(len(self.files))).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=len(self.files)))
        for file, mine in zip(self.files, np.split(order, ends[:-1]), strict=True):
            if len(mine):
                file.append(entries[mine])


def keep(rows: Iterable[Entries], disk: Disk, carried: np.dtype[Any], kept: np.dtype[Any]) -> Buckets:
    """Cut a file into buckets, and keep them for the next differential.

    Parameters
    ----------
    rows : entries of the file, in its order.
    carried, kept : the dtypes in which rows of the next file will be carried, and in which these are kept.
    """
    del carried  # the old file is cut once, in the form in which it is kept
    buckets = Buckets(disk, kept)
    for part in disk.scan(rows):
        buckets.append(part)
    return buckets


def differ(
    old: Buckets, new: Iterable[Entries], disk: Disk, carried: np.dtype[Any], kept: np.dtype[Any]
) -> Iterator[Matched]:
    """Match the rows of a kept file and of a new one; the buckets of the new one are written on the way.

    Parameters
    ----------
    old : what :func:`keep` has made.
    new, carried, kept : see :func:`keep`.
    """
    if kept == disk.compressed and old.n_bytes <= disk.memory_bytes:
        yield from _in_memory(old, new, disk)
        return
    buckets = Buckets(disk, carried)
    for part in disk.scan(new):
        buckets.append(part)
    of_next = Buckets(disk, kept) if kept != carried else None
    for mine, theirs in zip(old.files, buckets.files, strict=True):
        rows = theirs.read_all()
        if of_next:
            of_next.append(rows)
        yield match(*(cast(part, disk.compressed) for part in (mine.read_all(), rows)))[0]


def _in_memory(old: Buckets, new: Iterable[Entries], disk: Disk) -> Iterator[Matched]:
    """All entries of the old file are held, and the new file is read once."""
    held = np.concatenate([file.read_all() for file in old.files])
    buckets = Buckets(disk, disk.compressed)
    for part in fill_memory(disk.scan(new), disk.room(disk.compressed), disk.compressed):
        buckets.append(part)
        matched, is_left, _ = match(held, part)
        held = held[is_left]
        yield matched
