"""Nearest core points, and chains of core points: what shows whether stored clusters are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.local.verify.brute_force import Ids


class NearestCores(NamedTuple):
    """The nearest core point of some points, itself not counted; all columns have the same length.

    Parameters
    ----------
    ids : int64, distinct.
    cores, clusters : int64, ids of the core points and of their clusters.
    distance : float64.
    """

    ids: Ids
    cores: Ids
    distance: NDArray[np.float64]
    clusters: Ids

    @classmethod
    def merge(cls, parts: Sequence[NearestCores]) -> NearestCores:
        """Take the nearest of several results."""
        return nearest_cores(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def nearest_cores(ids: Ids, cores: Ids, distance: NDArray[np.float64], clusters: Ids) -> NearestCores:
    """Choose the nearest core point of each id; of several as near, the one with the smallest id."""
    order = np.lexsort((cores, distance, ids))
    first = order[np.flatnonzero(np.r_[True, np.diff(ids[order]) != 0][: len(order)])]
    return NearestCores(ids[first], cores[first], distance[first], clusters[first])


class Chains(NamedTuple):
    """Core points that chains of core points connect; all columns have the same length.

    Parameters
    ----------
    ids : int64, core points.
    roots : int64, for each a core point that a chain connects with it.
    clusters : int64, the stored clusters of the points.
    """

    ids: Ids
    roots: Ids
    clusters: Ids

    @classmethod
    def merge(cls, parts: Sequence[Chains]) -> Chains:
        """Follow the chains of several results: each point once, with the smallest id connected to it."""
        ids, roots, clusters = (np.concatenate(column) for column in zip(*parts, strict=True))
        every, at = np.unique(np.concatenate([ids, roots]), return_inverse=True)
        smallest = connect(at[: len(ids)], at[len(ids) :], len(every))
        cluster_of = np.empty(len(every), np.int64)
        cluster_of[at] = np.concatenate([clusters, clusters])
        return cls(every, every[smallest], cluster_of)


def connect(left: Ids, right: Ids, n: int) -> Ids:
    """Find the smallest row that each of n rows is connected to, itself included, by chains of pairs of rows.

    Notes
    -----
    In each round the root of every pair's larger end takes the smaller end's root as its parent, and then all
    rows take their parents' parents until nothing changes.
    """
    parent = np.arange(n)
    while len(left):
        low, high = np.minimum(parent[left], parent[right]), np.maximum(parent[left], parent[right])
        is_open = low != high
        left, right = left[is_open], right[is_open]
        np.minimum.at(parent, high[is_open], low[is_open])
        while (parent[parent] != parent).any():
            parent = parent[parent]
    return parent


def torn_clusters(chains: Chains) -> Iterator[str]:
    """Describe the clusters whose core points are not all connected, in the order of their names.

    Parameters
    ----------
    chains : merged, with all core points of each cluster that are in a pair with another one.
    """
    is_root = chains.ids == chains.roots
    roots, clusters = chains.ids[is_root], chains.clusters[is_root]
    order = np.lexsort((roots, clusters))
    roots, clusters = roots[order], clusters[order]
    names, first, count = np.unique(clusters, return_index=True, return_counts=True)
    for at in np.flatnonzero(count > 1).tolist():
        one, other = roots[first[at]], roots[first[at] + 1]
        yield (
            f"cluster {names[at]} is {count[at]} clusters: no chain of core points connects {one} and {other}"
        )
