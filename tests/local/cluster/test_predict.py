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
