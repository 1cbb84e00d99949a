"""The transformers and outlier factors: scikit-learn's own checks, and scikit-learn's own results."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
import sklearn.neighbors
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import epsjoin
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
    "metric",
    [{}, {"p": 1}, {"p": 3}, {"metric": "chebyshev"}, {"metric": "cosine"}]
    + [{"p": p, "metric_params": {"w": np.array([1.5, 0.25, 2.0])}} for p in (1, 2, 3)],
    ids=str,
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
    again = found.set_params(store_centers=None).fit(POINTS)
    assert not hasattr(again, "centroids_")
    assert not hasattr(again, "medoids_")


def test_hdbscan__takes_an_eps_below_which_nothing_splits():
    points = [[0.0], [1.0], [4.0], [5.0], [20.0], [21.0]]
    for eps, labels in ((0.0, [0, 0, 1, 1, 2, 2]), (4.0, [0, 0, 0, 0, 1, 1])):
        assert HDBSCAN(2, 1, cluster_selection_epsilon=eps).fit_predict(points).tolist() == labels


@pytest.mark.parametrize("how", [{}, {"min_samples": 3, "alpha": 0.5, "metric": "manhattan"}], ids=str)
def test_hdbscan__predicts_as_the_function_does_by_its_own_parameters(how):
    points, asked = POINTS[:, :2].copy(), POINTS[:40, :2] + 0.01
    points[3], asked[:2] = np.nan, [[np.inf, 1.0], [np.nan, 1.0]]
    estimator = HDBSCAN(**how, n_jobs=2).fit(points)
    estimator.set_params(min_samples=7, alpha=2.0, metric="chebyshev")  # it stays as it was fitted
    found, kept = estimator.predict(asked), np.delete(points, 3, axis=0)
    clusters = epsjoin.hdbscan(kept, **how)
    given_ = {"min_samples": 5, **how}
    expected = epsjoin.predict_hdbscan(asked[2:], kept, clusters, **given_)
    assert found.tolist() == [-2, -3, *expected.labels.tolist()]
    assert len(set(found.tolist())) > 4
    with pytest.raises(NotFittedError):
        HDBSCAN().predict(asked)


@pytest.mark.parametrize("made", [np.inf, -np.inf, np.nan])
def test_hdbscan__labels_rows_that_are_not_finite_as_scikit_learn_does(made):
    points, how = POINTS[:, :2].copy(), {"min_samples": 1, "copy": True}
    points[0] = made, 1.0
    points[5] = made, made
    points[7] = np.nan, np.inf
    for dtype in (np.float64, np.float32):
        ours, theirs = (each(**how).fit(points.astype(dtype)) for each in (HDBSCAN, sklearn.cluster.HDBSCAN))
        for labels in (ours.labels_, ours.dbscan_clustering(0.05)):
            assert labels[[0, 5, 7]].tolist() == theirs.labels_[[0, 5, 7]].tolist()
            assert set(labels.tolist()) >= {-1, 0, 1}
        np.testing.assert_array_equal(ours.probabilities_[[0, 5, 7]], theirs.probabilities_[[0, 5, 7]])
        finite = np.isfinite(points).all(axis=1)
        clean = HDBSCAN(**how).fit(points[finite].astype(dtype))
        assert ours.labels_[finite].tolist() == clean.labels_.tolist()
        assert ours.probabilities_[finite].tolist() == clean.probabilities_.tolist()
        assert ours.outlier_scores_[finite].tolist() == clean.outlier_scores_.tolist()
        scores = [1.0, np.nan if np.isnan(made) else 1.0, np.nan]
        np.testing.assert_array_equal(ours.outlier_scores_[[0, 5, 7]], [scores[1], *scores[1:]])
    assert HDBSCAN(store_centers="both").fit([[made], [made]]).centroids_.shape == (0, 1)


@pytest.mark.parametrize(
    ("min_samples", "cut", "n_clusters"),
    [(1, 0.05, 10), (1, 0.1, 40), (1, 0.2, 2), (1, 9.0, 1), (4, 0.05, 0), (4, 0.1, 2), (4, 0.2, 1)],
)
def test_hdbscan__cut_at_one_distance_has_the_clusters_of_scikit_learn(min_samples, cut, n_clusters):
    pair = [
        each(min_samples=min_samples, copy=True).fit(POINTS) for each in (HDBSCAN, sklearn.cluster.HDBSCAN)
    ]
    for how in ({}, {"min_cluster_size": 2}):
        ours, theirs = (each.dbscan_clustering(cut, **how).tolist() for each in pair)
        numbers = {-1: -1}
        assert ours == [numbers.setdefault(each, len(numbers) - 1) for each in theirs]
    assert max(ours) == n_clusters - 1


def test_radius_transformer__feeds_a_pipeline_as_scikit_learn_does():
    steps = RadiusNeighborsTransformer(radius=0.2), sklearn.cluster.DBSCAN(eps=0.2, metric="precomputed")
    labels = make_pipeline(*steps).fit_predict(POINTS)
    assert labels.max() > 0
    ours = DBSCAN(eps=0.2).fit(POINTS)
    core = ours.core_sample_indices_
    assert labels[core].tolist() == ours.labels_[core].tolist()


@pytest.mark.parametrize("asked", [None, OTHERS])
@pytest.mark.parametrize("ours", [KNeighborsTransformer, LocalOutlierFactor])
def test_kneighbors__are_those_of_scikit_learn(ours, asked):
    theirs = getattr(sklearn.neighbors, ours.__name__)
    pair = [each(n_neighbors=4, p=1).fit(POINTS) for each in (ours, theirs)]
    for how in ({}, {"n_neighbors": 7}):
        (distance, neighbour), (distances, neighbours) = (each.kneighbors(asked, **how) for each in pair)
        assert neighbour.tolist() == neighbours.tolist()
        np.testing.assert_allclose(distance, distances, rtol=1e-12)
        assert pair[0].kneighbors(asked, **how, return_distance=False).tolist() == neighbour.tolist()
        for mode in ({}, {"mode": "distance"}):
            graph, graphs = (each.kneighbors_graph(asked, **how, **mode) for each in pair)
            np.testing.assert_allclose(graph.toarray(), graphs.toarray(), rtol=1e-12)


@pytest.mark.parametrize("asked", [None, OTHERS])
def test_radius_neighbors__are_those_of_scikit_learn(asked):
    both = RadiusNeighborsTransformer, sklearn.neighbors.RadiusNeighborsTransformer
    pair = [each(radius=0.1).fit(POINTS) for each in both]
    for how in ({}, {"radius": 0.2}):
        ours, theirs = (each.radius_neighbors(asked, **how, sort_results=True) for each in pair)
        assert [each.tolist() for each in ours[1]] == [each.tolist() for each in theirs[1]]
        assert min(len(each) for each in ours[1]) == 0 or how
        np.testing.assert_allclose(np.concatenate(ours[0]), np.concatenate(theirs[0]), rtol=1e-12)
        alone = pair[0].radius_neighbors(asked, **how, return_distance=False)
        assert [each.tolist() for each in alone] == [each.tolist() for each in ours[1]]
        for mode in ({}, {"mode": "distance"}):
            graph, graphs = (each.radius_neighbors_graph(asked, **how, **mode) for each in pair)
            np.testing.assert_allclose(graph.toarray(), graphs.toarray(), rtol=1e-12)


def test_kneighbors__of_fitted_points_count_all_others():
    fitted = KNeighborsTransformer(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    assert fitted.kneighbors(return_distance=False).tolist() == [[1, 2], [0, 2], [1, 0]]
    with pytest.raises(ArgumentError, match="at most 2, not 3: 3 points were fitted, and none is its own"):
        fitted.kneighbors(n_neighbors=3)
    with pytest.raises(ArgumentError, match="at most 3, not 4: 3 points were fitted$"):
        fitted.kneighbors([[0.0]], n_neighbors=4)
    for ask in (fitted.kneighbors_graph, RadiusNeighborsTransformer().fit([[0.0]]).radius_neighbors_graph):
        with pytest.raises(ArgumentError, match="mode must be"):
            ask(mode="ones")
    with pytest.warns(UserWarning, match="n_neighbors"):
        few = LocalOutlierFactor().fit([[0.0], [1.0], [3.0]])
    assert few.kneighbors(return_distance=False).shape == (3, 2), "as many as were used"


def test_fitted_estimators__stay_as_they_are_when_their_points_change():
    points = POINTS.copy()
    fitted = [each().fit(points) for each in OURS]
    before = [each.kneighbors_graph(OTHERS).toarray() for each in fitted[1:]]
    within = fitted[0].radius_neighbors_graph(OTHERS).toarray()
    points[:] = 0.0
    assert np.array_equal(fitted[0].radius_neighbors_graph(OTHERS).toarray(), within)
    for each, graph in zip(fitted[1:], before, strict=True):
        assert np.array_equal(each.kneighbors_graph(OTHERS).toarray(), graph)


def test_radius_neighbors__at_one_distance_come_by_row():
    fitted = RadiusNeighborsTransformer(radius=1.0).fit([[1.0], [-1.0], [0.5], [1.0]])
    assert fitted.radius_neighbors([[0.0]], return_distance=False)[0].tolist() == [2, 0, 1, 3]


def test_fitted_estimators__stay_as_they_are_when_parameters_change():
    for fitted, ask in (
        (DBSCAN(eps=0.2).fit(POINTS), lambda each: each.predict(OTHERS)),
        (LocalOutlierFactor(novelty=True).fit(POINTS), lambda each: each.score_samples(OTHERS)),
        (KNeighborsTransformer().fit(POINTS), lambda each: each.transform(OTHERS).toarray()),
    ):
        before = ask(fitted).tolist()
        others = {"eps": 0.05} if isinstance(fitted, DBSCAN) else {}
        assert ask(fitted.set_params(metric="chebyshev", **others)).tolist() == before


def test_fitted_estimators__stay_as_they_are_when_weights_change():
    weights = np.array([9.0, 0.25, 1.0])
    how = {"metric": "minkowski", "p": 2, "metric_params": {"w": weights}}
    ours = (DBSCAN(eps=0.2, **how), LocalOutlierFactor(novelty=True, **how), KNeighborsTransformer(**how))
    asked = ("predict", "score_samples", "kneighbors")
    before = [
        np.array(getattr(each.fit(POINTS), ask)(OTHERS)).tolist()
        for each, ask in zip(ours, asked, strict=True)
    ]
    weights[:] = 1.0
    for estimator, ask, expected in zip(ours, asked, before, strict=True):
        assert np.array(getattr(estimator, ask)(OTHERS)).tolist() == expected
        assert np.array(getattr(estimator.fit(POINTS), ask)(OTHERS)).tolist() != expected


@pytest.mark.filterwarnings("ignore:Duplicate values")  # of scikit-learn
@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_lof__is_that_of_scikit_learn_for_old_and_new_points(contamination):
    points = np.concatenate((POINTS, POINTS[:1].repeat(30, axis=0), [[3.0, 3.0, 3.0]]))  # some are equal
    weights = {"metric_params": {"w": np.array([9.0, 0.25, 1.0])}}
    for how in ({}, {"n_neighbors": 7, "metric": "manhattan"}, weights):
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
        (HDBSCAN(metric="minkowski", metric_params={"w": [1]}), "metric_params may hold .* not w for"),
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
