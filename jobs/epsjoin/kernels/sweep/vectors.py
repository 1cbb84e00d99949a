"""Instructions on vectors for the innermost loops of a window sweep, which LLVM makes for any processor.

:func:`filter_block` filters 32 candidates of a row at once, :func:`skip_below` moves a pointer along places
without a branch for each. From plain loops LLVM makes slower code: its vectors are half as wide as those of
AVX-512, and it puts the bits together lane by lane.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from llvmlite import ir

from epsjoin.kernels.accelerate import njit, njit_as
from epsjoin.kernels.arrays import Floats32, Ints, Numbers32
from epsjoin.kernels.projection import FILTER_SIZES, MAXIMUM, PRODUCTS, SQUARES, SUM
from epsjoin.kernels.simd.lanes import (
    BIT,
    INT,
    INTS,
    PLACES,
    count_lanes,
    in_each_lane,
    pack,
)

BLOCK = 32
"""Number of candidates that are filtered at once, one bit each."""

_FLOATS = ir.VectorType(ir.FloatType(), BLOCK)
_ALL_BUT_SIGN = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0x7FFFFFFF] * BLOCK)
"""All bits of a float32 but its sign."""
_FLOAT_BYTES, _INT_BYTES = 4, 8


def _add(builder: Any, norm: int, total: Any, difference: Any) -> Any:
    """Add the differences in one coordinate to the totals, as the norm does."""
    if norm == SQUARES:  # in one rounding or in two, whichever is quicker: the filter's slack covers both
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
    if norm == PRODUCTS:
        return _near_bits_by_products(builder, near, stride, block, row, bound, size)
    total = ir.Constant(_FLOATS, None)
    for j in range(size):
        axis = builder.mul(stride, ir.Constant(INT, j))
        own = builder.load(builder.gep(near, [builder.add(axis, row)]))
        lanes = builder.gep(near, [builder.add(axis, block)])
        others = builder.load(builder.bitcast(lanes, _FLOATS.as_pointer()), align=_FLOAT_BYTES)
        difference = builder.fsub(others, in_each_lane(builder, own, _FLOATS))
        total = _add(builder, norm, total, difference)
    is_near = builder.fcmp_ordered("<=", total, in_each_lane(builder, bound, _FLOATS))
    return builder.zext(builder.bitcast(is_near, ir.IntType(BLOCK)), INT)


def _near_bits_by_products(
    builder: Any, near: Any, stride: Any, block: Any, row: Any, bound: Any, size: int
) -> Any:
    """Write the filter by products: a coordinate takes one instruction for 8 or 16 candidates, not two."""

    def load(j: int) -> tuple[Any, Any]:
        axis = builder.mul(stride, ir.Constant(INT, j))
        lanes = builder.gep(near, [builder.add(axis, block)])
        others = builder.load(builder.bitcast(lanes, _FLOATS.as_pointer()), align=_FLOAT_BYTES)
        return builder.load(builder.gep(near, [builder.add(axis, row)])), others

    half, total = load(size)
    for j in range(size):
        own, others = load(j)
        product = builder.fmul(in_each_lane(builder, own, _FLOATS), others, flags=("contract",))
        total = builder.fadd(total, product, flags=("contract",))
    least = builder.fneg(builder.fadd(half, bound))
    is_near = builder.fcmp_ordered(">=", total, in_each_lane(builder, least, _FLOATS))
    return builder.zext(builder.bitcast(is_near, ir.IntType(BLOCK)), INT)


def _filter_block(
    builder: Any, near: Any, stride: Any, block: Any, row: Any, bound: Any, norm: Any, size: Any
) -> Any:
    """Write a choice between the filters of all norms and sizes, which are constants in each."""
    case = builder.add(builder.mul(norm, ir.Constant(INT, BLOCK)), size)
    end = builder.append_basic_block("filtered")
    choice = builder.switch(case, end)
    found = [(ir.Constant(INT, 0), builder.block)]
    for one_norm, one_size in itertools.product((SQUARES, SUM, MAXIMUM, PRODUCTS), FILTER_SIZES):
        with builder.goto_block(builder.append_basic_block("filter")):
            choice.add_case(ir.Constant(INT, one_norm * BLOCK + one_size), builder.block)
            bits = _near_bits(builder, near, stride, block, row, bound, one_norm, one_size)
            found.append((bits, builder.block))
            builder.branch(end)
    builder.position_at_end(end)
    chosen = builder.phi(INT)
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
    near, stride, bound, norm, size : see :class:`epsjoin.kernels.sweep.window.WindowRows`. By products,
        half the squared distance is the sum of half of both squares, less the product of both rows.
    block, row : places; 32 rows from ``block`` on are read.
    """
    bits = 0
    for lane in range(BLOCK):
        if norm == PRODUCTS:
            total = near[size * stride + block + lane]
            for j in range(size):
                total += near[j * stride + block + lane] * near[j * stride + row]
            bits |= int(total >= -(near[size * stride + row] + bound)) << lane
            continue
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
    return int(bits & -bits).bit_length() - 1


_HALF = ir.VectorType(ir.IntType(32), BLOCK // 2)


def _add_lanes(builder: Any, bits: Any, row: Any, block: Any, place: Any, other: Any, waiting: Any) -> Any:
    """Write the two halves of a block, the second behind those of the first that are kept."""
    number = ir.IntType(32)
    lanes = builder.bitcast(builder.trunc(bits, number), ir.VectorType(BIT, BLOCK))
    in_half = in_each_lane(builder, builder.trunc(block, number), _HALF)
    rows = in_each_lane(builder, builder.trunc(row, number), _HALF)
    for begin in (0, BLOCK // 2):
        numbers = ir.Constant(_HALF, list(range(begin, begin + BLOCK // 2)))
        is_kept = builder.shuffle_vector(lanes, lanes, numbers)
        kept = pack(builder, builder.add(in_half, numbers), is_kept)
        for values, array in ((rows, place), (kept, other)):
            address = builder.bitcast(builder.gep(array, [waiting]), _HALF.as_pointer())
            builder.store(values, address, align=4)
        count = builder.ctpop(builder.bitcast(is_kept, ir.IntType(BLOCK // 2)))
        waiting = builder.add(waiting, builder.zext(count, INT))
    return waiting


@njit_as(_add_lanes)
def add_lanes(bits: int, row: int, block: int, place: Numbers32, other: Numbers32, waiting: int) -> int:
    """Let the lanes of a block whose bits are set wait; a branch for each could not be foreseen.

    Parameters
    ----------
    bits : from :func:`filter_block`; row, block : the places that it was asked for, below 2**32.
    place, other : (w,) uint32, written from ``waiting`` on, which leaves room for ``BLOCK``: ``row``, and the
        place of the lane.

    Returns
    -------
    int
        Number of lanes that wait now.
    """
    for lane in range(BLOCK):
        if bits >> lane & 1:
            place[waiting] = row
            other[waiting] = block + lane
            waiting += 1
    return waiting


def _count_below(builder: Any, place: Any, at: Any, value: Any) -> Any:
    address = builder.bitcast(builder.gep(place, [at]), INTS.as_pointer())
    is_below = builder.icmp_signed(
        "<", builder.load(address, align=_INT_BYTES), in_each_lane(builder, value, INTS)
    )
    return count_lanes(builder, is_below)


@njit_as(_count_below)
def _places_below(place: Ints, at: int, value: int) -> int:
    """Count those of the 8 places from ``at`` on that are below a value; all of them are read."""
    return int(np.count_nonzero(place[at : at + PLACES] < value))


@njit
def skip_below(place: Ints, at: int, end: int, value: int) -> int:
    """First index from ``at`` on whose place is not below a value; ``end`` at most.

    Parameters
    ----------
    place : (n,) int64, ascending.

    Notes
    -----
    O(places skipped), for pointers that move a little at a time, by a distance that no processor foresees.
    """
    while at + PLACES <= end:
        count = _places_below(place, at, value)
        at += count
        if count < PLACES:
            return at
    while at < end and place[at] < value:
        at += 1
    return at
