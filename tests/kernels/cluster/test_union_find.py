"""Union-find, the index of ids, the k nearest: against dictionaries, sets and sorted lists."""

from __future__ import annotations

import networkx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels import ids as ids_kernels
from epsjoin.kernels.cluster.union_find import find_root, forest, unite
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.kernels.neighbours.heaps import keep_nearest, sort_nearest
from epsjoin.local.neighbours import from_pairs
from oracles import examples
from oracles.cluster import components

EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)
IDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


def columns(edges):
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


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


@examples(200)
@given(st.lists(IDS, unique=True, max_size=100), st.lists(IDS, max_size=100))
def test_rows_of__finds_known_ids_and_no_others(ids, wanted):
    row = {each: place for place, each in enumerate(ids)}
    wanted = wanted + ids
    found = rows_of(index_ids(np.array(ids, dtype=np.int64)), np.array(wanted, dtype=np.int64))
    assert found.tolist() == [row.get(each, -1) for each in wanted]


@pytest.mark.parametrize("stride", [1, 2**20, 2**44, 2**56])
def test_rows_of__survives_ids_at_regular_strides(stride):
    ids = np.arange(200, dtype=np.int64) * stride
    assert rows_of(index_ids(ids), ids[::-1].copy()).tolist() == list(range(199, -1, -1))


@pytest.mark.parametrize("first", [0, 2**64 - 50])
def test_rows_of__finds_ids_that_share_one_slot(first):
    # Multiples of the multiplier's inverse hash to the first slot, or to the last, whence probing wraps.
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    ids = np.array([(first + i) * inverse % 2**64 for i in range(50)], dtype=np.uint64).view(np.int64)
    index = index_ids(ids[:40].copy())
    assert np.count_nonzero(index.slots[:40] >= 0) >= 39  # one after the other from there on
    assert rows_of(index, ids).tolist() == [*range(40), *[-1] * 10]


def test_rows_of__crosses_the_border_of_a_block():
    ids = np.random.default_rng(3).permutation(70_000) * 7_919
    assert (rows_of(index_ids(ids), ids) == np.arange(ids.size)).all()


def test_index_ids__names_the_id_that_comes_twice():
    with pytest.raises(ValueError, match="id 7 comes twice"):
        index_ids(np.array([3, 7, 5, 7], dtype=np.int64))


@pytest.mark.parametrize("is_arrows", [True, False])
def test_kernels_of_tasks_get_what_they_only_read_as_one_kind_of_arrays(monkeypatch, is_arrows):
    """Columns of Arrow cannot be written, what was computed can: each kind would be compiled for itself."""
    called = set()

    def watch(module, name, *only_read):
        kernel = getattr(module, name)

        def watched(*given):
            called.add(name)
            assert not any(given[place].flags.writeable for place in only_read), name
            return kernel(*given)

        monkeypatch.setattr(module, name, watched)

    watch(ids_kernels, "_insert", 0)
    watch(ids_kernels, "_probe", 0, 2)
    watch(from_pairs, "keep_nearest", 1, 2)
    ids, distance = np.arange(20), np.ones(20)
    if is_arrows:
        ids, distance = pa.array(ids).to_numpy(), pa.array(distance).to_numpy()
    rows_of(index_ids(ids), ids)
    from_pairs.nearest_within(ids[:-1], ids[1:], distance[1:], 2)
    assert called == {"_insert", "_probe", "keep_nearest"}
    assert ids.flags.writeable != is_arrows, "a view is taken"


def nearest_by_kernel(entries, k, n_rows):
    counts = np.bincount([row for row, _, _ in entries], minlength=n_rows)
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, k))))
    sizes, ids, distances = (
        np.zeros(n_rows, dtype=np.int64),
        np.empty(starts[-1], dtype=np.int64),
        np.empty(starts[-1]),
    )
    row, neighbour = columns([entry[:2] for entry in entries])
    distance = np.array([entry[2] for entry in entries], dtype=np.float64)
    keep_nearest(row, neighbour, distance, starts, sizes, ids, distances)
    assert sizes.tolist() == np.diff(starts).tolist()
    sort_nearest(starts, ids, distances)
    pairs = list(zip(distances.tolist(), ids.tolist(), strict=True))
    return [pairs[starts[row] : starts[row + 1]] for row in range(n_rows)]


@examples(300)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 20), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=80
    ),
    st.integers(1, 9),
)
def test_keep_nearest__keeps_the_k_smallest_by_distance_then_id(entries, k):
    expected = [
        sorted((distance, other) for at, other, distance in entries if at == row)[:k] for row in range(5)
    ]
    assert nearest_by_kernel(entries, k, 5) == expected


@pytest.mark.parametrize("order", [1, -1])
def test_keep_nearest__takes_entries_in_rising_and_falling_order(order):
    entries = [(0, other, float(other)) for other in range(500)][::order]
    assert nearest_by_kernel(entries, 40, 1) == [[(float(other), other) for other in range(40)]]
