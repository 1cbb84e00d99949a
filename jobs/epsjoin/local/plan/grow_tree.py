"""Growing the planned tree on a sample.

Any tree is exact (:mod:`epsjoin.kernels.join.cuts`); this one has leaves of equal work, and few rows in
several.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.join.cuts import HASH_AXIS, MAX_AXES, CutTree, all_turned_sides, cube_sides, make_tree
from epsjoin.kernels.join.projection import SQUARES, Projection, axes_by_variance
from epsjoin.local.plan.projection import choose_projection, principal_axes, row_candidates, simple_projection


class GrownTree(NamedTuple):
    """A tree fitted to a sample, and what the sample becomes under it.

    Parameters
    ----------
    tree : the cuts.
    n_parts : leaves; parts are numbered from left to right.
    work : (n_parts,) float64, estimated work of each part, in the unit of the costs.
    rows : rows of the sample in all parts.
    candidates : pairs of them that the window sweeps would look at.
    """

    tree: CutTree
    n_parts: int
    work: NDArray[np.float64]
    rows: int
    candidates: float


class DecidedPairs(NamedTuple):
    """Pairs of a sample that a join will decide: ``left``, ``right`` (k,) int64, rows of the sample.

    Each stands for ``weight`` of them.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    weight: float


class _Leaf(NamedTuple):
    """Rows of the sample at a leaf: index, whether below its hash bound.

    ``pair``: numbers of the pairs that are decided here, whose reference point it holds (:mod:`cuts`).
    """

    row: NDArray[np.int64]
    is_carried: NDArray[np.bool_]
    pair: NDArray[np.int64]
    candidates: NDArray[np.int64]
    work: float


class _Cut(NamedTuple):
    """A cut and its two leaves."""

    axis: int
    position: float
    left: _Leaf
    right: _Leaf


class _Sample(NamedTuple):
    """What the planner knows: the sample, the rows each one stands for, what rows and pairs of it cost.

    ``lower``, ``upper`` (b, m) float64: sides of the cubes along the directions of the basis. ``simple``: the
    coordinates in which a leaf's candidates are counted, but for the axes, of which each leaf has its own.
    ``columns``: ``embedded`` by axes. ``orders``: all rows by their values on each axis that was sorted.
    """

    embedded: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    hashes: NDArray[np.float64]
    decided: DecidedPairs
    eps: float
    simple: Projection
    row_cost: float
    candidate_cost: float
    decision_cost: float
    move_cost: float
    turn_cost: float
    largest_share: float
    columns: NDArray[np.float64]
    orders: dict[int, NDArray[np.int64]]

    def sides(self, rows: NDArray[np.int64], axis: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper sides of the cubes of these rows, as :func:`assign` sees them."""
        turned = axis - self.embedded.shape[1]
        if turned >= 0:
            return self.lower[turned, rows], self.upper[turned, rows]
        return cube_sides(self.columns[axis, rows], self.eps / 2.0)

    def is_pair_left(self, pair: NDArray[np.int64], axis: int, position: float) -> NDArray[np.bool_]:
        """Whether the reference points of these pairs are below a cut."""
        below = np.ones(len(pair), np.bool_)
        for rows in (self.decided.left[pair], self.decided.right[pair]):
            lower = self.hashes[rows] if axis == HASH_AXIS else self.sides(rows, axis)[0]
            below &= lower < position
        return below

    def weights(self, leaf: _Leaf) -> NDArray[np.float64]:
        """Work of each row of a leaf; that of a pair is shared by its rows."""
        ends = np.concatenate((self.decided.left[leaf.pair], self.decided.right[leaf.pair]))
        of_rows = np.bincount(ends, minlength=len(self.embedded))[leaf.row]
        return np.asarray(
            self.row_cost
            + self.candidate_cost * leaf.candidates.astype(np.float64)
            + self.decision_cost * (0.5 * self.decided.weight) * of_rows
        )

    def order(self, rows: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """Places in ``rows``, which rise, by their values on an axis; ties by row."""
        m = len(self.embedded)
        if len(rows) * _SORTED_ROWS < m:
            return np.argsort(self.values(rows, axis), kind="stable")
        if axis not in self.orders:
            self.orders[axis] = np.argsort(self.values(np.arange(m), axis), kind="stable")
        place = np.full(m, -1)
        place[rows] = np.arange(len(rows))
        places = place[self.orders[axis]]
        return np.asarray(places[places >= 0])

    def values(self, rows: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        """Coordinates of these rows on an axis; in between the sides, where they are known alone."""
        if axis == HASH_AXIS:
            return self.hashes[rows]
        turned = axis - self.embedded.shape[1]
        if turned >= 0:
            return np.asarray((self.lower[turned, rows] + self.upper[turned, rows]) / 2.0)
        return np.asarray(self.columns[axis, rows])


_TRIED_AXES = 16  # by falling variance: a cut on a flat axis crosses every cube
_TRIED_DIRECTIONS = 8  # principal axes, by falling variance of the sample
_DIRECTION_STEPS = 1e6  # in 1
_SORTED_ROWS = 8  # to sort a row among few costs as much as to look at so many of a sorted sample
_DIVIDED_AXES = 5  # of these the work of both sides is counted
_MANY_CROSSED = 0.5  # share of the cubes, from which a cut by hash may be cheaper
_MOST_LEFT = 0.7  # share of the work on one side, the same
_LOOKED_LEAVES = 64  # for the estimate of all candidates
# What the largest part would take if all took as long, as a share of all work in rating a cut: the first, and
# where the tree is uneven by it the others, too.
_LARGEST_SHARES = (0.3, 0.5, 0.7)
_UNEVEN_TREE = 1.35  # largest part to mean part
_UNEVEN = 1.2  # largest part to mean part, from which it pays to look on
_MOST_SHIFTS, _BALANCED = 3, 0.03  # of a cut that was tried, until its sides are so near to what was aimed at
_STUCK_SHARE = 0.75  # of a leaf that stays: cutting smaller ones adds rows, and that one is waited for anyway


def _make_leaf(
    sample: _Sample,
    row: NDArray[np.int64],
    is_carried: NDArray[np.bool_],
    pair: NDArray[np.int64],
) -> _Leaf:
    candidates = np.zeros(len(row), np.int64)
    if len(row) > 1:
        values = sample.embedded[row]
        simple = sample.simple._replace(axes=axes_by_variance(values)[: len(sample.simple.axes)])
        candidates = row_candidates(values, is_carried, sample.eps, simple)
    work = (
        sample.row_cost * len(row)
        + sample.candidate_cost * float(candidates.sum())
        + sample.decision_cost * sample.decided.weight * len(pair)
    )
    return _Leaf(row, is_carried, pair, candidates, work)


def _balanced_position(
    ascending: NDArray[np.float64], weights: NDArray[np.float64], share: float
) -> float | None:
    """Give the value with ``share`` of the weight below it, one value at least on either side; or None."""
    sums = np.cumsum(weights)
    place = min(int(np.searchsorted(sums, sums[-1] * share)), len(sums) - 1)
    place = max(place, int(np.searchsorted(ascending, ascending[0], "right")))
    return float(ascending[place]) if place < len(ascending) else None


def _divide(sample: _Sample, leaf: _Leaf, axis: int, position: float) -> _Cut:
    """Both leaves of a cut, by the same comparisons as :func:`assign`."""
    if axis == HASH_AXIS:
        is_left = sample.hashes[leaf.row] < position
        is_right = np.ones(len(leaf.row), np.bool_)
        carried = leaf.is_carried | is_left
    else:
        lower, upper = sample.sides(leaf.row, axis)
        is_left = lower < position
        is_right = upper >= position
        carried = leaf.is_carried
    below = sample.is_pair_left(leaf.pair, axis, position)
    left = _make_leaf(sample, leaf.row[is_left], leaf.is_carried[is_left], leaf.pair[below])
    right = _make_leaf(sample, leaf.row[is_right], carried[is_right], leaf.pair[~below])
    return _Cut(axis, position, left, right)


def _carried_share(leaf: _Leaf) -> float:
    """Carried rows of a leaf for each of its own."""
    carried = int(np.count_nonzero(leaf.is_carried))
    return float(carried / max(1, len(leaf.row) - carried))


def _hash_share(leaf: _Leaf, share: float) -> float:
    """Own rows that must be left of a hash cut for this share of the pairs to be left.

    Of N own rows the left ones, fN, are compared with C carried ones and with each other: f C N + (f N)² / 2
    of C N + N² / 2 pairs; the right ones with all rows.
    """
    c = _carried_share(leaf)
    return float(np.sqrt(c * c + share * (2.0 * c + 1.0)) - c)


def _allot(works: tuple[float, float], n_parts: int) -> int:
    """Give the parts of the left side, one at least to either: the largest part is as small as can be."""
    left, right = works
    fewer = min(max(int(n_parts * left / (left + right)), 1), n_parts - 1)
    more = min(fewer + 1, n_parts - 1)
    return min(fewer, more, key=lambda of_left: max(left / of_left, right / (n_parts - of_left)))


def _rate(sample: _Sample, axis: int, works: tuple[float, float], n_rows: int, n_parts: int) -> float:
    """Rate a cut of a leaf that is worth ``n_parts`` parts, less is better: all work, rows, the largest part.

    Parameters
    ----------
    axis : of the cut.
    works : of both sides. The parts go to both sides as their work does, one at least to either; a side may
        be larger than its share of whole parts.
    n_rows : rows of both sides.
    """
    left, right = works
    of_left = _allot(works, n_parts)
    largest = max(left / of_left, right / (n_parts - of_left))
    is_turned = axis >= sample.embedded.shape[1]
    moved = n_rows * (sample.move_cost + (sample.turn_cost if is_turned else 0.0))
    return left + right + moved + sample.largest_share * n_parts * largest


def _position(
    sample: _Sample, leaf: _Leaf, weights: NDArray[np.float64], axis: int, share: float
) -> float | None:
    """Where an axis must be cut for about this share of the leaf's weights to be left; or None."""
    rows = leaf.row
    if axis == HASH_AXIS:
        own = ~leaf.is_carried
        rows, weights, share = rows[own], weights[own], _hash_share(leaf, share)
    order = sample.order(rows, axis)
    return _balanced_position(sample.values(rows[order], axis), weights[order], share)


def _best_axes(
    sample: _Sample, leaf: _Leaf, weights: NDArray[np.float64], used: set[int], n_parts: int
) -> list[tuple[int, float]]:
    """Give the axes and directions that are rated best by the leaf's weights, each with its cut."""
    n_embedded = sample.embedded.shape[1]
    share = (n_parts // 2) / n_parts
    rated: list[tuple[float, int, float]] = []
    axes = axes_by_variance(sample.embedded[leaf.row])[:_TRIED_AXES].tolist()
    for axis in [*axes, *range(n_embedded, n_embedded + len(sample.lower))]:
        if len(used) >= MAX_AXES and axis not in used:
            continue
        middle = _position(sample, leaf, weights, axis, share)
        if middle is None:
            continue
        lower, upper = sample.sides(leaf.row, axis)
        beside = float(
            lower[sample.values(leaf.row, axis) == middle].min()
        )  # equal rows would all be crossed
        for position in (middle, beside):
            of_left, of_right = lower < position, upper >= position
            works = float(weights[of_left].sum()), float(weights[of_right].sum())
            n_rows = int(np.count_nonzero(of_left) + np.count_nonzero(of_right))
            rated.append((_rate(sample, axis, works, n_rows, n_parts), axis, position))
    best: dict[int, float] = {}
    for _, axis, position in sorted(rated):
        best.setdefault(axis, position)
    return list(best.items())[:_DIVIDED_AXES]


def _best_cut(sample: _Sample, leaf: _Leaf, used: set[int], room: float, n_parts: int) -> _Cut | None:
    """Give the best cut, or None when no cut makes the larger side cheaper than the leaf.

    The leaf is worth ``n_parts`` parts, 2 at least; so a cut need not halve it. The hash is tried where the
    axes that are rated best cross many cubes or leave most of the work on one side; a cut that adds more than
    ``room`` rows is not made.
    """
    if np.count_nonzero(~leaf.is_carried) < 2:
        return None
    share = (n_parts // 2) / n_parts
    weights = sample.weights(leaf)
    best: tuple[float, _Cut] | None = None

    def try_cut(axis: int, position: float | None) -> bool:
        """Whether this is the best cut so far."""
        nonlocal best
        if position is None:
            return False
        cut = _divide(sample, leaf, axis, position)
        works = cut.left.work, cut.right.work
        n_rows = len(cut.left.row) + len(cut.right.row)
        rated = _rate(sample, axis, works, n_rows, n_parts)
        if n_rows - len(leaf.row) > room or max(works) >= leaf.work or (best and rated >= best[0]):
            return False
        best = rated, cut
        return True

    def balance() -> None:
        """Shift the best cut: what balances the leaf's weights does not balance the work of both sides."""
        aimed = share
        for _ in range(_MOST_SHIFTS):
            if best is None:
                return
            left, right = best[1].left.work, best[1].right.work
            off = left / (left + right) - share
            aimed -= off
            if abs(off) <= _BALANCED * share or not 0.0 < aimed < 1.0:
                return
            if not try_cut(best[1].axis, _position(sample, leaf, weights, best[1].axis, aimed)):
                return

    for axis, position in _best_axes(sample, leaf, weights, used, n_parts):
        try_cut(axis, position)
    balance()
    is_poor = best is None or _is_poor(best[1], leaf)
    if is_poor and try_cut(HASH_AXIS, _position(sample, leaf, weights, HASH_AXIS, share)):
        balance()
    return best[1] if best else None


def _is_poor(cut: _Cut, leaf: _Leaf) -> bool:
    """Whether a cut crosses many cubes, or leaves most of the work on one side."""
    n_rows = len(cut.left.row) + len(cut.right.row)
    return (
        n_rows > (1.0 + _MANY_CROSSED) * len(leaf.row)
        or max(cut.left.work, cut.right.work) > _MOST_LEFT * leaf.work
    )


def grow_tree(
    embedded: NDArray[np.float64],
    hashes: NDArray[np.float64],
    eps: float,
    n_parts: int,
    *,
    norm: int,
    decided: DecidedPairs,
    rows_per_row: float,
    row_cost: float,
    candidate_cost: float,
    decision_cost: float,
    move_cost: float,
    term_cost: float,
    max_rows: float,
) -> GrownTree:
    """Fit a tree of cuts to a sample, its leaves of equal work.

    Parameters
    ----------
    embedded : (m, e) float64; not modified.
    hashes : (m,) float64, :func:`hash_ids`.
    eps : side of a cube in embedded coordinates.
    n_parts : leaves to aim at. There are fewer when no cut helps: a leaf that cannot be cut stays a leaf.
    norm : see :class:`epsjoin.kernels.join.projection.Projection`.
    decided : pairs of the sample that pass the filter; not modified.
    rows_per_row : rows that each row of the sample stands for.
    row_cost, candidate_cost, decision_cost : cost of a row, of a candidate and of a decided pair of a join,
        in any one unit.
    move_cost : cost of bringing a row to its part, in the same unit; not in ``work``.
    term_cost : cost of one product of a row and a direction, in the same unit; not in ``work``.
    max_rows : rows that the sample must not exceed in all leaves; may be infinite.

    Returns
    -------
    GrownTree
        The same for the same arguments; ties go to the smaller axis and the older leaf.

    Notes
    -----
    O(m log m) per level of the tree and axis tried. A leaf is allotted parts, and its children share them as
    their work does; the leaf with the most work per part is cut first. What is uneven then is mended by
    undoing the cut that divides the least work and cutting the largest leaf in its place. A tree that stays
    uneven is grown again with more weight on the largest part; of all, that whose largest part is smallest.
    """
    m = len(embedded)
    n_grid = choose_projection(embedded, round(m * rows_per_row), eps, norm).projection.n_grid
    squared = rows_per_row**2
    basis = _directions(embedded) if norm == SQUARES else np.empty((0, embedded.shape[1]))
    sample = _Sample(
        embedded,
        *all_turned_sides(embedded, basis, eps / 2.0),
        hashes,
        decided,
        eps,
        simple_projection(embedded, norm, n_grid),
        row_cost * rows_per_row,
        candidate_cost * squared,
        decision_cost * squared,
        move_cost * rows_per_row,
        term_cost * rows_per_row * embedded.shape[1],
        _LARGEST_SHARES[0],
        np.ascontiguousarray(embedded.T),
        {},
    )
    all_pairs = np.arange(len(decided.left))
    root = _make_leaf(sample, np.arange(m), np.zeros(m, np.bool_), all_pairs)
    trees: list[_Tree] = []
    for share in _LARGEST_SHARES:
        trees.append(_Tree(root))
        _grow(sample._replace(largest_share=share), trees[-1], n_parts, max_rows)
        _exchange(sample._replace(largest_share=share), trees[-1], n_parts, max_rows)
        works = trees[-1].works
        if max(works) * len(works) <= _UNEVEN_TREE * sum(works):
            break
    best = min(trees, key=lambda tree: max(tree.works))
    return best.finished(sample, basis, rows_per_row)


def _directions(embedded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some principal axes of the sample, the largest coordinate of each above 0; (b, e) float64.

    Digits are cut off, towards 0: a plan is written as text, no direction becomes longer than 1, and what the
    last bits of another machine's algebra would make of them does not show.
    """
    found = principal_axes(embedded)[:_TRIED_DIRECTIONS]
    largest = np.take_along_axis(found, np.argmax(np.abs(found), axis=1)[:, None], axis=1)
    return np.ascontiguousarray(np.trunc(found * np.sign(largest) * _DIRECTION_STEPS) / _DIRECTION_STEPS)


class _Tree:
    """A tree that grows: its nodes, what lies at its leaves, and what lay at its inner nodes."""

    def __init__(self, root: _Leaf) -> None:
        self.cuts: dict[int, tuple[int, float, int]] = {}
        """By inner node: axis, position, the left child; the right one is the next node."""
        self.leaves = {0: root}
        self.inner: dict[int, _Leaf] = {}
        self.n_nodes = 1
        self.rows = len(root.row)

    @property
    def works(self) -> list[float]:
        """Work of each leaf."""
        return [leaf.work for leaf in self.leaves.values()]

    @property
    def axes(self) -> set[int]:
        """Axes and directions that are cut."""
        return {axis for axis, _, _ in self.cuts.values()} - {HASH_AXIS}

    def cut(self, node: int, cut: _Cut) -> tuple[int, int]:
        """Cut a leaf; its children."""
        left, right = self.n_nodes, self.n_nodes + 1
        self.n_nodes += 2
        self.cuts[node] = cut.axis, cut.position, left
        leaf = self.inner[node] = self.leaves.pop(node)
        self.leaves[left], self.leaves[right] = cut.left, cut.right
        self.rows += _added_rows(leaf, cut)
        return left, right

    def undo(self, node: int) -> None:
        """Make an inner node whose children are leaves a leaf again."""
        _, _, left = self.cuts.pop(node)
        leaf = self.leaves[node] = self.inner.pop(node)
        self.rows += len(leaf.row) - len(self.leaves.pop(left).row) - len(self.leaves.pop(left + 1).row)

    def last_cuts(self) -> list[int]:
        """Inner nodes whose children are leaves."""
        return [n for n, (_, _, left) in self.cuts.items() if {left, left + 1} <= self.leaves.keys()]

    def finished(self, sample: _Sample, basis: NDArray[np.float64], rows_per_row: float) -> GrownTree:
        """Number nodes, parts and directions anew, without those that are not in use."""
        n_embedded = basis.shape[1]
        directions = sorted(axis - n_embedded for axis in self.axes if axis >= n_embedded)
        renamed = {n_embedded + old: n_embedded + new for new, old in enumerate(directions)}
        axis, position, left, right = [HASH_AXIS], [0.0], [-1], [-1]
        leaves = []
        pending = [(0, 0)]
        while pending:
            node, place = pending.pop()
            if node in self.leaves:
                leaves.append(self.leaves[node])
                continue
            cut, position[place], child = self.cuts[node]
            axis[place] = renamed.get(cut, cut)
            left[place], right[place] = len(axis), len(axis) + 1
            pending += [(child + 1, right[place]), (child, left[place])]
            for column, empty in ((axis, HASH_AXIS), (left, -1), (right, -1)):
                column += [empty, empty]
            position += [0.0, 0.0]
        return GrownTree(
            make_tree(axis, position, left, right, basis[directions]),
            len(leaves),
            np.array([leaf.work for leaf in leaves]),
            self.rows,
            _candidates(sample, leaves, rows_per_row),
        )


def _added_rows(leaf: _Leaf, cut: _Cut) -> int:
    return len(cut.left.row) + len(cut.right.row) - len(leaf.row)


def _grow(sample: _Sample, tree: _Tree, n_parts: int, max_rows: float) -> None:
    """Cut until there are so many parts. A leaf's parts go to its children as their work does."""
    growing = [(-tree.leaves[0].work, 0, n_parts)]  # work of each part that it becomes, node, parts
    whole: list[tuple[float, int, int]] = []
    spare = 0  # parts of leaves that cannot be cut
    stuck = 0.0  # work of the largest of them
    while growing:
        share, node, parts = heapq.heappop(growing)
        leaf = tree.leaves[node]
        if leaf.work < _STUCK_SHARE * stuck:
            continue
        if parts == 1 and not spare:
            whole.append((share, node, parts))
            continue
        if parts == 1:
            parts, spare = 2, spare - 1
        cut = _best_cut(sample, leaf, tree.axes, max_rows - tree.rows, parts)
        if cut is None:
            stuck = max(stuck, leaf.work)
            spare += parts - 1
            growing += whole
            whole = []
            heapq.heapify(growing)
            continue
        of_left = _allot((cut.left.work, cut.right.work), parts)
        for child, of_child in zip(tree.cut(node, cut), (of_left, parts - of_left), strict=True):
            heapq.heappush(growing, (-tree.leaves[child].work / of_child, child, of_child))


def _exchange(sample: _Sample, tree: _Tree, n_parts: int, max_rows: float) -> None:
    """While one leaf has much more work than the others: cut it, and undo the cut that divides the least.

    Cuts make work, the more the more cubes they cross: so some leaves were allotted too few parts.
    """
    for _ in range(n_parts):
        works = {node: leaf.work for node, leaf in tree.leaves.items()}
        largest = max(works, key=lambda node: works[node])
        last = tree.last_cuts()
        if not last or works[largest] * len(works) <= _UNEVEN * sum(works.values()):
            return
        least = min(last, key=lambda node: tree.inner[node].work)
        _, _, left = tree.cuts[least]
        freed = len(tree.leaves[left].row) + len(tree.leaves[left + 1].row) - len(tree.inner[least].row)
        if tree.inner[least].work >= works[largest]:
            return
        leaf = tree.leaves[largest]
        cut = _best_cut(sample, leaf, tree.axes, max_rows - tree.rows + freed, 2)
        if cut is None:
            return
        tree.undo(least)
        tree.cut(largest, cut)


def _candidates(sample: _Sample, leaves: list[_Leaf], rows_per_row: float) -> float:
    """Candidates in all leaves, each with the coordinates it would choose; of many, some stand for all."""
    looked = leaves[:: -(-len(leaves) // _LOOKED_LEAVES)]
    candidates = 0.0
    for leaf in looked:
        values = sample.embedded[leaf.row]
        chosen = choose_projection(values, round(len(values) * rows_per_row), sample.eps, sample.simple.norm)
        of_rows = row_candidates(values, leaf.is_carried, sample.eps, chosen.projection)
        candidates += float(of_rows.sum())
    return candidates * len(leaves) / len(looked)
