"""Rows with equal keys in two arrays, by a hash table of 128-bit keys that are random bits already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Ints

Words = NDArray[np.uint64]


@njit
def _enter(keys: Words, slots: Ints) -> int:
    """Enter the rows; the first row whose key came before, or -1."""
    last_slot = np.uint64(slots.size - 1)
    for row in range(len(keys)):
        slot = keys[row, 0] & last_slot
        while slots[slot] >= 0:
            if keys[slots[slot], 0] == keys[row, 0] and keys[slots[slot], 1] == keys[row, 1]:
                return row
            slot = (slot + np.uint64(1)) & last_slot
        slots[slot] = row
    return -1


@njit
def _find(keys: Words, slots: Ints, wanted: Words, rows: Ints) -> None:
    last_slot = np.uint64(slots.size - 1)
    for i in range(len(wanted)):
        slot = wanted[i, 0] & last_slot
        row = slots[slot]
        while row >= 0 and (keys[row, 0] != wanted[i, 0] or keys[row, 1] != wanted[i, 1]):
            slot = (slot + np.uint64(1)) & last_slot
            row = slots[slot]
        rows[i] = row


def _slots(n: int) -> Ints:
    return np.full(1 << max(1, (2 * n - 1).bit_length()), -1, np.int64)


def find_keys(keys: Words, wanted: Words) -> Ints:
    """The row of every wanted key in ``keys``, -1 where it is not there.

    Parameters
    ----------
    keys : (n, 2) uint64, each once: digests, whose bits are as good as random.
    wanted : (m, 2) uint64.

    Returns
    -------
    (m,) int64.

    Raises
    ------
    ValueError
        A key comes twice; the message names its row.

    Notes
    -----
    O(n + m) expected time, 16 to 32 bytes a key.
    """
    keys, wanted = read_only(np.ascontiguousarray(keys)), read_only(np.ascontiguousarray(wanted))
    slots, rows = _slots(len(keys)), np.empty(len(wanted), np.int64)
    if (row := _enter(keys, slots)) >= 0:
        raise ValueError(f"the key of row {row} comes twice")
    _find(keys, slots, wanted, rows)
    return rows


def find_double(keys: Words) -> tuple[int, int] | None:
    """The first row whose key came before, after the row where it came; ``None`` where each comes once."""
    keys = read_only(np.ascontiguousarray(keys))
    slots = _slots(len(keys))
    later = _enter(keys, slots)
    if later < 0:
        return None
    row = np.empty(1, np.int64)
    _find(keys, slots, keys[later : later + 1], row)
    return int(row[0]), later
