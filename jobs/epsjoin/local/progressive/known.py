"""What is known of the pairs of a run, and of a merge of runs, for the estimate while a join runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.progressive.rows import IS_RIGHT, Keys, Met, SweepRows
from epsjoin.local.progressive.running import RunPairs, bins_of, combinations, from_merge

SOME_PAIRS = 512
"""Maximum number of pairs of a run that are known once it is written."""
KEY_BINS = 256
"""Bins of the keys by which the progress of a merge is known."""
MAX_KEPT_PAIRS = 1 << 16
"""Maximum number of pairs of a run that say at which keys its pairs lie."""

NO_PAIRS = np.empty((0, 2), np.int64)
"""The pairs known by name of a run that has none."""

PairKeys = Callable[[SweepRows, Ints, Ints], Keys]
"""At which key a merge finds each pair of places in rows."""


class KnownRun(NamedTuple):
    """What is known of the pairs within a run.

    Parameters
    ----------
    pairs : how many.
    at_key : (bins,) float64, at which keys a merge would find them.
    some : (k, 2) int64, row numbers of some of them; none for a run that a merge has made.
    """

    pairs: RunPairs
    at_key: Floats
    some: Ints

    def by_other_keys(self, rows: SweepRows, two_tables: bool, pair_keys: PairKeys, edges: Keys) -> KnownRun:
        """The same by other keys of the run's rows, each of which is given once."""
        places = _places(rows, self.some[:, 0], self.some[:, 1], two_tables)
        return self._replace(at_key=_spread(pair_keys(rows, *places), edges, self.pairs.pairs))


def key_edges(keys: Keys) -> Keys:
    """Choose the lower edges of the bins of keys, on ascending keys: one for each key where these are few."""
    distinct = keys[np.concatenate(([True], keys[1:] != keys[:-1]))] if len(keys) else keys
    if len(distinct) <= KEY_BINS:
        return distinct
    return np.unique(keys[np.arange(KEY_BINS) * len(keys) // KEY_BINS])


def _later(rows: SweepRows, first: Ints, second: Ints) -> Keys:
    """The later key of each pair."""
    a, b = rows.key[first], rows.key[second]
    return np.where(a < b, b, a)


class RunCount:
    """Counts the pairs of a run while it is joined.

    Parameters
    ----------
    begin : numbers of the first row of the left and of the right table.
    """

    def __init__(self, begin: tuple[int, int]) -> None:
        self._begin = begin
        self._pairs = 0
        self._degrees = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        self._kept: list[tuple[Ints, Ints, Keys]] = []
        self._every = 1
        self._n_kept = 0

    def add(self, met: Met, two_tables: bool) -> None:
        """Count pairs of the run."""
        rows, first, second, _ = met
        self._pairs += len(first)
        self._count_degrees(0, rows.number[first])
        self._count_degrees(int(two_tables), rows.number[second])
        some = slice(None, None, self._every)
        first, second = first[some], second[some]
        self._kept.append((rows.number[first], rows.number[second], _later(rows, first, second)))
        self._n_kept += len(first)
        while self._n_kept > MAX_KEPT_PAIRS:
            self._kept = [(a[::2], b[::2], c[::2]) for a, b, c in self._kept]
            self._n_kept = sum(len(a) for a, *_ in self._kept)
            self._every *= 2

    def _count_degrees(self, side: int, numbers: Ints) -> None:
        before = self._degrees[side]
        counted = np.bincount(numbers - self._begin[side], minlength=len(before))
        counted[: len(before)] += before
        self._degrees[side] = counted

    def so_far(self, read_rows: tuple[int, int], two_tables: bool) -> RunPairs:
        """What is known when the tables are read up to these rows."""
        return self._known((read_rows[0] - self._begin[0], read_rows[1] - self._begin[1]), two_tables)

    def _known(self, n_rows: tuple[int, int], two_tables: bool) -> RunPairs:
        variance = 0.0
        for degrees, n in zip(self._degrees, n_rows, strict=True):
            if n > 1:
                mean, square = float(degrees.sum()) / n, float((degrees.astype(np.float64) ** 2).sum())
                variance += n * max(0.0, square - n * mean * mean) / (n - 1.0)
        return RunPairs(self._pairs, combinations(n_rows, two_tables), variance)

    def close(
        self,
        n_rows: tuple[int, int],
        two_tables: bool,
        rows: SweepRows,
        pair_keys: PairKeys | None,
        edges: Keys,
    ) -> KnownRun:
        """What is known of the whole run.

        Parameters
        ----------
        n_rows : rows of both tables in the run.
        rows : those rows.
        pair_keys : finds the keys of pairs of these rows; None where the rows were swept by them.
        edges : bins of the keys.
        """
        kept = [(np.empty(0, np.int64), np.empty(0, np.int64), edges[:0]), *self._kept]
        left, right, keys = (np.concatenate(column) for column in zip(*kept, strict=True))
        if pair_keys is not None:
            keys = pair_keys(rows, *_places(rows, left, right, two_tables))
        some = np.stack((left, right), axis=1)[:: max(1, -(-len(left) // SOME_PAIRS))]
        return KnownRun(self._known(n_rows, two_tables), _spread(keys, edges, self._pairs), some)


def _spread(keys: Keys, edges: Keys, pairs: float) -> Floats:
    """Spread a number of pairs over the bins of keys, as the keys of some of them lie; (bins,)."""
    found = np.bincount(bins_of(edges, keys), minlength=len(edges) + 1)
    return np.asarray(found * (pairs / max(1, len(keys))))


def _places(rows: SweepRows, left: Ints, right: Ints, two_tables: bool) -> tuple[Ints, Ints]:
    """Where the rows of these numbers are among rows that have each number once."""
    found = []
    for side, numbers in ((0, left), (int(two_tables), right)):
        mine = np.flatnonzero((rows.flags & IS_RIGHT) == side)
        order = mine[np.argsort(rows.number[mine])]
        found.append(order[np.searchsorted(rows.number[order], numbers)])
    return found[0], found[1]


class MergeProgress:
    """Counts the pairs of different runs that a merge finds, by key and by run.

    Parameters
    ----------
    known : of its runs.
    edges : bins of the keys.
    """

    def __init__(self, known: list[KnownRun], edges: Keys) -> None:
        self._known, self._edges = known, edges
        self._of_runs = np.array([run.at_key for run in known])
        self._across = np.zeros(len(edges) + 1)
        self._across_of = np.zeros((len(known), len(edges) + 1))
        self._bin = 0

    def add(self, met: Met) -> None:
        """Count pairs."""
        rows, first, second, _ = met
        bins = bins_of(self._edges, _later(rows, first, second))
        n = len(self._edges) + 1
        self._across += np.bincount(bins, minlength=n)
        for places in (first, second):
            at = rows.run[places].astype(np.int64) * n + bins
            self._across_of += np.bincount(at, minlength=self._across_of.size).reshape(self._across_of.shape)

    def reach(self, key: object) -> None:
        """Say that all pairs below this key are found."""
        self._bin = int(np.searchsorted(self._edges, np.array([key], self._edges.dtype), "right")[0])

    @property
    def known_pairs(self) -> float:
        """Pairs of its runs, and those of different ones below the key."""
        return sum(run.pairs.pairs for run in self._known) + float(self._across[: self._bin].sum())

    def rest(self) -> tuple[float, float | None]:
        """Estimate the pairs of different runs from the key on, see :func:`from_merge`."""
        z, w = self._of_runs.sum(axis=1), self._of_runs[:, : self._bin].sum(axis=1)
        c_of = self._across_of[:, : self._bin].sum(axis=1)
        return from_merge(z, w, float(self._across[: self._bin].sum()), c_of)

    def merged(self, n_rows: tuple[int, int], two_tables: bool) -> KnownRun:
        """What is known of the run that they have become."""
        pairs = sum(run.pairs.pairs for run in self._known) + float(self._across.sum())
        # degrees grow with the number of runs, and rows do
        variance = sum(run.pairs.variance for run in self._known) * len(self._known) ** 2
        at_key = self._of_runs.sum(axis=0) + self._across
        of_all = RunPairs(pairs, combinations(n_rows, two_tables), variance)
        return KnownRun(of_all, at_key, NO_PAIRS)
