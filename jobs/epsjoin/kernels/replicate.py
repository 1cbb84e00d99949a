"""The replicator of GESS for the quadtree: cubes in, rows (point, code) out.

All dimensions of a level are decided together. A cube moves down while no cut crosses it; where cuts
cross it, the split rule says whether it is divided (a replica on each side of every crossed cut) or stops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.codes import (
    BITS,
    as_keys,
    code_order,
    code_width,
    hold_cubes,
    range_ends,
    write_code,
)
from epsjoin.kernels.grid import axes_by_variance
from epsjoin.kernels.split_rule import SplitRule, may_split
from epsjoin.kernels.sweep import StackRows, stack_comparisons

MAX_ROWS_PER_CUBE = 1 << 20


class CodedRows(NamedTuple):
    """Rows of the replicator, by point, in the order in which a cube's pieces stop.

    Parameters
    ----------
    row : (m,) int64, index of the point.
    codes : (m, w) uint8, see :mod:`epsjoin.kernels.codes`.
    is_replica : (m,) bool, whether the point has other rows too.
    """

    row: NDArray[np.int64]
    codes: NDArray[np.uint8]
    is_replica: NDArray[np.bool_]


@njit
def stop_level(lower: NDArray[np.int64], upper: NDArray[np.int64], levels: int) -> int:
    """Give the first level whose cuts cross the cube, or ``levels`` when none does.

    Level l is crossed in a dimension when bit BITS-1-l of its corners differs and no bit above it does;
    so the highest bit in which any dimension differs gives the level.
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
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    piece: int,
    children: int,
    level: int,
    crossed: NDArray[np.int64],
    n_crossed: int,
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
def _stop_or_split(
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    levels: int,
    rule: SplitRule,
    rows: int,
    crossed: NDArray[np.int64],
) -> tuple[int, int]:
    """Move one piece of a cube, corners (d,) each, down to its first crossed level and ask the rule.

    Returns
    -------
    the level, and the number of dimensions to split there (listed in ``crossed``); 0 when the piece stops.
    """
    level = stop_level(lower, upper, levels)
    if level == levels:
        return level, 0
    n_crossed = 0
    shift = BITS - 1 - level
    for i in range(lower.shape[0]):
        if ((lower[i] ^ upper[i]) >> shift) & 1:
            crossed[n_crossed] = i
            n_crossed += 1
    if may_split(rule, level, n_crossed, rows):
        return level, n_crossed
    return level, 0


@njit
def _replicate(
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    levels: int,
    rule: SplitRule,
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    row: NDArray[np.int64],
    codes: NDArray[np.uint8],
    fill: bool,
) -> int:
    """One pass over all cubes: count the rows of each (``fill`` false) or write them.

    The pieces of a cube are taken in the order in which they arise: first come, first served puts a limited
    budget where it saves most, on the coarsest cuts.

    Returns the first cube that would become more than ``MAX_ROWS_PER_CUBE`` rows, or -1.
    """
    n, d = lower.shape
    room = 16
    piece_lower = np.empty((room, d), np.int64)
    piece_upper = np.empty((room, d), np.int64)
    crossed = np.empty(d, np.int64)
    for point in range(n):
        piece_lower[0] = lower[point]
        piece_upper[0] = upper[point]
        taken = 0  # pieces before this one are done
        pieces = 1
        rows = 1  # rows that the cube will become if nothing more is split
        written = 0
        while taken < pieces:
            level, n_crossed = _stop_or_split(
                piece_lower[taken], piece_upper[taken], levels, rule, rows, crossed
            )
            if n_crossed == 0:
                if fill:
                    target = starts[point] + written
                    row[target] = point
                    write_code(piece_lower[taken], level, codes[target])
                written += 1
            else:
                n_children = 1 << n_crossed
                rows += n_children - 1
                if rows > MAX_ROWS_PER_CUBE:
                    return point
                if pieces + n_children > room:
                    while room < pieces + n_children:
                        room *= 2
                    more_lower = np.empty((room, d), np.int64)
                    more_upper = np.empty((room, d), np.int64)
                    more_lower[:pieces] = piece_lower[:pieces]
                    more_upper[:pieces] = piece_upper[:pieces]
                    piece_lower = more_lower
                    piece_upper = more_upper
                _divide(piece_lower, piece_upper, taken, pieces, level, crossed, n_crossed)
                pieces += n_children
            taken += 1
        counts[point] = written
    return -1


def replicate_cubes(
    lower: NDArray[np.int64], upper: NDArray[np.int64], levels: int, rule: SplitRule
) -> CodedRows:
    """Codes of the cells that cover each cube, as the split rule wants them.

    Parameters
    ----------
    lower, upper : (n, a) int64, corners in fixed point (:func:`epsjoin.kernels.codes.cube_corners`).
    levels : deepest level of a cell.
    rule : the split rule.

    Returns
    -------
    CodedRows
        By point. The cells of one point are disjoint and cover its cube. The rows of a point depend on
        its cube, ``levels`` and ``rule`` alone.

    Raises
    ------
    OverflowError
        A cube would become more than a million rows: nothing but an unlimited rule does this.

    Notes
    -----
    O(rows x a), two passes (count, fill), iterative. Seed 003, figure 3.4, for n = 2**a; the queue of
    pieces (there: a heap) makes a limited budget go to the coarsest cuts first.
    """
    n, n_axes = lower.shape
    counts = np.zeros(n, np.int64)
    width = code_width(levels * n_axes)
    nothing = np.empty(0, np.int64)
    too_many = _replicate(
        lower, upper, levels, rule, counts, nothing, nothing, np.empty((0, width), np.uint8), False
    )
    if too_many >= 0:
        raise OverflowError(f"the cube of row {too_many} would become more than {MAX_ROWS_PER_CUBE} rows")
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    total = int(starts[n])
    row = np.empty(total, np.int64)
    codes = np.empty((total, width), np.uint8)
    _replicate(lower, upper, levels, rule, counts, starts, row, codes, True)
    return CodedRows(row, codes, counts[row] > 1)


class CarriedRows(NamedTuple):
    """Where coded rows go: ``coded`` (m,) int64 is the index of a coded row, ``part`` (m,) int64 its part."""

    coded: NDArray[np.int64]
    part: NDArray[np.int64]


def owner_parts(codes: NDArray[np.uint8], boundaries: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Give the part in which a code's key range begins.

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


def carry(codes: NDArray[np.uint8], boundaries: NDArray[np.uint8]) -> CarriedRows:
    """Give each coded row to its owner part and carry it into every other part its key range touches.

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


def choose_boundaries(
    codes: NDArray[np.uint8], n_parts: int, row_cost: float, candidate_cost: float
) -> tuple[NDArray[np.uint8], float]:
    """Choose part boundaries of equal work among the codes of a sample.

    Parameters
    ----------
    codes : (m, w) uint8, in any order; not modified.
    n_parts : parts to aim at; equal codes are never divided, so there may be fewer.
    row_cost, candidate_cost : cost of a row and of a comparison on the stack, in any one unit.

    Returns
    -------
    boundaries : (parts - 1, w) uint8, ascending, distinct, each a code of the sample.
    compared : comparisons on the stack in all parts.
    """
    width = codes.shape[1]
    ordered = codes[code_order(codes)]
    compared = stack_comparisons(ordered)
    boundaries = np.empty((0, width), np.uint8)
    if n_parts > 1 and len(ordered) > 1:
        work = np.cumsum(row_cost + candidate_cost * compared)
        places = np.searchsorted(work, work[-1] * np.arange(1, n_parts) / n_parts)
        keys = np.unique(as_keys(ordered[places]))
        keys = keys[keys > as_keys(ordered)[0]]  # part 0 keeps the first row
        boundaries = keys.view(np.uint8).reshape(len(keys), width)
    return boundaries, float(compared.sum())


def stack_rows(
    points: NDArray[np.float64],
    embedded: NDArray[np.float64],
    codes: NDArray[np.uint8],
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    boundaries: NDArray[np.uint8],
    part: int,
) -> tuple[NDArray[np.int64], StackRows]:
    """Put the rows of a part in the order of the stack sweep.

    Parameters
    ----------
    points : (n, d) float64, original coordinates; embedded : (n, e) float64; codes : (n, w) uint8; lower,
        upper : (n, a) int64, corners of the whole cubes. Not modified.
    boundaries : (parts - 1, w) uint8, of all parts.
    part : number of this part.

    Returns
    -------
    order : (n,) int64, the row at each place.
    rows : copies in that order. What is a replica and what is carried is found from the codes alone.
    """
    order = code_order(codes)
    codes, lower, upper = codes[order], lower[order], upper[order]
    near = np.ascontiguousarray(embedded[order][:, axes_by_variance(embedded)])
    is_carried = owner_parts(codes, boundaries) != part
    return order, StackRows(points[order], near, codes, lower, ~hold_cubes(codes, lower, upper), is_carried)
