"""How a tree of boxes grows.

Points are halved again and again, across the axis on which they lie widest apart, until a box holds few of
them: a leaf.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

_SPREAD_POINTS = 64
"""Number of points of a node that show on which axis they lie widest apart."""


@njit
def _halve(values: Floats, order: Ints, low: int, high: int, middle: int) -> None:
    """Reorder [low, high) so that no value before ``middle`` is larger than one from there on.

    Notes
    -----
    O(high - low) expected, by quickselect. Pivots come from random places, since the middle is the worst one
    where two sorted runs follow one another.
    """
    high -= 1
    place = 1
    while low < high:
        place = place * 48271 % 2147483647  # Lehmer's random numbers
        pivot = values[low + place % (high - low + 1)]
        i = low
        j = high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit
def order_by_leaf(
    embedded: Floats, n_leaves: int, first: int, stop: int, order: Ints, values: Floats
) -> None:
    """Put the rows below node ``first`` into the order of the leaves.

    Parameters
    ----------
    embedded : (n, e) float64.
    n_leaves : number of leaves of the whole tree, a power of two.
    first : the node; the rows of its points stand in their places in ``order``.
    stop : nodes from this one on are not halved.
    order : (n,) int64; modified.
    values : (n,) float64, for use in here.
    """
    n, e = embedded.shape
    stack = np.empty(128, np.int64)
    stack[0] = first
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        if node >= stop:
            continue
        left_leaf = node
        right_leaf = node
        while left_leaf < n_leaves - 1:
            left_leaf = 2 * left_leaf + 1
            right_leaf = 2 * right_leaf + 2
        left_leaf -= n_leaves - 1
        right_leaf -= n_leaves - 1
        low = n * left_leaf // n_leaves
        high = n * (right_leaf + 1) // n_leaves
        middle = n * ((left_leaf + right_leaf + 1) // 2) // n_leaves
        step = max(1, (high - low) // _SPREAD_POINTS)
        widest = -1.0
        axis = 0
        for i in range(e):
            least = np.inf
            most = -np.inf
            for place in range(low, high, step):
                value = embedded[order[place], i]
                least = min(least, value)
                most = max(most, value)
            if most - least > widest:
                widest = most - least
                axis = i
        for place in range(low, high):
            values[place] = embedded[order[place], axis]
        _halve(values, order, low, high, middle)
        stack[size] = 2 * node + 1
        stack[size + 1] = 2 * node + 2
        size += 2


@njit
def fill_leaves(
    embedded: Floats, points: Floats, is_by_axis: bool, order: Ints, places: Floats, low: Floats, high: Floats
) -> None:
    """Fill ``places``, ``low`` and ``high`` of a :class:`~epsjoin.kernels.neighbours.boxes.BoxTree`.

    Parameters
    ----------
    embedded, points : (n, e) and (n, d) float64, by row.
    is_by_axis : whether the coordinates of a leaf stand axis by axis.
    order : see :class:`~epsjoin.kernels.neighbours.boxes.BoxTree`.
    """
    n, e = embedded.shape
    d = points.shape[1]
    n_leaves = (low.shape[0] + 1) // 2
    flat = places.reshape(-1)
    for leaf in range(n_leaves):
        begin = n * leaf // n_leaves
        end = n * (leaf + 1) // n_leaves
        node = n_leaves - 1 + leaf
        for i in range(e):
            low[node, i] = np.inf
            high[node, i] = -np.inf
        for place in range(begin, end):
            row = order[place]
            for i in range(e):
                low[node, i] = min(low[node, i], embedded[row, i])
                high[node, i] = max(high[node, i], embedded[row, i])
            for i in range(d):
                at = begin * d + i * (end - begin) + (place - begin) if is_by_axis else place * d + i
                flat[at] = points[row, i]
    for node in range(n_leaves - 2, -1, -1):
        for i in range(e):
            low[node, i] = min(low[2 * node + 1, i], low[2 * node + 2, i])
            high[node, i] = max(high[2 * node + 1, i], high[2 * node + 2, i])
