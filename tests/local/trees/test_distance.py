"""The distance of trees, against a search over all edits, the plain recurrence and every lower bound."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from epsjoin import ArgumentError, BudgetError, Trees, tree_distance, tree_edits
from epsjoin.kernels.trees.bounds import fill_bounds, label_bound
from epsjoin.kernels.trees.distance import fill_distances
from epsjoin.local.trees import distance as module
from epsjoin.local.trees.prepared import Order, TreeOptions, check_options, prepare
from oracles.trees import Tree, all_distances, n_nodes, random_tree, recurrence
from tests.local.trees.cases import LABELS, as_trees, edited_at_random, random_pairs

COSTS = [(1, 1), (2, 1), (1, 2), (3, 2)]


def distances(pairs: list[tuple[Tree, Tree]], options: TreeOptions, limit: int) -> list[int]:
    """The distances of many pairs at once; limit + 1 beyond the limit."""
    left, right = (prepare(as_trees([pair[side] for pair in pairs]), options) for side in (0, 1))
    rows, found = np.arange(len(pairs)), np.empty(len(pairs), np.int64)
    fill_distances(left.subtrees, rows, right.subtrees, rows, options.costs, limit, options.may_cancel, found)
    return found.tolist()


@pytest.mark.parametrize(("ordered", "labels"), [(False, "ab"), (True, "ab")])
@pytest.mark.parametrize("costs", [(1, 1), (3, 2)])
def test_distance__is_that_of_the_cheapest_of_all_edits(
    ordered: bool, labels: str, costs: tuple[int, int]
) -> None:
    tree = random_tree(Random(3), 5, labels)
    found = all_distances(tree, labels, 6, ordered, lambda _, __: costs[0], lambda _: costs[1])
    others = [other for other in found if n_nodes(other) <= 5]
    assert len(others) >= 250
    options = check_options(ordered, *costs)
    computed = distances([(tree, other) for other in others], options, 100)
    assert computed == [found[other] for other in others]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("costs", COSTS)
def test_distance__is_the_plain_recurrence(ordered: bool, costs: tuple[int, int]) -> None:
    pairs = [pair[:2] for pair in random_pairs(5, 300, 9)]
    expected = [recurrence(*pair, ordered, _relabel(costs), lambda _: costs[1]) for pair in pairs]
    options = check_options(ordered, *costs)
    assert distances(pairs, options, 100) == expected
    for limit in (0, 1, 3, 6):  # the same as far as the limit, and nothing else within it
        assert distances(pairs, options, limit) == [min(each, limit + 1) for each in expected]


def _relabel(costs: tuple[int, int]) -> Callable[[str, str], int]:
    return lambda label, other: costs[0] * (label != other)


def lists_of(tree: Tree) -> str:
    """A JSON text whose arrays and objects have the shape of a tree: "a" is an array, others are objects."""
    label, children = tree
    if label == "a":
        return f"[{','.join(map(lists_of, children))}]"
    if not children:
        return f'"{label}"'
    return "{" + ",".join(f'"{label}":{lists_of(child)}' for child in children) + "}"


def tree_of(trees: Trees) -> Tree:
    def build(node: int) -> Tree:
        children, child = [], node - 1
        while child > node - trees.size[node]:
            children.append(build(child))
            child -= int(trees.size[child])
        return trees.text(node), tuple(reversed(children))

    return build(len(trees.size) - 1)


def test_arrays__order_counts_below_arrays_only() -> None:
    random = Random(11)
    differs = 0
    for _ in range(150):
        a, b = (
            Trees.from_json([lists_of(random_tree(random, random.randint(3, 8), "aaab"))]) for _ in range(2)
        )
        expected = recurrence(tree_of(a), tree_of(b), "arrays")
        assert tree_distance(a, b, ordered="arrays") == expected
        assert expected >= tree_distance(a, b)
        differs += expected > tree_distance(a, b)
    assert differs > 5


def test_arrays__a_list_that_becomes_a_set_makes_it_no_metric() -> None:
    middle = Trees.from_nested([["s", "1", "2", "3", "4"]])
    trees = Trees.from_json(["[1,2,3,4]", "[4,3,2,1]"])
    there, back = (tree_distance(trees.take([i]), middle, ordered="arrays") for i in (0, 1))
    assert (there, back) == (1, 1)
    assert tree_distance(trees.take([0]), trees.take([1]), ordered="arrays") == 4


def test_arrays__equal_children_may_be_worth_more_in_other_pairs() -> None:
    leaves = tuple((each, ()) for each in "1234")
    there, middle, back = ("[", leaves), ("t", leaves), ("[", leaves[::-1])
    left, right = ("s", (there, middle)), ("s", (middle, back))
    assert recurrence(left, right, "arrays", is_list="[".__eq__) == 2
    trees = as_trees([left, right], lists="[")
    assert tree_distance(trees.take([0]), trees.take([1]), ordered="arrays") == 2


def test_unordered__is_a_metric_and_ordered_is_no_less() -> None:
    random = Random(7)
    trees = [random_tree(random, random.randint(1, 7), LABELS) for _ in range(24)]
    pairs = [(a, b) for a in trees for b in trees]
    unordered = np.array(distances(pairs, check_options(False, 1, 1), 100)).reshape(24, 24)
    ordered = np.array(distances(pairs, check_options(True, 1, 1), 100)).reshape(24, 24)
    for each in (unordered, ordered):
        assert (each == each.T).all()
        assert (np.diag(each) == 0).all()
        assert (each[:, :, None] + each[None] >= each[:, None]).all()
    assert (ordered >= unordered).all()
    assert (ordered > unordered).any()


@pytest.mark.parametrize("costs", COSTS)
def test_bounds__are_at_most_the_distance_however_they_are_folded(costs: tuple[int, int]) -> None:
    random = Random(sum(costs))
    trees = [random_tree(random, random.randint(1, 12), LABELS) for _ in range(115)]
    trees += [edited_at_random(random, tree, random.randint(1, 3)) for tree in trees]
    left, right = (rows.astype(np.int64) for rows in np.triu_indices(len(trees), 1))
    assert len(left) > 26_000
    exact = np.empty(len(left), np.int64)
    before = np.zeros((len(left), 5), np.int64)
    for bins in ((1, 1), (2, 4), (16, 32), (64, 128)):
        options = check_options(False, *costs, bins)
        prepared = prepare(as_trees(trees), options)
        bounds = np.empty((len(left), 5), np.int64)
        fill_bounds(prepared.histograms, left, prepared.histograms, right, options.costs, bounds)
        if bins == (1, 1):
            subtrees = prepared.subtrees
            fill_distances(subtrees, left, subtrees, right, options.costs, 1000, True, exact)
        assert (bounds <= exact[:, None]).all()
        assert (bounds >= before).all()  # folding only lowers them: each of these divides the next
        before = bounds
    assert (bounds == exact[:, None]).any(axis=0).all()  # each is reached


def test_distance__is_at_most_the_length_of_any_script() -> None:
    pairs = [pair for pair in random_pairs(31, 400, 12) if pair[2] is not None]
    found = distances([pair[:2] for pair in pairs], check_options(False, 1, 1), 100)
    assert all(each <= edits for each, (_, _, edits) in zip(found, pairs, strict=True) if edits is not None)
    assert sum(each == edits for each, (_, _, edits) in zip(found, pairs, strict=True)) > 100


def test_label_bound__holds_where_the_papers_does_not() -> None:
    # an insertion of a costs 0.1, of b 1, a relabelling 0.9: one inserted a
    a, b = ("b", ()), ("b", (("a", ()),))
    insert = {"a": 0.1, "b": 1.0}
    distance = recurrence(a, b, relabel=lambda x, y: 0.9 * (x != y), insert=lambda x: insert[x])
    assert distance == 0.1
    left_only, right_only = 0, 1
    assert 0.9 * (left_only + right_only) / 2 > distance  # as printed
    assert label_bound(left_only, right_only, 9, 1) == 1  # in tenths


def test_label_bound__holds_where_a_relabelling_costs_more_than_two_insertions() -> None:
    a, b = ("r", (("a", ()),)), ("r", (("b", ()),))
    distance = recurrence(a, b, relabel=lambda x, y: 5 * (x != y), insert=lambda _: 1)
    assert label_bound(1, 1, 5, 1) == distance == 2


def test_label_bound__holds_for_labels_that_cost_different_amounts() -> None:
    insert = {"a": 1, "b": 10, "c": 4}
    relabel = {"ab": 9, "ac": 5, "bc": 8}
    pairs = random_pairs(21, 300, 6)
    tight = 0
    for a, b, _ in pairs:
        exact = recurrence(
            a,
            b,
            relabel=lambda x, y: relabel["".join(sorted(x + y))] if x != y else 0,
            insert=insert.__getitem__,
        )
        counts = [np.array([_labels(tree).count(label) for label in LABELS]) for tree in (a, b)]
        more = counts[0] - counts[1]
        bound = label_bound(int(more.clip(0).sum()), int((-more).clip(0).sum()), 5, 1)
        assert bound <= exact
        tight += bound == exact
    assert tight


def _labels(tree: Tree) -> str:
    return tree[0] + "".join(map(_labels, tree[1]))


# ------------------------------------------------------------------------------------------------- extremes


def test_distance__of_single_nodes_is_a_relabelling() -> None:
    a, b = Trees.from_brackets(["{a}"]), Trees.from_brackets(["{b}"])
    assert tree_distance(a, b) == 1
    assert tree_distance(a, b, relabel=3, insert=2) == tree_distance(a, b, relabel=3.0, insert=2.0) == 3
    assert tree_distance(a, a) == 0


def test_distance__of_chains_of_a_hundred_thousand_nodes_is_refused_or_zero() -> None:
    n = 100_000
    parents = np.arange(n) - 1
    chain = Trees.from_parents(["a"] * n, parents, [0, n])
    same = Trees.from_json(["[" * (n // 2) + "]" * (n // 2)])
    assert int(same.height.max()) == n // 2 - 1
    assert tree_distance(chain, chain) == 0
    other = Trees.from_parents(["a"] * (n - 1) + ["b"], parents, [0, n])
    with pytest.raises(BudgetError, match=r"100,000 and 100,000 nodes have 10,000,000,000 pairs of subtrees"):
        tree_distance(chain, other)


def star(leaves: list[str]) -> Trees:
    return Trees.from_parents(["root", *leaves], [-1] + [0] * len(leaves), [0, len(leaves) + 1])


def test_distance__of_stars_counts_equal_leaves_once() -> None:
    assert tree_distance(star(["x"] * 10_000), star(["x"] * 9_998)) == 2
    assert tree_distance(star(["x"] * 10_000), star(["x"] * 9_998), ordered=True) == 2


def test_distance__of_stars_with_leaves_that_all_differ_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"100,020,001 pairs of subtrees"):
        tree_distance(star([f"x{i}" for i in range(10_000)]), star([f"y{i}" for i in range(10_000)]))


def test_distance__of_wide_stars_that_must_be_paired_leaf_by_leaf_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CELLS", 99)
    assert tree_distance(star(["x"] * 9), star(["y"] * 9)) == 9
    with pytest.raises(BudgetError, match=r"100 pairs of children"):
        tree_distance(star(["x"] * 10), star(["y"] * 10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ordered": "lists"}, "ordered must be False, True or"),
        ({"relabel": 0.5}, "relabel must be a whole number"),
        ({"relabel": 3}, "relabel must cost at most as much as a deletion and an insertion, 2, not 3"),
        ({"insert": 0}, "insert must be a whole number, at least 1"),
    ],
)
def test_distance__refuses_wrong_arguments(change: dict[str, Order], message: str) -> None:
    tree = Trees.from_brackets(["{a}"])
    with pytest.raises(ArgumentError, match=message):
        tree_distance(tree, tree, **change)


def test_distance__takes_one_tree_each() -> None:
    trees = Trees.from_brackets(["{a}", "{b}"])
    with pytest.raises(ArgumentError, match="b must be epsjoin.Trees with one tree.*not 2 trees"):
        tree_distance(trees.take([0]), trees)
    for function in (tree_distance, tree_edits):
        with pytest.raises(ArgumentError, match="a must be epsjoin.Trees with one tree.*not str"):
            function("{a}", trees)
