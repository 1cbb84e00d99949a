"""The planned tree of cuts: which parts a row goes to, and which part reports a pair.

Each pair exactly once. Per axis j a row covers the interval [lower_j, upper_j] of its cube, and on the
hash axis [hash(id), infinity). Two rows within eps meet on every axis, so their reference point
``r_j = max(lower_j(x), lower_j(y))`` lies in both. The leaves of the tree divide the whole space, so
exactly one leaf holds r.

* *Both rows are there.* At a cut v on the path to that leaf, if r_j < v both lower_j < v: both rows go
  left. If r_j >= v both upper_j >= r_j >= v: both go right.
* *That leaf reports, no other does.* In a leaf, bit j of a row's mask says that the row went right at
  some cut of axis j with lower_j < v, that is, lower_j is below the leaf's lower bound on axis j. Both
  rows have bit j exactly when r_j is below that bound; neither row, and so not r, is above the leaf's upper
  bounds, else it had not gone left. So ``mask_x & mask_y == 0`` exactly when the leaf holds r.

Nothing is asked of the cuts: any tree is exact. Corners are compared as float64 computed once per row by
:func:`~epsjoin.kernels.codes.cube_lower` and ``cube_upper``, whose slack makes cubes of rows within eps meet.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.choice import axes_by_variance, choose_projection, row_candidates, simple_projection
from epsjoin.kernels.codes import cube_lower, cube_upper

HASH_AXIS = -1
HASH_BIT = 0
MAX_AXES = 62  # bits 1..62 of a positive int64; bit 0 is the hash


class CutTree(NamedTuple):
    """A binary tree of cuts, node 0 the root.

    Parameters
    ----------
    axis : (nodes,) int64, embedded axis of the node's cut; ``HASH_AXIS`` cuts by the hash of the id.
    position : (nodes,) float64, the cut: in embedded coordinates, or a hash in [0, 1).
    left, right : (nodes,) int64, child nodes; not read at a leaf.
    part : (nodes,) int64, number of a leaf's part, -1 at inner nodes.
    bit : (nodes,) int64, mask bit of the node's axis: 0 for the hash, 1 to 62 for the axes in use.
    """

    axis: NDArray[np.int64]
    position: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    part: NDArray[np.int64]
    bit: NDArray[np.int64]


class AssignedRows(NamedTuple):
    """Rows by point: ``row`` (m,) int64, ``part`` (m,) int64, ``mask`` (m,) int64 (see the module)."""

    row: NDArray[np.int64]
    part: NDArray[np.int64]
    mask: NDArray[np.int64]


def hash_ids(ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give a number in [0, 1) per id, evenly spread whatever the ids: splitmix64, its upper 53 bits.

    Parameters
    ----------
    ids : (n,) int64; not modified.

    References
    ----------
    Steele, Lea, Flood, OOPSLA 2014: fast splittable pseudorandom number generators.
    """
    z = ids.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


@njit
def _assign(
    embedded: NDArray[np.float64],
    hashes: NDArray[np.float64],
    half: float,
    tree: CutTree,
    row: NDArray[np.int64],
    part: NDArray[np.int64],
    mask: NDArray[np.int64],
    fill: bool,
) -> int:
    """One pass over all rows: count what they become (``fill`` false) or write it; returns the count."""
    n_nodes = tree.axis.shape[0]
    nodes = np.empty(n_nodes + 1, np.int64)
    masks = np.empty(n_nodes + 1, np.int64)
    written = 0
    for point in range(embedded.shape[0]):
        nodes[0] = 0
        masks[0] = 0
        height = 1
        while height > 0:
            height -= 1
            node = nodes[height]
            seen = masks[height]
            if tree.part[node] >= 0:
                if fill:
                    row[written] = point
                    part[written] = tree.part[node]
                    mask[written] = seen
                written += 1
                continue
            cut = tree.position[node]
            axis = tree.axis[node]
            if axis < 0:
                is_left = hashes[point] < cut
                is_right = True
            else:
                is_left = cube_lower(embedded[point, axis], half) < cut
                is_right = cube_upper(embedded[point, axis], half) >= cut
            if is_right:
                nodes[height] = tree.right[node]
                masks[height] = seen | (np.int64(1) << tree.bit[node]) if is_left else seen
                height += 1
            if is_left:
                nodes[height] = tree.left[node]
                masks[height] = seen
                height += 1
    return written


def assign(
    embedded: NDArray[np.float64], hashes: NDArray[np.float64], eps: float, tree: CutTree
) -> AssignedRows:
    """Send every row to the parts that its cube touches.

    Parameters
    ----------
    embedded : (n, d) float64; not modified.
    hashes : (n,) float64, :func:`hash_ids` of the rows' ids.
    eps : side of a cube in embedded coordinates.
    tree : the cuts.

    Returns
    -------
    AssignedRows
        By point, then in the order of the leaves from left to right. A point's rows depend on its
        coordinates, its id and the tree alone.

    Notes
    -----
    Two passes (count, fill), O(rows x depth).
    """
    half = eps / 2.0
    none = np.empty(0, np.int64)
    total = _assign(embedded, hashes, half, tree, none, none, none, False)
    rows = AssignedRows(np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64))
    _assign(embedded, hashes, half, tree, rows.row, rows.part, rows.mask, True)
    return rows


@njit
def cube_sides(values: NDArray[np.float64], half: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper sides of the cubes on one axis, as :func:`assign` sees them; (n,) float64 each."""
    lower = np.empty(values.shape[0], np.float64)
    upper = np.empty(values.shape[0], np.float64)
    for row in range(values.shape[0]):
        lower[row] = cube_lower(values[row], half)
        upper[row] = cube_upper(values[row], half)
    return lower, upper


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


class _Leaf(NamedTuple):
    """Rows of the sample at a leaf: index, whether below its hash bound, whether at home here (mask 0).

    ``decided`` (rows,) float64: pairs that will be decided here, each shared by both rows' homes.
    """

    row: NDArray[np.int64]
    is_carried: NDArray[np.bool_]
    is_home: NDArray[np.bool_]
    decided: NDArray[np.float64]
    candidates: NDArray[np.int64]
    work: float


class _Cut(NamedTuple):
    """A cut and its two leaves."""

    axis: int
    position: float
    left: _Leaf
    right: _Leaf


class _Sample(NamedTuple):
    """What the planner knows: the sample, the rows each one stands for, what rows and pairs of it cost."""

    embedded: NDArray[np.float64]
    hashes: NDArray[np.float64]
    eps: float
    norm: int
    n_grid: int
    row_cost: float
    candidate_cost: float
    decision_cost: float
    move_cost: float


_TRIED_AXES = 16  # by falling variance: a cut on a flat axis crosses every cube
_MANY_CROSSED = 0.3  # share of crossed cubes from which a cut by hash may be cheaper
_LOOKED_LEAVES = 64  # for the estimate of all candidates
_LARGEST_SHARE = 0.3  # of all work in rating a cut: what the largest part would take if all took as long
_STUCK_SHARE = 0.75  # of a leaf that stays: cutting smaller ones adds rows, and that one is waited for anyway


def _make_leaf(
    sample: _Sample,
    row: NDArray[np.int64],
    is_carried: NDArray[np.bool_],
    is_home: NDArray[np.bool_],
    decided: NDArray[np.float64],
) -> _Leaf:
    candidates = np.zeros(len(row), np.int64)
    if len(row) > 1:
        values = sample.embedded[row]
        simple = simple_projection(values, sample.norm, sample.n_grid)
        candidates = row_candidates(values, is_carried, sample.eps, simple)
    work = (
        sample.row_cost * len(row)
        + sample.candidate_cost * float(candidates.sum())
        + sample.decision_cost * float(decided.sum())
    )
    return _Leaf(row, is_carried, is_home, decided, candidates, work)


def _balanced_position(
    values: NDArray[np.float64], weights: NDArray[np.float64], share: float
) -> float | None:
    """Give the value with ``share`` of the weight below it, one value at least on either side; or None."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    place = min(int(np.searchsorted(sums, sums[-1] * share)), len(order) - 1)
    position = float(values[order[place]])
    lowest = float(values[order[0]])
    if position > lowest:
        return position
    above = values[values > lowest]
    return float(above.min()) if len(above) else None


def _divide(sample: _Sample, leaf: _Leaf, axis: int, position: float) -> _Cut:
    """Both leaves of a cut, by the same comparisons as :func:`assign`."""
    if axis == HASH_AXIS:
        is_left = sample.hashes[leaf.row] < position
        is_right = np.ones(len(leaf.row), np.bool_)
        carried = leaf.is_carried | is_left
        carried_share = _carried_share(leaf)
        share = float(np.count_nonzero(is_left & leaf.is_home) / np.count_nonzero(leaf.is_home))
        left_factor = (carried_share + share / 2.0) / (carried_share + 0.5)
        right_factor = (1.0 - share * left_factor) / (1.0 - share) if share < 1.0 else 0.0
    else:
        lower, upper = cube_sides(np.ascontiguousarray(sample.embedded[leaf.row, axis]), sample.eps / 2.0)
        is_left = lower < position
        is_right = upper >= position
        carried = leaf.is_carried
        left_factor = right_factor = 1.0
    decided = leaf.decided * left_factor
    left = _make_leaf(
        sample, leaf.row[is_left], leaf.is_carried[is_left], leaf.is_home[is_left], decided[is_left]
    )
    is_home = leaf.is_home & ~is_left
    decided = np.where(is_home, leaf.decided * right_factor, 0.0)
    right = _make_leaf(sample, leaf.row[is_right], carried[is_right], is_home[is_right], decided[is_right])
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


def _score(sample: _Sample, cut: _Cut, n_parts: int) -> float:
    """Rate a cut of a leaf that is worth ``n_parts`` parts, less is better: all work, rows, the largest part.

    The parts go to both sides as their work does, one at least to either; a side may be larger than its share
    of whole parts.
    """
    left, right = cut.left.work, cut.right.work
    of_left = int(min(max(round(n_parts * left / (left + right)), 1), n_parts - 1))
    largest = max(left / of_left, right / (n_parts - of_left))
    moved = sample.move_cost * (len(cut.left.row) + len(cut.right.row))
    return left + right + moved + _LARGEST_SHARE * n_parts * largest


def _best_cut(sample: _Sample, leaf: _Leaf, used: set[int], room: float, n_parts: int) -> _Cut | None:
    """Give the best cut, or None when no cut makes the larger side cheaper than the leaf.

    The leaf is worth ``n_parts`` parts, 2 at least; so a cut need not halve it.
    Tried are the two axes whose balanced cut crosses the fewest cubes, and the hash where even the
    best of them crosses many; a cut that adds more than ``room`` rows is not made.
    """
    if np.count_nonzero(leaf.is_home) < 2:
        return None
    share = (n_parts // 2) / n_parts
    weights = (
        sample.row_cost
        + sample.candidate_cost * leaf.candidates.astype(np.float64)
        + sample.decision_cost * leaf.decided
    )
    tried: list[tuple[float, int, float]] = []
    for axis in axes_by_variance(sample.embedded[leaf.row])[:_TRIED_AXES].tolist():
        if len(used) >= MAX_AXES and axis not in used:
            continue
        values = np.ascontiguousarray(sample.embedded[leaf.row, axis])
        lower, upper = cube_sides(values, sample.eps / 2.0)
        position = _balanced_position(values, weights, share)
        if position is not None:
            beside = float(lower[values == position].min())  # a cut through many equal rows crosses them all
            options = []
            for place in (position, beside):
                of_left, of_right = lower < place, upper >= place
                larger = max(weights[of_left].sum() / share, weights[of_right].sum() / (1.0 - share))
                crossed = np.count_nonzero(of_left & of_right) / len(leaf.row)
                options.append((float(larger), float(crossed), place))
            _, share_crossed, position = min(options, key=lambda option: option[0])
            tried.append((share_crossed, axis, position))
    tried.sort(key=lambda option: option[0])
    del tried[2:]
    if not tried or tried[0][0] > _MANY_CROSSED:
        own = ~leaf.is_carried
        position = _balanced_position(sample.hashes[leaf.row[own]], weights[own], _hash_share(leaf, share))
        if position is not None:
            tried.append((1.0, HASH_AXIS, position))
    best: _Cut | None = None
    for _, axis, position in tried:
        cut = _divide(sample, leaf, axis, position)
        if len(cut.left.row) + len(cut.right.row) - len(leaf.row) > room:
            continue
        if max(cut.left.work, cut.right.work) >= leaf.work:
            continue
        if best is None or _score(sample, cut, n_parts) < _score(sample, best, n_parts):
            best = cut
    return best


def grow_tree(
    embedded: NDArray[np.float64],
    hashes: NDArray[np.float64],
    eps: float,
    n_parts: int,
    *,
    norm: int,
    decided: NDArray[np.float64],
    rows_per_row: float,
    row_cost: float,
    candidate_cost: float,
    decision_cost: float,
    move_cost: float,
    max_rows: float,
) -> GrownTree:
    """Fit a tree of cuts to a sample: always cut the leaf with the most estimated work.

    Parameters
    ----------
    embedded : (m, e) float64; not modified.
    hashes : (m,) float64, :func:`hash_ids`.
    eps : side of a cube in embedded coordinates.
    n_parts : leaves to aim at. There are fewer when no cut helps: a leaf that cannot be cut stays a leaf.
    norm : see :class:`epsjoin.kernels.projection.Projection`.
    decided : (m,) float64, pairs of the sample that are decided, half of each at either row; not modified.
    rows_per_row : rows that each row of the sample stands for.
    row_cost, candidate_cost, decision_cost : cost of a row, of a candidate and of a decided pair of a join,
        in any one unit.
    move_cost : cost of bringing a row to its part, in the same unit; not in ``work``.
    max_rows : rows that the sample must not exceed in all leaves; may be infinite.

    Returns
    -------
    GrownTree
        The same for the same arguments; ties go to the smaller axis and the older leaf.

    Notes
    -----
    O(m log m) per level of the tree and axis tried.
    """
    m = len(embedded)
    n_grid = choose_projection(embedded, round(m * rows_per_row), eps, norm).projection.n_grid
    squared = rows_per_row**2
    sample = _Sample(
        embedded,
        hashes,
        eps,
        norm,
        n_grid,
        row_cost * rows_per_row,
        candidate_cost * squared,
        decision_cost * squared,
        move_cost * rows_per_row,
    )
    everything = np.arange(m, dtype=np.int64)
    root = _make_leaf(sample, everything, np.zeros(m, np.bool_), np.ones(m, np.bool_), decided)
    axis, position, left, right = [HASH_AXIS], [0.0], [-1], [-1]
    open_leaves = [(-root.work, 0, root)]
    leaves: dict[int, _Leaf] = {0: root}
    used: set[int] = set()
    rows, work = m, root.work
    stuck = 0.0  # work of the first leaf that cannot be cut, which is the largest of them
    while open_leaves and len(leaves) < n_parts:
        _, node, leaf = heapq.heappop(open_leaves)
        if leaf.work < _STUCK_SHARE * stuck:
            break
        worth = max(2, round(leaf.work * n_parts / work)) if work > 0.0 else 2
        cut = _best_cut(sample, leaf, used, max_rows - rows, worth)
        if cut is None:
            stuck = max(stuck, leaf.work)
            continue
        del leaves[node]
        axis[node], position[node] = cut.axis, cut.position
        left[node], right[node] = len(axis), len(axis) + 1
        if cut.axis != HASH_AXIS:
            used.add(cut.axis)
        rows += len(cut.left.row) + len(cut.right.row) - len(leaf.row)
        work += cut.left.work + cut.right.work - leaf.work
        for child in (cut.left, cut.right):
            heapq.heappush(open_leaves, (-child.work, len(axis), child))
            leaves[len(axis)] = child
            axis.append(HASH_AXIS)
            position.append(0.0)
            left.append(-1)
            right.append(-1)
    tree = make_tree(axis, position, left, right)
    candidates = _candidates(sample, [leaves[node] for node in sorted(leaves)], rows_per_row)
    of_parts = np.empty(len(leaves))
    for node, leaf in leaves.items():
        of_parts[tree.part[node]] = leaf.work
    return GrownTree(tree, len(leaves), of_parts, rows, candidates)


def _candidates(sample: _Sample, leaves: list[_Leaf], rows_per_row: float) -> float:
    """Candidates in all leaves, each with the coordinates it would choose; of many, some stand for all."""
    looked = leaves[:: -(-len(leaves) // _LOOKED_LEAVES)]
    candidates = 0.0
    for leaf in looked:
        values = sample.embedded[leaf.row]
        chosen = choose_projection(values, round(len(values) * rows_per_row), sample.eps, sample.norm)
        of_rows = row_candidates(values, leaf.is_carried, sample.eps, chosen.projection)
        candidates += float(of_rows.sum())
    return candidates * len(leaves) / len(looked)


def make_tree(axis: list[int], position: list[float], left: list[int], right: list[int]) -> CutTree:
    """Give a tree from its nodes: numbers the leaves from left to right and gives each axis its mask bit.

    Parameters
    ----------
    axis, position, left, right : one entry per node, node 0 the root; a node without children
        (``left == -1``) is a leaf.

    Raises
    ------
    ValueError
        The cuts use more than 62 axes.
    """
    axes = sorted({a for a, child in zip(axis, left, strict=True) if child >= 0 and a != HASH_AXIS})
    if len(axes) > MAX_AXES:
        raise ValueError(f"a tree may cut {MAX_AXES} axes, not {len(axes)}")
    bits = {HASH_AXIS: HASH_BIT, **{a: number for number, a in enumerate(axes, 1)}}
    part = [-1] * len(axis)
    pending, n_parts = [0], 0
    while pending:
        node = pending.pop()
        if left[node] < 0:
            part[node] = n_parts
            n_parts += 1
        else:
            pending += [right[node], left[node]]
    return CutTree(
        np.array(axis, np.int64),
        np.array(position, np.float64),
        np.array(left, np.int64),
        np.array(right, np.int64),
        np.array(part, np.int64),
        np.array([bits[a] if child >= 0 else 0 for a, child in zip(axis, left, strict=True)], np.int64),
    )
