"""HDBSCAN: the spanning tree against Prim's algorithm, clusters against scikit-learn's."""

from __future__ import annotations

import signal
import threading
from unittest import mock

import numpy as np
import pytest
import sklearn.cluster
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

import epsjoin
from epsjoin.errors import ArgumentError
from epsjoin.local.cluster import spanning
from epsjoin.local.cluster.spanning import core_distances, mutual_reachability_tree
from oracles import examples
from oracles import hdbscan as twin
from oracles.spanning_tree import prim

METRICS = [("euclidean", 0.0), ("manhattan", 0.0), ("chebyshev", 0.0), ("minkowski", 1.5), ("cosine", 0.0)]
METRICS += [("minkowski", 3.0), ("haversine", 0.0)]


def renumbered(labels):
    """Clusters by their smallest row."""
    numbers = {}
    return [-1 if label == -1 else numbers.setdefault(label, len(numbers)) for label in labels.tolist()]


@examples(60)
@given(
    st.sampled_from(METRICS),
    st.integers(1, 70),
    st.booleans(),
    st.integers(1, 5),
    st.sampled_from([1.0, 0.6, 1.7]),
    st.sampled_from(
        [(0, 1.0), (0, 0.01), (512, 1.0)]
    ),  # by boxes, by boxes until they are given up, by pairs
    st.integers(0, 10**6),
)
def test_tree__has_the_weights_of_prims(metric, n, has_ties, min_samples, alpha, way, seed):
    (name, p), random = metric, np.random.default_rng(seed)
    points = random.integers(1, 7, (n, 2)).astype(float) if has_ties else random.random((n, 2)) + 0.1
    min_samples = min(min_samples, n)
    chosen = epsjoin.get_metric(name, p or None)
    of = points, core_distances(points, min_samples, chosen), chosen
    with mock.patch.multiple(spanning, _FEW_ROWS=way[0], _MAX_COMPARED=way[1]):
        tree = mutual_reachability_tree(*of, alpha=alpha)
    with mock.patch.multiple(spanning, _FEW_ROWS=way[0]), mock.patch.object(spanning, "_AT_ONCE", 100):
        same = mutual_reachability_tree(*of, alpha=alpha)
    assert [column.tolist() for column in tree] == [column.tolist() for column in same], "whatever the way"
    assert tree.weight.tolist() == prim(points.tolist(), min_samples, name, p, alpha)
    joined = {row: {row} for row in range(n)}
    for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True):
        assert left < right
        assert joined[left] is not joined[right]  # no circle
        joined[left] |= joined[right]
        for row in joined[right]:
            joined[row] = joined[left]


@pytest.mark.parametrize("alpha", [7.0, 1e150])
def test_tree__is_the_same_either_way_where_distances_have_few_digits(alpha):
    random, chosen = np.random.default_rng(0), epsjoin.get_metric("chebyshev")
    of = random.integers(0, 8, (90, 2)) * 5e-324, np.zeros(90), chosen
    trees = []
    for most in (0, 512):
        with mock.patch.multiple(spanning, _FEW_ROWS=most, _MAX_COMPARED=1.0):
            trees.append([column.tolist() for column in mutual_reachability_tree(*of, alpha=alpha)])
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("d", "is_given_up"), [(2, False), (30, True)])
def test_tree__by_boxes_is_given_up_where_these_tell_little_apart(monkeypatch, d, is_given_up):
    points, dense = np.random.default_rng(0).random((2100, d)), spanning.span_by_pairs
    called = []
    monkeypatch.setattr(spanning, "span_by_pairs", lambda *of: called.append(of) or dense(*of))
    core = core_distances(points, 5, epsjoin.get_metric("euclidean"))
    mutual_reachability_tree(points, core, epsjoin.get_metric("euclidean"))
    assert bool(called) == is_given_up


@pytest.fixture
def interruptible():
    """As in a terminal; what a shell starts in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("few_rows", [0, 10**6])
def test_tree__ends_by_an_interrupt_while_a_kernel_searches(monkeypatch, few_rows):
    """By boxes, and by all pairs."""
    points, euclidean = np.random.default_rng(0).random((40_000, 8)), epsjoin.get_metric("euclidean")
    monkeypatch.setattr(spanning, "_FEW_ROWS", few_rows)
    core = np.zeros(len(points))
    mutual_reachability_tree(points[:600], core[:600], euclidean)  # kernels are compiled
    threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        mutual_reachability_tree(points, core, euclidean)


@examples(60)
@given(st.integers(1, 60), st.integers(1, 5), st.sampled_from([1.0, 2.0, 2.5]), st.integers(0, 10**6))
def test_labels_at__connect_the_core_points_of_dbscan(n, min_samples, eps, seed):
    """On a grid, where many distances are eps."""
    points = np.random.default_rng(seed).integers(0, 12, (n, 2)).astype(float)
    found = epsjoin.dbscan(points, eps, min(min_samples, n))
    core = np.flatnonzero(found.is_core)
    expected = np.full(n, -1)
    expected[core] = found.labels[core]
    sizes = {each: (expected == each).sum() for each in set(expected.tolist()) - {-1}}
    for least in (2, 4):
        large = [each if each >= 0 and sizes[each] >= least else -1 for each in expected.tolist()]
        labels = epsjoin.hdbscan(points, 2, min(min_samples, n)).labels_at(eps, least)
        assert labels.tolist() == renumbered(np.array(large))


def test_labels_at__refuses_numbers_out_of_their_range():
    found = epsjoin.hdbscan([[0.0], [1.0]], 2)
    for wrong, says in (((0.0,), "eps must be"), ((np.inf,), "eps must be"), ((1.0, 1), "at least 2")):
        with pytest.raises(ArgumentError, match=says):
            found.labels_at(*wrong)


@pytest.mark.parametrize("seed", [10, 11, 12])
@pytest.mark.parametrize(
    "how",
    [{}, {"min_cluster_size": 12}, {"metric": "manhattan"}, {"alpha": 0.5}],
    ids=str,
)
def test_hdbscan__finds_the_clusters_of_scikit_learn_where_no_edges_tie(how, seed):
    points, _ = make_blobs(n_samples=200, random_state=seed)
    points = np.concatenate((StandardScaler().fit_transform(points), [[4.0, 4.0], [-4.0, 3.0]]))
    theirs = sklearn.cluster.HDBSCAN(**how, min_samples=1, copy=True).fit(points)
    ours = epsjoin.hdbscan(points, **how, min_samples=1)
    assert ours.labels.max() >= 1
    assert ours.labels.tolist() == renumbered(theirs.labels_)


@pytest.mark.parametrize(
    "how", [{}, {"alpha": 0.5}, {"metric": "manhattan"}, {"metric": "chebyshev"}, {"min_samples": 8}], ids=str
)
def test_hdbscan__finds_what_scikit_learns_own_tests_ask_for(how):
    """Three clusters, which are nearly those that the points were drawn from."""
    points, drawn = make_blobs(n_samples=200, random_state=10)
    points, drawn = shuffle(points, drawn, random_state=7)
    labels = epsjoin.hdbscan(StandardScaler().fit_transform(points), **how).labels
    assert labels.max() == 2
    assert sklearn.metrics.fowlkes_mallows_score(labels, drawn) > 0.99


@examples(100)
@given(
    st.integers(2, 60),
    st.integers(2, 6),
    st.integers(1, 6),
    st.sampled_from([None, 8, 25]),
    st.sampled_from(["eom", "leaf"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_hdbscan__removes_edges_of_one_weight_at_once(
    n, least, min_samples, most, method, allow_single, seed
):
    """A core distance is the weight of several edges."""
    points, min_samples = blobs(n, seed), min(min_samples, n)
    root = twin.hierarchy(set(range(n)), twin.edges_of(points.tolist(), min_samples), least)
    expected = twin.labels(root, twin.taken(root, 0.0, most, method, allow_single), 0.0)
    how = {"max_cluster_size": most, "allow_single_cluster": allow_single, "cluster_selection_method": method}
    found = epsjoin.hdbscan(points, least, min_samples, **how)
    assert found.labels.tolist() == renumbered(np.array(expected))
    scores = twin.outlier_scores(root)
    assert found.outlier_score == pytest.approx([scores[row] for row in range(n)], abs=1e-12)


@examples(100)
@given(
    st.integers(1, 200),
    st.integers(2, 9),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["eom", "leaf"]),
    st.integers(0, 10**6),
)
def test_hdbscan__does_not_depend_on_the_order_of_rows(n, least, min_samples, is_grid, method, seed):
    random = np.random.default_rng(seed)
    points = random.integers(0, 9, (n, 2)).astype(float) if is_grid else blobs(n, seed)
    order = random.permutation(n)
    how = {"min_samples": min(min_samples, n), "cluster_selection_method": method}
    found, other = (epsjoin.hdbscan(rows, least, **how) for rows in (points, points[order]))
    assert renumbered(found.labels[order]) == other.labels.tolist()
    assert found.probability[order].tolist() == other.probability.tolist()


def blobs(n, seed):
    """Points of which no distances tie, so that there is only one tree where core distances are 0."""
    random = np.random.default_rng(seed)
    return random.random((n, 2)) + random.integers(0, 3, (n, 1)) * random.choice([0.3, 1.5])


@examples(100)
@given(
    st.integers(2, 150),
    st.integers(2, 9),
    st.sampled_from([None, 1, 6, 15, 60]),
    st.sampled_from(["eom", "leaf"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_hdbscan__takes_the_clusters_of_scikit_learn_however_they_are_chosen(
    n, least, most, method, allow_single, seed
):
    points = blobs(n, seed)
    how = {"min_cluster_size": least, "min_samples": 1, "max_cluster_size": most}
    how |= {"cluster_selection_method": method, "allow_single_cluster": allow_single}
    theirs = sklearn.cluster.HDBSCAN(**how, copy=True).fit(points)
    ours = epsjoin.hdbscan(points, **how)
    assert ours.labels.tolist() == renumbered(theirs.labels_)
    np.testing.assert_allclose(ours.probability, theirs.probabilities_, rtol=1e-9)


@examples(100)
@given(
    st.integers(2, 60),
    st.integers(2, 6),
    st.sampled_from([0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0]),
    st.sampled_from([None, 8, 25]),
    st.sampled_from(["eom", "leaf"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_hdbscan__takes_no_cluster_that_is_split_off_below_an_eps(
    n, least, eps, most, method, allow_single, seed
):
    """Against the definition: with an eps, scikit-learn 1.9 fails by a TypeError under NumPy 2.4."""
    points = blobs(n, seed)
    root = twin.hierarchy(set(range(n)), twin.edges_of(points.tolist()), least)
    expected = twin.labels(root, twin.taken(root, eps, most, method, allow_single), eps)
    how = {"cluster_selection_epsilon": eps, "max_cluster_size": most, "allow_single_cluster": allow_single}
    found = epsjoin.hdbscan(points, least, 1, cluster_selection_method=method, **how)
    assert found.labels.tolist() == renumbered(np.array(expected))


@pytest.mark.parametrize("gap", [7.0, 93.0, 49.0])  # 1 / (1 / gap) is gap, less, and more
def test_hdbscan__compares_the_very_distance_at_which_a_cluster_is_split_off_with_an_eps(gap):
    points = np.array([0, 1, 2, 2 + gap, 3 + gap, 4 + gap, 5000, 5001, 5002])[:, None]
    n_clusters = [
        epsjoin.hdbscan(points, 3, 1, cluster_selection_epsilon=eps).labels.max() + 1
        for eps in (np.nextafter(gap, 0.0), gap, np.nextafter(gap, np.inf))
    ]
    assert n_clusters == [3, 3, 2]


@pytest.mark.parametrize("method", ["eom", "leaf"])
def test_hdbscan__takes_no_cluster_beside_a_part_of_it_that_was_split_off_at_exactly_an_eps(method):
    # from the left: one that falls out, then two groups 8 apart, of which the second has two parts 4 apart
    points = np.array([-9, 0, 1, 2, 10, 11, 12, 16, 17, 18, 500, 501, 502])[:, None]
    how = {"cluster_selection_method": method, "cluster_selection_epsilon": 8.0}
    found = epsjoin.hdbscan(points, 3, 1, **how)
    assert found.labels.tolist() == [-1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    assert found.lambdas.birth.tolist() == [1 / 8, 1 / 8, 1 / 482]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("scale", "alpha"), [(4e-309, 1.0), (1e307, 0.1)])
def test_hdbscan__takes_points_whose_densities_are_at_the_ends_of_float64(scale, alpha):
    points = np.array([0.0, 0.4, 0.8, 4.4, 4.8, 5.2, 15.0])[:, None] * scale
    found = epsjoin.hdbscan(points, 3, 1, "chebyshev", alpha=alpha, allow_single_cluster=True)
    assert found.labels[-1] == -1
    assert found.labels[:-1].min() == 0
    asked = points + 0.1 * scale
    predicted = epsjoin.predict_hdbscan(asked, points, found, 1, "chebyshev", alpha=alpha)
    np.testing.assert_array_equal(predicted.labels, found.labels)


def test_hdbscan__keeps_points_at_one_place_together():
    points = np.repeat([[0.0], [1.0], [9.0]], [8, 8, 1], axis=0)
    found = epsjoin.hdbscan(points, min_cluster_size=4)
    assert found.labels.tolist() == [0] * 8 + [1] * 8 + [-1]
    assert found.probability.tolist() == [1.0] * 16 + [0.0]
    assert found.outlier_score.tolist() == [0.0] * 16 + [1.0]


def test_hdbscan__scores_what_lies_apart_by_what_it_lies_near():
    dense, loose = np.arange(10) / 100, 50.0 + np.arange(10)
    found = epsjoin.hdbscan(np.concatenate((dense, loose, [0.5, 58.5]))[:, None], 3, 1)
    # half a unit from the dense ones; the other one is among the loose
    assert np.argmax(found.outlier_score) == 20
    assert found.outlier_score[20] == pytest.approx(1 - 0.01 / 0.41)
    assert found.outlier_score[21] == 0.0


def test_hdbscan__of_few_points_is_noise():
    assert epsjoin.hdbscan(np.empty((0, 2)), 2).labels.tolist() == []
    assert epsjoin.hdbscan([[1.0]], 2, 1).outlier_score.tolist() == [0.0]
    assert epsjoin.hdbscan([[1.0], [2.0], [4.0]], 2, 1).outlier_score.tolist() == [0.0, 0.0, 0.5]
    assert epsjoin.hdbscan([[1.0]], 2, 1).labels.tolist() == [-1]
    assert epsjoin.hdbscan([[1.0], [2.0]], 2).labels.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"min_cluster_size": 1}, "min_cluster_size must be a whole number, at least 2, not 1"),
        (
            {"cluster_selection_epsilon": -1.0},
            "cluster_selection_epsilon must be a finite number, at least 0",
        ),
        (
            {"cluster_selection_epsilon": None},
            "cluster_selection_epsilon must be a finite number, at least 0, not None",
        ),
        ({"max_cluster_size": 0}, "max_cluster_size must be a whole number, at least 1, not 0"),
        ({"alpha": 0.0}, "alpha must be a finite number above 0, not 0.0"),
        ({"alpha": "1"}, "alpha must be a finite number above 0, not '1'"),
        ({"cluster_selection_method": "all"}, "cluster_selection_method must be one of eom, leaf, not 'all'"),
        (
            {"allow_single_cluster": np.array([True, False])},
            r"allow_single_cluster must be True or False, not array\(",
        ),
        ({"allow_single_cluster": "no"}, "allow_single_cluster must be True or False, not 'no'"),
        ({"min_samples": 0}, "min_samples must be a whole number, at least 1, not 0"),
        ({"min_cluster_size": 4}, "min_cluster_size, without min_samples, must be at most .* 3, not 4"),
        ({"min_samples": 4}, "min_samples must be at most the number of points, 3, not 4"),
    ],
)
def test_hdbscan__refuses(how, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.hdbscan([[0.0], [1.0], [2.0]], **how)
