"""Instructions on vectors for a sweep row by row: which of 8 candidates are partners, and their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit_as
from epsjoin.kernels.arrays import Floats, Ints32
from epsjoin.kernels.join.lanes import (
    DOUBLES,
    INT,
    PLACES,
    count_lanes,
    declare,
    first_lanes,
    in_each_lane,
    load_some,
    pack,
)

KeepNear = Callable[[Floats, Ints32, int, int, int, float, int, Ints32, Floats, int, int], int]

_ROW = ir.IntType(32)
_ROWS = ir.VectorType(_ROW, PLACES)
_DOUBLE_BYTES, _ROW_BYTES = 8, 4


def _load_rows(builder: Any, array: Any, at: Any, is_loaded: Any) -> Any:
    """Read 8 row numbers, zeros for those that are not to be read."""
    address = builder.bitcast(builder.gep(array, [at]), _ROWS.as_pointer())
    arguments = address, ir.Constant(_ROW, _ROW_BYTES), is_loaded, ir.Constant(_ROWS, None)
    load = declare(builder, "llvm.masked.load.v8i32.p0", _ROWS, *(one.type for one in arguments))
    return builder.call(load, arguments)


def _row_in_each_lane(builder: Any, row: Any) -> Any:
    return in_each_lane(builder, builder.trunc(row, _ROW), _ROWS)


def _store_packed(builder: Any, values: Any, is_stored: Any, array: Any, at: Any, n_bytes: int) -> None:
    """Write those of 8 numbers that are to be stored, and anything behind them up to the eighth."""
    address = builder.bitcast(builder.gep(array, [at]), values.type.as_pointer())
    builder.store(pack(builder, values, is_stored), address, align=n_bytes)


def _keep_near(
    n_coordinates: int,
    builder: Any,
    near: Any,
    row: Any,
    here: Any,
    first: Any,
    last: Any,
    bound: Any,
    least: Any,
    found: Any,
    squares: Any,
    count: Any,
    stride: Any,
) -> Any:
    is_candidate = first_lanes(builder, builder.sub(last, first))
    total = ir.Constant(DOUBLES, None)
    for j in range(n_coordinates):
        axis = builder.mul(stride, ir.Constant(INT, j))
        own = builder.load(builder.gep(near, [builder.add(axis, here)]))
        others = load_some(builder, near, builder.add(axis, first), is_candidate)
        gap = builder.fsub(in_each_lane(builder, own, DOUBLES), others)
        total = builder.fadd(total, builder.fmul(gap, gap))  # rounded as in Python, term by term
    rows = _load_rows(builder, row, first, is_candidate)
    is_near = builder.fcmp_ordered("<=", total, in_each_lane(builder, bound, DOUBLES))
    is_later = builder.icmp_signed(">", rows, _row_in_each_lane(builder, least))
    is_kept = builder.and_(is_candidate, builder.and_(is_near, is_later))
    _store_packed(builder, rows, is_kept, found, count, _ROW_BYTES)
    _store_packed(builder, total, is_kept, squares, count, _DOUBLE_BYTES)
    return count_lanes(builder, is_kept)


def _keep_near_of(n_coordinates: int) -> KeepNear:
    @njit_as(partial(_keep_near, n_coordinates))
    def keep_near(
        near: Floats,
        row: Ints32,
        here: int,
        first: int,
        last: int,
        bound: float,
        least: int,
        found: Ints32,
        squares: Floats,
        count: int,
        stride: int,
    ) -> int:
        kept = 0
        for other in range(first, min(first + PLACES, last)):
            square = 0.0
            for j in range(n_coordinates):
                gap = near[j * stride + here] - near[j * stride + other]
                square += gap * gap
            if square <= bound and row[other] > least:
                found[count + kept] = row[other]
                squares[count + kept] = square
                kept += 1
        return kept

    return keep_near


keep_near_2, keep_near_3 = _keep_near_of(2), _keep_near_of(3)
"""Keep what is near of up to 8 candidates in 2 and in 3 dimensions: row numbers and squared distances.

Parameters
----------
near, row, bound, stride : see :mod:`epsjoin.kernels.join.row_windows`; ``stride`` is the number of rows.
here : place of the row; first, last : places of its candidates, of which the first 8 are looked at.
least : a partner must have a larger row number.
found, squares : written from ``count`` on, which leaves room for 8; what is not kept may be written behind.

Returns
-------
int
    Number of partners that are kept, in the order of their places.
"""


def _rows_below(builder: Any, rows: Any, at: Any, count: Any, value: Any) -> Any:
    is_meant = first_lanes(builder, count)
    values = _load_rows(builder, rows, at, is_meant)
    is_below = builder.icmp_signed("<", values, _row_in_each_lane(builder, value))
    return count_lanes(builder, builder.and_(is_below, is_meant))


@njit_as(_rows_below)
def rows_below(rows: Ints32, at: int, count: int, value: int) -> int:
    """Count those of some row numbers from ``at`` on, the first 8 at most, that are below a value."""
    return int(np.count_nonzero(rows[at : at + min(count, PLACES)] < value))
