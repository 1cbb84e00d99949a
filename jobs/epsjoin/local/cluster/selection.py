"""Which clusters of a condensed tree are taken: those that last longest, or its leaves; none below an eps.

The rules are those of scikit-learn's HDBSCAN, special cases included. Departure: a cluster that was split off
at exactly the eps is taken also in place of those below it, just as if it had been chosen itself.
scikit-learn passes it by, so that the cluster above may be taken beside another of its parts.

References
----------
Campello, Moulavi, Zimek, Sander: Hierarchical density estimates for data clustering, visualization, and
outlier detection, ACM TKDD 10 (2015), section 5 (the excess of mass).
Malzer, Baum: A hybrid approach to hierarchical density-based cluster selection, MFI 2020 (the eps).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats
from epsjoin.kernels.cluster.condense import Condensed


class Selection(NamedTuple):
    """How clusters are chosen; see :func:`epsjoin.hdbscan`."""

    eps: float = 0.0
    max_size: int | None = None
    method: str = "eom"
    allow_single: bool = False


def choose_clusters(tree: Condensed, how: Selection) -> Bools:
    """Tell for each cluster whether it is taken; a point belongs to the nearest one above it.

    The first cluster, of all points, is taken alone or not at all.
    """
    n_children = np.bincount(tree.parent[1:], minlength=len(tree.parent))
    if how.method == "leaf":
        taken: Bools = n_children == 0
        taken[0] = False
    else:
        taken = _most_stable(tree, how)
    if how.eps > 0.0 and not taken[0]:
        taken = _not_below(tree, taken, how)
    if taken[0] and taken.sum() > 1:
        taken[0] = False
    return taken


def _most_stable(tree: Condensed, how: Selection) -> Bools:
    """Whether each cluster is taken by the excess of mass, from the last split up; none below another."""
    n_clusters, size, stability = len(tree.parent), tree.size.copy(), _stabilities(tree)
    size[0] = tree.size[tree.parent == 0].sum()  # as scikit-learn counts: without points that fall out before
    taken, of_parts = np.ones(n_clusters, np.bool_), [list[float]() for _ in range(n_clusters)]
    for cluster in range(n_clusters - 1, -1, -1):
        is_large = how.max_size is not None and size[cluster] > how.max_size
        of_all = sum(sorted(of_parts[cluster]))
        if is_large or of_all > stability[cluster]:
            taken[cluster] = False
            stability[cluster] = of_all
        if cluster:
            of_parts[tree.parent[cluster]].append(float(stability[cluster]))
    taken[0] &= how.allow_single
    has_taken_above = np.zeros(n_clusters, np.bool_)
    for cluster in range(1, n_clusters):  # parents come first
        above = tree.parent[cluster]
        has_taken_above[cluster] = has_taken_above[above] or taken[above]
    return taken & ~has_taken_above


def _stabilities(tree: Condensed) -> Floats:
    """How long the points of each cluster stay in it, added up."""
    split, stability = np.arange(1, len(tree.parent)), np.zeros(len(tree.parent))
    with np.errstate(over="ignore"):  # at distances next to the smallest of float64
        lasted = _lasting(tree.birth[split], tree.birth[tree.parent[split]]) * tree.size[split]
        homes = np.concatenate((tree.cluster, tree.parent[split]))
        terms = np.concatenate((_lasting(tree.at, tree.birth[tree.cluster]), lasted))
        order = np.lexsort((terms, homes))  # a sum depends on the order of its terms: not on that of the rows
        np.add.at(stability, homes[order], terms[order])
    return stability


def _not_below(tree: Condensed, taken: Bools, how: Selection) -> Bools:
    """Replace clusters that were split off below eps by the next above that was not, or by the topmost."""
    chosen = np.zeros(len(taken), np.bool_)
    for cluster in np.flatnonzero(taken):
        at = int(cluster)
        if tree.split_at[at] < how.eps:
            at = int(tree.parent[at])
            while at > 0 and tree.split_at[at] < how.eps:
                at = int(tree.parent[at])
            if at == 0 and not how.allow_single:
                at = _topmost(tree, int(cluster))
        chosen[at] = True
    return chosen


def _topmost(tree: Condensed, cluster: int) -> int:
    """The cluster above this one, or itself, that was split from the first one."""
    while tree.parent[cluster] > 0:
        cluster = int(tree.parent[cluster])
    return cluster


def density_of_single_cluster(tree: Condensed, eps: float) -> float:
    """The density from which on points belong to the first cluster if it is the only one: that of eps.

    Without an eps it is the largest density at which a point falls out of it, or at which it splits.
    """
    if eps > 0.0:
        return 1.0 / eps
    return float(np.concatenate((tree.at[tree.cluster == 0], tree.birth[tree.parent == 0])).max())


def _lasting(end: Floats, begin: Floats) -> Floats:
    """How long points last from one density to another; NaN, which is never more, where both are infinite."""
    with np.errstate(invalid="ignore"):
        return end - begin
