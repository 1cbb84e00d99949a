"""Groups of equal records, of which a join compares only the first with others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.sweep.pairs import Pairs


class Groups(NamedTuple):
    """Records in groups of equal ones, in the order of their first records; made by :func:`group_equal`.

    Parameters
    ----------
    starts : (g + 1,) int64, where each group begins in ``rows``.
    rows : (n,) int64, the numbers of the records, group by group, ascending in each.
    keys : (g,) what the records of each group have in common.
    """

    starts: Ints
    rows: Ints
    keys: NDArray[Any]

    @property
    def sizes(self) -> Ints:
        """(g,) int64, the number of records of each group."""
        return np.diff(self.starts)

    @property
    def firsts(self) -> Ints:
        """(g,) int64, the number of the first record of each group."""
        return self.rows[self.starts[:-1]]

    @property
    def n_within(self) -> int:
        """Number of pairs of records of one group."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())


def group_equal(keys: NDArray[Any]) -> Groups:
    """Group the records whose keys are equal.

    Parameters
    ----------
    keys : (n,) one per record, of a type that can be sorted.
    """
    distinct, firsts, by_key = np.unique(keys, return_index=True, return_inverse=True)
    group = np.empty(len(firsts), np.int64)
    order = np.argsort(firsts)
    group[order] = np.arange(len(firsts))
    group_of = group[by_key]
    rows = np.argsort(group_of, kind="stable")
    return Groups(np.searchsorted(group_of[rows], np.arange(len(firsts) + 1)), rows, distinct[order])


def count_equal(left: Groups, right: Groups | None) -> int:
    """Count the pairs of :func:`equal_pairs`."""
    if right is None:
        return left.n_within
    i, j = _same(left, right)
    return int((left.sizes[i] * right.sizes[j]).sum())


def equal_pairs(left: Groups, right: Groups | None) -> Pairs:
    """Return all pairs of equal records at distance 0: of one side, ``left < right``, or of two sides."""
    if right is None:
        return pairs_within(left)
    i, j = _same(left, right)
    return expand(left, right, Pairs(i, j, np.zeros(len(i))))


def _same(left: Groups, right: Groups) -> tuple[Ints, Ints]:
    """Return the groups of both sides that have the same key."""
    _, i, j = np.intersect1d(left.keys, right.keys, assume_unique=True, return_indices=True)
    return i.astype(np.int64), j.astype(np.int64)


def pairs_within(groups: Groups) -> Pairs:
    """Return all pairs of records of one group, at distance 0, ``left < right``."""
    ends = np.repeat(groups.starts[1:], groups.sizes)
    places = np.arange(len(groups.rows))
    later = ends - places - 1  # records of the same group that come after
    first = np.repeat(places, later)
    second = first + 1 + _counted(later)
    return Pairs(groups.rows[first], groups.rows[second], np.zeros(len(first)))


def expand(left: Groups, right: Groups | None, found: Pairs) -> Pairs:
    """Return the pairs of records that pairs of groups stand for.

    Parameters
    ----------
    left, right : the groups of both sides; None where they are the same, and then ``left < right``.
    found : numbers of different groups, and their distances.
    """
    other = right or left
    counts = left.sizes[found.left] * other.sizes[found.right]
    each = np.repeat(np.arange(len(counts)), counts)
    i, j, number = found.left[each], found.right[each], _counted(counts)
    width = other.sizes[j]
    rows, others = left.rows[left.starts[i] + number // width], other.rows[other.starts[j] + number % width]
    if right is None:
        rows, others = np.minimum(rows, others), np.maximum(rows, others)
    distance: Floats = found.distance[each]
    return Pairs(rows, others, distance)


def _counted(counts: Ints) -> Ints:
    """Return 0, 1, ... for each count, one after the other."""
    return np.asarray(np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))
