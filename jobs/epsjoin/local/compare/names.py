"""The names that clusters keep from run to run, and what is needed to name the clusters of the next run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.vocabulary import NOISE


class Names(NamedTuple):
    """The names of a run's clusters, by rising label; see ``match_clusters``.

    Parameters
    ----------
    label : (k,) int64, the cluster as the run calls it.
    name : (k,) int64, what it is called in all runs.
    first_run : (k,) int64, number of the run in which the name began, 0 for the first.
    runs : (k,) int64, number of runs with the name until now, this one included.
    size, core : (k,) int64, numbers of its records, and of core points among them.
    stayed : (k,) int64, records that were in the cluster of this name in the run before.
    from_clusters, from_noise, inserted : (k,) int64, records that were in other clusters, noise, not there.
    to_clusters, to_noise, deleted : (k,) int64, records of the cluster of this name in the run before that
        are now in other clusters, noise, not there.
    """

    label: Ints
    name: Ints
    first_run: Ints
    runs: Ints
    size: Ints
    core: Ints
    stayed: Ints
    from_clusters: Ints
    from_noise: Ints
    inserted: Ints
    to_clusters: Ints
    to_noise: Ints
    deleted: Ints


class Named(NamedTuple):
    """What is needed to name the next run: the names of the last run, and all names there ever were.

    Parameters
    ----------
    names : of the last run; the flows to the next run say the rest.
    ever : all names until now.
    """

    names: Names
    ever: frozenset[int]


NOBODY = Named(Names(*(np.empty(0, np.int64) for _ in Names._fields)), frozenset({NOISE}))
"""Before the first run: no cluster, and no name but that of noise, which no cluster may have."""


class Cores(NamedTuple):
    """The core points of a run's clusters.

    Parameters
    ----------
    labels : (k,) int64, rising, the clusters that have core points.
    begins : (k + 1,) int64, where the ids of each begin, and where the last ones end.
    ids : ids of core points, those of a cluster rising.
    """

    labels: Ints
    begins: Ints
    ids: Ints

    @classmethod
    def of(cls, ids: Ints, labels: Ints, is_core: Bools) -> Cores:
        """Sort the core points of a run; those that are not core may be among its records."""
        ids, labels = ids[is_core], labels[is_core]
        order = np.lexsort((ids, labels))
        clusters, begins = np.unique(labels[order], return_index=True)
        return cls(clusters, np.append(begins, ids.size), ids[order])

    @property
    def smallest(self) -> Ints:
        """The smallest id of each cluster, (k,) int64."""
        return self.ids[self.begins[:-1]]

    def among(self, labels: Ints) -> Cores:
        """The core points of these clusters alone."""
        of = np.repeat(self.labels, np.diff(self.begins))
        is_wanted = np.isin(of, labels)
        return Cores.of(self.ids[is_wanted], of[is_wanted], np.ones(np.count_nonzero(is_wanted), np.bool_))

    def of_cluster(self, label: int) -> Ints:
        """The ids of a cluster, rising."""
        place = int(np.searchsorted(self.labels, label))
        return self.ids[self.begins[place] : self.begins[place + 1]]
