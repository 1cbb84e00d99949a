"""What was found of two snapshots, row by row or by runs of rows that stand in the same order in both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.differ.entries import Difference, Matched


class Found(NamedTuple):
    """What differs between two snapshots.

    Parameters
    ----------
    n_same : number of rows that are the same.
    updated : (n, 2) int64, places in the old snapshot and in the new, by those in the new.
    deleted, inserted : places of the rows without a partner, rising.
    moved : (m, 2) int64, places of the rows, same or updated, that stand at different places.
    """

    n_same: int
    updated: Ints
    deleted: Ints
    inserted: Ints
    moved: Ints

    @classmethod
    def of(cls, difference: Difference) -> Found:
        """What an algorithm on entries has found."""
        moved = np.concatenate([_moved(pairs) for pairs in (difference.same, difference.updated)])
        return cls(len(difference.same), *difference[1:], moved)


def _moved(pairs: Ints) -> Ints:
    moved: Ints = pairs[pairs[:, 0] != pairs[:, 1]]
    return moved


class Tally:
    """Collects what is found, step by step; a run of rows at the same places costs a truth value a row."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []
        self._matches: list[Matched] = []
        self._updated: list[Ints] = []
        self._moved: list[Ints] = []
        self._n_pairs = 0

    def add_run(self, old: int, new: int, differs: Bools) -> None:
        """Add rows that follow one another in both snapshots.

        Parameters
        ----------
        old, new : places of the first of them.
        differs : (n,) whether each row was updated.
        """
        n = len(differs)
        self._runs.append((old, new, n))
        self._n_pairs += n
        self._updated.append(np.flatnonzero(differs)[:, np.newaxis] + (old, new))
        if old != new:
            self._moved.append(np.arange(n)[:, np.newaxis] + (old, new))

    def add(self, matched: Matched) -> None:
        """Add single rows."""
        self._matches.append(matched)
        self._n_pairs += len(matched.old)
        pairs = np.column_stack(matched[:2])
        self._updated.append(pairs[~matched.is_same])
        self._moved.append(_moved(pairs))

    def settle(self, n_old: int, n_new: int) -> Found:
        """Put all together: rows that were not added were deleted, or inserted."""
        is_alone = np.ones(n_old, bool), np.ones(n_new, bool)
        for *places, n in self._runs:
            for is_left, place in zip(is_alone, places, strict=True):
                is_left[place : place + n] = False
        for matched in self._matches:
            for is_left, rows in zip(is_alone, matched[:2], strict=True):
                is_left[rows] = False
        none = np.empty((0, 2), np.int64)
        updated, moved = (np.concatenate([none, *pairs]) for pairs in (self._updated, self._moved))
        updated = updated[np.argsort(updated[:, 1])]
        deleted, inserted = map(np.flatnonzero, is_alone)
        return Found(self._n_pairs - len(updated), updated, deleted, inserted, moved)
