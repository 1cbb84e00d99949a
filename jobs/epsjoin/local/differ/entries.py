"""Entries: what a differential knows of a row, and what it finds about two files of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Ints, Words
from epsjoin.kernels.differ import find_keys

Entries = NDArray[Any]
"""(n,) of a dtype that :func:`entry_type` makes: the paper's ``<K, b, p>``, or a row in its full length."""


def entry_type(row_bytes: int = 0) -> np.dtype[Any]:
    """The dtype of entries: digest of the key, digest of the rest, place of the row in its file.

    Parameters
    ----------
    row_bytes : the length of a row that is carried in full; 0 for an entry alone, the compressed row.
    """
    fields = [("key", "<u8", (2,)), ("digest", "<u8", (2,)), ("place", "<i8")]
    entry = np.dtype(fields)
    return (
        np.dtype([*fields, ("rest", f"V{row_bytes - entry.itemsize}")])
        if row_bytes > entry.itemsize
        else entry
    )


ENTRY = entry_type()
"""A compressed row, 40 bytes."""


def to_entries(keys: Words, digests: Words, first_place: int, digest_bits: int = 128) -> Entries:
    """Entries of rows that follow one another in a file.

    Parameters
    ----------
    keys, digests : (n, 2) uint64 each; of the digest the first ``digest_bits`` are kept.
    first_place : place of the first row in its file.
    """
    entries = np.zeros(len(keys), ENTRY)
    entries["key"] = keys
    for word in (0, 1):
        bits = min(64, max(0, digest_bits - 64 * word))
        entries["digest"][:, word] = digests[:, word] & np.uint64(2**bits - 1)
    entries["place"] = first_place + np.arange(len(keys))
    return entries


def cast(entries: Entries, dtype: np.dtype[Any]) -> Entries:
    """The entries in another length: a row is compressed, or carried in full."""
    if entries.dtype == dtype:
        return entries
    other = np.zeros(len(entries), dtype)
    for name in ("key", "digest", "place"):
        other[name] = entries[name]
    return other


class Matched(NamedTuple):
    """Rows of one key in both files: their places, (n,) each, and whether their digests are equal."""

    old: Ints
    new: Ints
    is_same: Bools


class Difference(NamedTuple):
    """What differs between two files.

    Parameters
    ----------
    same, updated : (n, 2) int64 each: places in the old file and in the new one, in the order of the new one.
    deleted, inserted : places of the rows without a partner, rising.
    """

    same: Ints
    updated: Ints
    deleted: Ints
    inserted: Ints


def match(old: Entries, new: Entries) -> tuple[Matched, Bools, Bools]:
    """Match entries by key.

    Returns
    -------
    The matches, and which of the old and of the new entries have none.
    """
    rows = find_keys(old["key"], new["key"])
    is_met = rows >= 0
    mine = rows[is_met]
    is_old_left = np.ones(len(old), bool)
    is_old_left[mine] = False
    is_same = (old["digest"][mine] == new["digest"][is_met]).all(axis=1)
    return Matched(old["place"][mine], new["place"][is_met], is_same), is_old_left, ~is_met


def settle(n_old: int, n_new: int, matches: Iterable[Matched]) -> Difference:
    """Put matches together: rows without a match were deleted, or inserted."""
    found = [Matched(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool)), *matches]
    old, new, is_same = (np.concatenate(part) for part in zip(*found, strict=True))
    partners, are_same = np.full(n_new, -1), np.zeros(n_new, bool)
    partners[new], are_same[new] = old, is_same
    is_deleted = np.ones(n_old, bool)
    is_deleted[old] = False
    has_partner = partners >= 0
    same, updated = (_pairs(partners, np.flatnonzero(kind)) for kind in (are_same, has_partner & ~are_same))
    return Difference(same, updated, np.flatnonzero(is_deleted), np.flatnonzero(~has_partner))


def _pairs(partners: Ints, places: Ints) -> Ints:
    pairs = np.empty((len(places), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = partners[places], places
    return pairs


def fill_memory(parts: Iterable[Entries], room: int, dtype: np.dtype[Any]) -> Iterator[Entries]:
    """The entries of all parts in ``dtype``, ``room`` at a time."""
    held, n = list[Entries](), 0
    for part in parts:
        held.append(cast(part, dtype))
        n += len(part)
        if n >= room:
            rows = np.concatenate(held)
            for first in range(0, n - n % room, room):
                yield rows[first : first + room]
            n %= room
            held = [rows[len(rows) - n :]]
    if n:
        yield np.concatenate(held)
