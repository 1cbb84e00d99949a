"""Differential by a window that slides over both files, as algorithm 4.1 of the paper has it.

Both files are read in step. Rows without a partner wait in two buffers; if a buffer is full, the row that has
waited longest is pushed out and taken for deleted or inserted, though its partner may still come. So the
result has useless pairs of a delete and an insert where the order differs by more than a buffer.

References
----------
Labio and Garcia-Molina: Efficient snapshot differential algorithms for data warehousing, VLDB 1996.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np

from epsjoin.kernels.arrays import Words
from epsjoin.kernels.differ import Buffers, slide
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import ENTRY, Entries, Matched, fill_memory

STEP_ROWS = 1 << 14
"""Number of rows of each file that are handed to the window at a time."""


def differ(old: Iterable[Entries], new: Iterable[Entries], disk: Disk, places: int) -> Iterator[Matched]:
    """Match the rows of two files that meet within the window.

    Parameters
    ----------
    old, new : entries of the two files, in their order.
    places : the number of rows that may wait in each of the two buffers, at least 1.
    """
    buffers = Buffers(places)
    steps = (fill_memory(disk.scan(rows), STEP_ROWS, ENTRY) for rows in (old, new))
    for parts in zip_longest(*steps, fillvalue=np.empty(0, ENTRY)):
        (old_words, new_words), (old_first, new_first) = map(_words, parts), map(_first, parts)
        found = slide(buffers, old_words, new_words, old_first, new_first)
        yield Matched(found[:, 0], found[:, 1], found[:, 2] == 1)


def _first(part: Entries) -> int:
    return int(part["place"][0]) if len(part) else 0


def _words(part: Entries) -> Words:
    return np.concatenate([part["key"], part["digest"]], axis=1)
