"""The planned tree of cuts: which parts a row goes to, and which part reports a pair.

Each pair is reported exactly once, for this reason. On axis j a row covers the interval [lower_j, upper_j] of
its cube, and on the hash axis [hash(id), infinity). Two rows within eps meet on every axis, so their
reference point ``r_j = max(lower_j(x), lower_j(y))`` lies in both. The leaves of the tree divide the whole
space, so exactly one leaf holds r.

* *Both rows are there.* At a cut v on the path to that leaf, if r_j < v both lower_j < v: both rows go
  left. If r_j >= v both upper_j >= r_j >= v: both go right.
* *That leaf reports, no other does.* In a leaf, bit j of a row's mask says that the row went right at
  some cut of axis j with lower_j < v, that is, lower_j is below the leaf's lower bound on axis j. Both
  rows have bit j exactly when r_j is below that bound. No ``lower_j`` of either row, and so not r, is above
  the leaf's upper bounds, else the row would not have gone left. So ``mask_x & mask_y == 0`` exactly when the
  leaf holds r.

The proof asks nothing of the cuts: any tree is exact. Corners are compared as float64, computed once per row
by :func:`~epsjoin.kernels.codes.cube_lower` and ``cube_upper``, whose slack makes cubes of rows within eps
meet.

With Euclid's norm an axis may be any direction of length 1: rows within eps are within eps on it. A tree over
e embedded axes and b such directions calls these axes e to e + b - 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.codes import cube_lower, cube_upper

HASH_AXIS = -1
"""Axis of a cut by the hash of the id."""
HASH_BIT = 0
"""Mask bit of the cuts by hash."""
MAX_AXES = 62
"""Maximum number of axes and directions that a tree cuts: bits 1 to 62 of a positive int64."""
SIDES_ARE_GIVEN = -1.0
"""In place of half of a cube's side: the rows come as sides of their cubes, see :func:`assign_rows`."""
_ROUNDING = 2.0**-50
"""Relative error of one term of a sum of products, with slack."""
_NO_OVERFLOW = 2.0**-16
"""Factor of the terms of a sum of products, of which none then overflows."""


class CutTree(NamedTuple):
    """A binary tree of cuts, node 0 the root.

    Parameters
    ----------
    axis : (nodes,) int64, axis of the node's cut: embedded, or e + j for direction j; ``HASH_AXIS`` cuts by
        the hash of the id.
    position : (nodes,) float64, the cut: a coordinate on the axis, or a hash in [0, 1).
    left, right : (nodes,) int64, child nodes; not read at a leaf.
    part : (nodes,) int64, number of a leaf's part, -1 at inner nodes.
    bit : (nodes,) int64, mask bit of the node's axis: 0 for the hash, 1 to 62 for the axes in use.
    basis : (b, e) float64, directions of length 1 at most; (0, 0) where none is cut.
    """

    axis: Ints
    position: Floats
    left: Ints
    right: Ints
    part: Ints
    bit: Ints
    basis: Floats


class AssignedRows(NamedTuple):
    """Rows by point: ``row`` (m,) int64, ``part`` (m,) int64, ``mask`` (m,) int64 (see the module)."""

    row: Ints
    part: Ints
    mask: Ints


def hash_to_unit(ids: Ints) -> Floats:
    """Hash ids to numbers in [0, 1), evenly spread whatever the ids: the upper 53 bits of splitmix64.

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
def turned_sides(embedded: Floats, row: int, direction: Floats, half: float) -> tuple[float, float]:
    """Lower and upper side of a row's cube along a direction; term after term, so the same in any batch.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    row : index of the row.
    direction : (e,) float64, of length 1 at most.
    half : half of eps.

    Returns
    -------
    The slack is eight times the rounding of the sum. Where the sum is not finite, the cube reaches
    everywhere.
    """
    value = 0.0
    total = 0.0
    for i in range(direction.shape[0]):
        term = direction[i] * embedded[row, i]
        value += term
        total += abs(term)
    reach = half + total * direction.shape[0] * _ROUNDING
    if not reach < math.inf:
        return -math.inf, math.inf
    return cube_lower(value, reach), cube_upper(value, reach)


@njit
def assign_rows(
    lower: Floats,
    upper: Floats,
    half: float,
    hashes: Floats,
    tree: CutTree,
    row: Ints,
    part: Ints,
    mask: Ints,
    fill: bool,
) -> int:
    """One pass over all rows: count what they become (``fill`` false) or write it; returns the count.

    Parameters
    ----------
    lower, upper : (n, e) float64, the rows' coordinates, one array twice, or the sides of their cubes.
    half : half of the side of each cube, for coordinates; ``SIDES_ARE_GIVEN`` for sides.
    hashes : (n,) float64, or empty where the tree has no cut by hash.
    tree : the cuts. Directions are for coordinates only.
    row, part, mask : see :class:`AssignedRows`; not read or written while rows are counted. Rows for which
        there is no room are counted only.
    """
    n_nodes = tree.axis.shape[0]
    n_embedded = lower.shape[1]
    nodes = np.empty(n_nodes + 1, np.int64)
    masks = np.empty(n_nodes + 1, np.int64)
    written = 0
    for point in range(lower.shape[0]):
        nodes[0] = 0
        masks[0] = 0
        height = 1
        while height > 0:
            height -= 1
            node = nodes[height]
            seen = masks[height]
            if tree.part[node] >= 0:
                if fill and written < row.size:
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
            elif half < 0.0:
                is_left = lower[point, axis] < cut
                is_right = upper[point, axis] >= cut
            elif axis < n_embedded:
                is_left = cube_lower(lower[point, axis], half) < cut
                is_right = cube_upper(upper[point, axis], half) >= cut
            else:
                low, high = turned_sides(lower, point, tree.basis[axis - n_embedded], half)
                is_left = low < cut
                is_right = high >= cut
            if is_right:
                nodes[height] = tree.right[node]
                masks[height] = seen | (np.int64(1) << tree.bit[node]) if is_left else seen
                height += 1
            if is_left:
                nodes[height] = tree.left[node]
                masks[height] = seen
                height += 1
    return written


def assign(embedded: Floats, hashes: Floats, eps: float, tree: CutTree) -> AssignedRows:
    """Send every row to the parts that its cube touches.

    Parameters
    ----------
    embedded : (n, d) float64; not modified.
    hashes : (n,) float64, :func:`hash_to_unit` of the rows' ids.
    eps : side of a cube in embedded coordinates.
    tree : the cuts.

    Returns
    -------
    AssignedRows
        By point, then in the order of the leaves from left to right. A point's rows depend on its
        coordinates, its id and the tree alone.

    Notes
    -----
    O(rows x depth), e times that where directions are cut; one pass where there are at most 5 rows for 4
    points, as mostly, else two.
    """
    half, room = eps / 2.0, len(embedded) + len(embedded) // 4
    while True:
        rows = AssignedRows(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))
        total = assign_rows(embedded, embedded, half, hashes, tree, *rows, True)
        if total <= room:
            return AssignedRows(*(column[:total] for column in rows))
        room = total


@njit
def holding_parts(embedded: Floats, hashes: Floats, tree: CutTree) -> Ints:
    """Find the one part whose leaf holds each row itself, not its cube; (n,) int64.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    hashes : (n,) float64, :func:`hash_to_unit` of the rows' ids.
    tree : the cuts.

    Notes
    -----
    Every row within eps of a row x goes to this part, if it goes to all parts that its cube of side 2 eps
    touches, and both ways at cuts by hash: at a cut of the path to the leaf, if x lies below it so does that
    cube's lower side, which is x at most; else the upper side, which is x at least, does not lie below it. On
    an axis the sides are monotone roundings of ``y - eps`` and ``y + eps``. Along a direction, x and y are
    sums with an error of an eighth of the slack of y's side, but for a term in eps
    (:func:`epsjoin.local.plan.one_sided.reach` has a wider cube for that).
    """
    n_embedded = embedded.shape[1]
    part = np.empty(embedded.shape[0], np.int64)
    for row in range(embedded.shape[0]):
        node = 0
        while tree.part[node] < 0:
            axis = tree.axis[node]
            cut = tree.position[node]
            if axis < 0:
                value = hashes[row]
            elif axis < n_embedded:
                value = embedded[row, axis]
            else:
                value = 0.0
                cut *= _NO_OVERFLOW
                for i in range(n_embedded):
                    value += tree.basis[axis - n_embedded, i] * (embedded[row, i] * _NO_OVERFLOW)
            node = tree.left[node] if value < cut else tree.right[node]
        part[row] = tree.part[node]
    return part


@njit
def cube_sides(values: Floats, half: float) -> tuple[Floats, Floats]:
    """Lower and upper sides of the cubes on one axis, as :func:`assign` sees them; (n,) float64 each."""
    lower = np.empty(values.shape[0], np.float64)
    upper = np.empty(values.shape[0], np.float64)
    for row in range(values.shape[0]):
        lower[row] = cube_lower(values[row], half)
        upper[row] = cube_upper(values[row], half)
    return lower, upper


@njit
def all_turned_sides(embedded: Floats, basis: Floats, half: float) -> tuple[Floats, Floats]:
    """Sides of all cubes along all directions, (b, n) float64 each."""
    lower = np.empty((basis.shape[0], embedded.shape[0]), np.float64)
    upper = np.empty((basis.shape[0], embedded.shape[0]), np.float64)
    for axis in range(basis.shape[0]):
        for row in range(embedded.shape[0]):
            lower[axis, row], upper[axis, row] = turned_sides(embedded, row, basis[axis], half)
    return lower, upper
