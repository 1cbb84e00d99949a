"""The join of trees, their nearest neighbours and their edits, against all pairs and on real documents."""

from __future__ import annotations

import csv
import json
from random import Random

import numpy as np
import pytest

from epsjoin import ArgumentError, BudgetError, Trees, tree_distance, tree_edits, tree_join, tree_knn
from epsjoin.kernels.trees.bounds import DEGREE, HEIGHT, LABEL, fill_bounds
from epsjoin.local.trees.prepared import Order, check_options, prepare
from epsjoin.local.trees.refine import bounds_of
from oracles.trees import Tree, canonical, random_tree, recurrence
from tests.local.trees.cases import DATA, LABELS, as_trees, edited_at_random, random_pairs, specs

EXPECTED = json.loads((DATA / "expected.json").read_text())
NEWEST = "2026-07-01"


def a_set(seed: int, number: int) -> list[Tree]:
    """Random trees, some of them edited or equal to others."""
    random = Random(seed)
    trees: list[Tree] = []
    while len(trees) < number:
        tree = random_tree(random, random.randint(1, 7), LABELS)
        trees += [tree, *(edited_at_random(random, tree, random.randint(0, 2)) for _ in range(2))]
    return trees[:number]


@pytest.mark.parametrize("ordered", [False, True, "arrays"])
@pytest.mark.parametrize("costs", [(1, 1), (1, 2), (2, 1)])
def test_join__is_all_pairs_of_the_plain_recurrence(ordered: Order, costs: tuple[int, int]) -> None:
    trees = a_set(1, 60)
    exact = {
        (i, j): recurrence(
            *(trees[i], trees[j], ordered),
            relabel=lambda x, y: costs[0] * (x != y),
            insert=lambda _: costs[1],
            is_list="a".__eq__,
        )
        for i in range(len(trees))
        for j in range(i + 1, len(trees))
    }
    given = as_trees(trees, lists="a")
    options = {"ordered": ordered, "relabel": costs[0], "insert": costs[1]}
    for k in (0, 1, 2, 4, 7):
        expected = [(i, j, d) for (i, j), d in exact.items() if d <= k]
        assert expected
        assert list(zip(*map(np.ndarray.tolist, tree_join(given, k, **options)), strict=True)) == expected
        found = tree_join(given.take(range(40)), k, given.take(range(40, 60)), **options)
        expected = [(i, j - 40, d) for i, j, d in expected if i < 40 <= j]
        assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == expected


def test_join__of_arrays_finds_at_0_what_it_finds_at_0_of_1() -> None:
    """A list and a set of the same children are not equal, but at distance 0."""
    random = Random(6)
    trees = as_trees(a_set(6, 60))
    is_list = np.array([random.random() < 0.5 for _ in trees.size])
    mixed = Trees(trees.starts, trees.label, trees.size, is_list, trees.texts)
    for other in (None, mixed.take(range(20))):
        none, one = (tree_join(mixed, k, other, ordered="arrays") for k in (0, 1))
        nearest = [column[one.distance == 0].tolist() for column in one]
        assert [column.tolist() for column in none] == nearest


def test_join__of_arrays_at_0_compares_none_where_a_label_is_that_of_lists_alone() -> None:
    counters: dict[str, int] = {}
    found = tree_join(Trees.from_json(["[1, 2]", "[2, 1]", "[1,2]"]), 0, ordered="arrays", counters=counters)
    assert (found.left.tolist(), found.right.tolist()) == ([0], [2])
    assert counters["candidates"] == 0


def test_join__does_not_depend_on_bins_threads_or_the_order_of_the_rows() -> None:
    _, trees = specs("2019-07-01")
    expected = tree_join(trees, 3)
    assert len(expected.left) == 123
    for changes in ({"bins": (1, 1)}, {"bins": (64, 128)}, {"n_jobs": 2}):
        for column, same in zip(tree_join(trees, 3, **changes), expected, strict=True):
            assert column.tolist() == same.tolist()
    shuffled = np.random.default_rng(0).permutation(len(trees))
    found = tree_join(trees.take(shuffled), 3)
    pairs = sorted(
        (min(a, b), max(a, b), d)
        for a, b, d in zip(
            shuffled[found.left].tolist(), shuffled[found.right].tolist(), found.distance, strict=True
        )
    )
    assert pairs == list(zip(*map(np.ndarray.tolist, expected), strict=True))


@pytest.mark.parametrize("snapshot", EXPECTED["snapshots"], ids=lambda each: each["snapshot"])
def test_join__of_chart_specifications_finds_the_pairs_of_every_year(snapshot: dict[str, int]) -> None:
    _, trees = specs(str(snapshot["snapshot"]))
    assert (len(trees), len(trees.size)) == (snapshot["trees"], snapshot["nodes_of_trees"])
    found = tree_join(trees, 3)
    assert np.bincount(found.distance.astype(int)).tolist() == snapshot["pairs_by_distance"]


def test_join__of_chart_specifications_finds_each_pair_that_is_listed() -> None:
    names, trees = specs(NEWEST)
    with (DATA / f"expected_pairs_{NEWEST}.csv").open() as file:
        listed = {
            frozenset((row["left"], row["right"])): int(row["distance"]) for row in csv.DictReader(file)
        }
    left, right, distance = tree_join(trees, 5)
    found = {frozenset((names[i], names[j])): d for i, j, d in zip(left, right, distance, strict=True)}
    assert found == listed
    assert len(listed) == 298


@pytest.mark.parametrize(
    ("k", "candidates", "refinements", "subtree_pairs", "pairs"),
    [
        (1, 57, 56, 95_834, 53),
        (2, 118, 118, 184_168, 111),
        (3, 183, 183, 272_094, 142),
        (5, 475, 474, 608_751, 298),
    ],
)
def test_join__compares_few_pairs_and_never_more_than_the_papers_combination_of_filters(
    k: int, candidates: int, refinements: int, subtree_pairs: int, pairs: int
) -> None:
    _, trees = specs(NEWEST)
    counters: dict[str, int] = {}
    tree_join(trees, k, counters=counters)
    assert counters == {
        "trees": 610,
        "nodes": 42_615,
        "equal_groups": 5,
        "candidates": candidates,
        "refinements": refinements,
        "subtree_pairs": subtree_pairs,
        "pairs": pairs,
    }
    options = check_options(False, 1, 1)
    prepared = prepare(trees, options)
    left, right = np.triu_indices(len(trees), 1)
    bounds = np.empty((len(left), 5), np.int64)
    fill_bounds(
        prepared.histograms, left, prepared.histograms, right, check_options(False, 1, 1).costs, bounds
    )
    heights, degrees = bounds[:, HEIGHT], bounds[:, DEGREE]
    shape = prepared.histograms.label
    labels = np.abs(shape[left] - shape[right]).sum(axis=1)
    of_paper = (heights <= k) & (degrees <= k) & (labels <= 2 * k)  # half of the difference
    assert candidates <= np.count_nonzero(of_paper)
    assert (bounds[:, LABEL] >= labels / 2).all()
    sizes = trees.n_nodes
    found = tree_join(trees, k)
    assert subtree_pairs <= 0.75 * (sizes[found.left] * sizes[found.right]).sum() * refinements / pairs


# ------------------------------------------------------------------------------------------ nearest and edits


@pytest.mark.parametrize("ordered", [False, True])
def test_knn__is_that_of_all_distances_and_refines_no_tree_in_vain(ordered: bool) -> None:
    trees, queries = a_set(2, 50), a_set(3, 12)
    given, asked = as_trees(trees), as_trees(queries)
    exact = np.array([[recurrence(query, tree, ordered) for tree in trees] for query in queries])
    options = check_options(ordered, 1, 1)
    left, right = prepare(asked, options), prepare(given, options)
    for n in (1, 3, 10, 50):
        counters: dict[str, int] = {}
        near = tree_knn(asked, given, n, ordered=ordered, counters=counters)
        expected = np.argsort(exact, axis=1, kind="stable")[:, :n]
        assert near.neighbour.tolist() == expected.tolist()
        assert near.distance.tolist() == np.take_along_axis(exact, expected, axis=1).tolist()
        needed = 0
        for query in range(len(queries)):
            rows = np.arange(len(trees))
            bounds = bounds_of(left, np.full(len(rows), query), right, rows, options)
            needed += np.count_nonzero(bounds <= near.distance[query, -1])
        assert counters["refinements"] == needed
        assert counters["queries"] == len(queries)


def test_knn__knows_its_limits() -> None:
    trees = Trees.from_brackets(["{a}", "{b}"])
    with pytest.raises(ArgumentError, match="n must be at most the number of trees, 2, not 3"):
        tree_knn(trees, trees, 3)
    with pytest.raises(ArgumentError, match="queries must be epsjoin.Trees, not list"):
        tree_knn(["{a}"], trees, 1)
    with pytest.raises(BudgetError, match="1 of 2 trees have more than max_nodes = 2 nodes, tree 1 3"):
        tree_knn(trees, Trees.from_brackets(["{a}", "{a{b}{c}}"]), 1, max_nodes=2)
    assert tree_knn(trees.take([]), trees, 2).neighbour.shape == (0, 2)


def apply(tree: Tree, given: Trees, edits: list) -> Tree:
    """Do the edits one by one, each on a node with at most two edges where it must be."""
    label = dict(enumerate(given.text(node) for node in range(len(given.size))))
    parent = dict(enumerate(given.parent.tolist()))
    children: dict[int, list[int]] = {node: [] for node in label}
    for node, above in parent.items():
        if above >= 0:
            children[above].append(node)
    for edit in edits:
        if edit.what == "relabel":
            assert label[edit.node] == edit.before != edit.label
            label[edit.node] = edit.label
        elif edit.what == "delete":
            assert label.pop(edit.node) == edit.label
            below, above = children.pop(edit.node), parent.pop(edit.node)
            assert len(below) + (above >= 0) in (1, 2)
            assert len(below) <= 1
            for child in below:
                parent[child] = above
            if above >= 0:
                place = children[above].index(edit.node)
                children[above][place : place + 1] = below
        else:
            assert edit.node not in label
            label[edit.node], parent[edit.node], children[edit.node] = edit.label, edit.parent, []
            if edit.child >= 0:
                assert parent[edit.child] == edit.parent
                parent[edit.child] = edit.node
                children[edit.node] = [edit.child]
                if edit.parent >= 0:
                    children[edit.parent][children[edit.parent].index(edit.child)] = edit.node
            else:
                children[edit.parent].insert(edit.place, edit.node)
    (root,) = (node for node, above in parent.items() if above < 0)

    def build(node: int) -> Tree:
        return label[node], tuple(map(build, children[node]))

    return build(root)


def tree_at(trees: Trees) -> Tree:
    return apply(("", ()), trees, [])


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("costs", [(1, 1), (1, 2), (2, 1)])
def test_edits__turn_one_tree_into_the_other_at_the_cost_of_the_distance(
    ordered: bool, costs: tuple[int, int]
) -> None:
    options = {"ordered": ordered, "relabel": costs[0], "insert": costs[1]}
    for left, right, _ in random_pairs(8, 150, 10):
        a, b = as_trees([left]), as_trees([right])
        edits = tree_edits(a, b, **options)
        result = apply(left, a, edits)
        assert (result if ordered else canonical(result)) == (right if ordered else canonical(right))
        paid = sum(costs[0] if edit.what == "relabel" else costs[1] for edit in edits)
        assert paid == tree_distance(a, b, **options)


def test_edits__of_every_near_pair_of_chart_specifications_are_as_many_as_its_distance() -> None:
    _, trees = specs(NEWEST)
    left, right, distance = tree_join(trees, 5)
    for i, j, d in zip(left.tolist(), right.tolist(), distance.tolist(), strict=True):
        a, b = trees.take([i]), trees.take([j])
        edits = tree_edits(a, b)
        assert len(edits) == d
        assert canonical(apply(("", ()), a, edits)) == canonical(tree_at(b))


def test_edits__of_arrays_give_the_second_document() -> None:
    trees = Trees.from_json(['{"a": [1, 2, 3], "b": {"c": 1}}', '{"b": {"c": 1}, "a": [2, 3, 1]}'])
    a, b = trees.take([0]), trees.take([1])
    edits = tree_edits(a, b, ordered="arrays")
    assert sorted(map(str, edits)) == ["delete {}/.a/[]/1", "insert {}/.a/[]/1"]
    assert canonical(apply(("", ()), a, edits)) == canonical(tree_at(b))
    assert tree_edits(a, b) == []


@pytest.mark.parametrize("other", ["relabelled", "inserted", "deleted"])
def test_edits__of_a_deep_tree_read_each_label_a_few_times(
    monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    n = 300
    chain, relabelled = (Trees.from_parents([label] * n, np.arange(n) - 1, [0, n]) for label in ("a", "b"))
    leaf = Trees.from_brackets(["{a}"])
    pair = {"relabelled": (chain, relabelled), "inserted": (leaf, chain), "deleted": (chain, leaf)}[other]
    read, text = [], Trees.text
    monkeypatch.setattr(Trees, "text", lambda trees, node: read.append(node) or text(trees, node))
    edits = tree_edits(*pair)
    assert len({edit.path for edit in edits}) == len(edits) >= n - 1
    assert {label for edit in edits for label in edit.path} == {"a"}
    assert len(read) <= 5 * n


# ------------------------------------------------------------------------------------------------- extremes


def test_join__of_a_hundred_thousand_equal_trees_is_refused_at_once_and_compares_none() -> None:
    trees = Trees.from_brackets(["{a{b}}"]).take(np.zeros(100_000, np.int64))
    with pytest.raises(BudgetError, match="at least 4,999,950,000 pairs, and max_pairs = 100,000,000"):
        tree_join(trees, 0)
    counters: dict[str, int] = {}
    found = tree_join(trees.take(range(300)), 1, trees.take(range(200)), counters=counters)
    assert len(found.left) == 60_000
    assert not found.distance.any()
    assert (counters["equal_groups"], counters["refinements"]) == (2, 0)


def test_join__with_a_k_beyond_all_sizes_is_refused_before_anything_is_compared() -> None:
    trees = as_trees(a_set(4, 60))
    counters: dict[str, int] = {}
    with pytest.raises(BudgetError, match="at least 1,770 pairs, and max_pairs = 1,769"):
        tree_join(trees, 100, max_pairs=1769, counters=counters)
    assert "candidates" not in counters
    assert len(tree_join(trees, 100, max_pairs=1770).left) == 1770
    with pytest.raises(BudgetError, match="at least [0-9]+ pairs, and max_pairs = 345"):
        tree_join(trees, 3, max_pairs=345)


def test_join__of_a_chain_or_a_star_takes_what_max_nodes_allows() -> None:
    n = 100_000
    chain = Trees.from_parents(["a"] * n, np.arange(n) - 1, [0, n]).take([0, 0])
    with pytest.raises(BudgetError, match="2 of 2 trees .* max_nodes = 2000 nodes, tree 0 100000"):
        tree_join(chain, 1)
    assert len(tree_join(chain, 1, max_nodes=n).left) == 1
    labels = ["root", *["x"] * 10_000, "root", *["x"] * 9_999, "y"]
    stars = Trees.from_parents(labels, ([-1] + [0] * 10_000) * 2, [0, 10_001, 20_002])
    counters: dict[str, int] = {}
    assert tree_join(stars, 3, max_nodes=10_001, counters=counters).distance.tolist() == [1.0]
    assert counters["subtree_pairs"] == 3  # leaves once each, roots once


def test_join__of_labels_in_one_bin_is_the_same() -> None:
    trees = as_trees(a_set(5, 30))
    counters: dict[str, int] = {}
    found = tree_join(trees, 2, bins=(16, 1), counters=counters)
    fewer: dict[str, int] = {}
    assert [c.tolist() for c in tree_join(trees, 2, counters=fewer)] == [c.tolist() for c in found]
    assert counters["candidates"] > fewer["candidates"]


def test_join__of_no_trees_or_one_is_empty() -> None:
    trees = Trees.from_brackets(["{a}"])
    for given in (trees, trees.take([])):
        assert tree_join(given, 2).left.size == 0
    assert tree_join(trees, 2, trees.take([])).left.size == 0
    assert tree_join(trees.take([]), 2, trees).left.size == 0


def test_join__of_a_k_beyond_all_costs_has_all_pairs() -> None:
    trees = Trees.from_brackets(["{a}", "{b{c}}", "{a{b}{c}}"])
    assert tree_join(trees, 10**19).distance.tolist() == tree_join(trees, 100).distance.tolist()
    assert len(tree_join(trees, 10**19).left) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": -1}, "k must be a whole number, at least 0"),
        ({"k": 1.5}, "k must be a whole number"),
        ({"bins": (0, 4)}, "bins must be a whole number, at least 1"),
        ({"bins": 4}, "bins must be two numbers"),
        ({"bins": (16, 10**9)}, "bins must be a whole number of at most 65,536"),
        ({"trees": ["{a}"]}, "trees must be epsjoin.Trees, not list"),
        ({"other": "{a}"}, "other must be epsjoin.Trees, not str"),
        ({"max_pairs": -1}, "max_pairs must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"insert": 2**61}, "relabel and insert must be at most 2,147,483,648"),
    ],
)
def test_join__refuses_wrong_arguments(change: dict[str, object], message: str) -> None:
    arguments = {"trees": Trees.from_brackets(["{a}"]), "k": 1, **change}
    with pytest.raises(ArgumentError, match=message):
        tree_join(**arguments)
