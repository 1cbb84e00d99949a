"""The edits that turn one tree into another: the reason of a distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.trees.assignment import assign
from epsjoin.kernels.trees.distance import fill_cells
from epsjoin.local.trees.distance import check_pair, distance_of
from epsjoin.local.trees.prepared import Order, PreparedTrees, TreeOptions, check_options
from epsjoin.local.trees.trees import Trees

NO_NODE = -1

What = Literal["delete", "relabel", "insert"]


class Edit(NamedTuple):
    """One edit of a tree.

    Parameters
    ----------
    what : "delete", "relabel" or "insert".
    node : the number of the node. Nodes of the first tree are numbered from 0 in postorder; inserted nodes
        get the next numbers, in the order in which they are inserted.
    label : of the node: the new one, or that of the node that is deleted.
    before : the label that a relabelled node had, "" otherwise.
    parent : the number of the parent of a node that is inserted, -1 for the root; -1 otherwise.
    child : the number of the node that comes below an inserted one, and had its place; -1 for a leaf and
        otherwise.
    place : of an inserted leaf: how many of the parent's children come before it; 0 otherwise.
    path : the labels from the root to the node, in the first tree, or for an inserted node in the second.
    """

    what: What
    node: int
    label: str
    before: str
    parent: int
    child: int
    place: int
    path: tuple[str, ...]

    def __str__(self) -> str:
        where = "/".join(self.path)
        if self.what == "relabel":
            return f"relabel {where} to {self.label}"
        return f"{self.what} {where}"


def tree_edits(
    a: Trees, b: Trees, *, ordered: Order = False, relabel: int = 1, insert: int = 1
) -> list[Edit]:
    """Find the cheapest edits that turn one tree into another.

    Parameters
    ----------
    a, b : one tree each.
    ordered, relabel, insert : see :func:`tree_join`.

    Returns
    -------
    list[Edit]
        In an order in which they can be applied: deletions from the leaves up, relabellings, insertions from
        the root down. Their costs add up to :func:`tree_distance`. Of several cheapest ways one is returned,
        always the same. With ``ordered="arrays"`` the result equals ``b`` but for the order of children below
        a list that was paired with another node.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`tree_distance`.

    Notes
    -----
    The distances of all pairs of subtrees are computed once; the way back through them takes time for the
    pairs of children that it meets, and for the paths that are returned, each as long as its node is deep.

    Examples
    --------
    >>> trees = Trees.from_json(['{"mark": "bar", "size": 3}', '{"mark": "line"}'])
    >>> for edit in tree_edits(trees.take([0]), trees.take([1])):
    ...     print(edit)
    delete {}/.size/3
    delete {}/.size
    relabel {}/.mark/"bar" to "line"
    """
    options = check_options(ordered, relabel, insert)
    left, right = check_pair(a, b, options)
    partner = _Way(a, left, b, right, options).partners()
    return list(_script(a, b, partner))


class _Way:
    """The way back through the distances of the subtrees of two trees."""

    def __init__(
        self, a: Trees, left: PreparedTrees, b: Trees, right: PreparedTrees, options: TreeOptions
    ) -> None:
        self.a, self.left, self.b, self.right, self.options = a, left, b, right, options
        self.limit = distance_of(left, right, options)
        cells = np.empty(len(left.subtrees.size) * len(right.subtrees.size), np.int64)
        fill_cells(left.subtrees, 0, right.subtrees, 0, options.costs, self.limit, options.may_cancel, cells)
        self.cells = cells.reshape(len(left.subtrees.size), -1)

    def partners(self) -> dict[int, int]:
        """Return the node of the second tree that each node becomes; deleted nodes have none."""
        partner = {}
        waiting = [(len(self.a.size) - 1, len(self.b.size) - 1)]
        while waiting:
            x, y = waiting.pop()
            total, pairs = self._matched(x, y)
            if total == self._distance(x, y):
                partner[x] = y
                waiting += pairs
            else:
                waiting.append(self._past_a_node(x, y))
        return partner

    def _distance(self, x: int, y: int) -> int:
        """The distance of the subtrees of two nodes, limit + 1 for all beyond it."""
        if abs(int(self.a.size[x] - self.b.size[y])) * self.options.costs.insert > self.limit:
            return self.limit + 1
        return int(self.cells[self.left.place[x], self.right.place[y]])

    def _past_a_node(self, x: int, y: int) -> tuple[int, int]:
        """The pair that is left if it is cheapest to delete the first node, or to insert the second."""
        insert, best = self.options.costs.insert, self._distance(x, y)
        for child in _children(self.a.size, x):
            if self._distance(child, y) + int(self.a.size[x] - self.a.size[child]) * insert == best:
                return child, y
        for child in _children(self.b.size, y):
            if self._distance(x, child) + int(self.b.size[y] - self.b.size[child]) * insert == best:
                return x, child
        raise AssertionError("the distance of two subtrees follows from none of its parts")

    def _matched(self, x: int, y: int) -> tuple[int, list[tuple[int, int]]]:
        """What it costs to turn one node into the other with all below, and pairs of their children."""
        children, others = _children(self.a.size, x), _children(self.b.size, y)
        own = self.options.costs.relabel if self.a.label[x] != self.b.label[y] else 0
        places = self.left.place[x], self.right.place[y]
        if self.left.subtrees.is_ordered[places[0]] and self.right.subtrees.is_ordered[places[1]]:
            pairs = self._aligned(children, others)
        else:
            pairs = self._paired(children, others)
        kept = {x for x, _ in pairs}, {y for _, y in pairs}
        lost = sum(int(self.a.size[child]) for child in children if child not in kept[0])
        lost += sum(int(self.b.size[child]) for child in others if child not in kept[1])
        return own + lost * self.options.costs.insert + sum(self._distance(*pair) for pair in pairs), pairs

    def _saving(self, x: int, y: int) -> int:
        whole = int(self.a.size[x] + self.b.size[y]) * self.options.costs.insert
        apart = self._distance(x, y)
        return max(0, whole - apart) if apart <= self.limit else 0

    def _paired(self, children: list[int], others: list[int]) -> list[tuple[int, int]]:
        """The cheapest pairs of children without an order."""
        pairs = []
        if self.options.may_cancel:
            equal: dict[int, list[int]] = {}
            for child in reversed(others):
                equal.setdefault(int(self.right.subtrees.digest[self.right.place[child]]), []).append(child)
            for child in children:
                if alike := equal.get(int(self.left.subtrees.digest[self.left.place[child]])):
                    pairs.append((child, alike.pop()))  # noqa: PERF401  # it takes what it tests
            kept = {x for x, _ in pairs}, {y for _, y in pairs}
            children = [child for child in children if child not in kept[0]]
            others = [child for child in others if child not in kept[1]]
        savings = np.array([[-self._saving(x, y) for y in others] for x in children], np.int64)
        if not savings.size:
            return pairs
        is_wide = len(children) <= len(others)
        columns = np.empty(min(savings.shape), np.int64)
        assign(np.ascontiguousarray(savings if is_wide else savings.T), columns)
        for row, column in enumerate(columns.tolist()):
            i, j = (row, column) if is_wide else (column, row)
            if savings[i, j] < 0:
                pairs.append((children[i], others[j]))
        return pairs

    def _aligned(self, children: list[int], others: list[int]) -> list[tuple[int, int]]:
        """The cheapest pairs of children in their order."""
        saved = np.zeros((len(children) + 1, len(others) + 1), np.int64)
        for i, x in enumerate(children):
            for j, y in enumerate(others):
                saved[i + 1, j + 1] = max(saved[i, j + 1], saved[i + 1, j], saved[i, j] + self._saving(x, y))
        pairs = []
        i, j = len(children), len(others)
        while i and j:
            if saved[i, j] == saved[i - 1, j]:
                i -= 1
            elif saved[i, j] == saved[i, j - 1]:
                j -= 1
            else:
                i, j = i - 1, j - 1
                pairs.append((children[i], others[j]))
        return pairs


def _children(size: Ints, node: int) -> list[int]:
    """The children of a node, from left to right."""
    found = []
    child = node - 1
    while child > node - size[node]:
        found.append(child)
        child -= int(size[child])
    return found[::-1]


def _script(a: Trees, b: Trees, partner: dict[int, int]) -> Iterator[Edit]:
    """Yield the edits that follow from which node becomes which, in an order in which each can be done."""
    n = len(a.size)
    children = [_children(a.size, node) for node in range(n)]
    parent = a.parent.tolist()
    changed = {node for node in range(n) if node not in partner or a.label[node] != b.label[partner[node]]}
    path = _paths(a, changed)
    for node in range(n):
        if node in partner:
            continue
        yield Edit("delete", node, a.text(node), "", NO_NODE, NO_NODE, 0, path[node])
        above = parent[node]
        for child in children[node]:  # at most one: all others below it have been deleted
            parent[child] = above
        if above != NO_NODE:
            place = children[above].index(node)
            children[above][place : place + 1] = children[node]
    for node, other in sorted(partner.items()):
        if node in changed:
            yield Edit("relabel", node, b.text(other), a.text(node), NO_NODE, NO_NODE, 0, path[node])
    number = {other: node for node, other in partner.items()}
    path = _paths(b, {other for other in range(len(b.size)) if other not in number})
    is_there = np.full(len(b.size), NO_NODE)
    is_there[list(number)] = list(number)
    latest = np.maximum.accumulate(is_there).tolist()  # of the nodes up to each, that which is there already
    becomes = {node: other for other, node in number.items()}
    for other in reversed(range(len(b.size))):  # parents before their children
        if other in number:
            continue
        node = number[other] = len(children)
        becomes[node] = other
        over = int(b.parent[other])
        above = number[over] if over != NO_NODE else NO_NODE
        below = latest[other]
        children.append([])
        place, child = 0, NO_NODE
        if below > other - int(b.size[other]):  # the top of what is there already
            child = number[below]
            children[node].append(child)
            if above != NO_NODE:
                children[above][children[above].index(child)] = node
        elif above != NO_NODE:
            place = sum(becomes[each] < other for each in children[above])
            children[above].insert(place, node)
        yield Edit("insert", node, b.text(other), "", above, child, place, path[other])


def _paths(tree: Trees, nodes: set[int]) -> dict[int, tuple[str, ...]]:
    """The labels from the root to each of these nodes."""
    paths, depth, labels = {}, [0] * len(tree.size), list[str]()
    for node, parent in reversed(list(enumerate(tree.parent.tolist()))):  # parents before their children
        depth[node] = depth[parent] + 1 if parent != NO_NODE else 0
        labels[depth[node] :] = [tree.text(node)]
        if node in nodes:
            paths[node] = tuple(labels)
    return paths
