"""Trees as the joins need them: their different subtrees, and their histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.trees.bounds import Costs, Histograms, fill_histograms
from epsjoin.kernels.trees.shape import (
    ARRAYS,
    ORDERED,
    UNORDERED,
    Labels,
    Subtrees,
    fill_children,
    fill_digests,
)
from epsjoin.local.arguments import MAX_BINS, check_count
from epsjoin.local.trees.trees import Trees

Order = Literal["arrays"] | bool

BINS = (16, 32)
"""Default numbers of bins of the histograms: of heights and degrees, and of labels."""
MAX_NODES = 2000
"""Default maximum number of nodes of a tree that is compared."""


class TreeOptions(NamedTuple):
    """How trees are compared; made by :func:`check_options`.

    Parameters
    ----------
    order : whose children are ordered, one of the numbers of :mod:`epsjoin.kernels.trees.shape`.
    costs : of the edits.
    bins : of the histograms.
    """

    order: int
    costs: Costs
    bins: tuple[int, int]

    @property
    def may_cancel(self) -> bool:
        """Whether the distance is a metric, so that equal children may be paired in advance."""
        return self.order != ARRAYS


MAX_COST = 2**31
"""Maximum cost of an edit, so that the cost of all nodes of two trees is a number of 64 bits."""


def check_options(ordered: object, relabel: object, insert: object, bins: object = BINS) -> TreeOptions:
    """Check the arguments that all functions on trees share.

    Raises
    ------
    ArgumentError
        One of them is not allowed.
    """
    if not (isinstance(ordered, bool) or (isinstance(ordered, str) and ordered == "arrays")):
        raise ArgumentError(f'ordered must be False, True or "arrays", not {ordered!r}')
    costs = Costs(
        *(check_count(name, _whole(cost)) for name, cost in (("relabel", relabel), ("insert", insert)))
    )
    if max(costs) > MAX_COST:
        raise ArgumentError(f"relabel and insert must be at most {MAX_COST:,}, not {max(costs):,}")
    if costs.relabel > 2 * costs.insert:
        raise ArgumentError(
            f"relabel must cost at most as much as a deletion and an insertion, {2 * costs.insert}, not "
            f"{costs.relabel}: beyond it the distance is no metric"
        )
    if not isinstance(bins, (tuple, list)) or len(bins) != 2:
        raise ArgumentError(f"bins must be two numbers, of heights and of labels, not {bins!r}")
    height_bins, label_bins = (check_count("bins", each, most=MAX_BINS) for each in bins)
    order = ARRAYS if ordered == "arrays" else ORDERED if ordered else UNORDERED
    return TreeOptions(order, costs, (height_bins, label_bins))


def _whole(cost: object) -> object:
    """A float that is a whole number as an int; anything else as it is."""
    return int(cost) if isinstance(cost, float) and cost.is_integer() else cost


def check_sizes(trees: Trees, max_nodes: object) -> None:
    """Refuse trees that are too large to be compared.

    Raises
    ------
    BudgetError
        A tree has more nodes than are allowed.
    """
    most = check_count("max_nodes", max_nodes)
    is_larger = trees.n_nodes > most
    if is_larger.any():
        first = int(is_larger.argmax())
        raise BudgetError(
            f"{np.count_nonzero(is_larger):,} of {len(trees):,} trees have more than max_nodes = {most} "
            f"nodes, tree {first} {trees.n_nodes[first]}; leave them out by "
            f"trees.take(trees.n_nodes <= {most}), or raise max_nodes: two trees take memory and time for "
            "each pair of their different subtrees"
        )


@dataclass(frozen=True)
class PreparedTrees:
    """What is computed of trees before they are compared.

    Parameters
    ----------
    subtrees : the different subtrees of each tree.
    place : (nodes,) int64, the place of the subtree of each node among those of its tree.
    histograms : of each tree.
    """

    subtrees: Subtrees
    place: Ints
    histograms: Histograms

    @property
    def digest(self) -> Labels:
        """(n,) uint64, equal for equal trees."""
        return np.asarray(self.subtrees.digest[self.subtrees.starts[1:] - 1])

    def points(self, costs: Costs) -> Floats:
        """Return a point for each tree; their Manhattan distance is at most that of the trees, doubled."""
        heights = self.histograms.height * float(2 * costs.insert - costs.relabel)
        return np.hstack((heights, self.histograms.label * float(costs.relabel)))


def root_digests(trees: Trees, options: TreeOptions) -> Labels:
    """Return (n,) uint64, equal for equal trees."""
    return np.asarray(_digests(trees, _is_ordered(trees, options))[trees.starts[1:] - 1])


def has_lists_and_sets(options: TreeOptions, *sides: Trees) -> bool:
    """Whether nodes of one label are lists here and sets there: trees that differ may be at distance 0.

    Trees of JSON have no such label.
    """
    if options.order != ARRAYS:
        return False
    label, is_list = (
        np.concatenate([getattr(trees, name) for trees in sides]) for name in ("label", "is_list")
    )
    return len(np.intersect1d(label[is_list], label[~is_list])) > 0


def _is_ordered(trees: Trees, options: TreeOptions) -> Bools:
    """Mark the nodes whose children have an order."""
    if options.order == ARRAYS:
        assert trees.is_list is not None  # noqa: S101  # every Trees has set it
        return trees.is_list
    return np.full(len(trees.size), options.order == ORDERED)


def _digests(trees: Trees, is_ordered: Bools) -> Labels:
    digest = np.empty(len(trees.size), np.uint64)
    with np.errstate(over="ignore"):  # uncompiled, NumPy would warn of sums modulo 2^64, which are intended
        fill_digests(trees.label, trees.size, is_ordered, digest)
    return digest


def prepare(trees: Trees, options: TreeOptions) -> PreparedTrees:
    """Find the different subtrees of each tree, and count what the histograms hold.

    Notes
    -----
    O(nodes log nodes) time; some 70 bytes per node, and 8 for each bin of each tree.
    """
    n, nodes = len(trees), len(trees.size)
    is_ordered = _is_ordered(trees, options)
    digest = _digests(trees, is_ordered)
    tree_of = np.repeat(np.arange(n), trees.n_nodes)
    order = np.lexsort((digest, tree_of))
    is_first = np.ones(nodes, np.bool_)
    is_first[1:] = (np.diff(tree_of[order]) > 0) | (digest[order][1:] != digest[order][:-1])
    group = np.cumsum(is_first) - 1
    firsts = order[is_first]  # lexsort is stable: the first node of each subtree
    node_of = np.sort(firsts)
    starts = np.searchsorted(node_of, trees.starts)
    place = np.empty(nodes, np.int64)
    place[order] = np.searchsorted(node_of, firsts)[group]
    place -= starts[:-1][tree_of]
    child_starts = np.concatenate(([0], np.cumsum(trees.degree[node_of])))
    subtrees = Subtrees(
        starts,
        trees.label[node_of],
        trees.size[node_of],
        digest[node_of],
        is_ordered[node_of],
        child_starts,
        np.empty(child_starts[-1], np.int64),
    )
    fill_children(trees.size, digest, place, node_of, subtrees)
    height_bins, label_bins = options.bins
    histograms = Histograms(
        np.zeros(n, np.int64),
        np.zeros((n, height_bins), np.int32),
        np.zeros((n, height_bins), np.int32),
        np.zeros((n, label_bins), np.int32),
    )
    fill_histograms(trees.starts, trees.label, trees.height, trees.degree, histograms)
    return PreparedTrees(subtrees, place, histograms)
