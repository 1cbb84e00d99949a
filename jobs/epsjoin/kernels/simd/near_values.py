"""Instructions on vectors that find which of 8 values are within a bound, such as sums of squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit_as
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.simd.lanes import (
    DOUBLES,
    INT,
    INTS,
    PLACES,
    count_lanes,
    first_lanes,
    in_each_lane,
    store_packed,
)

_DOUBLE_BYTES = 8


def _load_near(builder: Any, values: Any, at: Any, size: Any, bound: Any) -> tuple[Any, Any]:
    """Read eight values; return them, and which of those that are meant are within the bound."""
    address = builder.bitcast(builder.gep(values, [at]), DOUBLES.as_pointer())
    loaded = builder.load(address, align=_DOUBLE_BYTES)
    is_near = builder.fcmp_ordered("<=", loaded, in_each_lane(builder, bound, DOUBLES))
    return loaded, builder.and_(is_near, first_lanes(builder, size))


def _near_lanes(builder: Any, values: Any, at: Any, size: Any, bound: Any) -> Any:
    _, is_near = _load_near(builder, values, at, size, bound)
    return builder.zext(builder.bitcast(is_near, ir.IntType(PLACES)), INT)


@njit_as(_near_lanes)
def near_lanes(values: Floats, at: int, size: int, bound: float) -> int:
    """Find which of 8 values are within a bound: a bit for each.

    Parameters
    ----------
    values : float64; 8 are read from ``at`` on.
    size : number of them that are meant, if they are not all.
    bound : the largest value that is within.
    """
    near = values[at : at + min(size, PLACES)] <= bound
    return sum(1 << lane for lane in np.flatnonzero(near).tolist())


def _keep_near(
    builder: Any,
    values: Any,
    at: Any,
    size: Any,
    bound: Any,
    number: Any,
    numbers: Any,
    kept: Any,
    count: Any,
) -> Any:
    loaded, is_near = _load_near(builder, values, at, size, bound)
    lanes = ir.Constant(INTS, list(range(PLACES)))
    store_packed(builder, builder.add(in_each_lane(builder, number, INTS), lanes), is_near, numbers, count)
    store_packed(builder, loaded, is_near, kept, count)
    return count_lanes(builder, is_near)


@njit_as(_keep_near)
def keep_near(
    values: Floats, at: int, size: int, bound: float, number: int, numbers: Ints, kept: Floats, count: int
) -> int:
    """Keep those of 8 values that are within a bound, and their numbers, without a branch for each.

    Parameters
    ----------
    values, at, size, bound : see :func:`near_lanes`.
    number : the number of the first of the 8; the others follow.
    numbers, kept : int64 and float64, written from ``count`` on, where there must be room for 8: entries that
        are not kept may be written behind those that are.

    Returns
    -------
    int
        How many are kept.
    """
    near = np.flatnonzero(values[at : at + min(size, PLACES)] <= bound)
    numbers[count : count + near.size] = number + near
    kept[count : count + near.size] = values[at + near]
    return int(near.size)
