"""HDBSCAN: the density clusters of every eps at once, of which those that last longest are taken.

1. The *core distance* of a point is the distance to its ``min_samples``-th nearest point, itself included.
2. The minimum spanning tree under *mutual reachability*, the largest of two points' distance and their core
   distances, has the clusters of every eps: cut all edges above eps, and the components with ``min_samples``
   in reach are those of DBSCAN without border points.
3. Edges are removed from the heaviest down, those of one weight at once. Where a cluster falls apart into two
   or more of at least ``min_cluster_size`` points, these are clusters of their own; smaller pieces fall out.
4. A cluster's *stability* is how long its points stay in it, in units of 1 / distance. Of a cluster and those
   that it splits into, whichever are more stable are taken (the excess of mass), or the smallest ones are:
   :mod:`epsjoin.local.cluster.selection`.
5. A point's *outlier score* compares the density at which it falls out of its cluster with the largest one
   that is left there: the paper's GLOSH, "global-local outlier score from hierarchies".

References
----------
Campello, Moulavi, Zimek, Sander: Hierarchical density estimates for data clustering, visualization, and
outlier detection, ACM TKDD 10 (2015), sections 3 to 5, and GLOSH. Departure: where distances are 0 densities
are infinite, and a cluster of such points is never given up for smaller ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.condense import condense, link
from epsjoin.kernels.cluster.union_find import forest
from epsjoin.local.arguments import as_number, check_choice, check_count
from epsjoin.local.cluster.membership import (
    find_deaths,
    find_first_rows,
    find_homes,
    find_probabilities,
    number_clusters,
    score_outliers,
)
from epsjoin.local.cluster.selection import Selection, choose_clusters, density_of_single_cluster
from epsjoin.local.cluster.spanning import SpanningTree, core_distances, mutual_reachability_tree
from epsjoin.local.coordinates import check_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.vocabulary import NOISE

_METHODS = ("eom", "leaf")


class Lambdas(NamedTuple):
    """The lambda values at which clusters are born and die, by their labels; made by :func:`hdbscan`.

    A lambda value is a density, 1 / distance, infinite at distance 0.

    Parameters
    ----------
    birth : (n_clusters,) float64. Points that are connected to a cluster at a higher density belong to it.
    death : (n_clusters,) float64, the density at which its last points fall out, or at which it splits.

    Examples
    --------
    >>> lambdas = hdbscan([[0.0], [0.1], [0.3], [5.0], [5.5], [6.5]], 3, min_samples=1).lambdas
    >>> (1 / lambdas.birth).round(3).tolist(), (1 / lambdas.death).round(3).tolist()
    ([4.7, 4.7], [0.2, 1.0])
    """

    birth: Floats
    death: Floats


class Hdbscan(NamedTuple):
    """Clusters of points, in the order of the points; made by :func:`hdbscan`.

    Parameters
    ----------
    labels : (n,) int64, the cluster of each point, ``NOISE`` (-1) for noise. Clusters are 0, 1, ... in the
        order of their smallest row.
    probability : (n,) float64, from 0 to 1: how long a point stays in its cluster, relative to the point that
        stays longest; 0 for noise.
    tree : the minimum spanning tree under mutual reachability.
    outlier_score : (n,) float64, from 0 to 1, whichever clusters were taken: 0 for a point that is as deep in
        its cluster as any, near 1 for one that falls out of a cluster with much denser points. If the cluster
        has distances of 0, 1 for all points that fall out before.
    core_distance : (n,) float64, the core distance of each point.
    lambdas : the densities at which each cluster is born and dies.
    """

    labels: Ints
    probability: Floats
    tree: SpanningTree
    outlier_score: Floats
    core_distance: Floats
    lambdas: Lambdas

    def labels_at(self, eps: float, min_cluster_size: int = 5) -> Ints:
        """Find the clusters of one density, those of DBSCAN without its border points.

        Parameters
        ----------
        eps : threshold of mutual reachability, above 0; edges of at most this weight connect.
        min_cluster_size : minimum number of points of a cluster, at least 2; smaller pieces are noise.

        Returns
        -------
        (n,) int64, as ``labels``.

        Raises
        ------
        ArgumentError
            A number is out of its range.

        Notes
        -----
        O(n): the points are not looked at. With ``min_pts`` in place of ``min_samples``, core points of
        :func:`dbscan` are connected as they are there.

        Examples
        --------
        >>> found = hdbscan([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]], 3, min_samples=1)
        >>> found.labels_at(4.8, min_cluster_size=2).tolist(), found.labels_at(0.1, 2).tolist()
        ([0, 0, 0, 0, 0, 0, -1], [0, 0, 0, 1, 1, -1, -1])
        """
        reach, least = as_number(eps), check_count("min_cluster_size", min_cluster_size, 2)
        if not 0.0 < reach < math.inf:
            raise ArgumentError(f"eps must be a finite number above 0, not {eps!r}")
        near = self.tree.weight <= reach
        n = len(self.labels)
        home = forest(n, self.tree.left[near], self.tree.right[near])
        home[np.bincount(home, minlength=n)[home] < least] = NOISE
        return number_clusters(home)


_NOTHING = np.empty(0)
_NO_TREE = SpanningTree(np.empty(0, np.int64), np.empty(0, np.int64), _NOTHING)


def hdbscan(
    points: npt.ArrayLike,
    min_cluster_size: int = 5,
    min_samples: int | None = None,
    metric: str | Metric = "euclidean",
    *,
    cluster_selection_epsilon: float = 0.0,
    max_cluster_size: int | None = None,
    alpha: float = 1.0,
    cluster_selection_method: str = "eom",
    allow_single_cluster: bool = False,
    n_jobs: int | None = 1,
) -> Hdbscan:
    """Find density clusters of different densities, without an eps.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    min_cluster_size : minimum number of points of a cluster, at least 2.
    min_samples : the core distance of a point is that to the nearest ``min_samples`` points, itself included;
        ``min_cluster_size`` by default, at least 1 and at most n.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    cluster_selection_epsilon : if clusters fall apart at a smaller distance than this, the cluster that they
        come from is taken instead; 0 by default: this never happens.
    max_cluster_size : maximum number of points of a cluster, by default any. Only for "eom"; with a
        ``cluster_selection_epsilon`` a cluster may have more.
    alpha : distances, but not core distances, are divided by it; above 0. The robust single linkage.
    cluster_selection_method : "eom" takes the clusters that last longest, "leaf" those that do not split.
    allow_single_cluster : whether the one cluster of all points may be taken. Then its densest points belong
        to it, or those within ``cluster_selection_epsilon``.
    n_jobs : number of threads of the search for core distances, 1 by default; -1 is one per processor.

    Returns
    -------
    Hdbscan
        A label for each point. Without ``allow_single_cluster``, all points together are no cluster.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point.

    See Also
    --------
    predict_hdbscan : new points into these clusters.
    dbscan : clusters of one density.

    Notes
    -----
    Clusters and probabilities do not depend on the order of the points: edges of one weight are removed at
    once, as the paper says (section 3). scikit-learn's HDBSCAN removes them one after the other. Where no two
    weigh the same, its clusters are these, numbered in the order of its tree. But with a ``min_samples`` of 2
    or more some nearly always do, since a core distance is the weight of several edges; then scikit-learn may
    split off clusters that last no time, and other ones if the points come in another order.

    The spanning tree is found by a tree of boxes in at most log2(n) rounds (Borůvka), or, for few rows and
    where boxes tell little apart, by the distances of all pairs (Prim). Where many points are equal, one of
    them stands for all. O(n d) memory.

    Examples
    --------
    >>> found = hdbscan([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]], min_cluster_size=3, min_samples=1)
    >>> found.labels.tolist()
    [0, 0, 0, 1, 1, 1, -1]
    """
    least = check_count("min_cluster_size", min_cluster_size, 2)
    samples = least if min_samples is None else check_count("min_samples", min_samples)
    how = _check_selection(
        cluster_selection_epsilon, max_cluster_size, cluster_selection_method, allow_single_cluster
    )
    scale = check_alpha(alpha)
    check_n_jobs(n_jobs)
    chosen = get_metric(metric)
    values = check_points("points", points)
    chosen.check(values, "points")
    if not len(values):
        labels = np.empty(0, np.int64)
        return Hdbscan(labels, _NOTHING, _NO_TREE, _NOTHING, _NOTHING, Lambdas(_NOTHING, _NOTHING))
    if samples > len(values):
        name = "min_cluster_size, without min_samples," if min_samples is None else "min_samples"
        raise ArgumentError(f"{name} must be at most the number of points, {len(values)}, not {samples}")
    core = core_distances(values, samples, chosen, n_jobs=n_jobs)
    spanning = mutual_reachability_tree(values, core, chosen, alpha=scale)
    tree = condense(*link(spanning.left, spanning.right), spanning.weight, least)
    taken = choose_clusters(tree, how)
    home, birth = find_homes(tree, taken), tree.birth
    if taken[0]:
        least_density = density_of_single_cluster(tree, how.eps)
        home[tree.at < least_density] = NOISE
        birth = np.array([np.nextafter(least_density, 0.0)])  # points of this density are in it
    labels, death = number_clusters(home), find_deaths(tree)
    of_label = home[find_first_rows(labels)]
    lambdas = Lambdas(birth[of_label], death[of_label])
    probability = find_probabilities(tree, home, death)
    return Hdbscan(labels, probability, spanning, score_outliers(tree), core, lambdas)


def check_alpha(alpha: object) -> float:
    """Return the number by which distances are divided.

    Raises
    ------
    ArgumentError
        It is not a finite number above 0.
    """
    scale = as_number(alpha)
    if not 0.0 < scale < math.inf:
        raise ArgumentError(f"alpha must be a finite number above 0, not {alpha!r}")
    return scale


def _check_selection(eps: float, max_size: int | None, method: str, allow_single: bool) -> Selection:
    reach = as_number(eps)
    if not 0.0 <= reach < math.inf:
        raise ArgumentError(f"cluster_selection_epsilon must be a finite number, at least 0, not {eps!r}")
    check_choice("cluster_selection_method", method, _METHODS)
    if max_size is not None:
        max_size = check_count("max_cluster_size", max_size)
    if not isinstance(allow_single, (bool, np.bool_)):
        raise ArgumentError(f"allow_single_cluster must be True or False, not {allow_single!r}")
    return Selection(reach, max_size, method, bool(allow_single))
