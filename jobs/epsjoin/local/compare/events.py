"""What happened to the clusters between two runs, once those of both have names.

A *piece* is what a cluster leaves to another cluster than its heir: at least a tenth of its remaining
records, and at least 2 records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.compare.moves import Links, Moves, first_of, take
from epsjoin.local.compare.names import Names
from epsjoin.vocabulary import NOISE

MIN_PIECE, MAX_PIECES = 2, 10
"""Minimum number of records of a piece, or by which a cluster has grown or shrunk; and the inverse of the
minimum fraction, a tenth."""


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


def find_events(moves: Moves, old: Names, new: Names, heir: Ints, giver: Ints) -> Events:
    """Compare what became of each cluster before, and where each cluster now comes from."""
    pieces = moves.select(
        (heir[moves.x] != moves.y)
        & (moves.members >= MIN_PIECE)
        & (MAX_PIECES * moves.members >= moves.left[moves.x])
    )
    has_heir, has_piece = heir >= 0, np.zeros(old.label.size, np.bool_)
    has_piece[pieces.x] = True
    is_gone = moves.left == 0
    is_dissolved = ~is_gone & ~has_heir & ((2 * moves.to_noise >= moves.left) | ~has_piece)
    is_merged = has_heir & (take(new.name, heir) != old.name)
    merged = moves.select(is_merged[moves.x] & (heir[moves.x] == moves.y))
    split = Links(*(column[~is_dissolved[pieces.x]] for column in pieces))
    parent = first_of(pieces, old, new.label.size)
    is_off, is_born = (giver < 0) & (parent >= 0), (giver < 0) & (parent < 0)
    given = np.zeros(new.label.size, np.int64)
    is_first = parent[pieces.y] == pieces.x
    given[pieces.y[is_first]] = pieces.members[is_first]
    kept = giver >= 0
    size_before = np.where(kept, take(moves.size, giver), 0)
    difference = new.size - size_before
    is_other_size = (
        kept & (np.abs(difference) >= MIN_PIECE) & (MAX_PIECES * np.abs(difference) >= size_before)
    )
    is_grown, is_shrunk = is_other_size & (difference > 0), is_other_size & (difference < 0)
    return to_events(
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


def to_events(found: list[tuple[str, Ints, Ints | None, Ints, Bools | bool]]) -> Events:
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
