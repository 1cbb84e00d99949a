"""The degree-2 edit distance of trees, as long as it is within a limit.

An edit relabels a node, or inserts or deletes one that has at most two edges: a leaf, or a node with one
child, which takes its place. Trees whose children have no order are compared in polynomial time only because
of that restriction.

References
----------
Zhang, Wang, Shasha, *On the editing distance between undirected acyclic graphs*, International Journal of
Foundations of Computer Science 7(1), 1996: the distance. The recurrence is derived in
docs/notes-on-papers.md.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.trees.assignment import assign
from epsjoin.kernels.trees.bounds import Costs
from epsjoin.kernels.trees.shape import Labels, Subtrees


@njit
def fill_distances(
    left: Subtrees,
    left_rows: Ints,
    right: Subtrees,
    right_rows: Ints,
    costs: Costs,
    limit: int,
    may_cancel: bool,
    distances: Ints,
) -> int:
    """Fill the distances of pairs of trees.

    Parameters
    ----------
    left, right : the trees.
    left_rows, right_rows : (m,) int64, the trees of each pair.
    costs : the costs of the edits.
    limit : distances beyond it are not told apart.
    may_cancel : whether equal children of two nodes without an order may be paired in advance: True where the
        distance of subtrees is a metric, which it is not where some nodes have an order and others none.
    distances : (m,) int64, filled: the distance, or ``limit + 1`` where it is beyond the limit.

    Returns
    -------
    int
        The number of pairs of subtrees whose distance was computed.

    Notes
    -----
    Memory: 8 bytes for each pair of different subtrees of two trees.
    """
    room = 1
    for i in range(left_rows.size):
        x, y = left_rows[i], right_rows[i]
        n_left = left.starts[x + 1] - left.starts[x]
        room = max(room, n_left * (right.starts[y + 1] - right.starts[y]))
    cells = np.empty(room, np.int64)
    computed = 0
    for i in range(left_rows.size):
        distances[i], pairs = _distance(
            left, left_rows[i], right, right_rows[i], costs, limit, may_cancel, cells
        )
        computed += pairs
    return computed


@njit
def fill_cells(
    left: Subtrees, x: int, right: Subtrees, y: int, costs: Costs, limit: int, may_cancel: bool, cells: Ints
) -> None:
    """Fill the distances of all pairs of different subtrees of two trees.

    Parameters
    ----------
    left, x, right, y : the trees.
    costs, limit, may_cancel : see :func:`fill_distances`.
    cells : (a * b,) int64, filled, row by row, for a and b different subtrees. Where the sizes of two
        subtrees differ so much that their distance is beyond the limit, nothing is filled.
    """
    _distance(left, x, right, y, costs, limit, may_cancel, cells)


@njit
def _distance(
    left: Subtrees, x: int, right: Subtrees, y: int, costs: Costs, limit: int, may_cancel: bool, cells: Ints
) -> tuple[int, int]:
    """Return the distance of two trees, at most limit + 1, and the number of cells that were computed."""
    begin, other_begin = left.starts[x], right.starts[y]
    end, other_end = left.starts[x + 1], right.starts[y + 1]
    width = other_end - other_begin
    # numba counts references at each look into a tuple: in the loops, that would cost a third of the time
    sizes, other_sizes = left.size[begin:end], right.size[other_begin:other_end]
    labels, other_labels = left.label[begin:end], right.label[other_begin:other_end]
    digests, other_digests = left.digest[begin:end], right.digest[other_begin:other_end]
    are_ordered, others_ordered = left.is_ordered[begin:end], right.is_ordered[other_begin:other_end]
    firsts, other_firsts = (
        left.child_starts[begin : end + 1],
        right.child_starts[other_begin : other_end + 1],
    )
    all_children, all_others = left.child, right.child
    relabel, insert = costs.relabel, costs.insert
    reach = limit // insert
    if abs(sizes[-1] - other_sizes[-1]) > reach:
        return limit + 1, 0
    computed = 0
    for a in range(end - begin):
        size = sizes[a]
        for b in range(width):
            other_size = other_sizes[b]
            if abs(size - other_size) > reach:
                continue
            computed += 1
            cell = a * width + b
            if digests[a] == other_digests[b]:
                cells[cell] = 0
                continue
            best = limit + 1
            for at in range(firsts[a], firsts[a + 1]):  # a is deleted, one child stays
                child = all_children[at]
                child_size = sizes[child]
                if size - child_size <= reach and abs(child_size - other_size) <= reach:
                    through = cells[child * width + b] + (size - child_size) * insert
                    best = min(best, through)
            for at in range(other_firsts[b], other_firsts[b + 1]):  # b is inserted above a
                child = all_others[at]
                child_size = other_sizes[child]
                if other_size - child_size <= reach and abs(size - child_size) <= reach:
                    through = cells[a * width + child] + (other_size - child_size) * insert
                    best = min(best, through)
            own = relabel if labels[a] != other_labels[b] else 0
            room = best - own - 1  # what the nodes below may cost for this to be the best
            n_children = firsts[a + 1] - firsts[a]
            n_others = other_firsts[b + 1] - other_firsts[b]
            if room >= 0 and abs(n_children - n_others) * insert <= room:
                below = (size + other_size - 2) * insert  # all nodes below are deleted, or inserted
                if n_children == 1 and n_others == 1:  # most nodes: nothing to choose
                    child = all_children[firsts[a]]
                    other = all_others[other_firsts[b]]
                    if abs(size - other_size) * insert <= room:
                        below = min(below, cells[child * width + other])
                elif n_children > 0 and n_others > 0:
                    children = all_children[firsts[a] : firsts[a + 1]]
                    others = all_others[other_firsts[b] : other_firsts[b + 1]]
                    if are_ordered[a] and others_ordered[b]:
                        below = _align(children, others, sizes, other_sizes, costs, room, cells)
                    else:
                        if may_cancel:
                            children, others = _cancel(children, others, digests, other_digests)
                        below = _pair(children, others, sizes, other_sizes, costs, room, may_cancel, cells)
                best = min(best, own + below)
            cells[cell] = best
    return int(cells[(end - begin) * width - 1]), computed


@njit
def _cancel(children: Ints, others: Ints, digests: Labels, other_digests: Labels) -> tuple[Ints, Ints]:
    """Leave out equal children of both, which are sorted by digest."""
    kept, other_kept = np.empty_like(children), np.empty_like(others)
    i = j = n = m = 0
    while i < children.size and j < others.size:
        mine, its = digests[children[i]], other_digests[others[j]]
        if mine == its:
            i += 1
            j += 1
        elif mine < its:
            kept[n] = children[i]
            i += 1
            n += 1
        else:
            other_kept[m] = others[j]
            j += 1
            m += 1
    while i < children.size:
        kept[n] = children[i]
        i += 1
        n += 1
    while j < others.size:
        other_kept[m] = others[j]
        j += 1
        m += 1
    return kept[:n], other_kept[:m]


@njit
def saving(
    child: int, other: int, sizes: Ints, other_sizes: Ints, costs: Costs, limit: int, cells: Ints
) -> int:
    """Return what is saved by turning one subtree into another instead of deleting and inserting nodes.

    Parameters
    ----------
    child, other : the subtrees, by their places.
    sizes, other_sizes : the sizes of all different subtrees of both trees.
    costs : the costs of the edits.
    limit : distances beyond it are not told apart.
    cells : see :func:`fill_cells`.
    """
    size, other_size = sizes[child], other_sizes[other]
    if abs(size - other_size) * costs.insert > limit:
        return 0
    return max(0, int((size + other_size) * costs.insert - cells[child * other_sizes.size + other]))


@njit
def _pair(
    children: Ints,
    others: Ints,
    sizes: Ints,
    other_sizes: Ints,
    costs: Costs,
    limit: int,
    are_different: bool,
    cells: Ints,
) -> int:
    """Return what it costs to pair children without an order; more than limit if it is beyond."""
    if abs(children.size - others.size) * costs.insert > limit:
        return limit + 1
    if are_different and max(children.size, others.size) * min(costs.relabel, costs.insert) > limit:
        return limit + 1
    total = 0
    for at in range(children.size):
        total += sizes[children[at]] * costs.insert
    for at in range(others.size):
        total += other_sizes[others[at]] * costs.insert
    if children.size == 0 or others.size == 0:
        return total
    is_wide = children.size <= others.size
    savings = np.empty((min(children.size, others.size), max(children.size, others.size)), np.int64)
    is_taken = np.zeros(savings.shape[1], np.bool_)
    most, is_settled = 0, True  # if each row takes the column that saves most, are these different columns?
    for i in range(savings.shape[0]):
        best, column = 0, -1
        for j in range(savings.shape[1]):
            child, other = (children[i], others[j]) if is_wide else (children[j], others[i])
            saved = saving(child, other, sizes, other_sizes, costs, limit, cells)
            savings[i, j] = -saved
            if saved > best:
                best, column = saved, j
        most += best
        if column >= 0:
            is_settled = is_settled and not is_taken[column]
            is_taken[column] = True
    if is_settled:
        return total - most
    return total + assign(savings, np.empty(savings.shape[0], np.int64))


@njit
def _align(
    children: Ints, others: Ints, sizes: Ints, other_sizes: Ints, costs: Costs, limit: int, cells: Ints
) -> int:
    """Return what it costs to pair children in their order; more than limit if it is beyond."""
    band = limit // costs.insert  # each child without a partner costs a node at least
    if abs(children.size - others.size) > band:
        return limit + 1
    before, now = np.empty(others.size + 1, np.int64), np.empty(others.size + 1, np.int64)
    before[0] = 0
    for j in range(1, others.size + 1):
        before[j] = before[j - 1] + other_sizes[others[j - 1]] * costs.insert
    for i in range(1, children.size + 1):
        size = sizes[children[i - 1]]
        first, last = max(1, i - band), min(others.size, i + band)
        now[first - 1] = before[0] + size * costs.insert if first == 1 else limit + 1
        for j in range(first, last + 1):
            other_size = other_sizes[others[j - 1]]
            best = now[j - 1] + other_size * costs.insert
            if j < i + band:
                best = min(best, before[j] + size * costs.insert)
            if abs(size - other_size) * costs.insert <= limit:
                best = min(best, before[j - 1] + cells[children[i - 1] * other_sizes.size + others[j - 1]])
            now[j] = best
        before, now = now, before
    return int(before[others.size])
