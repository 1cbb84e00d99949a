"""Increments by their definition: states by id, the pairs of each by brute force, what a change touches.

A state is a dictionary from ids to points; it is all there is to know of a run. Nothing is carried from one
state to the next.
"""

from __future__ import annotations

import itertools
import struct

from oracles.join import distance

State = dict[int, tuple[float, ...]]
Ends = tuple[int, int]


def pairs_of(state: State, eps: float, metric: str, p: float = 0.0) -> dict[Ends, float]:
    """Every pair of ids, the smaller first, at a distance of at most eps, and the distance."""
    found = {}
    for left, right in itertools.combinations(sorted(state), 2):
        apart = distance(list(state[left]), list(state[right]), metric, p)
        if apart <= eps:
            found[left, right] = apart
    return found


def placed(before: State, now: State) -> set[int]:
    """The ids of now that are new, or whose place has other bits than before."""
    return {id_ for id_ in now if id_ not in before or _bits(before[id_]) != _bits(now[id_])}


def gone(before: State, now: State) -> set[int]:
    """The ids of before that are deleted, or whose place has other bits now."""
    return {id_ for id_ in before if id_ not in now or _bits(before[id_]) != _bits(now[id_])}


def touching(pairs: dict[Ends, float], ids: set[int]) -> dict[Ends, float]:
    """The pairs that have an end among these ids."""
    return {ends: apart for ends, apart in pairs.items() if ids & {*ends}}


def _bits(point: tuple[float, ...]) -> bytes:
    return struct.pack(f"<{len(point)}d", *point)
