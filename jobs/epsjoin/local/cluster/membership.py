"""What follows for points once clusters of the condensed tree were taken: labels, probabilities, scores."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.cluster.condense import Condensed
from epsjoin.vocabulary import NOISE


def find_homes(tree: Condensed, taken: Bools) -> Ints:
    """The cluster, among those that were taken, that each point is in; -1 for none."""
    home = np.where(taken, np.arange(len(taken)), NOISE)
    for cluster in range(1, len(taken)):  # parents come first
        if not taken[cluster]:
            home[cluster] = home[tree.parent[cluster]]
    return home[tree.cluster]


def number_clusters(home: Ints) -> Ints:
    """Number the clusters by their smallest row."""
    labels = np.full(len(home), NOISE)
    clusters, first, number = np.unique(home[home >= 0], return_index=True, return_inverse=True)
    rank = np.empty(len(clusters), np.int64)
    rank[np.argsort(first)] = np.arange(len(clusters))
    labels[home >= 0] = rank[number]
    return labels


def find_first_rows(labels: Ints) -> Ints:
    """The smallest row of each cluster, in the order of its label."""
    clusters, first = np.unique(labels, return_index=True)
    return first[clusters >= 0]


def find_deaths(tree: Condensed) -> Floats:
    """The largest density at which a point falls out of each cluster, or at which it splits."""
    death = np.zeros(len(tree.parent))
    np.maximum.at(death, tree.cluster, tree.at)
    np.maximum.at(death, tree.parent[1:], tree.birth[1:])
    return death


def find_probabilities(tree: Condensed, home: Ints, death: Floats) -> Floats:
    """The density at which a point falls out of its cluster, divided by the largest at which one does."""
    probability = np.zeros(len(home))
    inside = np.flatnonzero(home >= 0)
    probability[inside] = strength(tree.at[inside], death[home[inside]])
    return probability


def strength(density: Floats, death: Floats) -> Floats:
    """How long points stay in a cluster, relative to the point that stays longest; arrays of one length."""
    with np.errstate(invalid="ignore", divide="ignore"):
        fraction = np.minimum(density, death) / death
    return np.where(np.isfinite(death) & (death > 0.0), fraction, 1.0)


def score_outliers(tree: Condensed) -> Floats:
    """1 minus the density at which a point falls out, divided by the largest that is left in its cluster."""
    densest = np.zeros(len(tree.parent))
    np.maximum.at(densest, tree.cluster, tree.at)
    for cluster in range(len(densest) - 1, 0, -1):  # parents come first
        densest[tree.parent[cluster]] = max(densest[tree.parent[cluster]], densest[cluster])
    most = densest[tree.cluster]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(tree.at == most, 0.0, 1.0 - tree.at / most)
