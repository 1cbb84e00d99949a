"""New points into clusters of HDBSCAN: by the definition, from the edges to all points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import epsjoin
from epsjoin.errors import ArgumentError
from epsjoin.local.cluster import predict_hdbscan as module
from oracles import examples
from oracles import hdbscan as twin

SEEDS = st.integers(0, 10**6)


def points_of(n, is_grid, seed):
    random = np.random.default_rng(seed)
    if is_grid:
        return random.integers(0, 9, (n, 2)).astype(float)
    return random.random((n, 2)) + random.integers(0, 3, (n, 1)) * random.choice([0.3, 1.5])


def by_definition(asked, points, min_samples, alpha, chosen, root, eps):
    """The smallest point of the cluster of each point that is asked for, -1 for none."""

    def distances(point):
        return [float(np.sqrt(((point - other) ** 2).cumsum()[-1])) for other in points]

    core = [sorted(distances(point))[min_samples - 1] for point in points]
    found = []
    for point in asked:
        far = distances(point)
        own = sorted([0.0, *far])[min_samples - 1]
        weight, _, nearest = min((max(far[i] / alpha, core[i], own), far[i], i) for i in range(len(points)))
        density = 1.0 / weight if weight else np.inf
        label = -1
        for cluster in chosen:
            inside, is_in = cluster.points, density > cluster.birth
            if cluster is root:
                at = {point: density_of(root, point) for point in root.points}
                densest = max([*root.falls.values(), *(part.birth for part in root.parts)])
                enough = 1.0 / eps if eps else densest
                inside, is_in = {one for one in inside if at[one] >= enough}, density >= enough
            if nearest in inside and is_in:
                label = min(inside)
        found.append(label)
    return found


def density_of(cluster, point):
    """The density at which a point falls out of the hierarchy."""
    if point in cluster.falls:
        return cluster.falls[point]
    return next(density_of(part, point) for part in cluster.parts if point in part.points)


@pytest.mark.parametrize("at_once", [module._AT_ONCE, 7])
@examples(60)
@given(
    st.integers(4, 50),
    st.integers(2, 5),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    SEEDS,
)
def test_predict_hdbscan__hangs_points_on_the_tree_by_their_lightest_edges(
    at_once, n, least, min_samples, is_grid, allow_single, eps, seed
):
    """On a grid many edges are as light, and some weigh nothing."""
    points, random = points_of(n, is_grid, seed), np.random.default_rng(seed + 1)
    if is_grid:
        points = np.unique(points, axis=0)  # the twin divides by distances
    min_samples = min(min_samples, len(points))
    asked = np.concatenate((points_of(20, is_grid, seed + 2), points[:3], random.normal(size=(3, 2)) * 9))
    root = twin.hierarchy(set(range(len(points))), twin.edges_of(points.tolist(), min_samples), least)
    chosen = twin.taken(root, eps, None, "eom", allow_single)
    wanted = by_definition(asked, points, min_samples, 1.0, chosen, root, eps)
    how = {"cluster_selection_epsilon": eps, "allow_single_cluster": allow_single}
    clusters = epsjoin.hdbscan(points, least, min_samples, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", at_once)
        found = epsjoin.predict_hdbscan(asked, points, clusters, min_samples)
    numbers = {
        int(np.flatnonzero(clusters.labels == label)[0]): label
        for label in set(clusters.labels.tolist()) - {-1}
    }
    assert found.labels.tolist() == [numbers.get(label, -1) for label in wanted]
    assert ((found.probability > 0.0) == (found.labels >= 0)).all()
    assert (found.probability <= 1.0).all()


@examples(40)
@given(st.integers(5, 60), st.integers(1, 5), st.sampled_from([0.3, 1.0, 2.5]), st.booleans(), SEEDS)
def test_lightest_edges__are_those_of_all_points(n, min_samples, alpha, is_grid, seed):
    """A light edge may lead far beyond the nearest points, where these have large core distances."""
    points, asked = points_of(n, is_grid, seed), points_of(25, is_grid, seed + 1)
    random = np.random.default_rng(seed)
    core = random.random(n) * random.choice([0.1, 5.0])
    metric = epsjoin.get_metric("euclidean")
    nearest, weight = module._lightest_edges(asked, points, core, min_samples, metric, alpha, 1)
    for i, point in enumerate(asked):
        far = np.sqrt(((points - point) ** 2).cumsum(axis=1)[:, -1])
        own = np.sort(np.append(far, 0.0))[min_samples - 1]
        edges = np.maximum(np.maximum(far / alpha, core), own)
        best = min(range(n), key=lambda row, edges=edges, far=far: (edges[row], far[row], row))
        assert (nearest[i], weight[i]) == (best, edges[best])


def test_predict_hdbscan__gives_points_of_the_same_blobs_their_clusters():
    points, drawn = make_blobs(n_samples=900, centers=4, n_features=5, random_state=3)
    old, new = slice(0, 600), slice(600, None)
    clusters = epsjoin.hdbscan(points[old], 15)
    found = epsjoin.predict_hdbscan(points[new], points[old], clusters, 15, n_jobs=2)
    label_of = {
        each: np.bincount(clusters.labels[old][drawn[old] == each] + 1).argmax() - 1 for each in range(4)
    }
    right = found.labels == [label_of[each] for each in drawn[new]]
    assert sorted(label_of.values()) == [0, 1, 2, 3]
    assert (right | (found.labels == -1)).all(), "none in another one's"
    assert right.mean() > 0.9
    assert found.probability[right].min() > 0.0


def test_predict_hdbscan__is_nearer_to_certain_the_denser_it_is():
    points = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]]
    clusters = epsjoin.hdbscan(points, 3, min_samples=1)
    found = epsjoin.predict_hdbscan([[0.25], [0.5], [4.0]], points, clusters, 1)
    assert found.labels.tolist() == [0, 0, 1]
    assert found.probability.tolist() == [1.0, pytest.approx(0.1 / 0.3), pytest.approx(0.2 / 1.0)]


def test_predict_hdbscan__of_points_at_one_place():
    points = np.repeat([[0.0], [1.0], [9.0]], [8, 8, 1], axis=0)
    clusters = epsjoin.hdbscan(points, min_cluster_size=4)
    found = epsjoin.predict_hdbscan([[0.0], [0.4], [0.6], [5.0]], points, clusters, 4)
    assert found.labels.tolist() == [0, 0, 1, -1]
    assert found.probability.tolist() == [1.0, 1.0, 1.0, 0.0]


def test_predict_hdbscan__of_nothing_or_into_nothing_is_noise():
    clusters = epsjoin.hdbscan([[0.0], [1.0]], 2)
    assert epsjoin.predict_hdbscan([[0.5], [1.0]], [[0.0], [1.0]], clusters, 2).labels.tolist() == [-1, -1]
    assert epsjoin.predict_hdbscan(np.empty((0, 1)), [[0.0], [1.0]], clusters, 2).labels.tolist() == []
    nobody = np.empty((0, 1))
    assert epsjoin.predict_hdbscan([[0.5]], nobody, epsjoin.hdbscan(nobody, 5), 5).labels.tolist() == [-1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clusters": ([0, 0], [1.0, 1.0])}, "clusters must be what hdbscan returns, not tuple"),
        ({"points": [[0.0], [1.0], [2.0]]}, "clusters must be those of the points, 3, not of 2"),
        ({"new_points": [[0.0, 1.0]]}, "new_points must have as many columns as points, 1, not 2"),
        ({"min_samples": 0}, "min_samples must be a whole number, at least 1, not 0"),
        ({"min_samples": 3}, "min_samples must be a whole number of at most 2"),
        ({"alpha": -1.0}, "alpha must be a finite number above 0, not -1.0"),
        ({"metric": "cosine"}, "points: cosine needs vectors with a length"),
    ],
)
def test_predict_hdbscan__refuses(change, says):
    given_ = {
        "new_points": [[0.5]],
        "points": [[0.0], [1.0]],
        "clusters": epsjoin.hdbscan([[0.0], [1.0]], 2),
        "min_samples": 2,
    }
    with pytest.raises(ArgumentError, match=says):
        epsjoin.predict_hdbscan(**{**given_, **change})
