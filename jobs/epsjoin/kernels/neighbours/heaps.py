"""The k nearest of many lists at once, in one pass over unsorted entries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.kernels.accelerate import njit

Numbers = npt.NDArray[np.int64]
Distances = npt.NDArray[np.float64]


@njit
def _sink(ids: Numbers, distances: Distances, low: int, size: int, place: int) -> None:
    """Restore the heap ``[low, low + size)``, farthest entry on top, below ``place``."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        other = child + 1
        if other < size and (
            distances[low + other] > distances[low + child]
            or (distances[low + other] == distances[low + child] and ids[low + other] > ids[low + child])
        ):
            child = other
        if distances[low + child] < distances[low + place] or (
            distances[low + child] == distances[low + place] and ids[low + child] <= ids[low + place]
        ):
            return
        _swap(ids, distances, low + child, low + place)
        place = child


@njit
def _swap(ids: Numbers, distances: Distances, one: int, other: int) -> None:
    ids[one], ids[other] = ids[other], ids[one]
    distances[one], distances[other] = distances[other], distances[one]


@njit
def _rise(ids: Numbers, distances: Distances, low: int, place: int) -> None:
    """Restore the heap from ``low`` on above ``place``."""
    while place > 0:
        above = (place - 1) // 2
        if distances[low + above] > distances[low + place] or (
            distances[low + above] == distances[low + place] and ids[low + above] >= ids[low + place]
        ):
            return
        _swap(ids, distances, low + above, low + place)
        place = above


@njit
def keep_one(
    ids: Numbers, distances: Distances, low: int, room: int, size: int, neighbour: int, distance: float
) -> int:
    """Put one entry into a list, if it is among the nearest; the entries in the list afterwards.

    Parameters
    ----------
    ids, distances : all lists, each a heap, farthest on top; modified.
    low, room, size : where the list begins, its room, and entries in it so far.
    neighbour, distance : the entry.
    """
    if size < room:
        ids[low + size] = neighbour
        distances[low + size] = distance
        _rise(ids, distances, low, size)
        return size + 1
    if room > 0 and (distance < distances[low] or (distance == distances[low] and neighbour < ids[low])):
        ids[low] = neighbour
        distances[low] = distance
        _sink(ids, distances, low, room, 0)
    return size


@njit
def keep_nearest(
    row: Numbers,
    neighbour: Numbers,
    distance: Distances,
    starts: Numbers,
    sizes: Numbers,
    nearest_id: Numbers,
    nearest_distance: Distances,
) -> None:
    """Put each entry into the list of its row, of which only the nearest stay.

    Near is a smaller distance, then a smaller id.

    Parameters
    ----------
    row : (n,) int64, the list that an entry belongs to.
    neighbour, distance : (n,) int64 and (n,) float64, the entry; no NaN.
    starts : (n_rows + 1,) int64, list i has room for ``starts[i + 1] - starts[i]`` entries.
    sizes : (n_rows,) int64, entries in each list so far; modified.
    nearest_id, nearest_distance : (starts[-1],), the lists, each a heap, farthest on top; modified.

    Notes
    -----
    O(n log k) at worst for lists of k; most entries of a long list cost one comparison.
    """
    for i in range(row.size):
        low = starts[row[i]]
        room = starts[row[i] + 1] - low
        sizes[row[i]] = keep_one(
            nearest_id, nearest_distance, low, room, sizes[row[i]], neighbour[i], distance[i]
        )


@njit
def keep_nearest_of(
    row: Numbers,
    neighbour: Numbers,
    distance: Distances,
    itself: Numbers,
    is_open: npt.NDArray[np.bool_],
    sizes: Numbers,
    nearest_id: Numbers,
    nearest_distance: Distances,
) -> None:
    """Put each entry into the list of its row, as :func:`keep_nearest`, for the open rows only.

    Parameters
    ----------
    row, neighbour, distance : (n,) int64, int64 and float64, the entries; no NaN.
    itself : (n_rows,) int64, the neighbour that a row does not list: itself; -1 for none.
    is_open : (n_rows,) bool, entries of other rows are left out.
    sizes : (n_rows,) int64, entries in each list so far; modified.
    nearest_id, nearest_distance : (n_rows, k) contiguous, the lists, each a heap, farthest on top; modified.
    """
    k = nearest_id.shape[1]
    ids, distances = nearest_id.reshape(-1), nearest_distance.reshape(-1)
    for i in range(row.size):
        at = row[i]
        if is_open[at] and neighbour[i] != itself[at]:
            sizes[at] = keep_one(ids, distances, at * k, k, sizes[at], neighbour[i], distance[i])


@njit
def sort_nearest(starts: Numbers, nearest_id: Numbers, nearest_distance: Distances) -> None:
    """Turn the full heaps that :func:`keep_nearest` left into lists with the nearest entry first.

    Parameters
    ----------
    starts, nearest_id, nearest_distance : as in :func:`keep_nearest`, every list full; the last two modified.

    Notes
    -----
    O(n log k), in place (heapsort).
    """
    for i in range(starts.size - 1):
        low = starts[i]
        for last in range(starts[i + 1] - low - 1, 0, -1):
            _swap(nearest_id, nearest_distance, low, low + last)
            _sink(nearest_id, nearest_distance, low, last, 0)
