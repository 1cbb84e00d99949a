"""Differential without a key: which rows of two files are the same is told by their digests alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from epsjoin.kernels.arrays import Ints
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import ENTRY, Entries, Matched, match


def differ(old: Iterable[Entries], new: Iterable[Entries], disk: Disk) -> Iterator[Matched]:
    """Match equal rows, the first of each file with the first of the other and so on; keys are not looked at.

    Parameters
    ----------
    old, new : entries of the two files, in their order; all of them are held.
    """
    yield match(*(_numbered(disk.scan(parts)) for parts in (old, new)))[0]


def _numbered(parts: Iterable[Entries]) -> Entries:
    """The entries, with their digest and the number of equal ones before as their key."""
    entries = np.concatenate([np.empty(0, ENTRY), *parts])
    entries["key"] = entries["digest"]
    # both words, so that the keys of a row that comes a million times are spread, too
    entries["key"] += (_count_before(entries).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))[
        :, np.newaxis
    ]
    return entries


def _count_before(entries: Entries) -> Ints:
    """How many equal rows come before each."""
    order = np.lexsort((entries["place"], entries["digest"][:, 1], entries["digest"][:, 0]))
    digests = entries["digest"][order]
    is_first = np.r_[True, (digests[1:] != digests[:-1]).any(axis=1)][: len(order)]
    places = np.arange(len(order))
    counts = np.empty(len(order), np.int64)
    counts[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return counts
