"""Random members of the largest clusters, however they are read, and what they show to set each apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.cluster.describe import cluster_medians
from epsjoin.local.metric import get_metric
from epsjoin.params import RunParams
from epsjoin.spark.neighbours.ranked import Usual
from epsjoin.spark.points.hashes import bound_hashes, first_hashed, hash_ids, sample_of

MAX_CLUSTERS = 20
"""Maximum number of clusters that are listed, the largest first."""

MAX_MEMBERS, MIN_MEMBERS = 1000, 100
"""Maximum number of points of a cluster whose medians are taken, and the same in very many dimensions."""

MIN_USUAL = 1000
"""Number of points whose medians stand for all in very many dimensions; in few it is ``sample_rows``."""

_MAX_NUMBERS = 1 << 17
"""Number of coordinates whose medians are computed within a few milliseconds."""

_NO_IDS = np.empty(0, np.int64)


@dataclass(frozen=True)
class MemberSample:
    """Random points of each of some clusters: those with the smallest hashes of their ids.

    Parameters
    ----------
    limit : maximum number of points of a cluster; of smaller clusters it has all points.
    seed : of the hash.
    ids : ids of the points by the number of their cluster.
    """

    limit: int
    seed: int
    ids: dict[int, Ints] = field(default_factory=dict)

    def add(self, ids: Ints, numbers: NDArray[np.integer[Any]]) -> None:
        """Take in points, each once, with the numbers of their clusters."""
        for number in np.unique(numbers).tolist():
            mine = np.concatenate([self.ids.get(number, _NO_IDS), ids[numbers == number]])
            self.ids[number] = mine[sample_of(mine, self.limit, self.seed)]


@dataclass(frozen=True)
class ClusterSample:
    """The points that show what sets clusters apart.

    Parameters
    ----------
    source : the contract, which says what the dimensions are.
    members : the sample of the clusters, to be filled.
    n_usual : number of points in the sample of all points, those with the smallest hashes of their ids. In
        few dimensions these are the points from which outliers are said to deviate.
    """

    source: SourceContract
    members: MemberSample
    n_usual: int

    @classmethod
    def of(cls, source: SourceContract, params: RunParams) -> ClusterSample:
        """Begin the samples of a run; of documents none, since a number of theirs says nothing."""
        n_rows = _MAX_NUMBERS // len(source.axes)
        n_members = min(MAX_MEMBERS, max(MIN_MEMBERS, n_rows // MAX_CLUSTERS))
        n_usual = min(params.sample_rows, max(MIN_USUAL, n_rows))
        if source.tree:
            n_members = n_usual = 0
        return cls(source, MemberSample(n_members, params.seed), n_usual)

    @property
    def is_empty(self) -> bool:
        """Whether no point of a cluster is in it."""
        return not any(map(len, self.members.ids.values()))

    def make_choice(self, n: int) -> Callable[[Ints], Bools]:
        """Make the function that tells which ids of all ``n`` points are needed."""
        wanted = np.unique(np.concatenate([_NO_IDS, *self.members.ids.values()]))
        return _make_choice(wanted, bound_hashes(self.n_usual, n), self.members.seed)

    def describe(self, ids: Ints, points: Floats, n_clusters: int) -> list[str]:
        """Say of each cluster, by its number, in which dimensions its median deviates most, and how far.

        Parameters
        ----------
        ids, points : what is needed, by ascending id.
        """
        metric = get_metric(self.source.point_metric)
        usual = Usual.of(points[first_hashed(ids, self.n_usual, self.members.seed)], self.source.axes, metric)
        rows = [locate(self.members.ids[number], ids)[1] for number in range(n_clusters)]
        numbers = np.repeat(np.arange(n_clusters), [len(some) for some in rows])
        medians = cluster_medians(points[np.concatenate(rows)], numbers, metric.full_turn)[2]
        return list(usual.describe(medians).to_pylist())


def _make_choice(wanted: Ints, bound: int | None, seed: int) -> Callable[[Ints], Bools]:
    """Make what tells which ids are kept: those that are wanted, which ascend, and those of low hashes."""

    def is_kept(ids: Ints) -> Bools:
        if bound is None:
            return np.ones(len(ids), np.bool_)
        is_low = hash_ids(seed, ids) < bound
        is_low[locate(ids, wanted)[0]] = True
        return np.asarray(is_low)

    return is_kept


def locate(ids: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Find the rows whose ids are wanted, and the place of each in ``wanted``, which ascends."""
    if not len(wanted):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
    rows = np.flatnonzero(wanted[at] == ids)
    return rows, at[rows]
