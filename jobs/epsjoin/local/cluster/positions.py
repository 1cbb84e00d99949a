"""All points in one place, in few bytes each: the results of all parts of the pairs, put together.

A point's *position* is its place among all ids in ascending order. Positions of 32 bits stand for ids, and
their order is that of the ids: the smallest position of a cluster is that of its smallest id.
"""

from __future__ import annotations

import numpy as np

from epsjoin.errors import ArgumentError, TableError
from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints32
from epsjoin.kernels.cluster.density import EndPairs, find_homes, find_nearest_cores
from epsjoin.kernels.cluster.union_find import unite_all
from epsjoin.kernels.ids import IdIndex, rows_of
from epsjoin.local.cluster.from_pairs import Connected
from epsjoin.vocabulary import NOISE

POINT_BYTES = 25
"""Bytes of :class:`AllPoints` for each point, its id included."""


class AllPoints:
    """Degrees, trees and nearest core points of all points; the results of parts are added in any order.

    Parameters
    ----------
    ids : (n,) int64, ascending.

    Attributes
    ----------
    ids : (n,) int64.
    degree : (n,) int32, the point itself counted.
    home : (n,) int32, positions: of core points a forest; of others their nearest core point, or themselves.
    distance : (n,) float64, of a point that is not core to its home.
    is_core : (n,) bool.

    Raises
    ------
    ArgumentError
        An id comes twice, or is that of noise.
    """

    def __init__(self, ids: Ints) -> None:
        check_ids(ids)
        self.ids = ids
        self.degree: Ints32 = np.ones(ids.size, np.int32)
        self.home: Ints32 = np.empty(0, np.int32)
        self.distance: Floats = np.empty(0)
        self.is_core: Bools = np.empty(0, np.bool_)

    def count(self, ids: Ints, counts: Ints) -> None:
        """Add numbers of neighbours, of :func:`epsjoin.local.cluster.from_pairs.partial_degrees`."""
        self.degree[positions_of(self.ids, ids)] += counts.astype(np.int32)

    def find_cores(self, min_pts: int) -> Bools:
        """Decide, after all counts, which points are core."""
        self.is_core = self.degree >= min_pts
        self.home = np.arange(self.ids.size, dtype=np.int32)
        self.distance = np.full(self.ids.size, np.inf)
        return self.is_core

    def connect(self, found: Connected) -> None:
        """Add the trees and the nearest core points of a part, by positions (int32)."""
        (node, root), (border, core, distance) = found
        unite_all(self.home, read_only(node), read_only(root))
        nearest = EndPairs(read_only(border), read_only(core), read_only(distance))
        find_nearest_cores(nearest, self.is_core, self.home, self.distance)

    def find_homes(self) -> Ints32:
        """The position that names each point's cluster, ``NOISE`` for noise; then nothing can be added."""
        self.distance = np.empty(0)
        find_homes(self.home, self.is_core)
        return self.home

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.ids, self.degree, self.home, self.distance, self.is_core)
        return sum(array.nbytes for array in arrays)


def id_twice(number: int) -> ArgumentError:
    """Make the error of an id that two points have."""
    return ArgumentError(f"the id {number} comes twice; every point needs one of its own")


def id_of_noise() -> ArgumentError:
    """Make the error of a point with the id of noise: a cluster of that name could not be told from it."""
    return ArgumentError(f"the id {NOISE} is kept for noise; give that row another")


def point_missing(number: int) -> TableError:
    """Make the error of pairs that name a point that is not there."""
    return TableError(
        f"the pairs name the point {number}, which is not among the points; points or pairs have changed "
        "since: run merge_join again, or persist the frame that the points are from"
    )


def check_ids(ids: Ints) -> None:
    """Refuse ids, (n,) int64 ascending, that cannot name clusters.

    Raises
    ------
    ArgumentError
        An id comes twice, or is that of noise.
    """
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if twice.size:
        raise id_twice(ids[twice[0]])
    place = np.searchsorted(ids, NOISE)
    if place < ids.size and ids[place] == NOISE:
        raise id_of_noise()


def positions_of(ids: Ints, wanted: Ints) -> Ints:
    """Find the positions of ids that are among all ids.

    Parameters
    ----------
    ids : (n,) int64, ascending, all ids.
    wanted : (m,) int64; if they rise, each search begins where the one before it ended.

    Raises
    ------
    TableError
        A wanted id is not among the ids.
    """
    at = np.searchsorted(ids, wanted)
    found = np.minimum(at, ids.size - 1)
    _refuse_missing(wanted, ids[found] != wanted if ids.size else np.ones(wanted.size, np.bool_))
    return at


def indexed_positions_of(index: IdIndex, wanted: Ints) -> Ints:
    """Do as :func:`positions_of`, for ids in any order, by an index of all ids."""
    at = rows_of(index, wanted)
    _refuse_missing(wanted, at < 0)
    return at


def _refuse_missing(wanted: Ints, is_missing: Bools) -> None:
    if is_missing.any():
        raise point_missing(wanted[is_missing.argmax()])
