"""Union-find: against networkx and components by definition."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.cluster.union_find import find_root, forest, unite
from oracles import examples
from oracles.cluster import components
from tests.kernels.columns import columns

EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


@examples(200)
@given(EDGES)
def test_forest__names_each_tree_by_its_smallest_node(edges):
    expected = components(edges)
    assert forest(31, *columns(edges)).tolist() == [expected.get(node, node) for node in range(31)]


@examples(50)
@given(st.integers(1, 200), st.integers(0, 300), st.integers(0, 10**6))
def test_forest__has_the_components_that_networkx_finds(n_nodes, n_edges, seed):
    left, right = np.random.default_rng(seed).integers(0, n_nodes, (2, n_edges))
    graph = networkx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(zip(left.tolist(), right.tolist(), strict=True))
    trees = {}
    for node, root in enumerate(forest(n_nodes, left, right).tolist()):
        trees.setdefault(root, set()).add(node)
    assert sorted(map(sorted, trees.values())) == sorted(map(sorted, networkx.connected_components(graph)))


@examples(100)
@given(EDGES, st.randoms(use_true_random=False))
def test_forest__does_not_depend_on_the_order_or_direction_of_edges(edges, random):
    shuffled = [edge if random.random() < 0.5 else edge[::-1] for edge in edges]
    random.shuffle(shuffled)
    assert forest(31, *columns(edges)).tolist() == forest(31, *columns(shuffled)).tolist()


@pytest.mark.parametrize("step", [1, -1])
def test_forest__of_a_long_chain_is_one_tree(step):
    chain = np.arange(5_000)[::step]
    assert not forest(5_000, chain[:-1].copy(), chain[1:].copy()).any()


def test_forest__of_no_node_and_of_no_edge():
    nothing = np.empty(0, dtype=np.int64)
    assert forest(0, nothing, nothing).size == 0
    assert forest(3, nothing, nothing).tolist() == [0, 1, 2]


def test_unite__tells_whether_two_trees_became_one():
    parent = np.arange(4)
    assert unite(parent, 3, 1)
    assert unite(parent, 3, 2)
    assert not unite(parent, 1, 2)
    assert parent[find_root(parent, 3)] == 1


def test_find_root__halves_the_path():
    parent = np.array([0, 0, 1, 2, 3, 4])
    assert find_root(parent, 5) == 0
    assert parent.tolist() == [0, 0, 1, 1, 3, 3]
