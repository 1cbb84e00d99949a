"""The k nearest of many lists at once, in one pass over unsorted entries."""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.simd.read_ahead import read_ahead

_AHEAD = 16
"""Number of entries between the one that is put into its list and the one whose list memory is asked for."""

Entries = tuple[Ints, Ints, Floats]
"""Row whose list an entry belongs to, neighbour and distance of the entry: (n,) int64, int64 and float64."""


class NearestLists(NamedTuple):
    """Lists of the nearest entries so far, one per row; each is a heap with the farthest entry on top.

    Parameters
    ----------
    sizes : (n_rows,) int64, number of entries in each list so far.
    ids, distances : int64 and float64, the entries.
    """

    sizes: Ints
    ids: Ints
    distances: Floats


@njit_inner
def _sink(ids: Ints, distances: Floats, low: int, size: int, place: int) -> None:
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


@njit_inner
def _swap(ids: Ints, distances: Floats, one: int, other: int) -> None:
    ids[one], ids[other] = ids[other], ids[one]
    distances[one], distances[other] = distances[other], distances[one]


@njit_inner
def _rise(ids: Ints, distances: Floats, low: int, place: int) -> None:
    """Restore the heap from ``low`` on above ``place``."""
    while place > 0:
        above = (place - 1) // 2
        if distances[low + above] > distances[low + place] or (
            distances[low + above] == distances[low + place] and ids[low + above] >= ids[low + place]
        ):
            return
        _swap(ids, distances, low + above, low + place)
        place = above


@njit_inner
def keep_one(
    ids: Ints, distances: Floats, low: int, room: int, size: int, neighbour: int, distance: float
) -> int:
    """Put one entry into a list, if it is among the nearest; return the number of entries afterwards.

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


@njit_inner
def keep_in_order(
    ids: Ints, distances: Floats, low: int, room: int, filled: int, neighbour: int, distance: float
) -> int:
    """Put one entry into a list in order, if it is among the nearest; return the number of its entries.

    Parameters
    ----------
    ids, distances : all lists, each with the farthest entry first and all in order, which is a heap, too;
        modified.
    low, room, filled : where the list begins, its room, at least 1, and entries in it so far.
    neighbour, distance : the entry.

    Notes
    -----
    O(room): for long lists :func:`keep_one` is faster. Takes no views of lists: numba counts these.
    """
    if filled < room:
        at = low + filled
        while at > low and _is_nearer(ids, distances, at - 1, neighbour, distance):
            distances[at] = distances[at - 1]
            ids[at] = ids[at - 1]
            at -= 1
        filled += 1
    elif _is_nearer(ids, distances, low, neighbour, distance):
        return filled
    else:
        at = low  # the farthest leaves
        while at + 1 < low + room and not _is_nearer(ids, distances, at + 1, neighbour, distance):
            distances[at] = distances[at + 1]
            ids[at] = ids[at + 1]
            at += 1
    distances[at] = distance
    ids[at] = neighbour
    return filled


@njit_inner
def _is_nearer(ids: Ints, distances: Floats, at: int, neighbour: int, distance: float) -> bool:
    """Whether an entry of a list is nearer than another one."""
    return bool(distances[at] < distance or (distances[at] == distance and ids[at] < neighbour))


@njit_inner
def order_heap(ids: Ints, distances: Floats, low: int, size: int) -> None:
    """Put the entries of a short heap, which begins at ``low``, in order, the farthest first.

    O(size) where they are in order already.
    """
    for filled in range(1, size):
        at = low + filled
        keep_in_order(ids, distances, low, filled + 1, filled, ids[at], distances[at])


@njit
def keep_nearest(entries: Entries, starts: Ints, lists: NearestLists) -> None:
    """Put each entry into the list of its row, of which only the nearest stay.

    An entry is nearer if its distance is smaller, or equal with a smaller id.

    Parameters
    ----------
    entries : n entries; no NaN.
    starts : (n_rows + 1,) int64, list i has room for ``starts[i + 1] - starts[i]`` entries.
    lists : modified; ids and distances are (starts[-1],).

    Notes
    -----
    O(n log k) at worst for lists of k; most entries of a long list cost one comparison.
    """
    row, neighbour, distance = entries
    sizes, ids, distances = lists
    for i in range(row.size):
        low = starts[row[i]]
        room = starts[row[i] + 1] - low
        sizes[row[i]] = keep_one(ids, distances, low, room, sizes[row[i]], neighbour[i], distance[i])


@njit
def keep_nearest_in_rows(entries: Entries, is_finished: Bools, lists: NearestLists) -> None:
    """Put each entry into the list of its row, as :func:`keep_nearest`, where all lists have the same room.

    Parameters
    ----------
    entries : n entries; no NaN.
    is_finished : (n_rows,) bool, entries of these rows are left out.
    lists : modified; ids and distances are (n_rows, k) and contiguous.
    """
    row, neighbour, distance = entries
    k = lists.ids.shape[1]
    sizes, ids, distances = lists.sizes, lists.ids.reshape(-1), lists.distances.reshape(-1)
    for i in range(row.size):
        if i + 2 * _AHEAD < row.size:  # the rows lie anywhere in memory
            read_ahead(is_finished, row[i + 2 * _AHEAD])
            later = row[i + _AHEAD]
            if not is_finished[later]:
                read_ahead(sizes, later)
                read_ahead(ids, later * k)
                read_ahead(distances, later * k)
        at = row[i]
        if is_finished[at]:
            continue
        if sizes[at] < k or distance[i] <= distances[at * k]:  # in dense regions most are farther
            sizes[at] = keep_one(ids, distances, at * k, k, sizes[at], neighbour[i], distance[i])


@njit
def sort_nearest(starts: Ints, nearest_id: Ints, nearest_distance: Floats) -> None:
    """Turn the full heaps that :func:`keep_nearest` left into lists with the nearest entry first.

    Parameters
    ----------
    starts : as in :func:`keep_nearest`.
    nearest_id, nearest_distance : (starts[-1],) the entries of the lists, every list full; modified.

    Notes
    -----
    O(n log k), in place (heapsort); O(n) where the heaps are in order, the farthest entry first.
    """
    for i in range(starts.size - 1):
        _sort_heap(nearest_id, nearest_distance, starts[i], starts[i + 1])


@njit
def sort_nearest_in_rows(ids: Ints, distances: Floats) -> None:
    """Sort full heaps as :func:`sort_nearest`, where all lists have the same room.

    Parameters
    ----------
    ids, distances : (n_rows, k) and contiguous, every list full; modified.
    """
    k = ids.shape[1]
    flat_ids, flat_distances = ids.reshape(-1), distances.reshape(-1)
    for low in range(0, ids.size, k):
        _sort_heap(flat_ids, flat_distances, low, low + k)


@njit
def _sort_heap(ids: Ints, distances: Floats, low: int, end: int) -> None:
    """Put the entries of a full heap in order, the nearest first."""
    if _is_in_order(ids, distances, low, end):
        for place in range((end - low) // 2):
            _swap(ids, distances, low + place, end - 1 - place)
        return
    for last in range(end - low - 1, 0, -1):
        _swap(ids, distances, low, low + last)
        _sink(ids, distances, low, last, 0)


@njit_inner
def _is_in_order(ids: Ints, distances: Floats, low: int, end: int) -> bool:
    """Whether each entry of a list is farther than the next one."""
    for place in range(low + 1, end):
        if distances[place - 1] < distances[place] or (
            distances[place - 1] == distances[place] and ids[place - 1] < ids[place]
        ):
            return False
    return True
