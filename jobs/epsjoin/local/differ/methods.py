"""The methods of a differential by name, each from two files of entries to what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

from epsjoin.local.differ import multisets, partitioned_hash, sort_merge, window, window_then_hash
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Difference, Entries, settle


class Kept(NamedTuple):
    """A method that keeps the old file prepared: its module, and which rows it carries and keeps in full.

    Parameters
    ----------
    algorithm : module with the functions ``keep`` and ``differ``.
    carries_full : whether rows of the new file go through its files in full.
    keeps_full : whether the prepared file holds them in full.
    """

    algorithm: ModuleType
    carries_full: bool
    keeps_full: bool


KEPT = {
    "sort-merge": Kept(sort_merge, True, True),
    "SMC1": Kept(sort_merge, True, False),
    "SMC2": Kept(sort_merge, False, False),
    "hash": Kept(partitioned_hash, True, True),
    "PHC1": Kept(partitioned_hash, True, False),
    "PHC2": Kept(partitioned_hash, False, False),
}
"""Methods that prepare the old file: by sorting, or by hash, each with compressed rows in two ways."""

METHODS = ("auto", *KEPT, "window")
"""All names; ``auto`` is a window, then hashing for the rest."""


def differ(
    method: str,
    old: Iterable[Entries],
    new: Iterable[Entries],
    disk: Disk,
    *,
    has_key: bool = True,
    places: int | None = None,
) -> Difference:
    """Find what differs between two files of entries.

    Parameters
    ----------
    method : one of ``METHODS``. Those of ``KEPT`` prepare the old file first, which is counted, too.
    old, new : entries of the two files, in their order.
    disk : what counts, and holds what memory does not.
    has_key : whether rows are matched by their keys; otherwise by their digests alone, in memory.
    places : number of rows that may wait in each buffer of the method ``window``; by default as many as fit
        half of the memory in full length.
    """
    rows = _Counted(old), _Counted(new)
    if not has_key:
        matches = multisets.differ(*rows, disk)
    elif method in KEPT:
        kept = KEPT[method]
        dtypes = [disk.full if is_full else disk.compressed for is_full in kept[1:]]
        prepared = kept.algorithm.keep(rows[0], disk, *dtypes)
        matches = kept.algorithm.differ(prepared, rows[1], disk, *dtypes)
    elif method == "window":
        matches = window.differ(*rows, disk, places or max(1, disk.memory_bytes // 2 // disk.row_bytes))
    else:
        matches = window_then_hash.differ(*rows, disk)
    found = list(matches)  # rows are counted while they are read
    difference = settle(rows[0].n, rows[1].n, found)
    if method in KEPT and has_key and not KEPT[method].carries_full:
        disk.fetched += len(difference.updated) + len(difference.inserted)  # by p, each in a block of its own
    return difference


class _Counted:
    """Entries of a file, to be iterated once, and how many there were."""

    def __init__(self, parts: Iterable[Entries]) -> None:
        self._parts = parts
        self.n = 0

    def __iter__(self) -> Iterator[Entries]:
        for part in self._parts:
            self.n += len(part)
            yield part
