"""Few pairs of one row put in order at once: each goes to the place given by how many come before it.

Sorting by insertion takes a branch for each pair that no processor foresees. Here up to 8 pairs have a lane
each, which counts the pairs that come before its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit, njit_as
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs.sort_pairs import FEW, RowNumbers, sort_group
from epsjoin.kernels.simd.lanes import (
    INT,
    INTS,
    PLACES,
    first_lanes,
    in_each_lane,
    load_rows,
    load_some,
    scatter,
    store_rows,
)

_SHIFT = FEW.bit_length()
"""Number of bits that tell equal rows apart, by their order."""


def _count_before(builder: Any, right: Any, begin: Any, count: Any, own: Any) -> Any:
    """Write the loop over all pairs; return for each lane how many of them are below its own."""
    before = builder.block
    loop, end = builder.append_basic_block("others"), builder.append_basic_block("counted")
    builder.branch(loop)
    builder.position_at_end(loop)
    number, total = builder.phi(INT), builder.phi(INTS)
    row = builder.load(builder.gep(right, [builder.add(begin, number)]))
    row = builder.zext(row, INT) if row.type != INT else row
    other = builder.or_(builder.shl(row, ir.Constant(INT, _SHIFT)), number)
    is_below = builder.icmp_signed("<", in_each_lane(builder, other, INTS), own)
    longer = builder.add(total, builder.zext(is_below, INTS))
    following = builder.add(number, ir.Constant(INT, 1))
    number.add_incoming(ir.Constant(INT, 0), before)
    number.add_incoming(following, loop)
    total.add_incoming(ir.Constant(INTS, None), before)
    total.add_incoming(longer, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, end)
    builder.position_at_end(end)
    return longer


def _write_ranked(
    builder: Any,
    right: Any,
    begin: Any,
    count: Any,
    at: Any,
    distance: Any,
    first: Any,
    has_distance: Any,
    left: Any,
    to_left: Any,
    to_right: Any,
    to_distance: Any,
) -> Any:
    is_pair = first_lanes(builder, builder.sub(count, at))
    place = builder.add(begin, at)
    rows = load_rows(builder, right, place, is_pair)
    numbers = builder.add(in_each_lane(builder, at, INTS), ir.Constant(INTS, list(range(PLACES))))
    own = builder.or_(builder.shl(rows, ir.Constant(INTS, [_SHIFT] * PLACES)), numbers)
    before = _count_before(builder, right, begin, count, own)
    places = builder.add(before, in_each_lane(builder, begin, INTS))
    store_rows(builder, in_each_lane(builder, left, INTS), is_pair, to_left, place)
    is_moved = builder.icmp_signed(
        "<", numbers, in_each_lane(builder, builder.mul(count, has_distance), INTS)
    )
    values = load_some(builder, distance, builder.add(first, at), is_moved)
    scatter(builder, values, places, is_moved, to_distance)
    scatter(builder, rows, places, is_pair, to_right)
    return ir.Constant(INT, 0)


@njit_as(_write_ranked)
def write_ranked(
    right: RowNumbers,
    begin: int,
    count: int,
    at: int,
    distance: Floats,
    first: int,
    has_distance: int,
    left: int,
    to_left: RowNumbers,
    to_right: RowNumbers,
    to_distance: Floats,
) -> int:
    """Put up to 8 pairs of one left row to their places among all pairs of it, by their right row.

    Parameters
    ----------
    right : right rows of all pairs; those of this left row are the ``count`` from ``begin`` on, at most
        ``FEW``.
    at : the first of these ``count`` pairs that is moved, with the 7 after it.
    distance, first : where the distances of these ``count`` pairs are, and the place of the first.
    has_distance : 0 if there are no distances, else 1.
    left : the left row.
    to_left, to_right, to_distance : written.

    Returns
    -------
    int
        0. Equal right rows keep their order.
    """
    for number in range(at, min(at + PLACES, count)):
        row = right[begin + number]
        place = begin
        for other in range(count):
            place += int((right[begin + other], other) < (row, number))
        to_left[begin + number] = left
        to_right[place] = row
        if has_distance:
            to_distance[place] = distance[first + number]
    return 0


@njit
def _write_few(
    right: RowNumbers,
    distance: Floats,
    begin: int,
    count: int,
    left: int,
    to_left: RowNumbers,
    to_right: RowNumbers,
    to_distance: Floats,
) -> None:
    """Write one or two pairs of a left row, as most rows have them, sooner than lanes do."""
    last = begin + count - 1
    is_swapped = right[begin] > right[last]
    first, second = (last, begin) if is_swapped else (begin, last)
    to_right[begin], to_right[last] = right[first], right[second]
    to_left[begin] = to_left[last] = left
    if distance.size > 0:
        to_distance[begin], to_distance[last] = distance[first], distance[second]


@njit
def write_sorted(
    ends: Ints,
    right: RowNumbers,
    distance: Floats,
    first: int,
    to_left: RowNumbers,
    to_right: RowNumbers,
    to_distance: Floats,
) -> None:
    """Write the pairs of some left rows sorted by (left, right).

    Parameters
    ----------
    ends : (rows,) int64, where the pairs of each left row end; they begin where those before end.
    right, distance : their pairs, grouped by the left row; modified. ``distance`` may have no entries.
    first : the first of the left rows, which are successive.
    to_left, to_right, to_distance : written.

    Notes
    -----
    Up to ``FEW`` pairs of a row take time that grows with the square of their number; more pairs than that
    are sorted by :func:`epsjoin.kernels.pairs.sort_pairs.sort_group`.
    """
    has_distance = int(distance.size > 0)
    begin = 0
    for number in range(ends.size):
        end, row = int(ends[number]), first + number
        size = end - begin
        if size > FEW:
            sort_group(right, distance, begin, end)
            for place in range(begin, end):
                to_left[place] = row
                to_right[place] = right[place]
                if has_distance:
                    to_distance[place] = distance[place]
        elif size > 2:
            for at in range(0, size, PLACES):
                write_ranked(
                    right, begin, size, at, distance, begin, has_distance, row, to_left, to_right, to_distance
                )
        elif size > 0:
            _write_few(right, distance, begin, size, row, to_left, to_right, to_distance)
        begin = end


@njit
def sort_buckets(
    ends: Ints,
    shift: int,
    first: int,
    last: int,
    left: RowNumbers,
    right: RowNumbers,
    distance: Floats,
    copied_right: RowNumbers,
    copied_distance: Floats,
) -> None:
    """Sort the pairs of some buckets by (left, right), in place.

    Parameters
    ----------
    ends : (buckets,) int64, where the pairs of each bucket end; they begin where those before end.
    shift : a bucket has the pairs of ``2**shift`` successive left rows.
    first, last : the buckets from ``first`` to before ``last`` are sorted.
    left, right, distance : all pairs, from :func:`epsjoin.kernels.pairs.sort_pairs.move_to_buckets`;
        modified. ``distance`` may have no entries.
    copied_right, copied_distance : room for the pairs of one bucket, which are grouped by their left row in
        it; none is needed where ``shift`` is 0. Modified.
    """
    has_distance = int(distance.size > 0)
    places = np.empty(1 << shift, np.int64)
    begin = int(ends[first - 1]) if first > 0 else 0
    for bucket in range(first, last):
        end = int(ends[bucket])
        if shift == 0:
            sort_group(right, distance, begin, end)
        elif end > begin:
            row = bucket << shift
            places[:] = 0
            for pair in range(begin, end):
                places[left[pair] - row] += 1
            place = 0
            for number in range(places.size):
                size = places[number]
                places[number] = place
                place += size
            for pair in range(begin, end):
                place = places[left[pair] - row]
                places[left[pair] - row] = place + 1
                copied_right[place] = right[pair]
                if has_distance:
                    copied_distance[place] = distance[pair]
            write_sorted(
                places,
                copied_right,
                copied_distance,
                row,
                left[begin:end],
                right[begin:end],
                distance[begin * has_distance : end * has_distance],
            )
        begin = end
