"""The transformers and outlier factors: scikit-learn's own checks, and scikit-learn's own results."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
import sklearn.neighbors
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from epsjoin.errors import ArgumentError
from epsjoin.sklearn import (
    DBSCAN,
    HDBSCAN,
    KNeighborsTransformer,
    LocalOutlierFactor,
    RadiusNeighborsTransformer,
)

OURS = (RadiusNeighborsTransformer, KNeighborsTransformer, LocalOutlierFactor)
CHECKED = [*(each() for each in OURS), LocalOutlierFactor(novelty=True), HDBSCAN()]
POINTS, OTHERS = np.random.default_rng(0).random((2, 200, 3))


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input", "ignore:n_neighbors")
@pytest.mark.parametrize("ours", CHECKED, ids=repr)
def test_estimator__passes_the_checks_of_scikit_learn(ours):
    check_estimator(ours)


@pytest.mark.parametrize("ours", OURS)
def test_estimator__has_the_parameters_of_scikit_learn(ours):
    assert ours().get_params() == getattr(sklearn.neighbors, ours.__name__)().get_params()


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize(
    "metric", [{}, {"p": 1}, {"p": 3}, {"metric": "chebyshev"}, {"metric": "cosine"}], ids=str
)
def test_transformers__make_the_graphs_of_scikit_learn(mode, metric):
    for ours, how in ((RadiusNeighborsTransformer, {"radius": 0.2}), (KNeighborsTransformer, {})):
        theirs = getattr(sklearn.neighbors, ours.__name__)(mode=mode, **how, **metric).fit(POINTS)
        expected = theirs.transform(OTHERS)
        found = ours(mode=mode, **how, **metric).fit(POINTS).transform(OTHERS)
        assert expected.nnz > 200
        assert found.indptr.tolist() == expected.indptr.tolist()
        if mode == "distance":
            assert found.indices.tolist() == expected.indices.tolist()  # by distance in both
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "chosen",
    [{"cluster_selection_method": "leaf"}, {"max_cluster_size": 20}, {"allow_single_cluster": True}],
    ids=str,
)
def test_hdbscan__means_the_same_by_every_parameter(chosen):
    assert HDBSCAN().get_params() | {"copy": "warn"} == sklearn.cluster.HDBSCAN().get_params()
    how = {"min_cluster_size": 6, "min_samples": 1, "metric": "minkowski", "metric_params": {"p": 3}}
    how |= {"store_centers": "both", "alpha": 1.5, "algorithm": "kd_tree", "copy": True, **chosen}
    ours, theirs = (each(**how).fit(POINTS) for each in (HDBSCAN, sklearn.cluster.HDBSCAN))
    assert theirs.labels_.max() >= 0
    of_theirs = [theirs.labels_[ours.labels_ == number][0] for number in range(ours.labels_.max() + 1)]
    assert ours.labels_.tolist() == [of_theirs.index(x) if x >= 0 else -1 for x in theirs.labels_]
    np.testing.assert_allclose(ours.probabilities_, theirs.probabilities_, rtol=1e-9)
    np.testing.assert_allclose(ours.centroids_, theirs.centroids_[of_theirs], rtol=1e-9)
    assert ours.medoids_.tolist() == theirs.medoids_[of_theirs].tolist()


def test_hdbscan__without_clusters_has_no_centers():
    found = HDBSCAN(3, store_centers="both").fit([[0.0, 1.0], [2.0, 3.0], [9.0, 9.0]])
    assert found.centroids_.shape == found.medoids_.shape == (0, 2)


def test_hdbscan__takes_an_eps_below_which_nothing_splits():
    points = [[0.0], [1.0], [4.0], [5.0], [20.0], [21.0]]
    for eps, labels in ((0.0, [0, 0, 1, 1, 2, 2]), (4.0, [0, 0, 0, 0, 1, 1])):
        assert HDBSCAN(2, 1, cluster_selection_epsilon=eps).fit_predict(points).tolist() == labels


def test_radius_transformer__feeds_a_pipeline_as_scikit_learn_does():
    steps = RadiusNeighborsTransformer(radius=0.2), sklearn.cluster.DBSCAN(eps=0.2, metric="precomputed")
    labels = make_pipeline(*steps).fit_predict(POINTS)
    assert labels.max() > 0
    ours = DBSCAN(eps=0.2).fit(POINTS)
    core = ours.core_sample_indices_
    assert labels[core].tolist() == ours.labels_[core].tolist()


@pytest.mark.filterwarnings("ignore:Duplicate values")  # of scikit-learn
@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_lof__is_that_of_scikit_learn_for_old_and_new_points(contamination):
    points = np.concatenate((POINTS, POINTS[:1].repeat(30, axis=0), [[3.0, 3.0, 3.0]]))  # some are equal
    for how in ({}, {"n_neighbors": 7, "metric": "manhattan"}):
        pair = [
            each(contamination=contamination, novelty=True, **how).fit(points)
            for each in (LocalOutlierFactor, sklearn.neighbors.LocalOutlierFactor)
        ]
        ours, theirs = (each.score_samples(OTHERS) for each in pair)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        np.testing.assert_allclose(*(each.negative_outlier_factor_ for each in pair), rtol=1e-6)
        np.testing.assert_allclose(*(each.offset_ for each in pair), rtol=1e-6)
        assert pair[0].predict(OTHERS).tolist() == pair[1].predict(OTHERS).tolist()
    found = LocalOutlierFactor(contamination=contamination).fit_predict(points)
    assert (
        found.tolist()
        == sklearn.neighbors.LocalOutlierFactor(contamination=contamination).fit_predict(points).tolist()
    )


def test_lof__takes_all_other_points_where_there_are_fewer_and_says_so():
    with pytest.warns(UserWarning, match=r"n_neighbors \(20\) is not below n_samples \(3\)"):
        assert LocalOutlierFactor().fit([[0.0], [1.0], [2.0]]).n_neighbors_ == 2


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (RadiusNeighborsTransformer(radius=0.0), r"radius must be a finite number above 0, not 0\.0$"),
        (RadiusNeighborsTransformer(radius=1e200), "radius = 1e\\+200 is too small or too large"),
        (RadiusNeighborsTransformer(mode="both"), "mode must be one of distance, connectivity"),
        (
            KNeighborsTransformer(n_neighbors=2),
            "n_neighbors must be at most 1, not 2: 2 points were fitted, and",
        ),
        (
            KNeighborsTransformer(n_neighbors=3, mode="connectivity"),
            "at most 2, not 3: 2 points were fitted$",
        ),
        (KNeighborsTransformer(metric="precomputed"), "precomputed distances and functions"),
        (LocalOutlierFactor(n_neighbors=1, contamination=0.6), "contamination must be 'auto', or above 0"),
        (HDBSCAN(store_centers="all"), "store_centers must be None, centroid, medoid or both, not 'all'"),
        (LocalOutlierFactor(algorithm="magic"), "algorithm must be one of"),
    ],
    ids=repr,
)
def test_estimators__refuse_parameters(ours, says):
    with pytest.raises(ArgumentError, match=says):
        (ours.fit_predict if hasattr(ours, "fit_predict") else ours.fit_transform)([[0.0], [1.0]])


@pytest.mark.parametrize(
    "ours",
    [LocalOutlierFactor(n_neighbors=1), KNeighborsTransformer(), RadiusNeighborsTransformer()],
    ids=repr,
)
def test_estimators__that_keep_their_points_round_none(ours):
    with pytest.raises(ArgumentError, match="X must be integers that float64 can hold; row 1"):
        ours.fit(np.array([[2**53], [2**53 + 1], [5]]))


@pytest.mark.parametrize("d", [3, 40])
def test_transformers__of_the_cosine_have_each_point_first_at_0(d):
    """As scikit-learn has it, where a point is transformed that was fitted."""
    points = np.random.default_rng(d).normal(size=(300, d))
    for of_ours, options in ((KNeighborsTransformer, {"n_neighbors": 5}), (RadiusNeighborsTransformer, {})):
        of_theirs = getattr(sklearn.neighbors, of_ours.__name__)
        ours, theirs = (
            each(metric="cosine", **options).fit_transform(points) for each in (of_ours, of_theirs)
        )
        assert ours.diagonal().tolist() == [0.0] * 300
        assert ours.indices[ours.indptr[:-1]].tolist() == list(range(300))
        np.testing.assert_array_equal(ours.indptr, theirs.indptr)
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_allclose(ours.data, theirs.data, atol=1e-15)
