"""Two snapshots of a data set, compared by the digests of their records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints, Words
from epsjoin.kernels.ids import match_ids


class Digests(NamedTuple):
    """The records of a snapshot, without their columns.

    Parameters
    ----------
    ids : (n,) ids, each once.
    records : (n, 2) digests of all values.
    places : (n, 2) digests of the coordinates.
    """

    ids: Ints
    records: Words
    places: Words


class Matching(NamedTuple):
    """The records of two snapshots that have the same id, by their places in the two.

    Parameters
    ----------
    deleted : (d,) ascending, records before whose id is gone.
    inserted : (i,) ascending, records now whose id is new.
    before, now : (k,) each: the records whose id stayed, ``now`` ascending.
    """

    deleted: Ints
    inserted: Ints
    before: Ints
    now: Ints


class Difference(NamedTuple):
    """How a snapshot differs from the one before it.

    Parameters
    ----------
    matching : which records are gone, new, or stayed.
    is_updated : (k,) whether a value of a record that stayed has changed.
    is_moved : (k,) whether its coordinates have changed.
    """

    matching: Matching
    is_updated: Bools
    is_moved: Bools


def match_records(before: Ints, now: Ints) -> Matching:
    """Match two snapshots by their ids, which are distinct in each. O(n) expected time."""
    rows = match_ids(np.ascontiguousarray(before), np.ascontiguousarray(now))
    is_kept = rows >= 0
    is_deleted = np.ones(before.size, np.bool_)
    is_deleted[rows[is_kept]] = False
    return Matching(
        np.flatnonzero(is_deleted), np.flatnonzero(~is_kept), rows[is_kept], np.flatnonzero(is_kept)
    )


def find_difference(before: Digests, now: Digests) -> Difference:
    """Match two snapshots by their ids, and compare the digests of the records that stayed."""
    found = match_records(before.ids, now.ids)
    a, b = found.before, found.now
    return Difference(
        found,
        is_updated=(before.records[a] != now.records[b]).any(axis=1),
        is_moved=(before.places[a] != now.places[b]).any(axis=1),
    )


def order_distance(found: Matching) -> float:
    """The relative mean displacement of the records that stayed: 0 for the same order, 1 for the reverse.

    A random order has 2/3. It is the distance of snapshots of Labio and Garcia-Molina (VLDB 1996), whose
    denominator is half the square of the larger snapshot's size.
    """
    n = max(len(found.before) + len(found.deleted), len(found.now) + len(found.inserted))
    apart = np.abs(found.before - found.now).sum(dtype=np.float64)
    return float(apart / (n * n / 2)) if n else 0.0


def places_given_up(before: Digests, now: Digests, difference: Difference) -> tuple[Words, Words]:
    """The places of the records that are deleted or moved, and of those that are inserted or moved.

    Returns
    -------
    (n,) and (m,): half of each digest, which is enough to count.
    """
    found, moved = difference.matching, difference.is_moved
    left = np.concatenate([found.deleted, found.before[moved]])
    taken = np.concatenate([found.inserted, found.now[moved]])
    return before.places[left, 0], now.places[taken, 0]


def count_common(left: Words, taken: Words) -> int:
    """Count the words that both have, each as often as both have it."""
    (old, n_old), (new, n_new) = (np.unique(words, return_counts=True) for words in (left, taken))
    _, i, j = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    return int(np.minimum(n_old[i], n_new[j]).sum())
