"""The replicator of GESS, which turns cubes into rows (point, code), and the rows of its parts.

A cube moves down while no cut crosses it; where cuts cross it, the split rule says whether it is divided (a
replica on each side) or stops. The decision is one of three:

*global*: all dimensions of a level together (quadtree): the cube is divided on every crossed cut of the
level, or stops at its cell (Dittrich's dissertation, section 5.3.4.4);

*inside*: split as globally, but a cube that stops does so inside the level, at the last of the cells that
halve its cell axis by axis and hold the piece: the same rows, with codes that are as long or longer; or

*local*: one cut at a time, level by level and in the order of the axes (binary tree): the cube is divided on
this cut, or stops at the cell that the cuts before it have made, which may lie inside a level (5.3.4.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bytes, Floats, Ints, Ints8
from epsjoin.kernels.codes import BITS, as_keys, code_order, hold_cubes, range_ends, write_code
from epsjoin.kernels.plan.rules import NO, UNKNOWN, decide_split
from epsjoin.kernels.plan.stack_rows import CARRIED, LEFT, RIGHT, StackRows
from epsjoin.kernels.projection import axes_by_variance

MAX_ROWS_PER_CUBE = 1 << 20
"""Maximum number of rows that one cube may become."""
DONE, TOO_MANY, UNDECIDED = range(3)
"""How a pass of the replicator ends, see :func:`divide_cubes`."""


class Decisions(NamedTuple):
    """How the replicator decides whether to split a cube.

    Parameters
    ----------
    answers, max_rows : see :func:`epsjoin.kernels.plan.rules.decide_split`.
    is_local : whether the cuts are decided one by one.
    stops_inside : whether a code may end inside a level, as it always may when cuts are decided one by one.
    question : (4,) int64, receives the level, n_crossed, rows and generation for which the answer is unknown.
    """

    answers: Ints8
    max_rows: int
    is_local: bool
    stops_inside: bool
    question: Ints


@njit
def stop_level(lower: Ints, upper: Ints, levels: int) -> int:
    """Find the first level whose cuts cross the cube, or ``levels`` when none does.

    Level l is crossed in a dimension when bit BITS-1-l of its corners differs and no bit above it does;
    so the highest bit in which any dimension differs determines the level.
    """
    differing = np.int64(0)
    for i in range(lower.shape[0]):
        differing |= lower[i] ^ upper[i]
    level = 0
    while level < levels and not (differing >> (BITS - 1 - level)):
        level += 1
    return level


@njit
def _divide(
    lower: Ints, upper: Ints, piece: int, children: int, level: int, crossed: Ints, n_crossed: int
) -> None:
    """Write the 2**n_crossed pieces of ``piece`` behind each other, starting at ``children``, in Z-order."""
    d = lower.shape[1]
    shift = BITS - 1 - level
    for child in range(1 << n_crossed):
        target = children + child
        for i in range(d):
            lower[target, i] = lower[piece, i]
            upper[target, i] = upper[piece, i]
        for j in range(n_crossed):
            i = crossed[j]
            cut = (upper[piece, i] >> shift) << shift
            if (child >> (n_crossed - 1 - j)) & 1:
                lower[target, i] = cut
            else:
                upper[target, i] = cut - 1


@njit
def _crossed_axes(lower: Ints, upper: Ints, level: int, is_local: bool, crossed: Ints) -> int:
    """List the axes whose cut of this level the piece, corners (d,) each, crosses; locally only the first.

    Returns their number, at least 1 at the piece's stop level.
    """
    n_crossed = 0
    shift = BITS - 1 - level
    for i in range(lower.shape[0]):
        if ((lower[i] ^ upper[i]) >> shift) & 1:
            crossed[n_crossed] = i
            n_crossed += 1
            if is_local:
                break
    return n_crossed


@njit
def _with_room(old: Any, room: int) -> Any:
    """Copy an array into one of ``room`` entries, the further ones not set."""
    new = np.empty((room, *old.shape[1:]), old.dtype)
    for at in np.ndindex(old.shape):  # for new[:n] = old numba compiles an error's text: two seconds
        new[at] = old[at]
    return new


@njit
def divide_cubes(
    lower: Ints,
    upper: Ints,
    levels: int,
    decisions: Decisions,
    first_point: int,
    counts: Ints,
    starts: Ints,
    row: Ints,
    codes: Bytes,
) -> tuple[int, int]:
    """One pass over the cubes from ``first_point`` on: count the rows of each (no ``row``) or write them.

    The pieces of a cube are taken in the order in which they arise: first come, first served puts a limited
    budget where it saves most, on the coarsest cuts. A piece needs no more than its corners: on axes that are
    already divided at its level they differ no longer. Only the splits of its path at the level are kept.

    Returns
    -------
    ``DONE``, or ``TOO_MANY`` (more than ``MAX_ROWS_PER_CUBE`` rows), or ``UNDECIDED`` (the user's rule has to
    answer the question first); and the cube at which it is so.
    """
    n, d = lower.shape
    answers, max_rows, is_local, stops_inside, question = decisions
    fill = row.shape[0] > 0
    room = 16
    piece_lower = np.empty((room, d), np.int64)
    piece_upper = np.empty((room, d), np.int64)
    split_level = np.empty(room, np.int64)  # level at which the piece was split off
    splits = np.empty(room, np.int64)  # splits of its path at that level
    generation = np.empty(room, np.int64)  # splits of its path, those of a level together unless locally
    crossed = np.empty(d, np.int64)
    for point in range(first_point, n):
        piece_lower[0] = lower[point]
        piece_upper[0] = upper[point]
        split_level[0] = -1
        splits[0] = 0
        generation[0] = 0
        taken = 0  # pieces before this one are done
        pieces = 1
        rows = 1  # rows that the cube will become if nothing more is split
        written = 0
        while taken < pieces:
            level = stop_level(piece_lower[taken], piece_upper[taken], levels)
            n_crossed = 0
            n_more = 0
            answer = NO
            splits_here = 0
            if level < levels:
                n_crossed = _crossed_axes(piece_lower[taken], piece_upper[taken], level, is_local, crossed)
                splits_here = n_crossed
                if stops_inside:
                    n_more = crossed[0]
                if is_local:
                    splits_here += splits[taken] if split_level[taken] == level else 0
                answer = decide_split(
                    answers, max_rows, level, splits_here, rows, generation[taken], is_local
                )
            if answer == UNKNOWN:
                question[0] = level
                question[1] = splits_here
                question[2] = rows
                question[3] = generation[taken]
                return UNDECIDED, point
            if answer == NO:
                if fill:
                    target = starts[point] + written
                    row[target] = point
                    write_code(piece_lower[taken], level, codes[target], n_more)
                written += 1
            else:
                n_children = 1 << n_crossed
                rows += n_children - 1
                if rows > MAX_ROWS_PER_CUBE:
                    return TOO_MANY, point
                if pieces + n_children > room:
                    while room < pieces + n_children:
                        room *= 2
                    piece_lower = _with_room(piece_lower, room)
                    piece_upper = _with_room(piece_upper, room)
                    split_level = _with_room(split_level, room)
                    splits = _with_room(splits, room)
                    generation = _with_room(generation, room)
                _divide(piece_lower, piece_upper, taken, pieces, level, crossed, n_crossed)
                split_level[pieces : pieces + n_children] = level
                splits[pieces : pieces + n_children] = splits_here
                generation[pieces : pieces + n_children] = generation[taken] + 1
                pieces += n_children
            taken += 1
        counts[point] = written
    return DONE, n


class CarriedRows(NamedTuple):
    """Where coded rows go: ``coded`` (m,) int64 is the index of a coded row, ``part`` (m,) int64 its part."""

    coded: Ints
    part: Ints


def owner_parts(codes: Bytes, boundaries: Bytes) -> Ints:
    """Find the part in which a code's key range begins.

    Parameters
    ----------
    codes : (m, w) uint8.
    boundaries : (parts - 1, w) uint8, ascending; part p begins at boundary p - 1, that key included.

    Returns
    -------
    (m,) int64.
    """
    if len(boundaries) == 0 or len(codes) == 0:
        return np.zeros(len(codes), np.int64)
    return np.searchsorted(as_keys(boundaries), as_keys(codes), side="right").astype(np.int64, copy=False)


def carry(codes: Bytes, boundaries: Bytes) -> CarriedRows:
    """Assign each coded row to its owner part and carry it into every other part its key range touches.

    Parameters
    ----------
    codes, boundaries : see :func:`owner_parts`.

    Returns
    -------
    CarriedRows
        By coded row, then by part; a row's first entry is its owner.

    Notes
    -----
    A row with code c stands for the keys from c to c followed by ones. Two rows that the merge compares
    have codes A and B, A a prefix of B, so B lies in A's range: A is at home in, or carried into, the
    owner part of B. In any other part with both rows, both are carried: there they are not compared.
    """
    owner = owner_parts(codes, boundaries)
    copies = owner_parts(range_ends(codes), boundaries) - owner + 1
    coded = np.repeat(np.arange(len(codes), dtype=np.int64), copies)
    first = np.zeros(len(codes), np.int64)
    np.cumsum(copies[:-1], out=first[1:])
    part = owner[coded] + np.arange(len(coded), dtype=np.int64) - first[coded]
    return CarriedRows(coded, part)


def stack_rows(
    points: Floats,
    embedded: Floats,
    codes: Bytes,
    lower: Ints,
    upper: Ints,
    boundaries: Bytes,
    part: int,
    side: Ints8 | None = None,
) -> tuple[Ints, StackRows]:
    """Put the rows of a part in the order of the stack sweep.

    Parameters
    ----------
    points : (n, d) float64, original coordinates; embedded : (n, e) float64; codes : (n, w) uint8; lower,
        upper : (n, a) int64, corners of the whole cubes. Not modified.
    boundaries : (parts - 1, w) uint8, of all parts.
    part : number of this part.
    side : (n,) int8, the table of each row, 0 or 1, when two tables are joined; None when a table is joined
        with itself.

    Returns
    -------
    order : (n,) int64, the row at each place.
    rows : copies in that order. What is a replica and what is carried is found from the codes alone.
    """
    order = code_order(codes)
    codes, lower, upper = codes[order], lower[order], upper[order]
    near = np.ascontiguousarray(embedded[order][:, axes_by_variance(embedded)])
    groups = np.where(owner_parts(codes, boundaries) != part, CARRIED, 0).astype(np.uint8)
    if side is not None:
        groups |= np.where(side[order] == 1, RIGHT, LEFT).astype(np.uint8)
    is_replica = ~hold_cubes(codes, lower, upper)
    return order, StackRows(points[order], near, codes, lower, is_replica, groups)
