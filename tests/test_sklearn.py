"""The estimator: scikit-learn's own checks, and scikit-learn's own labels."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse
import sklearn.cluster
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import epsjoin
import epsjoin.sklearn
from epsjoin.errors import ArgumentError
from epsjoin.sklearn import DBSCAN, parameters
from oracles import examples

SEEDS = st.integers(0, 10**6)


def assert_like_scikit_learn(ours, theirs):
    """Core points, their labels and noise are the same; border points have a label in both."""
    assert ours.core_sample_indices_.tolist() == theirs.core_sample_indices_.tolist()
    core = ours.core_sample_indices_
    assert ours.labels_[core].tolist() == theirs.labels_[core].tolist()
    assert ((ours.labels_ == -1) == (theirs.labels_ == -1)).all()
    assert ours.labels_.dtype == theirs.labels_.dtype
    assert ours.core_sample_indices_.dtype == theirs.core_sample_indices_.dtype
    if core.size:  # without any, scikit-learn's empty components are float64 whatever X is
        assert ours.components_.dtype == theirs.components_.dtype
    assert ours.components_.tolist() == theirs.components_.tolist()
    assert ours.n_features_in_ == theirs.n_features_in_


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_dbscan__passes_the_checks_of_scikit_learn():
    check_estimator(DBSCAN())


def test_predict__says_of_core_points_what_they_are_and_nothing_without_clusters():
    points = np.random.default_rng(8).random((300, 2))
    fitted = DBSCAN(eps=0.05, min_samples=5).fit(points)
    core = fitted.core_sample_indices_
    assert 0 < len(core) < 300
    assert fitted.predict(points[core]).tolist() == fitted.labels_[core].tolist()
    assert fitted.predict([[9.0, 9.0]]).tolist() == [-1]
    assert DBSCAN(eps=0.1).fit([[0.0], [1.0]]).predict([[0.0]]).tolist() == [-1]


def test_dbscan__has_the_parameters_of_scikit_learn():
    assert DBSCAN().get_params() == sklearn.cluster.DBSCAN().get_params()
    changed = DBSCAN(eps=2.0, min_samples=3, metric="l1", algorithm="brute", leaf_size=7, p=3, n_jobs=2)
    assert clone(changed).get_params() == changed.get_params()
    assert repr(DBSCAN(eps=2.0)) == "DBSCAN(eps=2.0)"


@examples(60)
@given(
    st.sampled_from(["euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev"]),
    st.integers(1, 60),
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([2.0, 2.5]),  # ties at eps; a step of (1, 2), which tells the metrics apart
    st.sampled_from([np.float64, np.float32, np.int64]),
    SEEDS,
)
def test_dbscan__labels_are_those_of_scikit_learn(metric, n, min_samples, is_weighted, eps, dtype, seed):
    random = np.random.default_rng(seed)
    points = random.integers(0, max(2, int(2 * n**0.5)), (n, 2)).astype(dtype)
    weight = random.integers(1, 9, n) / 4 - 0.5 if is_weighted else None
    if is_weighted and not weight.any():
        weight[0] = 1.0
    parameters = {"eps": eps, "min_samples": min_samples, "metric": metric}
    ours = DBSCAN(**parameters).fit(points, sample_weight=weight)
    theirs = sklearn.cluster.DBSCAN(**parameters).fit(points, sample_weight=weight)
    assert_like_scikit_learn(ours, theirs)
    assert DBSCAN(**parameters).fit_predict(points, None, weight).tolist() == ours.labels_.tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"eps": 0.2, "metric": "minkowski", "p": 2},
        {"eps": 0.2, "metric": "minkowski", "p": 1},
        {"eps": 0.2, "metric": "minkowski", "p": 1.5},
        {"eps": 0.2, "metric": "minkowski", "metric_params": {"p": 3}},
        {"eps": 0.2, "metric": "euclidean", "p": 1},
        {"eps": 0.2, "metric": "minkowski", "p": 2, "metric_params": {"w": np.array([4.0, 0.5])}},
        {"eps": 0.2, "metric": "minkowski", "p": 1, "metric_params": {"w": np.array([9.0, 0.0])}},
        {"eps": 0.2, "metric": "minkowski", "p": 3, "metric_params": {"w": np.array([4.0, 0.5])}},
        {"eps": 1e-4, "metric": "cosine", "algorithm": "brute"},
        {"eps": 0.2, "algorithm": "kd_tree", "leaf_size": 5, "n_jobs": 2},
        {"eps": 0.1, "metric": "haversine", "algorithm": "ball_tree"},
    ],
    ids=str,
)
def test_dbscan__means_the_same_by_every_parameter(parameters):
    points = np.random.default_rng(6).random((300, 2)) * 1.5
    ours = DBSCAN(min_samples=7, **parameters).fit(points)
    theirs = sklearn.cluster.DBSCAN(min_samples=7, **parameters).fit(points)
    assert 0 < len(ours.core_sample_indices_) < 300
    assert_like_scikit_learn(ours, theirs)


def test_predict__is_by_the_weights_that_were_fitted():
    points, others = np.random.default_rng(9).random((2, 400, 2))
    weights = np.array([4.0, 0.25])
    how = {"metric": "minkowski", "p": 2, "metric_params": {"w": weights}}
    found = DBSCAN(eps=0.05, min_samples=4, **how).fit(points).predict(others)
    clusters = epsjoin.dbscan(points, 0.05, 4, weights=weights)
    expected = epsjoin.predict_clusters(others, points, clusters, 0.05, weights=weights)
    assert found.tolist() == expected.tolist()
    assert found.tolist() != epsjoin.predict_clusters(others, points, clusters, 0.05).tolist()


def test_minkowski__without_p_is_euclidean_and_with_an_infinite_one_chebyshev():
    points = np.random.default_rng(7).integers(0, 9, (60, 2))
    for p, name in ((None, "euclidean"), (np.inf, "chebyshev")):
        ours = DBSCAN(eps=1.3, metric="minkowski", p=p).fit(points)
        assert ours.labels_.tolist() == DBSCAN(eps=1.3, metric=name).fit(points).labels_.tolist()


def test_haversine__is_in_radians():
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "get_metric", lambda name: seen.setdefault("name", name))
        parameters.metric_of("haversine", None, None)
    assert seen["name"] == "haversine_radians"


def test_border__goes_to_its_nearest_core_point():
    points = [[-1.0], [-2.0], [0.0], [5.1], [10.0], [11.0], [12.0]]
    ours, theirs = (
        each(eps=5.5, min_samples=4).fit_predict(points) for each in (DBSCAN, sklearn.cluster.DBSCAN)
    )
    assert ours.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert theirs.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_dbscan__without_core_points_has_no_components():
    found = DBSCAN(eps=0.1).fit([[0.0, 1.0], [5.0, 2.0]])
    assert found.components_.shape == (0, 2)
    assert found.labels_.tolist() == [-1, -1]


def test_dbscan__takes_one_weight_for_all():
    points = [[0.0], [0.5], [9.0]]
    assert DBSCAN(eps=1.0, min_samples=4).fit_predict(points, sample_weight=2).tolist() == [0, 0, -1]


def test_n_jobs__are_those_of_joblib(monkeypatch):
    seen = []
    whole, module = epsjoin.dbscan, sys.modules["epsjoin.sklearn.dbscan"]
    monkeypatch.setattr(
        module, "dbscan", lambda *given, n_jobs, **more: seen.append(n_jobs) or whole(*given, **more)
    )
    for n_jobs in (None, 1, 3, -1):
        DBSCAN(n_jobs=n_jobs).fit([[0.0], [1.0]])
    with joblib.parallel_config(n_jobs=2):
        DBSCAN().fit([[0.0], [1.0]])
    assert seen == [1, 1, 3, joblib.cpu_count(), 2]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (
            {"metric": "precomputed"},
            "not 'precomputed'; precomputed distances and functions are not supported",
        ),
        ({"metric": max}, "functions are not supported"),
        ({"metric": "hamming"}, "metric must be one of euclidean, l2, "),
        ({"metric": "minkowski", "p": 0.5}, "minkowski needs a finite p of at least 1, not 0.5"),
        ({"metric": "minkowski", "metric_params": {"w": [1, 2]}}, r"weights must be one per dimension \(1\)"),
        ({"metric": "minkowski", "metric_params": {"w": [-1]}}, "weights must be .* at least 0"),
        (
            {"metric": "minkowski", "metric_params": {"V": [1]}},
            "metric_params may hold p and w, .* not V for",
        ),
        (
            {"metric": "minkowski", "p": np.inf, "metric_params": {"w": [1]}},
            "p and w, for minkowski of a finite p, not w for 'chebyshev'",
        ),
        ({"metric_params": {"w": [1]}}, "metric_params may hold p and w, .*, not w for 'euclidean'"),
        ({"metric_params": {"p": 2}}, "metric_params may hold p and w, .*, not p for 'euclidean'"),
        ({"algorithm": "magic"}, "algorithm must be one of auto, ball_tree, kd_tree, brute, not 'magic'"),
        ({"min_samples": 0}, "min_samples must be a whole number, at least 1, not 0"),
        ({"eps": 0.0}, "eps must be a finite number above 0"),
        ({"metric": ["cosine"]}, "metric must be one of"),
        ({"metric": "minkowski", "p": [1]}, "minkowski needs a finite p"),
    ],
)
def test_dbscan__refuses_parameters(parameters, says):
    with pytest.raises(ArgumentError, match=says):
        DBSCAN(**parameters).fit([[0.0], [1.0]])


def test_metric_of__takes_numbers_of_numpy() -> None:
    assert parameters.metric_of("minkowski", np.int64(2), None).name == "euclidean"
    assert parameters.metric_of("minkowski", np.float64(1), None).name == "manhattan"


def test_dbscan__refuses_weights_and_points():
    with pytest.raises(ArgumentError, match="sample_weight must not be all zero"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=[0, 0])
    with pytest.raises(ArgumentError, match="sample_weight must be one number per point"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=[1, 1, 1])
    with pytest.raises(TypeError, match="[Ss]parse"):
        DBSCAN().fit(scipy.sparse.csr_matrix(np.eye(3)))
    with pytest.raises(ValueError, match="NaN"):
        DBSCAN().fit([[np.nan], [1.0]])


def test_no_other_module__imports_scikit_learn():
    package = Path(epsjoin.__file__).parent
    for source in sorted(package.rglob("*.py")):
        names = set()
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
        uses = {
            name
            for name in names
            if name.split(".")[0] in ("sklearn", "joblib") or name.startswith("epsjoin.sklearn")
        }
        assert not uses or source.parent.name == "sklearn", f"{source} imports {uses}"


def test_without_scikit_learn__the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "epsjoin.sklearn.dbscan")
    with pytest.raises(ImportError, match=r"sklearn needs sklearn: pip install 'epsjoin\[sklearn\]'"):
        runpy.run_path(epsjoin.sklearn.__file__)
