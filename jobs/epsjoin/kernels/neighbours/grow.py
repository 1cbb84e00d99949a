"""How a tree of boxes grows.

Points are halved again and again, across the axis on which they lie widest apart, until a box holds few of
them: a leaf.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.neighbours.boxes import BoxTree

_DRAWN, _DRAWN_OF_FEW, _MANY = 33, 5, 1024
"""Number of values from which a pivot is chosen: of more than ``_MANY`` values, of fewer."""

_PATHS = 8
"""Number of paths on which rows move in turns."""

_SPREAD_POINTS = 64
"""Number of points of a node that show on which axis they lie widest apart."""


@njit
def _halve(values: Floats, order: Ints, low: int, high: int, middle: int, drawn: Floats) -> None:
    """Reorder [low, high) so that no value before ``middle`` is larger than one from there on.

    Parameters
    ----------
    drawn : (``_DRAWN``,) float64, room for this function's own use.

    Notes
    -----
    O(high - low) expected, by quickselect. The pivot is taken from values at random places: among these it
    has about the rank of the middle, a little nearer to the centre, so that the middle comes into the smaller
    part. That takes about two comparisons for each value at most. Values are moved without a branch, as no
    processor could foresee where one goes.

    References
    ----------
    Floyd, Rivest: Expected time bounds for selection, CACM 1975: a sample whose ranks bound the middle.
    """
    state = 1
    while high - low > 1:
        size = high - low
        n_drawn = _DRAWN if size > _MANY else _DRAWN_OF_FEW
        for i in range(n_drawn):
            state = state * 48271 % 2147483647  # Lehmer's random numbers
            value = values[low + state % size]
            at = i
            while at > 0 and drawn[at - 1] > value:
                drawn[at] = drawn[at - 1]
                at -= 1
            drawn[at] = value
        at = (middle - low) * n_drawn // size
        centre = n_drawn // 2
        pivot = drawn[min(at + 1, centre) if at < centre else max(at - 1, centre)]
        cut = _move_smaller(values, order, low, high, pivot, False)
        if middle < cut:
            high = cut
        elif cut > low:
            low = cut
        else:  # the pivot is the smallest value: all that equal it come first
            low = _move_smaller(values, order, low, high, pivot, True)
            if middle < low:
                return


@njit
def _move_smaller(values: Floats, order: Ints, low: int, high: int, pivot: float, with_equal: bool) -> int:
    """Move the values of [low, high) below a pivot, or up to it, to the front; return their end."""
    cut = np.uint64(low)
    for place in range(np.uint64(low), np.uint64(high)):
        value, row = values[place], order[place]
        values[place], order[place] = values[cut], order[cut]
        values[cut], order[cut] = value, row
        cut += np.uint64(value < pivot) | (np.uint64(value == pivot) & np.uint64(with_equal))
    return int(np.int64(cut))


@njit_inner
def _widest_axis(places: Floats, order: Ints, low: int, high: int) -> int:
    """The axis on which some of the rows ``order[low:high]`` lie widest apart, the first of several.

    Four axes in one pass, whose sides stay in registers.
    """
    step = max(1, (high - low) // _SPREAD_POINTS)
    d = places.shape[1]
    widest, axis = -1.0, 0
    for first in range(0, d - 3, 4):
        i = np.uint64(first)
        least = second_least = third_least = last_least = np.inf
        most = second_most = third_most = last_most = -np.inf
        for place in range(low, high, step):
            row = np.uint64(order[place])
            value, second = places[row, i], places[row, i + np.uint64(1)]
            third, last = places[row, i + np.uint64(2)], places[row, i + np.uint64(3)]
            least, most = min(least, value), max(most, value)
            second_least, second_most = min(second_least, second), max(second_most, second)
            third_least, third_most = min(third_least, third), max(third_most, third)
            last_least, last_most = min(last_least, last), max(last_most, last)
        if most - least > widest:
            widest, axis = most - least, first
        if second_most - second_least > widest:
            widest, axis = second_most - second_least, first + 1
        if third_most - third_least > widest:
            widest, axis = third_most - third_least, first + 2
        if last_most - last_least > widest:
            widest, axis = last_most - last_least, first + 3
    for one in range(d // 4 * 4, d):
        least, most = np.inf, -np.inf
        for place in range(low, high, step):
            value = places[order[place], one]
            least, most = min(least, value), max(most, value)
        if most - least > widest:
            widest, axis = most - least, one
    return axis


@njit
def _leaves_below(node: int, n_leaves: int) -> tuple[int, int]:
    """The first leaf below a node, and the one behind the last."""
    first, last = node, node
    while first < n_leaves - 1:
        first = 2 * first + 1
        last = 2 * last + 2
    return first - (n_leaves - 1), last + 1 - (n_leaves - 1)


@njit
def order_by_leaf(
    embedded: Floats, n_leaves: int, first: int, stop: int, order: Ints, values: Floats
) -> None:
    """Put the rows below node ``first`` into the order of the leaves.

    Parameters
    ----------
    embedded : (m, e) float64, with all rows that ``order`` has below the node.
    n_leaves : number of leaves of the whole tree, a power of two.
    first : the node; the rows of its points stand in their places in ``order``.
    stop : nodes from this one on are not halved.
    order : (n,) int64; modified.
    values : (n,) float64, for use in here.
    """
    n = order.size
    drawn = np.empty(_DRAWN)
    stack = np.empty(128, np.int64)
    stack[0] = first
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        if node >= stop:
            continue
        left_leaf, stop_leaf = _leaves_below(node, n_leaves)
        low = n * left_leaf // n_leaves
        high = n * stop_leaf // n_leaves
        middle = n * ((left_leaf + stop_leaf) // 2) // n_leaves
        axis = _widest_axis(embedded, order, low, high)
        for place in range(low, high):
            values[place] = embedded[order[place], axis]
        _halve(values, order, low, high, middle, drawn)
        stack[size] = 2 * node + 1
        stack[size + 1] = 2 * node + 2
        size += 2


@njit
def _take(points: Floats, rows: Ints) -> Floats:
    """Copy rows number by number: for a whole row numba would make a view, which costs more than the copy."""
    taken = np.empty((rows.size, points.shape[1]))
    for i in range(np.uint64(rows.size)):
        row = np.uint64(rows[i])
        for j in range(np.uint64(points.shape[1])):
            taken[i, j] = points[row, j]
    return taken


@njit_inner
def _find(values: Ints, value: int) -> int:
    """The first place of a value; the number of values where there is none."""
    for i in range(values.size):
        if values[i] == value:
            return i
    return int(values.size)


@njit
def move_rows(points: Floats, order: Ints) -> None:
    """Move the rows of points within their own memory, so that row i becomes the row ``order[i]``.

    A path begins at a row that has not moved, which is held beside the points. The row that comes there
    leaves its own place, to which another row comes, and so on, until a row comes that is held, from the
    beginning of this path or of another. Several paths advance in turns, since each waits for memory most of
    the time.

    Parameters
    ----------
    points : (n, d) float64; modified.
    order : (n,) int64, each row once. Where a row has come, its complement stands here until all have.
    """
    n, d = order.size, np.uint64(points.shape[1])
    held = np.empty((_PATHS, points.shape[1]))
    held_row, to = np.full(_PATHS, -1), np.full(_PATHS, -1)
    unmoved, n_going = 0, 1
    while n_going > 0:
        n_going = 0
        for path in range(_PATHS):
            if to[path] < 0:
                while unmoved < n and (order[unmoved] < 0 or _find(to, unmoved) < _PATHS):
                    unmoved += 1
                if unmoved == n:
                    continue
                slot = _find(held_row, -1)  # each path that ends lets one row go
                for i in range(d):
                    held[slot, i] = points[unmoved, i]
                held_row[slot] = to[path] = unmoved
            n_going += 1
            place = np.uint64(to[path])
            row = order[place]
            order[place] = ~row
            source = np.uint64(row)
            if order[source] >= 0:
                for i in range(d):
                    points[place, i] = points[source, i]
                to[path] = row
                continue
            slot = _find(held_row, row)
            for i in range(d):
                points[place, i] = held[slot, i]
            held_row[slot] = to[path] = -1
    for i in range(n):
        order[i] = ~order[i]


@njit
def grow_below(
    embedded: Floats,
    points: Floats,
    is_one: bool,
    are_moved: bool,
    is_by_axis: bool,
    node: int,
    tree: BoxTree,
    values: Floats,
) -> None:
    """Grow what is below a node: halve its points until they are leaves, and fill these.

    The points are copied first: few enough of them stay in the cache, whatever their rows are.

    Parameters
    ----------
    embedded, points : (n, e) and (n, d) float64, by row.
    is_one : whether both are the same.
    are_moved : whether the rows stand in the tree's order already; they may be in the memory of its places.
    is_by_axis : whether the coordinates of a leaf stand axis by axis.
    node : the rows of its points stand in their places in the tree's order.
    tree : modified.
    values : (n,) float64, for use in here.
    """
    n, n_leaves = tree.order.size, (tree.low.shape[0] + 1) // 2
    first, stop = _leaves_below(node, n_leaves)
    begin = n * first // n_leaves
    mine = tree.order[begin : n * stop // n_leaves]
    rows = mine.copy()
    for i in range(rows.size):
        mine[i] = i
    few = _take(embedded, mine + begin if are_moved else rows)
    order_by_leaf(few, n_leaves, node, n_leaves - 1, tree.order, values)
    _fill_leaves(few, few if is_one else _take(points, rows), is_by_axis, first, stop, tree)
    fill_inner(tree.low, tree.high, node, n_leaves - 1)
    for i in range(rows.size):
        mine[i] = rows[mine[i]]


@njit
def _fill_leaves(
    embedded: Floats, points: Floats, is_by_axis: bool, first: int, stop: int, tree: BoxTree
) -> None:
    """Fill ``places``, ``low`` and ``high`` of the leaves from ``first`` to before ``stop``."""
    order, places, low, high = tree.order, tree.places, tree.low, tree.high
    n, e, d = order.size, np.uint64(embedded.shape[1]), np.uint64(points.shape[1])
    n_leaves = (low.shape[0] + 1) // 2
    flat = places.reshape(-1)
    for leaf in range(first, stop):
        begin = n * leaf // n_leaves
        end = n * (leaf + 1) // n_leaves
        least, most = low[n_leaves - 1 + leaf], high[n_leaves - 1 + leaf]
        least[:], most[:] = np.inf, -np.inf
        between, step = (np.uint64(end - begin), np.uint64(1)) if is_by_axis else (np.uint64(1), d)
        at = np.uint64(begin) * d
        for place in range(np.uint64(begin), np.uint64(end)):
            row = np.uint64(order[place])
            for i in range(e):
                least[i] = min(least[i], embedded[row, i])
                most[i] = max(most[i], embedded[row, i])
            for i in range(d):
                flat[at + i * between] = points[row, i]
            at += step


@njit
def fill_inner(low: Floats, high: Floats, top: int, stop: int) -> None:
    """Fill the boxes of node ``top`` and of all below it but those from ``stop`` on, which are known."""
    first, n_nodes = top, 1
    while 2 * first + 1 < stop:
        first = 2 * first + 1
        n_nodes *= 2
    while n_nodes > 0 and first < stop:
        for node in range(first, first + n_nodes):
            for i in range(low.shape[1]):
                low[node, i] = min(low[2 * node + 1, i], low[2 * node + 2, i])
                high[node, i] = max(high[2 * node + 1, i], high[2 * node + 2, i])
        first = (first - 1) // 2
        n_nodes //= 2
