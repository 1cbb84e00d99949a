"""From ids to row numbers: by a hash index over distinct ids, or without one for ids in one order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints, Words

Values = Floats | Words
"""Numbers that are compared one with another."""
_BLOCK = 1 << 16
"""Number of ids that are hashed at a time: their hashes stay in the cache."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor near 2**64 / golden ratio, which spreads runs of ids evenly; its bits have no pattern."""
_AHEAD = 8
"""Number of ids among which the next one is looked for by :func:`match_ids` before it asks an index."""


class IdIndex(NamedTuple):
    """Distinct ids and an open-addressing table of their row numbers.

    Parameters
    ----------
    ids : (n,) int64, each once, in any order.
    slots : (2**bits,) int64, row numbers, -1 where free; at most half are taken. Empty where each id is
        the one before plus 1, as then an id tells its row.
    bits : length of a hash.
    """

    ids: Ints
    slots: Ints
    bits: int


@njit
def _insert(ids: Ints, first: int, hashes: Ints, slots: Ints) -> int:
    """Enter ``ids[first : first + hashes.size]``; return how many came before one that is there already."""
    last_slot = slots.size - 1
    for i in range(hashes.size):
        slot = hashes[i]
        while slots[slot] >= 0:
            if ids[slots[slot]] == ids[first + i]:
                return i
            slot = (slot + 1) & last_slot
        slots[slot] = first + i
    return hashes.size


@njit
def _probe(ids: Ints, slots: Ints, wanted: Ints, hashes: Ints, rows: Ints) -> None:
    """Write to ``rows`` the row number of each wanted id, -1 where it is unknown.

    Two files of nearly the same records have their ids in nearly one order, so the row after the one that was
    found last is tried first: a table of millions of ids does not fit a cache.
    """
    last_slot = slots.size - 1
    row = -1
    for i in range(wanted.size):
        if row + 1 < ids.size and ids[row + 1] == wanted[i]:
            row += 1
            rows[i] = row
            continue
        slot = hashes[i]
        while slots[slot] >= 0 and ids[slots[slot]] != wanted[i]:
            slot = (slot + 1) & last_slot
        rows[i] = slots[slot]
        if slots[slot] >= 0:
            row = slots[slot]


@njit
def _count_up(ids: Ints) -> bool:
    """Whether each id is the one before plus 1."""
    for i in range(1, ids.size):
        if ids[i] - ids[0] != i:
            return False
    return ids.size > 0


def are_row_numbers(ids: Ints) -> bool:
    """Whether the ids are 0, 1, 2 and so on; False if there are none."""
    return _count_up(read_only(ids)) and bool(ids[0] == 0)


def spread_ids(ids: Ints, bits: int) -> Ints:
    """Hash by multiplication, on arrays: NumPy wraps these silently, compiled or not."""
    return ((ids.view(np.uint64) * GOLDEN) >> np.uint64(64 - bits)).view(np.int64)


def index_ids(ids: Ints) -> IdIndex:
    """Index distinct ids, so that :func:`rows_of` finds their row numbers.

    Parameters
    ----------
    ids : (n,) int64, contiguous, each once, in any order; kept, not copied.

    Raises
    ------
    ValueError
        An id comes twice; the message names it.

    Notes
    -----
    O(n) expected time, 16 to 32 bytes per id; none where the ids count up. Ids made to collide cost time,
    never correctness.
    """
    ids = read_only(ids)
    if _count_up(ids):
        return IdIndex(ids, np.empty(0, dtype=np.int64), 0)
    bits = max(1, int(2 * ids.size - 1).bit_length()) if ids.size else 1
    slots = np.full(1 << bits, -1, dtype=np.int64)
    for first in range(0, ids.size, _BLOCK):
        block = ids[first : first + _BLOCK]
        entered = _insert(ids, first, spread_ids(block, bits), slots)
        if entered < block.size:
            raise ValueError(f"id {block[entered]} comes twice")
    return IdIndex(ids, slots, bits)


def rows_of(index: IdIndex, wanted: Ints) -> Ints:
    """Row number of every wanted id in ``index.ids``, -1 where it is not there.

    Parameters
    ----------
    wanted : (n,) int64, contiguous, repeats allowed.

    Returns
    -------
    (n,) int64, in the order of ``wanted``.

    Notes
    -----
    O(n) expected. Hashing, because a binary search per end of a pair costs six to ten times as much
    from a million ids on.
    """
    wanted = read_only(wanted)
    if index.ids.size and not index.slots.size:
        rows: Ints = wanted - index.ids[0]  # beyond 64 bits it wraps, to no row
        rows[rows.view(np.uint64) >= index.ids.size] = -1
        return rows
    rows = np.empty(wanted.size, dtype=np.int64)
    for first in range(0, wanted.size, _BLOCK):
        block = wanted[first : first + _BLOCK]
        _probe(index.ids, index.slots, block, spread_ids(block, index.bits), rows[first : first + _BLOCK])
    return rows


@njit
def _follow(before: Ints, now: Ints, rows: Ints, is_matched: Bools) -> None:
    """Write the earlier row of each id that comes soon after the one found last, -1 for other ids."""
    row = -1
    for i in range(now.size):
        rows[i] = -1
        for at in range(row + 1, min(row + 1 + _AHEAD, before.size)):
            if before[at] == now[i]:
                row = at
                rows[i] = row
                is_matched[row] = True
                break


def match_ids(before: Ints, now: Ints) -> Ints:
    """Find the earlier row of every id, as :func:`rows_of`, where most ids keep their order.

    Parameters
    ----------
    before, now : (n,) and (m,) int64, contiguous, each id once, in any order.

    Returns
    -------
    (m,) int64, -1 where an id is not among those before.

    Raises
    ------
    ValueError
        Two of the earlier ids that did not come in order are the same.

    Notes
    -----
    O(n + m) expected. Only ids that are out of order, new or gone are hashed: between two snapshots mostly a
    few. An index of all ids is larger than a cache and costs many times as much as the comparison.
    """
    rows, is_matched = np.empty(now.size, np.int64), np.zeros(before.size, np.bool_)
    _follow(read_only(before), read_only(now), rows, is_matched)
    rest, left_over = np.flatnonzero(rows < 0), np.flatnonzero(~is_matched)
    if len(rest) and len(left_over):
        found = rows_of(index_ids(before[left_over]), now[rest])
        rows[rest] = np.where(found < 0, -1, left_over[found])
    return rows


@njit
def differ_from(before: Values, rows: Ints, now: Values, differs: Bools) -> None:
    """Write whether each row of ``now`` differs from its earlier row, or has none.

    Parameters
    ----------
    before, now : (n, w) and (m, w) numbers.
    rows : (m,) int64, the earlier row of each row of ``now``, -1 where there is none.
    differs : (m,) bool, written.
    """
    for i in range(rows.size):
        row = rows[i]
        found = row < 0
        if not found:
            for j in range(now.shape[1]):
                found |= before[row, j] != now[i, j]
        differs[i] = found
