"""Rows with equal keys in two arrays, by hash tables of 128-bit keys that are random bits already."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Ints, Words


@njit
def _enter(keys: Words, slots: Ints) -> int:
    """Enter the rows; return the first row whose key came before, or -1."""
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
    """Find the first row whose key came before; return the earlier row and it, ``None`` if there is none."""
    keys = read_only(np.ascontiguousarray(keys))
    slots = _slots(len(keys))
    later = _enter(keys, slots)
    if later < 0:
        return None
    row = np.empty(1, np.int64)
    _find(keys, slots, keys[later : later + 1], row)
    return int(row[0]), later


NONE = -1
OLDEST, NEWEST, N_WAITING, N_USED, FREE = range(5)
OLDER, NEWER, NEXT = range(3)


class Buffers:
    """The two buffers of a window: rows of either file that wait for their partner, first in, first out.

    Parameters
    ----------
    places : the number of rows that each may hold, at least 1.

    Notes
    -----
    88 to 104 bytes a place, which the system gives as places are taken. What counts from 0 is stored
    plus 1, so that memory that nobody has written says "none".
    """

    def __init__(self, places: int) -> None:
        self.words = np.zeros((2, places, 4), np.uint64)  # key and digest
        self.places = np.zeros((2, places), np.int64)
        self.links = np.zeros((2, places, 3), np.int64)  # the row before, the row after, the next of a chain
        self.heads = np.zeros((2, 1 << max(1, (places - 1).bit_length())), np.int64)  # of the chains
        self.states = np.zeros((2, 5), np.int64)


@njit
def _take(words: Words, links: Ints, heads: Ints, state: Ints, key: Words) -> int:
    """Remove the row of a key from a buffer; return its slot, or -1."""
    chain = key[0] & np.uint64(heads.size - 1)
    before, slot = NONE, heads[chain] - 1
    while slot >= 0 and (words[slot, 0] != key[0] or words[slot, 1] != key[1]):
        before, slot = slot, links[slot, NEXT] - 1
    if slot < 0:
        return NONE
    if before < 0:
        heads[chain] = links[slot, NEXT]
    else:
        links[before, NEXT] = links[slot, NEXT]
    older, newer = links[slot, OLDER] - 1, links[slot, NEWER] - 1
    if older < 0:
        state[OLDEST] = newer + 1
    else:
        links[older, NEWER] = newer + 1
    if newer < 0:
        state[NEWEST] = older + 1
    else:
        links[newer, OLDER] = older + 1
    links[slot, NEXT] = state[FREE]
    state[FREE] = slot + 1
    state[N_WAITING] -= 1
    return int(slot)


@njit
def _wait(words: Words, places: Ints, links: Ints, heads: Ints, state: Ints, row: Words, place: int) -> None:
    """Let a row wait; if no place is free, it takes that of the row that has waited longest."""
    if state[N_WAITING] == len(places):
        _take(words, links, heads, state, words[state[OLDEST] - 1, :2].copy())
    if state[FREE]:
        slot = state[FREE] - 1
        state[FREE] = links[slot, NEXT]
    else:
        slot = state[N_USED]
        state[N_USED] += 1
    words[slot], places[slot] = row, place
    chain = row[0] & np.uint64(heads.size - 1)
    links[slot, OLDER], links[slot, NEWER], links[slot, NEXT] = state[NEWEST], 0, heads[chain]
    heads[chain] = slot + 1
    if state[NEWEST]:
        links[state[NEWEST] - 1, NEWER] = slot + 1
    else:
        state[OLDEST] = slot + 1
    state[NEWEST] = slot + 1
    state[N_WAITING] += 1


@njit
def _slide(
    words: Words,
    places: Ints,
    links: Ints,
    heads: Ints,
    states: Ints,
    rows: tuple[Words, Words],
    first: Ints,
    found: Ints,
) -> int:
    n = 0
    for i in range(max(len(rows[0]), len(rows[1]))):
        for side in range(2):
            if i >= len(rows[side]):
                continue
            row, other = rows[side][i], 1 - side
            slot = _take(words[other], links[other], heads[other], states[other], row[:2])
            if slot < 0:
                at = words[side], places[side], links[side], heads[side], states[side]
                _wait(*at, row, first[side] + i)
                continue
            found[n, side], found[n, other] = first[side] + i, places[other, slot]
            found[n, 2] = words[other, slot, 2] == row[2] and words[other, slot, 3] == row[3]
            n += 1
    return n


def slide(buffers: Buffers, old: Words, new: Words, first_old: int, first_new: int) -> Ints:
    """Move a window on by rows of both files, which are read in step, the old one first.

    Parameters
    ----------
    buffers : the rows that wait; modified.
    old, new : (n, 4) and (m, 4) uint64: key and digest. A key comes once in a file. n and m are equal while
        both files have rows.
    first_old, first_new : places of their first rows.

    Returns
    -------
    (p, 3) int64: place in the old file, place in the new one, 1 where the digests are equal. A row that
    the buffer pushes out before its partner comes is in none of them, nor is its partner.

    Notes
    -----
    O(n + m) expected time.

    References
    ----------
    Labio and Garcia-Molina: Efficient snapshot differential algorithms for data warehousing, VLDB 1996,
    algorithm 4.1.
    """
    found = np.empty((len(old) + len(new), 3), np.int64)
    rows = (read_only(np.ascontiguousarray(old)), read_only(np.ascontiguousarray(new)))
    first = np.array([first_old, first_new])
    state = buffers.words, buffers.places, buffers.links, buffers.heads, buffers.states
    return found[: _slide(*state, rows, first, found)]
