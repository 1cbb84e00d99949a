"""Differential by a window that slides over both files, as algorithm 4.1 of the paper has it.

Both files are read in step. Rows without a partner wait in two buffers; whoever waits longest is pushed out
when a buffer is full, and is then taken for deleted or inserted, though the partner may still come. So the
result holds useless pairs of a delete and an insert where the order differs by more than a buffer.

References
----------
Labio and Garcia-Molina: Efficient snapshot differential algorithms for data warehousing, VLDB 1996.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np

from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Entries, Matched

Waiting = OrderedDict[tuple[int, int], tuple[tuple[int, int], int]]
"""Rows that wait, the first to come first: key to digest and place."""


def differ(old: Iterable[Entries], new: Iterable[Entries], disk: Disk, places: int) -> Iterator[Matched]:
    """Match the rows of two files that meet within the window.

    Parameters
    ----------
    old, new : entries of the two files, in their order.
    places : the number of rows that may wait in each of the two buffers, at least 1.
    """
    waiting = Waiting(), Waiting()
    found: list[tuple[int, int, bool]] = []
    for pair in zip_longest(_rows(disk.scan(old)), _rows(disk.scan(new))):
        for side, row in enumerate(pair):
            if row is None:
                continue
            key, digest, place = row
            partner = waiting[1 - side].pop(key, None)
            if partner is not None:
                places_of = (partner[1], place) if side else (place, partner[1])
                found.append((*places_of, partner[0] == digest))
                continue
            waiting[side][key] = digest, place
            if len(waiting[side]) > places:
                waiting[side].popitem(last=False)
    if found:
        old_places, new_places, is_same = zip(*found, strict=True)
        yield Matched(np.array(old_places), np.array(new_places), np.array(is_same))


def _rows(parts: Iterable[Entries]) -> Iterator[tuple[tuple[int, int], tuple[int, int], int]]:
    for part in parts:
        keys, digests, places = part["key"].tolist(), part["digest"].tolist(), part["place"].tolist()
        for key, digest, place in zip(keys, digests, places, strict=True):
            yield tuple(key), tuple(digest), place
