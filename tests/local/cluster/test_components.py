"""Components in rounds over parts of the edges: the definition, whatever the parts; the work they make."""

from __future__ import annotations

import math
from collections import Counter

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from epsjoin.errors import ArgumentError
from epsjoin.kernels.cluster.components import ANSWER, EDGE
from epsjoin.local.cluster import components
from epsjoin.local.cluster.components import Meeting, contract, settle
from oracles import cluster as twin
from oracles import examples
from tests.kernels.columns import columns

INT64 = np.iinfo(np.int64)
IDS = st.integers(-6, 12) | st.sampled_from([INT64.min, INT64.min + 1, INT64.max - 1, INT64.max])
PARTS = st.lists(st.lists(st.tuples(IDS, IDS), max_size=12), max_size=8)


def in_rounds(parts, watch=None, share=7):
    """(node -> root, number of rounds) of edges in parts, as Spark's tasks run the steps."""
    held = [settle(*columns(part), np.full(len(part), EDGE, np.int32)) for part in parts]
    for rounds in range(1, 100):
        rows = [np.concatenate(column) for column in zip(*held, strict=True)]
        place = np.repeat(np.arange(len(held)), [trees.node.size for trees in held])
        order = np.lexsort((place, rows[1], rows[0]))
        node, root, place = rows[0][order], rows[1][order], place[order]
        meeting, sent = Meeting(), []
        for first in range(0, max(1, node.size), share):
            met = meeting.of(node[first : first + share], root[first : first + share])
            sent.append((place[first + met.place], met.node, met.root, met.kind))
        place, node, root, kind = (np.concatenate(column) for column in zip(*sent, strict=True))
        if watch is not None:
            watch(place, kind, held)
        held = [settle(node[place == p], root[place == p], kind[place == p]) for p in range(len(held))]
        if (kind == EDGE).all():
            rows = [(int(n), int(r)) for trees in held for n, r in zip(*trees, strict=True) if n != r]
            assert len(rows) == len(dict(rows))
            return dict(rows), rounds
    raise AssertionError("no end after 99 rounds")


def smallest(edges):
    return {node: root for node, root in twin.components(edges).items() if node != root}


@examples(150)
@given(PARTS.filter(len))
def test_rounds__find_what_can_be_reached(parts):
    assert in_rounds(parts, share=2)[0] == smallest([edge for part in parts for edge in part])


@examples(60)
@given(st.integers(2, 60), st.integers(1, 80), st.integers(1, 40), st.integers(0, 10**6))
def test_rounds__find_the_components_of_networkx_and_scipy(n_nodes, n_edges, n_parts, seed):
    random = np.random.default_rng(seed)
    edges = random.integers(0, n_nodes, (n_edges, 2))
    parts = [edges[random.permutation(n_edges)[:3]] for _ in range(n_parts)]
    edges = np.concatenate(parts)
    found, _ = in_rounds(parts)
    label = connected_components(coo_array((np.ones(len(edges)), edges.T), (n_nodes, n_nodes)))[1]
    assert [found.get(node, node) for node in range(n_nodes)] == [
        int(np.flatnonzero(label == label[node])[0]) for node in range(n_nodes)
    ]
    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(n_nodes))
    trees = networkx.utils.groups({node: found.get(node, node) for node in range(n_nodes)})
    assert {root: min(tree) for root, tree in trees.items()} == {root: root for root in trees}
    assert {frozenset(t) for t in trees.values()} == set(map(frozenset, networkx.connected_components(graph)))


N = 2_000
CHAINS = {
    "rising": np.arange(N),
    "shuffled": np.random.default_rng(3).permutation(N),
    "up_and_down": np.concatenate((np.arange(0, N, 2), np.arange(1, N, 2)[::-1])),
    "zigzag": np.arange(N).reshape(2, -1).T.ravel(),
    "bits_turned": np.argsort([int(f"{i:011b}"[::-1], 2) for i in range(N)]),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("n_parts", "near"), [(1, True), (16, True), (16, False), (N // 16, False)])
def test_rounds__on_a_chain_are_the_logarithm_of_its_length(name, n_parts, near):
    chain = CHAINS[name]
    edges = np.column_stack((chain[:-1], chain[1:]))
    if not near:
        edges = np.random.default_rng(4).permutation(edges)
    found, rounds = in_rounds(np.array_split(edges, n_parts), share=10_000)
    assert found == dict.fromkeys(range(1, N), 0)
    # Paths double every round; one round more to hook what was dealt apart, one to see that nothing changes.
    # Where neighbours lie in one part, a path crosses parts, not nodes.
    assert rounds <= math.ceil(math.log2(2 * n_parts if near else N)) + 2


@pytest.mark.parametrize("hub", [-1, 5_000])
def test_rounds__gather_no_hub(hub):
    """A node meets a row per part, not one per neighbour; a part asks once, whatever hangs there."""
    edges = [(hub, leaf) for leaf in range(1_000)] + [(leaf, leaf + 1_000) for leaf in range(0, 1_000, 3)]

    def watch(place, kind, held):
        asked = Counter(int(node) for trees in held for node in trees.node)
        assert max(asked.values()) <= len(held)

    in_rounds(np.array_split(np.random.default_rng(0).permutation(edges), 20), watch)


@examples(100)
@given(PARTS.filter(len))
def test_rounds__never_make_a_part_larger(parts):
    sizes = [[len(part) for part in parts]]

    def watch(place, kind, held):
        edges = [np.count_nonzero(trees.node != trees.root) for trees in held]
        assert all(now <= before for now, before in zip(edges, sizes[-1], strict=True))
        sizes.append(edges)
        answers = np.bincount(place[kind == ANSWER], minlength=len(held))
        roots = [np.count_nonzero(trees.node == trees.root) for trees in held]
        assert (answers <= roots).all()
        others = np.bincount(place[kind != ANSWER], minlength=len(held))
        assert (others <= edges).all()

    in_rounds(parts, watch)


@examples(100)
@given(st.lists(st.tuples(IDS, IDS), max_size=60), st.integers(1, 70), st.integers(1, 9))
def test_contract__holds_no_more_than_it_may(edges, most, share):
    sizes = []
    with pytest.MonkeyPatch.context() as patch:
        plain = components.spanning_forest

        def watched(left, right):
            sizes.append(left.size)
            return plain(left, right)

        patch.setattr(components, "spanning_forest", watched)
        shares = [columns(edges[first : first + share]) for first in range(0, len(edges), share)]
        forests = list(contract(shares, most))
    assert max(sizes) <= most
    assert all(1 <= trees.node.size <= most for trees in forests)
    tied = [pair for trees in forests for pair in zip(*map(np.ndarray.tolist, trees), strict=True)]
    assert smallest(tied) == smallest(edges)
    if len(edges) <= most or 2 * len(smallest(edges)) <= most:
        assert len(forests) == bool(smallest(edges))


def test_contract__goes_over_an_edge_about_twice(monkeypatch):
    total = 0
    plain = components.spanning_forest

    def watched(left, right):
        nonlocal total
        total += left.size
        return plain(left, right)

    monkeypatch.setattr(components, "spanning_forest", watched)
    monkeypatch.setattr(components, "_MIN_CONTRACTED_EDGES", 100)
    chain = np.arange(20_001)
    shares = [(chain[i : i + 100], chain[i + 1 : i + 101]) for i in range(0, 20_000, 100)]
    (trees,) = contract(shares, 10**6)
    assert trees.node.size == 20_000
    assert total <= 3 * 20_000


def test_contract__refuses_to_hold_nothing():
    with pytest.raises(ArgumentError, match="most must be a whole number, at least 1, not 0"):
        list(contract([], 0))


@examples(100)
@given(st.lists(st.tuples(IDS, IDS, st.integers(0, 2)), max_size=40), st.randoms(use_true_random=False))
def test_settle__does_not_depend_on_the_order_of_rows(rows, random):
    shuffled = random.sample(rows, len(rows))
    settled = [
        settle(*columns([row[:2] for row in order]), np.array([row[2] for row in order], np.int32))
        for order in (rows, shuffled)
    ]
    assert [column.tolist() for column in settled[0]] == [column.tolist() for column in settled[1]]
