"""Names of clusters: a fold over the runs in the order of their dates, and the events that it meets.

A cluster's id is a record of its own and changes with it. A name stays:

1. What is left of a cluster are its records that still exist. A cluster of the next run is its *heir* if it
   has more than half of them, so a cluster has one heir at most, and no threshold needs tuning.
2. A cluster bears the name of the cluster whose heir it is; of several, of the one that gave most records,
   then of the older name, then of the smaller.
3. A cluster that is nobody's heir gets a new name: the smallest id of its core points that was never a name;
   if all were, the first of -2, -3, ... that was not. A name that has ended never comes back.

A *piece* is what a cluster leaves to another one than its heir: a tenth of what is left, and 2 records at
least.

References
----------
Spiliopoulou et al.: MONIC, KDD 2006, whose survival threshold (0.5 to 1) is the half of rule 1. Departure: it
matches clusters of two runs; names are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.cluster.from_pairs import NOISE
from epsjoin.local.compare.flows import Flows

EVENTS = ("born", "split", "split_off", "merged", "dissolved", "gone", "grown", "shrunk")
"""What may happen to a cluster, in the order in which it is listed."""

LEAST_PIECE, LEAST_SHARE = 2, 10
"""A piece, and what counts as grown or shrunk: at least so many records, and one of so many."""


class Names(NamedTuple):
    """The names of a run's clusters, by rising label; see ``match_clusters``.

    Parameters
    ----------
    label : (k,) int64, the cluster as the run calls it.
    name : (k,) int64, what it is called in all runs.
    first_run : (k,) int64, number of the run in which the name began, 0 for the first.
    runs : (k,) int64, number of runs with the name until now, this one included.
    size, core : (k,) int64, numbers of its records, and of core points among them.
    stayed : (k,) int64, records that were in the cluster of this name in the run before.
    from_clusters, from_noise, inserted : (k,) int64, records that were in other clusters, noise, not there.
    to_clusters, to_noise, deleted : (k,) int64, records of the cluster of this name in the run before that
        are now in other clusters, noise, not there.
    """

    label: Ints
    name: Ints
    first_run: Ints
    runs: Ints
    size: Ints
    core: Ints
    stayed: Ints
    from_clusters: Ints
    from_noise: Ints
    inserted: Ints
    to_clusters: Ints
    to_noise: Ints
    deleted: Ints


class Events(NamedTuple):
    """What happened to the clusters since the run before, in the order of ``EVENTS``, then of the names.

    Parameters
    ----------
    event : (e,) texts: born, split, split_off, merged, dissolved, gone, grown or shrunk.
    name : (e,) int64, the cluster to which it happened.
    other : (e,) int64, the other cluster: of split the one that has a piece now, of split_off the one that
        gave most, of merged the one it is in now; ``NOISE`` (-1) for the other events.
    members : (e,) int64, of split, split_off and merged the records that went from the one to the other, of
        grown and shrunk the difference of the sizes, otherwise the size; before, if the cluster has ended.
    ends : (e,) bool, whether the name ends with it.
    """

    event: NDArray[np.str_]
    name: Ints
    other: Ints
    members: Ints
    ends: Bools


class Named(NamedTuple):
    """What names go on from: those of the last run, and all that ever were.

    Parameters
    ----------
    names : of the last run; its flows tell the rest of what the next run needs.
    ever : all names until now.
    """

    names: Names
    ever: frozenset[int]


NOBODY = Named(Names(*(np.empty(0, np.int64) for _ in Names._fields)), frozenset({NOISE}))
"""Before the first run: no cluster, and no name but that of noise, which no cluster may have."""


class Cores(NamedTuple):
    """The core points of a run's clusters.

    Parameters
    ----------
    labels : (k,) int64, rising, the clusters that have core points.
    begins : (k + 1,) int64, where the ids of each begin, and the end of the last.
    ids : ids of core points, those of a cluster rising.
    """

    labels: Ints
    begins: Ints
    ids: Ints

    @classmethod
    def of(cls, ids: Ints, labels: Ints, is_core: Bools) -> Cores:
        """Sort the core points of a run; those that are not core may be among its records."""
        ids, labels = ids[is_core], labels[is_core]
        order = np.lexsort((ids, labels))
        clusters, begins = np.unique(labels[order], return_index=True)
        return cls(clusters, np.append(begins, ids.size), ids[order])

    @property
    def smallest(self) -> Ints:
        """The smallest id of each cluster, (k,) int64."""
        return self.ids[self.begins[:-1]]

    def among(self, labels: Ints) -> Cores:
        """The core points of these clusters alone."""
        of = np.repeat(self.labels, np.diff(self.begins))
        is_wanted = np.isin(of, labels)
        return Cores.of(self.ids[is_wanted], of[is_wanted], np.ones(np.count_nonzero(is_wanted), np.bool_))

    def of_cluster(self, label: int) -> Ints:
        """The ids of a cluster, rising."""
        place = int(np.searchsorted(self.labels, label))
        return self.ids[self.begins[place] : self.begins[place + 1]]


def name_run(
    before: Named, flows: Flows, number: int, smallest_core: Ints, find_cores: Callable[[Ints], Cores]
) -> tuple[Named, Events]:
    """Name the clusters of a run by those of the run before.

    Parameters
    ----------
    before : what the run before left.
    flows : from that run to this one; to the first run all records come anew.
    number : the run's number, 0 for the first, which has no events.
    smallest_core : (k,) int64, the smallest id of the core points of each of this run's clusters, by label.
    find_cores : returns the core points of these clusters, by their labels. It is called, once, for those
        whose smallest core point was a name already, if there are any.

    Notes
    -----
    O(f log f) for f flows, and the set of names is copied once.
    """
    old, labels = before.names, _clusters(flows.now, ~flows.is_gone)
    moves = _Moves(flows, old.label, labels)
    heirs = moves.select(2 * moves.members > moves.left[moves.x])
    heir = np.full(old.label.size, -1)
    heir[heirs.x] = heirs.y
    giver = _first_of(heirs, old, labels.size)  # of each cluster, the one that hands its name on
    is_new = giver < 0
    name, first_run, runs = (
        np.empty(labels.size, np.int64),
        np.full(labels.size, number),
        np.ones(labels.size, np.int64),
    )
    for new, kept, more in ((name, old.name, 0), (first_run, old.first_run, 0), (runs, old.runs, 1)):
        new[~is_new] = kept[giver[~is_new]] + more
    ever = _name_newcomers(name, np.flatnonzero(is_new), before.ever, labels, smallest_core, find_cores)

    size, core = (
        _sum(moves.into, column[moves.is_into], labels.size) for column in (flows.members, flows.cores)
    )
    stayed = np.zeros(labels.size, np.int64)
    own = moves.select(giver[moves.y] == moves.x)
    stayed[own.y] = own.members
    came = [
        _sum(moves.into, (flows.members * where)[moves.is_into], labels.size)
        for where in (flows.is_new, ~flows.is_new & (flows.before == NOISE))
    ]
    to_noise, deleted = (
        np.where(is_new, 0, _take(column, giver)) for column in (moves.to_noise, moves.deleted)
    )
    names = Names(
        *(
            labels,
            name,
            first_run,
            runs,
            size,
            core,
            stayed,
            size - stayed - came[0] - came[1],
            came[1],
            came[0],
        ),
        *(np.where(is_new, 0, _take(moves.left, giver) - stayed - to_noise), to_noise, deleted),
    )
    events = _find_events(moves, old, names, heir, giver) if number else _to_events([])
    return Named(names, ever), events


class _Links(NamedTuple):
    """Records that went from clusters to clusters, both by their places among the sorted labels."""

    x: Ints
    y: Ints
    members: Ints


class _Moves:
    """The flows between two runs, by the places of the clusters."""

    def __init__(self, flows: Flows, before: Ints, now: Ints) -> None:
        was_in = ~flows.is_new & (flows.before != NOISE)
        self.is_into = ~flows.is_gone & (flows.now != NOISE)
        x, members = np.searchsorted(before, flows.before[was_in]), flows.members[was_in]
        is_gone, is_noise = flows.is_gone[was_in], (~flows.is_gone & (flows.now == NOISE))[was_in]
        self.into = np.searchsorted(now, flows.now[self.is_into])
        self.size = _sum(x, members, before.size)
        self.deleted = _sum(x, members * is_gone, before.size)
        self.to_noise = _sum(x, members * is_noise, before.size)
        self.left = self.size - self.deleted
        both = was_in & self.is_into
        self.x, self.y = np.searchsorted(before, flows.before[both]), np.searchsorted(now, flows.now[both])
        self.members = flows.members[both]

    def select(self, rows: Bools) -> _Links:
        return _Links(self.x[rows], self.y[rows], self.members[rows])


def _clusters(labels: Ints, is_there: Bools) -> Ints:
    return np.unique(labels[is_there & (labels != NOISE)])


def _sum(places: Ints, values: Ints, n: int) -> Ints:
    total = np.zeros(n, np.int64)
    np.add.at(total, places, values)
    return total


def _take(values: Ints, places: Ints) -> Ints:
    """Values by place; anything where the place is -1."""
    return values[places] if values.size else np.zeros(places.size, np.int64)


def _first_of(links: _Links, old: Names, n: int) -> Ints:
    """Of each of n clusters now, the cluster before that gave most, then the older name, then the smaller.

    Returns (n,) places of clusters before, -1 where none gave anything.
    """
    order = np.lexsort((old.name[links.x], old.first_run[links.x], -links.members, links.y))
    y, first = np.unique(links.y[order], return_index=True)
    found = np.full(n, -1)
    found[y] = links.x[order][first]
    return found


def _name_newcomers(
    name: Ints,
    newcomers: Ints,
    ever: frozenset[int],
    labels: Ints,
    smallest_core: Ints,
    find_cores: Callable[[Ints], Cores],
) -> frozenset[int]:
    """Fill in the new names, by rising label; return all names until now."""
    used = set(ever)
    # below noise there may be a name that another newcomer has just got
    asked = [y for y in newcomers.tolist() if smallest_core[y] < NOISE or int(smallest_core[y]) in ever]
    cores = find_cores(labels[asked]) if asked else None
    for y in newcomers.tolist():
        candidate = int(smallest_core[y])
        if cores is not None and candidate in used:
            others = chain(cores.of_cluster(int(labels[y])).tolist(), count(NOISE - 1, -1))
            candidate = next(each for each in others if each not in used)
        name[y] = candidate
        used.add(candidate)
    return frozenset(used)


def _find_events(moves: _Moves, old: Names, new: Names, heir: Ints, giver: Ints) -> Events:
    """Compare what became of each cluster before, and where each cluster now comes from."""
    pieces = moves.select(
        (heir[moves.x] != moves.y)
        & (moves.members >= LEAST_PIECE)
        & (LEAST_SHARE * moves.members >= moves.left[moves.x])
    )
    has_heir, has_piece = heir >= 0, np.zeros(old.label.size, np.bool_)
    has_piece[pieces.x] = True
    is_gone = moves.left == 0
    is_dissolved = ~is_gone & ~has_heir & ((2 * moves.to_noise >= moves.left) | ~has_piece)
    is_merged = has_heir & (_take(new.name, heir) != old.name)
    merged = moves.select(is_merged[moves.x] & (heir[moves.x] == moves.y))
    split = _Links(*(column[~is_dissolved[pieces.x]] for column in pieces))
    parent = _first_of(pieces, old, new.label.size)
    is_off, is_born = (giver < 0) & (parent >= 0), (giver < 0) & (parent < 0)
    given = np.zeros(new.label.size, np.int64)
    is_first = parent[pieces.y] == pieces.x
    given[pieces.y[is_first]] = pieces.members[is_first]
    kept = giver >= 0
    size_before = np.where(kept, _take(moves.size, giver), 0)
    difference = new.size - size_before
    is_other_size = (
        kept & (np.abs(difference) >= LEAST_PIECE) & (LEAST_SHARE * np.abs(difference) >= size_before)
    )
    is_grown, is_shrunk = is_other_size & (difference > 0), is_other_size & (difference < 0)
    return _to_events(
        [
            ("born", new.name[is_born], None, new.size[is_born], False),
            ("split", old.name[split.x], new.name[split.y], split.members, ~has_heir[split.x]),
            ("split_off", new.name[is_off], old.name[parent[is_off]], given[is_off], False),
            ("merged", old.name[merged.x], new.name[merged.y], merged.members, True),
            ("dissolved", old.name[is_dissolved], None, moves.size[is_dissolved], True),
            ("gone", old.name[is_gone], None, moves.size[is_gone], True),
            ("grown", new.name[is_grown], None, difference[is_grown], False),
            ("shrunk", new.name[is_shrunk], None, -difference[is_shrunk], False),
        ]
    )


def _to_events(found: list[tuple[str, Ints, Ints | None, Ints, Bools | bool]]) -> Events:
    """Put the events of all kinds, which are in the order of ``EVENTS``, below one another, each by name."""
    nothing = np.empty(0, np.int64)
    parts = [Events(np.empty(0, "U9"), nothing, nothing, nothing, np.empty(0, np.bool_))]
    for event, name, other, members, ends in found:
        others = np.full(name.size, NOISE) if other is None else other
        order = np.lexsort((others, name))
        is_end = np.broadcast_to(ends, name.shape)
        parts.append(
            Events(np.full(name.size, event), name[order], others[order], members[order], is_end[order])
        )
    return Events(*(np.concatenate(column) for column in zip(*parts, strict=True)))
