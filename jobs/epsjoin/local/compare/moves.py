"""Records that went from cluster to cluster between two runs, by the places of the clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.compare.flows import Flows
from epsjoin.local.compare.names import Names
from epsjoin.vocabulary import NOISE


class Links(NamedTuple):
    """Records that went from clusters to clusters, both by their places among the sorted labels."""

    x: Ints
    y: Ints
    members: Ints


class Moves:
    """The flows between two runs, by the places of the clusters."""

    def __init__(self, flows: Flows, before: Ints, now: Ints) -> None:
        was_in = ~flows.is_new & (flows.before != NOISE)
        self.is_into = ~flows.is_gone & (flows.now != NOISE)
        x, members = np.searchsorted(before, flows.before[was_in]), flows.members[was_in]
        is_gone, is_noise = flows.is_gone[was_in], (~flows.is_gone & (flows.now == NOISE))[was_in]
        self.into = np.searchsorted(now, flows.now[self.is_into])
        self.size = add_at(x, members, before.size)
        self.deleted = add_at(x, members * is_gone, before.size)
        self.to_noise = add_at(x, members * is_noise, before.size)
        self.left = self.size - self.deleted
        both = was_in & self.is_into
        self.x, self.y = np.searchsorted(before, flows.before[both]), np.searchsorted(now, flows.now[both])
        self.members = flows.members[both]

    def select(self, rows: Bools) -> Links:
        """Those that went from a cluster to a cluster, in these rows."""
        return Links(self.x[rows], self.y[rows], self.members[rows])


def add_at(places: Ints, values: Ints, n: int) -> Ints:
    """Add up the values at each of n places."""
    total = np.zeros(n, np.int64)
    np.add.at(total, places, values)
    return total


def take(values: Ints, places: Ints) -> Ints:
    """Values by place; anything where the place is -1."""
    return values[places] if values.size else np.zeros(places.size, np.int64)


def first_of(links: Links, old: Names, n: int) -> Ints:
    """Find for each of n clusters the earlier one that gave most; of equals the older name, then the smaller.

    Returns (n,) places of clusters before, -1 where none gave anything.
    """
    order = np.lexsort((old.name[links.x], old.first_run[links.x], -links.members, links.y))
    y, first = np.unique(links.y[order], return_index=True)
    found = np.full(n, -1)
    found[y] = links.x[order][first]
    return found
