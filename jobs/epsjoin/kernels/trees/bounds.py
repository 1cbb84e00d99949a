"""Histograms of trees, and the lower bounds of the edit distance that follow from them.

Source: Kailing, Kriegel, Schönauer, Seidl, EDBT 2004, section 4: histograms of the heights (they call them
leaf distances), of the degrees and of the labels, each folded into a fixed number of bins, which only lowers
their differences. We depart where the paper's weighted label filter is no bound, and add a sum of two filters
that lets fewer pairs through than the largest of three: docs/notes-on-papers.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints, Ints32
from epsjoin.kernels.trees.shape import Labels

SIZE, HEIGHT, DEGREE, LABEL, SUM = range(5)
"""Columns of :func:`fill_bounds`."""


class Costs(NamedTuple):
    """What an edit costs, in whole units, so that no sum is rounded.

    Parameters
    ----------
    relabel : cost of giving a node another label; at least 1.
    insert : cost of inserting or deleting a node; at least half of ``relabel``.
    """

    relabel: int
    insert: int


class Histograms(NamedTuple):
    """Folded histograms of every tree.

    Parameters
    ----------
    size : (n,) int64, number of nodes.
    height : (n, h) int32, how many nodes have each height modulo h.
    degree : (n, h) int32, how many nodes have each number of children modulo h.
    label : (n, c) int32, how many nodes have each label modulo c.
    """

    size: Ints
    height: Ints32
    degree: Ints32
    label: Ints32


@njit
def fill_histograms(starts: Ints, label: Labels, height: Ints, degree: Ints, filled: Histograms) -> None:
    """Add every node to the histograms of its tree.

    Parameters
    ----------
    starts : (n + 1,) int64, where the nodes of each tree begin.
    label, height, degree : (nodes,), see :func:`epsjoin.kernels.trees.shape.fill_shape`.
    filled : zeros, which are filled.
    """
    labels = np.uint64(filled.label.shape[1])
    for tree in range(starts.size - 1):
        filled.size[tree] = starts[tree + 1] - starts[tree]
        for node in range(starts[tree], starts[tree + 1]):
            filled.height[tree, height[node] % filled.height.shape[1]] += 1
            filled.degree[tree, degree[node] % filled.degree.shape[1]] += 1
            filled.label[tree, np.int64(label[node] % labels)] += 1


@njit
def label_bound(left_only: int, right_only: int, relabel: int, insert: int) -> int:
    """Return what the labels alone cost: some are relabelled, and what is left is inserted or deleted.

    Parameters
    ----------
    left_only, right_only : number of labels that one tree has more of than the other.
    relabel, insert : the least costs of any relabelling, and of any insertion or deletion.
    """
    both = min(left_only, right_only)
    return min(relabel, 2 * insert) * both + insert * (max(left_only, right_only) - both)


@njit
def fill_bounds(
    left: Histograms, left_rows: Ints, right: Histograms, right_rows: Ints, costs: Costs, bounds: Ints
) -> None:
    """Fill lower bounds of the edit distance of pairs of trees.

    Parameters
    ----------
    left, right : histograms with the same numbers of bins.
    left_rows, right_rows : (m,) int64, the trees of each pair.
    costs : the costs of the edits.
    bounds : (m, 5) int64, filled: by the sizes, the heights, the degrees, the labels, and by the sum of
        heights and labels. The largest of the five is a bound, too.

    Notes
    -----
    An insertion changes one bin of the heights by 1: those above the new node move by one, and their changes
    cancel but for one. It changes one bin of the labels, and three of the degrees at most. A relabelling
    changes two bins of the labels. So an insertion changes (2 insert - relabel) heights + relabel labels by
    2 insert, a relabelling by 2 relabel: half of the sum is a bound.
    """
    relabel, insert = costs.relabel, costs.insert
    for i in range(left_rows.size):
        x, y = left_rows[i], right_rows[i]
        heights = degrees = left_only = right_only = 0
        for j in range(left.height.shape[1]):
            heights += abs(left.height[x, j] - right.height[y, j])
            degrees += abs(left.degree[x, j] - right.degree[y, j])
        for j in range(left.label.shape[1]):
            more = left.label[x, j] - right.label[y, j]
            left_only += max(more, 0)
            right_only += max(-more, 0)
        both = (2 * insert - relabel) * heights + relabel * (left_only + right_only)
        bounds[i, SIZE] = insert * abs(left.size[x] - right.size[y])
        bounds[i, HEIGHT] = insert * heights
        bounds[i, DEGREE] = (insert * degrees + 2) // 3
        bounds[i, LABEL] = label_bound(left_only, right_only, relabel, insert)
        bounds[i, SUM] = (both + 1) // 2
