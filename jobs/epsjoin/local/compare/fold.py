"""Names of clusters: a fold over the runs in the order of their dates.

A cluster's id is a record of its own and changes with it. A name stays:

1. Of a cluster, only the records that still exist count. A cluster of the next run is its *heir* if it has
   more than half of them, so a cluster has one heir at most, and no threshold needs tuning.
2. A cluster has the name of the cluster whose heir it is; of several, that of the cluster that gave most
   records, then the older name, then the smaller.
3. A cluster that is nobody's heir gets a new name: the smallest id of its core points that was never a name;
   if all were, the first of -2, -3, ... that was not. A name that has ended never comes back.

References
----------
Spiliopoulou et al.: MONIC, KDD 2006, whose survival threshold (0.5 to 1) is the half of rule 1. Departure: it
matches clusters of two runs; names are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.compare.events import Events, find_events, to_events
from epsjoin.local.compare.flows import Flows
from epsjoin.local.compare.moves import Moves, add_at, first_of, take
from epsjoin.local.compare.names import Cores, Named, Names
from epsjoin.vocabulary import NOISE


def name_run(
    before: Named, flows: Flows, number: int, smallest_core: Ints, find_cores: Callable[[Ints], Cores]
) -> tuple[Named, Events]:
    """Name the clusters of a run by those of the run before.

    Parameters
    ----------
    before : the names of the run before.
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
    moves = Moves(flows, old.label, labels)
    heirs = moves.select(2 * moves.members > moves.left[moves.x])
    heir = np.full(old.label.size, -1)
    heir[heirs.x] = heirs.y
    giver = first_of(heirs, old, labels.size)  # of each cluster, the one that hands its name on
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
        add_at(moves.into, column[moves.is_into], labels.size) for column in (flows.members, flows.cores)
    )
    stayed = np.zeros(labels.size, np.int64)
    own = moves.select(giver[moves.y] == moves.x)
    stayed[own.y] = own.members
    inserted, from_noise = (
        add_at(moves.into, (flows.members * where)[moves.is_into], labels.size)
        for where in (flows.is_new, ~flows.is_new & (flows.before == NOISE))
    )
    to_noise, deleted = (
        np.where(is_new, 0, take(column, giver)) for column in (moves.to_noise, moves.deleted)
    )
    names = Names(
        label=labels,
        name=name,
        first_run=first_run,
        runs=runs,
        size=size,
        core=core,
        stayed=stayed,
        from_clusters=size - stayed - inserted - from_noise,
        from_noise=from_noise,
        inserted=inserted,
        to_clusters=np.where(is_new, 0, take(moves.left, giver) - stayed - to_noise),
        to_noise=to_noise,
        deleted=deleted,
    )
    events = find_events(moves, old, names, heir, giver) if number else to_events([])
    return Named(names, ever), events


def _name_newcomers(
    name: Ints,
    newcomers: Ints,
    ever: frozenset[int],
    labels: Ints,
    smallest_core: Ints,
    find_cores: Callable[[Ints], Cores],
) -> frozenset[int]:
    """Fill in the new names, by rising label; return all names so far."""
    used = set(ever)
    # a name below that of noise may just have gone to another newcomer
    asked = [y for y in newcomers.tolist() if smallest_core[y] < NOISE or int(smallest_core[y]) in ever]
    cores = find_cores(labels[asked]) if asked else None
    below = count(NOISE - 1, -1)  # one for all: a name that was used, or is given now, is tried no more
    for y in newcomers.tolist():
        candidate = int(smallest_core[y])
        if cores is not None and candidate in used:
            others = chain(cores.of_cluster(int(labels[y])).tolist(), below)
            candidate = next(each for each in others if each not in used)
        name[y] = candidate
        used.add(candidate)
    return frozenset(used)


def _clusters(labels: Ints, is_there: Bools) -> Ints:
    return np.unique(labels[is_there & (labels != NOISE)])
