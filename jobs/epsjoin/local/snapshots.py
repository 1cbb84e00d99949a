"""Two snapshots of a data set, compared by the digests of their records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.digests import Words


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


class Difference(NamedTuple):
    """What a snapshot has that the one before it has not, by the places of records in the two.

    Parameters
    ----------
    deleted : (d,) records before whose id is gone, by ascending id.
    inserted : (i,) records now whose id is new, by ascending id.
    before, now : (k,) each: the records whose id stayed, by ascending id.
    is_updated : (k,) whether a value of such a record is another.
    is_moved : (k,) whether its coordinates are.
    """

    deleted: Ints
    inserted: Ints
    before: Ints
    now: Ints
    is_updated: Bools
    is_moved: Bools


def find_difference(before: Digests, now: Digests) -> Difference:
    """Match two snapshots by their ids. O(n log n) time."""
    old, new = np.argsort(before.ids, kind="stable"), np.argsort(now.ids, kind="stable")
    at = np.searchsorted(before.ids[old], now.ids[new])
    is_kept = at < len(old)
    is_kept[is_kept] = before.ids[old[at[is_kept]]] == now.ids[new[is_kept]]
    was_kept = np.zeros(len(old), bool)
    was_kept[at[is_kept]] = True
    a, b = old[was_kept], new[is_kept]
    return Difference(
        deleted=old[~was_kept],
        inserted=new[~is_kept],
        before=a,
        now=b,
        is_updated=(before.records[a] != now.records[b]).any(axis=1),
        is_moved=(before.places[a] != now.places[b]).any(axis=1),
    )


def order_distance(difference: Difference) -> float:
    """The mean displacement of the records that stayed, in proportion: 0 the same order, 1 the reverse.

    2/3 is a random order. It is the distance of snapshots of Labio and Garcia-Molina (VLDB 1996), whose
    denominator is half the square of the larger snapshot's size.
    """
    n = max(len(difference.before) + len(difference.deleted), len(difference.now) + len(difference.inserted))
    apart = np.abs(difference.before - difference.now).sum(dtype=np.float64)
    return float(apart / (n * n / 2)) if n else 0.0


def places_given_up(before: Digests, now: Digests, difference: Difference) -> tuple[Words, Words]:
    """The places of the records that are deleted or moved, and of those that are inserted or moved.

    Returns
    -------
    (n,) and (m,): half of each digest, which is enough to count.
    """
    moved = difference.is_moved
    left = np.concatenate([difference.deleted, difference.before[moved]])
    taken = np.concatenate([difference.inserted, difference.now[moved]])
    return before.places[left, 0], now.places[taken, 0]


def count_common(left: Words, taken: Words) -> int:
    """Count the words that both have, each as often as it is in both."""
    (old, n_old), (new, n_new) = (np.unique(words, return_counts=True) for words in (left, taken))
    _, i, j = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    return int(np.minimum(n_old[i], n_new[j]).sum())
