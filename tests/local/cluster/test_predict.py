"""New points into old clusters: against the definition, core point by core point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin.errors import ArgumentError
from oracles import examples
from oracles.join import between


@examples(60)
@given(st.integers(0, 60), st.integers(0, 30), st.integers(1, 5), st.integers(0, 10**6))
def test_predict__is_the_cluster_of_the_nearest_core_point_within_eps(n, m, min_pts, seed):
    random = np.random.default_rng(seed)
    points, new = (random.integers(0, 10, (count, 2)).astype(float) for count in (n, m))  # many ties
    clusters = epsjoin.dbscan(points, 1.5, min_pts)
    expected = []
    distances = between(new, points, 1.5)
    for row in range(m):
        near = [(distances[row, i], i) for i in np.flatnonzero(clusters.is_core) if (row, i) in distances]
        expected.append(clusters.labels[min(near)[1]] if near else epsjoin.NOISE)
    assert epsjoin.predict_clusters(new, points, clusters, 1.5).tolist() == expected
    assert epsjoin.predict_clusters(points, points, clusters, 1.5).tolist() == clusters.labels.tolist()


def test_predict__refuses_other_points_than_those_of_the_clusters():
    clusters = epsjoin.dbscan([[0.0], [1.0]], 1.0, 1)
    with pytest.raises(ArgumentError, match="new_points must have as many columns as points, 1, not 2"):
        epsjoin.predict_clusters([[0.0, 1.0]], [[0.0], [1.0]], clusters, 1.0)
    with pytest.raises(ArgumentError, match="clusters must be those of the points, 3, not of 2"):
        epsjoin.predict_clusters([[0.0]], [[0.0], [1.0], [2.0]], clusters, 1.0)


POINTS, IDS = [[0.0], [1.0], [2.0], [9.0]], np.arange(4)
CLUSTERS = epsjoin.dbscan(POINTS, 1.0, 2)


@pytest.mark.parametrize(
    ("clusters", "says"),
    [
        (CLUSTERS._replace(is_core=CLUSTERS.is_core.astype(int)), "is_core of clusters must be .* of bool"),
        (CLUSTERS._replace(is_core=CLUSTERS.is_core[:, None]), "is_core of clusters .* 2-dimensional"),
        (CLUSTERS._replace(labels=CLUSTERS.labels + 0.0), "labels of clusters must be .* of int64"),
        (CLUSTERS._replace(labels=CLUSTERS.labels - 1), "row 0 has -1"),
        (CLUSTERS._replace(degree=CLUSTERS.degree.astype(str)), "degree of clusters must be .* of numbers"),
        (CLUSTERS._replace(degree=[2, 3, 2]), "equally long, not labels 4, is_core 4, degree 3"),
        (CLUSTERS[:2], "clusters must be .* as dbscan returns them"),
        (np.array(CLUSTERS), "as dbscan returns them, not ndarray"),
        (None, "as dbscan returns them, not NoneType"),
    ],
)
def test_clusters__that_are_none_are_refused_in_a_sentence(clusters, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.predict_clusters(POINTS, POINTS, clusters, 1.0)
    pairs = epsjoin.self_join(POINTS, 1.0)
    with pytest.raises(ArgumentError, match=says):
        epsjoin.update_clusters(clusters, pairs, pairs, IDS, IDS, 2)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([-2, -2, -2, -1], "row 0 has -2"),
        ([0, 10**15, 0, -1], f"row 1 has {10**15}"),
        ([0, 0, 0, 1], "0 to 3 with a core point .* row 3 has 1"),
    ],
)
def test_clusters__are_numbers_where_they_are_updated_and_may_be_names_where_they_are_looked_up(labels, says):
    clusters, pairs = CLUSTERS._replace(labels=labels), epsjoin.self_join(POINTS, 1.0)
    with pytest.raises(ArgumentError, match=says):
        epsjoin.update_clusters(clusters, pairs, pairs, IDS, IDS, 2)
    cores = np.flatnonzero(CLUSTERS.is_core)
    found = epsjoin.predict_clusters([POINTS[row] for row in cores], POINTS, clusters, 1.0)
    assert found.tolist() == [labels[row] for row in cores]


def test_clusters__may_be_lists():
    lists, pairs = [column.tolist() for column in CLUSTERS], epsjoin.self_join(POINTS, 1.0)
    assert epsjoin.predict_clusters(POINTS, POINTS, lists, 1.0).tolist() == lists[0]
    assert epsjoin.update_clusters(lists, pairs, pairs, IDS, IDS, 2).labels.tolist() == lists[0]


def test_predict__calls_a_point_without_a_direction_by_its_argument():
    clusters = epsjoin.dbscan([[1.0, 0.0], [1.0, 0.1]], 0.1, 1, "cosine")
    with pytest.raises(ArgumentError, match="^new_points: cosine needs .* row 1 breaks"):
        epsjoin.predict_clusters([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.1]], clusters, 0.1, "cosine")
