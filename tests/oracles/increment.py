"""Increments by their definition: states by id, the pairs of each by brute force, what a change touches.

A state is a dictionary from ids to points; it is all there is to know of a run. Nothing is carried from one
state to the next. What an update of clusters has to look at is counted by sets.
"""

from __future__ import annotations

from oracles.cluster import NOISE, dbscan
from oracles.join import brute_force

State = dict[int, tuple[float, ...]]
Ends = tuple[int, int]


def pairs_of(state: State, eps: float, metric: str, p: float = 0.0) -> dict[Ends, float]:
    """Every pair of ids, the smaller first, at a distance of at most eps, and the distance."""
    ids = sorted(state)
    found = brute_force([state[id_] for id_ in ids], eps, metric, p)
    return {(ids[one], ids[other]): apart for (one, other), apart in found.items()}


def placed(before: State, now: State) -> set[int]:
    """The ids of now that are new, or whose place is another than before; -0.0 is 0.0."""
    return {id_ for id_ in now if id_ not in before or before[id_] != now[id_]}


def gone(before: State, now: State) -> set[int]:
    """The ids of before that are deleted, or whose place is another now."""
    return {id_ for id_ in before if id_ not in now or before[id_] != now[id_]}


def touching(pairs: dict[Ends, float], ids: set[int]) -> dict[Ends, float]:
    """The pairs that have an end among these ids."""
    return {ends: apart for ends, apart in pairs.items() if ids & {*ends}}


def cluster_work(
    before: dict[Ends, float], now: dict[Ends, float], ids_before: set[int], ids_now: set[int], min_pts: int
) -> dict[str, int]:
    """What differs between two states, and what an update of the clusters has to look at."""
    was, is_now = (
        dbscan(sorted(ids), [(*ends, apart) for ends, apart in pairs.items()], min_pts)
        for ids, pairs in ((ids_before, before), (ids_now, now))
    )
    cores_before, cores = ({id_ for id_, row in of.items() if row[1] == "core"} for of in (was, is_now))
    dropped, new = before.keys() - now.keys(), now.keys() - before.keys()
    hurt = {was[id_][0] for id_ in cores_before - cores}
    hurt |= {was[one][0] for one, other in dropped if {one, other} <= cores_before}
    gained = cores - cores_before
    united = {ends for ends in now if {*ends} <= cores}
    united = {
        (one, other)
        for one, other in united
        if (one, other) in new or {one, other} & gained or was[one][0] in hurt
    }
    looks = {id_ for id_ in ids_now if id_ in was and was[id_][0] in hurt - {NOISE}}
    looks |= {id_ for ends in dropped for id_ in ends if id_ in ids_now}
    with_core = {ends for ends in now if len(cores & {*ends}) == 1}
    for ends in with_core:
        if ends in new or now[ends] != before[ends] or {*ends} & gained:
            looks |= {*ends}
    looks -= cores
    return {
        "dropped_pairs": len(dropped),
        "new_pairs": len(new),
        "hurt_clusters": len(hurt),
        "united_pairs": len(united),
        "borders": len(looks),
        "border_pairs": sum(bool(looks & {*ends}) for ends in with_core),
    }
