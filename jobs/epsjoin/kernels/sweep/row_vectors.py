"""Instructions on vectors for a sweep row by row: which of 8 candidates are partners, and their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit_as
from epsjoin.kernels.arrays import Floats, Ints, Ints32
from epsjoin.kernels.simd.lanes import (
    BIT,
    DOUBLES,
    INT,
    INTS,
    PLACES,
    count_lanes,
    declare,
    first_lanes,
    in_each_lane,
    load_some,
    store_packed,
)

NearLanes = Callable[[Floats, Ints32, int, int, int, float, int, int], int]
KeepLanes = Callable[[Floats, Ints32, int, int, int, Ints32, Floats, int, int], int]
NearKeys = Callable[[Floats, Ints32, int, int, int, float, int, int, Ints, int, int], int]

_ROW = ir.IntType(32)
_ROWS = ir.VectorType(_ROW, PLACES)
_BITS = ir.IntType(PLACES)
_ROW_BYTES = 4


def _load_rows(builder: Any, array: Any, at: Any, is_loaded: Any) -> Any:
    """Read 8 row numbers, zeros for those that are not to be read."""
    address = builder.bitcast(builder.gep(array, [at]), _ROWS.as_pointer())
    arguments = address, ir.Constant(_ROW, _ROW_BYTES), is_loaded, ir.Constant(_ROWS, None)
    load = declare(builder, "llvm.masked.load.v8i32.p0", _ROWS, *(one.type for one in arguments))
    return builder.call(load, arguments)


def _row_in_each_lane(builder: Any, row: Any) -> Any:
    return in_each_lane(builder, builder.trunc(row, _ROW), _ROWS)


def _add_squares(
    n_coordinates: int, builder: Any, near: Any, here: Any, first: Any, is_read: Any, stride: Any
) -> Any:
    """Squared distances of a row to 8 others, rounded as in Python, term by term."""
    total = ir.Constant(DOUBLES, None)
    for j in range(n_coordinates):
        axis = builder.mul(stride, ir.Constant(INT, j))
        own = builder.load(builder.gep(near, [builder.add(axis, here)]))
        others = load_some(builder, near, builder.add(axis, first), is_read)
        gap = builder.fsub(in_each_lane(builder, own, DOUBLES), others)
        total = builder.fadd(total, builder.fmul(gap, gap))
    return total


def _square(n_coordinates: int, near: Floats, here: int, other: int, stride: int) -> float:
    """Compute the squared distance of two rows in Python, with the same result, for uncompiled functions."""
    square = 0.0
    for j in range(n_coordinates):
        gap = near[j * stride + here] - near[j * stride + other]
        square += gap * gap
    return square


def _near_lanes(
    n_coordinates: int,
    builder: Any,
    near: Any,
    row: Any,
    here: Any,
    first: Any,
    last: Any,
    bound: Any,
    least: Any,
    stride: Any,
) -> Any:
    is_candidate = first_lanes(builder, builder.sub(last, first))
    total = _add_squares(n_coordinates, builder, near, here, first, is_candidate, stride)
    rows = _load_rows(builder, row, first, is_candidate)
    is_near = builder.fcmp_ordered("<=", total, in_each_lane(builder, bound, DOUBLES))
    is_later = builder.icmp_signed(">", rows, _row_in_each_lane(builder, least))
    is_kept = builder.and_(is_candidate, builder.and_(is_near, is_later))
    return builder.zext(builder.bitcast(is_kept, _BITS), INT)


def _near_lanes_of(n_coordinates: int) -> NearLanes:
    @njit_as(partial(_near_lanes, n_coordinates))
    def near_lanes(
        near: Floats, row: Ints32, here: int, first: int, last: int, bound: float, least: int, stride: int
    ) -> int:
        bits = 0
        for other in range(first, min(first + PLACES, last)):
            square = _square(n_coordinates, near, here, other, stride)
            bits |= int(square <= bound and row[other] > least) << (other - first)
        return bits

    return near_lanes


near_lanes_2, near_lanes_3 = _near_lanes_of(2), _near_lanes_of(3)
"""Find what is near of up to 8 candidates in 2 and in 3 dimensions: a bit for each.

Parameters
----------
near, row, bound, stride : see :mod:`epsjoin.kernels.sweep.row_windows`; ``stride`` is the number of rows.
here : place of the row; first, last : places of its candidates, of which the first 8 are looked at.
least : a partner must have a larger row number.
"""


def _keep_lanes(
    n_coordinates: int,
    builder: Any,
    near: Any,
    row: Any,
    here: Any,
    first: Any,
    bits: Any,
    found: Any,
    squares: Any,
    count: Any,
    stride: Any,
) -> Any:
    is_kept = builder.bitcast(builder.trunc(bits, _BITS), ir.VectorType(BIT, PLACES))
    total = _add_squares(n_coordinates, builder, near, here, first, is_kept, stride)
    store_packed(builder, _load_rows(builder, row, first, is_kept), is_kept, found, count)
    store_packed(builder, total, is_kept, squares, count)
    return count_lanes(builder, is_kept)


def _keep_lanes_of(n_coordinates: int) -> KeepLanes:
    @njit_as(partial(_keep_lanes, n_coordinates))
    def keep_lanes(
        near: Floats,
        row: Ints32,
        here: int,
        first: int,
        bits: int,
        found: Ints32,
        squares: Floats,
        count: int,
        stride: int,
    ) -> int:
        kept = 0
        for lane in range(PLACES):
            if bits >> lane & 1:
                other = first + lane
                found[count + kept] = row[other]
                squares[count + kept] = _square(n_coordinates, near, here, other, stride)
                kept += 1
        return kept

    return keep_lanes


keep_lanes_2, keep_lanes_3 = _keep_lanes_of(2), _keep_lanes_of(3)
"""Keep the candidates whose bits are set: row numbers and squared distances.

Parameters
----------
near, row, here, first, stride : as for :func:`near_lanes_2`, which gave ``bits``.
found, squares : written from ``count`` on, which leaves room for 8; what is not kept may be written behind.

Returns
-------
int
    Number of partners that are kept, in the order of their places.
"""


def _near_keys(
    n_coordinates: int,
    builder: Any,
    near: Any,
    row: Any,
    here: Any,
    first: Any,
    last: Any,
    bound: Any,
    is_self: Any,
    right_bits: Any,
    keys: Any,
    count: Any,
    stride: Any,
) -> Any:
    is_candidate = first_lanes(builder, builder.sub(last, first))
    total = _add_squares(n_coordinates, builder, near, here, first, is_candidate, stride)
    is_near = builder.fcmp_ordered("<=", total, in_each_lane(builder, bound, DOUBLES))
    is_kept = builder.and_(is_candidate, is_near)
    others = _load_rows(builder, row, first, is_candidate)
    own = in_each_lane(builder, builder.load(builder.gep(row, [here])), _ROWS)
    is_swapped = builder.and_(
        builder.icmp_signed(">", own, others),
        in_each_lane(builder, builder.trunc(is_self, BIT), ir.VectorType(BIT, PLACES)),
    )
    left, right = builder.select(is_swapped, others, own), builder.select(is_swapped, own, others)
    high = builder.shl(builder.zext(left, INTS), in_each_lane(builder, right_bits, INTS))
    store_packed(builder, builder.or_(high, builder.zext(right, INTS)), is_kept, keys, count)
    return count_lanes(builder, is_kept)


def _near_keys_of(n_coordinates: int) -> NearKeys:
    @njit_as(partial(_near_keys, n_coordinates))
    def near_keys(
        near: Floats,
        row: Ints32,
        here: int,
        first: int,
        last: int,
        bound: float,
        is_self: int,
        right_bits: int,
        keys: Ints,
        count: int,
        stride: int,
    ) -> int:
        kept = 0
        for other in range(first, min(first + PLACES, last)):
            square = _square(n_coordinates, near, here, other, stride)
            if square <= bound:
                left, right = int(row[here]), int(row[other])
                if is_self and left > right:
                    left, right = right, left
                keys[count + kept] = left << right_bits | right
                kept += 1
        return kept

    return near_keys


near_keys_2, near_keys_3 = _near_keys_of(2), _near_keys_of(3)
"""Keep the pairs of a row with what is near of up to 8 candidates, as ``left << right_bits | right``.

Parameters
----------
near, row, here, first, last, bound, stride : as for :func:`near_lanes_2`.
is_self : 1 where the smaller row number is the left one, else 0: the row's own is.
keys : written from ``count`` on, which leaves room for 8; what is not kept may be written behind.

Returns
-------
int
    Number of pairs that are kept, in the order of their places.
"""


def _count_bits(builder: Any, bits: Any) -> Any:
    return builder.ctpop(bits)


@njit_as(_count_bits)
def count_bits(bits: int) -> int:
    """Count the bits that are set."""
    return int(bits).bit_count()


def _rows_below(builder: Any, rows: Any, at: Any, count: Any, value: Any) -> Any:
    is_meant = first_lanes(builder, count)
    values = _load_rows(builder, rows, at, is_meant)
    is_below = builder.icmp_signed("<", values, _row_in_each_lane(builder, value))
    return count_lanes(builder, builder.and_(is_below, is_meant))


@njit_as(_rows_below)
def rows_below(rows: Ints32, at: int, count: int, value: int) -> int:
    """Count those of some row numbers from ``at`` on, the first 8 at most, that are below a value."""
    return int(np.count_nonzero(rows[at : at + min(count, PLACES)] < value))
