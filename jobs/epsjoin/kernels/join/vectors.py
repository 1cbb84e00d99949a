"""Instructions on vectors for the innermost loops of a window sweep, which LLVM makes for any processor.

:func:`filter_block` filters 32 candidates of a row at once, :func:`skip_below` moves a pointer along places
without a branch for each. From loops LLVM makes less: vectors of half the width that processors with AVX-512
have, and bits that are put together lane by lane.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit, njit_as
from epsjoin.kernels.arrays import Floats32, Ints
from epsjoin.kernels.join.projection import FILTER_SIZES, MAXIMUM, SQUARES, SUM

BLOCK = 32
"""Number of candidates that are filtered at once, one bit each."""
_PLACES = 8
"""Number of places that are compared at once."""

_INT = ir.IntType(64)
_FLOATS = ir.VectorType(ir.FloatType(), BLOCK)
_ALL_BUT_SIGN = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0x7FFFFFFF] * BLOCK)
"""All bits of a float32 but its sign."""
_INTS = ir.VectorType(_INT, _PLACES)
_FLOAT_BYTES, _INT_BYTES = 4, 8


def _in_each_lane(builder: Any, value: Any, vector: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, zeros)


def _add(builder: Any, norm: int, total: Any, difference: Any) -> Any:
    """Add the differences in one coordinate to the totals, as the norm does."""
    if norm == SQUARES:  # in one rounding or in two, whatever is quicker: the filter's slack covers both
        square = builder.fmul(difference, difference, flags=("contract",))
        return builder.fadd(total, square, flags=("contract",))
    without_sign = builder.and_(builder.bitcast(difference, _ALL_BUT_SIGN.type), _ALL_BUT_SIGN)
    size = builder.bitcast(without_sign, _FLOATS)
    if norm == SUM:
        return builder.fadd(total, size)
    return builder.select(builder.fcmp_ordered(">", size, total), size, total)


def _near_bits(
    builder: Any, near: Any, stride: Any, block: Any, row: Any, bound: Any, norm: int, size: int
) -> Any:
    """Write the filter of one norm and size, its coordinates one after the other."""
    total = ir.Constant(_FLOATS, None)
    for j in range(size):
        axis = builder.mul(stride, ir.Constant(_INT, j))
        own = builder.load(builder.gep(near, [builder.add(axis, row)]))
        lanes = builder.gep(near, [builder.add(axis, block)])
        others = builder.load(builder.bitcast(lanes, _FLOATS.as_pointer()), align=_FLOAT_BYTES)
        difference = builder.fsub(others, _in_each_lane(builder, own, _FLOATS))
        total = _add(builder, norm, total, difference)
    is_near = builder.fcmp_ordered("<=", total, _in_each_lane(builder, bound, _FLOATS))
    return builder.zext(builder.bitcast(is_near, ir.IntType(BLOCK)), _INT)


def _filter_block(
    builder: Any, near: Any, stride: Any, block: Any, row: Any, bound: Any, norm: Any, size: Any
) -> Any:
    """Write a choice between the filters of all norms and sizes, which are constants in each."""
    case = builder.add(builder.mul(norm, ir.Constant(_INT, BLOCK)), size)
    end = builder.append_basic_block("filtered")
    choice = builder.switch(case, end)
    found = [(ir.Constant(_INT, 0), builder.block)]
    for one_norm, one_size in itertools.product((SQUARES, SUM, MAXIMUM), FILTER_SIZES):
        with builder.goto_block(builder.append_basic_block("filter")):
            choice.add_case(ir.Constant(_INT, one_norm * BLOCK + one_size), builder.block)
            bits = _near_bits(builder, near, stride, block, row, bound, one_norm, one_size)
            found.append((bits, builder.block))
            builder.branch(end)
    builder.position_at_end(end)
    chosen = builder.phi(_INT)
    for bits, origin in found:
        chosen.add_incoming(bits, origin)
    return chosen


@njit_as(_filter_block)
def filter_block(
    near: Floats32, stride: int, block: int, row: int, bound: np.float32, norm: int, size: int
) -> int:
    """Filter the 32 rows from ``block`` on: a bit for each that may be within eps of ``row``.

    Parameters
    ----------
    near, stride, bound, norm, size : see :class:`epsjoin.kernels.join.window.WindowRows`.
    block, row : places; 32 rows from ``block`` on are read.
    """
    bits = 0
    for lane in range(BLOCK):
        total = np.float32(0.0)
        for j in range(size):
            difference = abs(near[j * stride + block + lane] - near[j * stride + row])
            if norm == SQUARES:
                total += difference * difference
            else:
                total = total + difference if norm == SUM else max(total, difference)
        bits |= int(total <= bound) << lane
    return bits


def _lowest_lane(builder: Any, bits: Any) -> Any:
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))


@njit_as(_lowest_lane)
def lowest_lane(bits: int) -> int:
    """Number of the lowest bit that is set; one must be."""
    return (bits & -bits).bit_length() - 1


def _count_below(builder: Any, place: Any, at: Any, value: Any) -> Any:
    address = builder.bitcast(builder.gep(place, [at]), _INTS.as_pointer())
    is_below = builder.icmp_signed(
        "<", builder.load(address, align=_INT_BYTES), _in_each_lane(builder, value, _INTS)
    )
    return builder.zext(builder.ctpop(builder.bitcast(is_below, ir.IntType(_PLACES))), _INT)


@njit_as(_count_below)
def _places_below(place: Ints, at: int, value: int) -> int:
    """Count those of the 8 places from ``at`` on that are below a value; all of them are read."""
    return int(np.count_nonzero(place[at : at + _PLACES] < value))


@njit
def skip_below(place: Ints, at: int, end: int, value: int) -> int:
    """First index from ``at`` on whose place is not below a value; ``end`` at most.

    Parameters
    ----------
    place : (n,) int64, ascending.

    Notes
    -----
    O(places skipped), for pointers that move a little at a time: how far, no processor foresees.
    """
    while at + _PLACES <= end:
        count = _places_below(place, at, value)
        at += count
        if count < _PLACES:
            return at
    while at < end and place[at] < value:
        at += 1
    return at
