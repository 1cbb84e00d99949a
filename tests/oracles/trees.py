"""Edit distances of small trees by their definitions: a search over edits, and the plain recurrence.

A tree is a tuple: its label, and a tuple of its children.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import permutations
from random import Random
from typing import Any

Tree = tuple[str, tuple[Any, ...]]
Number = float
Relabel = Callable[[str, str], Number]
Insert = Callable[[str], Number]


def unit_relabel(label: str, other: str) -> int:
    return int(label != other)


def unit_insert(label: str) -> int:
    return 1


def n_nodes(tree: Tree) -> int:
    return 1 + sum(map(n_nodes, tree[1]))


def nested(tree: Tree) -> list[Any]:
    """The tree as nested lists."""
    return [tree[0], *map(nested, tree[1])]


def canonical(tree: Tree) -> Tree:
    """One tree for all in which only the order of children differs."""
    return tree[0], tuple(sorted(map(canonical, tree[1])))


def random_tree(random: Random, size: int, labels: str) -> Tree:
    """A tree of that size, each node below one of those before it."""
    children: list[list[int]] = [[] for _ in range(size)]
    for node in range(1, size):
        children[random.randrange(node)].append(node)

    def build(node: int) -> Tree:
        return random.choice(labels), tuple(map(build, children[node]))

    return build(0)


def edited(tree: Tree, labels: str, is_root: bool = True) -> Iterator[tuple[str, str, Tree]]:
    """All trees that one edit makes of a tree, with what was done and the label, or "old>new" labels."""
    label, children = tree
    for other in labels:
        if other != label:
            yield "relabel", f"{label}>{other}", (other, children)
        for place in range(len(children) + 1):  # a leaf anywhere
            yield "insert", other, (label, (*children[:place], (other, ()), *children[place:]))
        if is_root:
            yield "insert", other, (other, (tree,))
        for place, child in enumerate(children):  # between the node and one child
            yield "insert", other, (label, (*children[:place], (other, (child,)), *children[place + 1 :]))
    if is_root and len(children) == 1:
        yield "delete", label, children[0]
    for place, child in enumerate(children):
        if len(child[1]) <= 1:
            yield "delete", child[0], (label, (*children[:place], *child[1], *children[place + 1 :]))
        for what, of, changed in edited(child, labels, is_root=False):
            yield what, of, (label, (*children[:place], changed, *children[place + 1 :]))


def all_distances(
    tree: Tree,
    labels: str,
    most_nodes: int,
    ordered: bool = False,
    relabel: Relabel = unit_relabel,
    insert: Insert = unit_insert,
) -> dict[Tree, Number]:
    """The cost of the cheapest edits from one tree to every tree that can be reached, the cheapest first.

    No tree on the way has more than ``most_nodes`` nodes.
    """
    shape = (lambda each: each) if ordered else canonical
    start = shape(tree)
    costs: dict[Tree, Number] = {start: 0}
    queue: list[tuple[Number, Tree]] = [(0, start)]
    done = set()
    while queue:
        cost, at = heapq.heappop(queue)
        if at in done:
            continue
        done.add(at)
        for what, of, changed in edited(at, labels):
            if n_nodes(changed) > most_nodes:
                continue
            reached = shape(changed)
            more = cost + (relabel(*of.split(">")) if what == "relabel" else insert(of))
            if more < costs.get(reached, float("inf")):
                costs[reached] = more
                heapq.heappush(queue, (more, reached))
    return costs


def recurrence(
    tree: Tree,
    other: Tree,
    ordered: bool | str = False,
    relabel: Relabel = unit_relabel,
    insert: Insert = unit_insert,
    is_list: Callable[[str], bool] = lambda label: label == "[]",
) -> Number:
    """The distance by the recurrence over subtrees, every assignment of children tried."""

    @lru_cache(None)
    def whole(tree: Tree) -> Number:
        return insert(tree[0]) + sum(map(whole, tree[1]))

    @lru_cache(None)
    def distance(a: Tree, b: Tree) -> Number:
        found = relabel(a[0], b[0]) + below(a, b) if a[0] != b[0] else below(a, b)
        for child in a[1]:
            found = min(found, distance(child, b) + whole(a) - whole(child))
        for child in b[1]:
            found = min(found, distance(a, child) + whole(b) - whole(child))
        return found

    def below(a: Tree, b: Tree) -> Number:
        if ordered is True or (ordered == "arrays" and is_list(a[0]) and is_list(b[0])):
            return aligned(a[1], b[1])
        return paired(a[1], b[1])

    def paired(left: tuple[Tree, ...], right: tuple[Tree, ...]) -> Number:
        few, many = sorted((left, right), key=len)
        base = sum(map(whole, left)) + sum(map(whole, right))
        best = base
        for chosen in permutations(range(len(many)), len(few)):
            total = base
            for child, place in zip(few, chosen, strict=True):
                apart = whole(child) + whole(many[place])
                total -= max(0, apart - distance(child, many[place]))
            best = min(best, total)
        return best

    def aligned(left: tuple[Tree, ...], right: tuple[Tree, ...]) -> Number:
        if not left or not right:
            return sum(map(whole, left)) + sum(map(whole, right))
        return min(
            aligned(left[1:], right) + whole(left[0]),
            aligned(left, right[1:]) + whole(right[0]),
            aligned(left[1:], right[1:]) + distance(left[0], right[0]),
        )

    return distance(tree, other)
