"""Chains of core points, by what SciPy says of the same graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from epsjoin.local.verify.chains import Chains, connect, nearest_cores, torn_clusters
from oracles import examples


def test_nearest_cores__of_several_as_near_is_the_one_with_the_smallest_id():
    random = np.random.default_rng(8)
    ids, cores, distance = (
        random.integers(0, 40, 500),
        random.permutation(500),
        random.integers(0, 3, 500) / 2,
    )
    found = nearest_cores(ids, cores, distance, cores + 1000)
    expected = {}
    for id_, near in zip(ids.tolist(), zip(distance.tolist(), cores.tolist(), strict=True), strict=True):
        expected[id_] = min(near, expected.get(id_, near))
    assert (
        dict(zip(found.ids.tolist(), zip(found.distance, found.cores, strict=True), strict=True)) == expected
    )
    assert (found.clusters == found.cores + 1000).all()
    halves = [
        nearest_cores(ids[half], cores[half], distance[half], cores[half])
        for half in (slice(250), slice(250, 500))
    ]
    assert found.merge(halves).cores.tolist() == found.cores.tolist()
    nothing = np.empty(0, np.int64)
    assert len(nearest_cores(nothing, nothing, np.empty(0), nothing).ids) == 0


@examples(200)
@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60))
def test_connect__is_what_scipy_says(n, edges):
    left, right = np.array([(i % n, j % n) for i, j in edges], np.int64).reshape(-1, 2).T
    _, labels = connected_components(coo_matrix((np.ones(len(left)), (left, right)), (n, n)), directed=False)
    _, first = np.unique(labels, return_index=True)
    assert connect(left, right, n).tolist() == first[labels].tolist()


@pytest.mark.parametrize("order", ["rising", "falling", "random"])
def test_connect__follows_a_long_chain(order):
    random = np.random.default_rng(0)
    along = {
        "rising": np.arange(20_000),
        "falling": np.arange(20_000)[::-1],
        "random": random.permutation(20_000),
    }
    path = along[order]
    assert not connect(path[:-1], path[1:], 20_000).any()


def chains_of(pairs, cluster):
    left, right = np.array(pairs).T
    return Chains(left, right, np.full(len(left), cluster))


def test_torn_clusters__are_those_whose_chains_do_not_meet_however_they_are_merged():
    parts = [
        Chains.merge([chains_of([(1, 4), (9, 30)], 1)]),
        Chains.merge([chains_of([(2, 5), (5, 6)], 2)]),
        Chains.merge([chains_of([(9, 12), (40, 41)], 1)]),
    ]
    assert list(torn_clusters(Chains.merge(parts))) == [
        "cluster 1 is 3 clusters: no chain of core points connects 1 and 9"
    ]
    assert list(torn_clusters(Chains.merge(parts[:1]))) == [
        "cluster 1 is 2 clusters: no chain of core points connects 1 and 9"
    ]
    whole = Chains.merge([Chains.merge(parts), chains_of([(30, 4), (12, 40)], 1)])
    assert list(torn_clusters(whole)) == []
    assert whole.roots.tolist() == [1, 2, 1, 2, 2, 1, 1, 1, 1, 1]
    assert list(torn_clusters(Chains.merge([Chains(*(np.empty(0, np.int64),) * 3)]))) == []
