"""Distances of 8 pairs at once, by Euclid: a lane for each pair, whose squares are added term by term.

Computed one after the other, pairs wait at each addition for the one before. Eight side by side hardly wait,
and each lane still rounds as :func:`epsjoin.kernels.distances.squared_euclidean` does, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from epsjoin.kernels.accelerate import njit_as
from epsjoin.kernels.arrays import Floats, Ints, Numbers32
from epsjoin.kernels.simd.lanes import (
    BIT,
    DOUBLES,
    INT,
    INTS,
    PLACES,
    count_lanes,
    declare,
    first_lanes,
    gather,
    in_each_lane,
    load_rows,
    load_some,
    pack,
    store_some,
    transpose,
)


def _add_squares(
    builder: Any, points: Any, starts: tuple[Any, Any], axis: Any, n_dimensions: Any, total: Any
) -> Any:
    """Add to each lane's total the squares of its pair's differences in up to 8 dimensions from ``axis`` on.

    Dimensions beyond the last one are read as zeros, whose square changes no sum.
    """
    is_axis = first_lanes(builder, builder.sub(n_dimensions, axis))
    squares = []
    for pair in range(PLACES):
        lane = ir.Constant(ir.IntType(32), pair)
        here, there = (
            load_some(builder, points, builder.add(builder.extract_element(start, lane), axis), is_axis)
            for start in starts
        )
        gap = builder.fsub(here, there)
        squares.append(builder.fmul(gap, gap))
    for square in transpose(builder, squares):
        total = builder.fadd(total, square)
    return total


def _sum_squares(
    builder: Any, points: Any, starts: tuple[Any, Any], n_dimensions: Any, is_pair: Any, bound: Any
) -> Any:
    """Write the loop over all dimensions, 8 at a time; it ends early where no pair is within the bound."""
    before = builder.block
    loop, end = builder.append_basic_block("dimensions"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    axis, total = builder.phi(INT), builder.phi(DOUBLES)
    longer = _add_squares(builder, points, starts, axis, n_dimensions, total)
    next_axis = builder.add(axis, ir.Constant(INT, PLACES))
    is_near = builder.and_(is_pair, builder.fcmp_ordered("<=", longer, bound))
    is_any_near = builder.icmp_unsigned("!=", count_lanes(builder, is_near), ir.Constant(INT, 0))
    goes_on = builder.and_(builder.icmp_signed("<", next_axis, n_dimensions), is_any_near)
    axis.add_incoming(ir.Constant(INT, 0), before)
    axis.add_incoming(next_axis, loop)
    total.add_incoming(ir.Constant(DOUBLES, None), before)
    total.add_incoming(longer, loop)
    builder.cbranch(goes_on, loop, end)
    builder.position_at_end(end)
    return longer, is_near


def _write_near_pairs(
    builder: Any,
    points: Any,
    n_dimensions: Any,
    row: Any,
    ids: Any,
    place: Any,
    other: Any,
    at: Any,
    count: Any,
    bound: Any,
    is_self: Any,
    left: Any,
    right: Any,
    distance: Any,
    written: Any,
) -> Any:
    is_pair = first_lanes(builder, builder.sub(count, at))
    places = [load_rows(builder, one, at, is_pair) for one in (place, other)]
    length = in_each_lane(builder, n_dimensions, INTS)
    here, there = (builder.mul(gather(builder, row, one, is_pair), length) for one in places)
    bounds = in_each_lane(builder, bound, DOUBLES)
    squares, is_near = _sum_squares(builder, points, (here, there), n_dimensions, is_pair, bounds)
    first, second = (gather(builder, ids, one, is_pair) for one in places)
    is_swapped = builder.icmp_signed(">", first, second)
    is_swapped = builder.and_(is_swapped, in_each_lane(builder, builder.trunc(is_self, BIT), is_swapped.type))
    root = declare(builder, "llvm.sqrt.v8f64", DOUBLES, DOUBLES)
    kept = count_lanes(builder, is_near)
    for values, array in (
        (builder.select(is_swapped, second, first), left),
        (builder.select(is_swapped, first, second), right),
        (builder.call(root, [squares]), distance),
    ):
        store_some(builder, pack(builder, values, is_near), first_lanes(builder, kept), array, written)
    return kept


@njit_as(_write_near_pairs)
def write_near_pairs(
    points: Floats,
    n_dimensions: int,
    row: Ints,
    ids: Ints,
    place: Numbers32,
    other: Numbers32,
    at: int,
    count: int,
    bound: float,
    is_self: int,
    left: Ints,
    right: Ints,
    distance: Floats,
    written: int,
) -> int:
    """Write those of up to 8 pairs that are within eps, in their order.

    Parameters
    ----------
    points : (m, ``n_dimensions``) float64 in C order; row, ids : see
        :class:`epsjoin.kernels.sweep.window.WindowRows`.
    place, other : the two places of each pair; those from ``at`` to ``count`` are looked at, 8 at most.
    bound : Euclid's, see :class:`epsjoin.kernels.distances.Decision`.
    is_self : 1 where a pair is (smaller id, larger id), else 0.
    left, right, distance : written from ``written`` on, no further than there are pairs.

    Returns
    -------
    int
        Number of pairs that were written.
    """
    kept = 0
    for pair in range(at, min(at + PLACES, count)):
        square = 0.0
        for axis in range(n_dimensions):
            gap = points[row[place[pair]], axis] - points[row[other[pair]], axis]
            square += gap * gap
        if square <= bound:
            first, second = ids[place[pair]], ids[other[pair]]
            left[written + kept] = min(first, second) if is_self else first
            right[written + kept] = max(first, second) if is_self else second
            distance[written + kept] = math.sqrt(square)
            kept += 1
    return kept
