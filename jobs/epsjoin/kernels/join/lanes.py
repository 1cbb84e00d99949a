"""What instructions on vectors are put together from: lanes that are filled, read, gathered and packed.

Everything here writes LLVM's instructions for :func:`epsjoin.kernels.accelerate.njit_as`; LLVM makes them for
any processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

PLACES = 8
"""Number of lanes of 8 bytes: places, candidates or pairs that are looked at together."""
INT, BIT = ir.IntType(64), ir.IntType(1)
DOUBLES = ir.VectorType(ir.DoubleType(), PLACES)
INTS = ir.VectorType(INT, PLACES)
_NUMBER_BYTES = 8


def in_each_lane(builder: Any, value: Any, vector: Any) -> Any:
    """One value in each lane of a vector of this type."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, zeros)


def first_lanes(builder: Any, count: Any) -> Any:
    """Which of 8 lanes are among the first ``count``."""
    numbers = ir.Constant(INTS, list(range(PLACES)))
    return builder.icmp_signed("<", numbers, in_each_lane(builder, count, INTS))


def count_lanes(builder: Any, lanes: Any) -> Any:
    """How many of 8 lanes are set."""
    return builder.zext(builder.ctpop(builder.bitcast(lanes, ir.IntType(PLACES))), INT)


def declare(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Declare an intrinsic function of LLVM, if the module does not have it yet."""
    if name in builder.module.globals:
        return builder.module.globals[name]
    return ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def load_some(builder: Any, array: Any, at: Any, is_loaded: Any) -> Any:
    """Read 8 numbers of an array, zeros for those that are not to be read."""
    vector, name = _lanes_of(array)
    address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
    arguments = address, ir.Constant(ir.IntType(32), _NUMBER_BYTES), is_loaded, ir.Constant(vector, None)
    load = declare(builder, f"llvm.masked.load.{name}.p0", vector, *(one.type for one in arguments))
    return builder.call(load, arguments)


def load_places(builder: Any, array: Any, at: Any, is_loaded: Any) -> Any:
    """Read 8 numbers of 32 bits without a sign as numbers of 64 bits, zeros for those not to be read."""
    vector = ir.VectorType(ir.IntType(32), PLACES)
    address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
    arguments = address, ir.Constant(ir.IntType(32), 4), is_loaded, ir.Constant(vector, None)
    load = declare(builder, "llvm.masked.load.v8i32.p0", vector, *(one.type for one in arguments))
    return builder.zext(builder.call(load, arguments), INTS)


def gather(builder: Any, array: Any, places: Any, is_read: Any) -> Any:
    """Read a number of an array at each of 8 places, zeros for those that are not to be read."""
    vector, name = _lanes_of(array)
    begin = in_each_lane(builder, builder.ptrtoint(array, INT), INTS)
    offsets = builder.mul(places, ir.Constant(INTS, [_NUMBER_BYTES] * PLACES))
    addresses = builder.inttoptr(builder.add(begin, offsets), ir.VectorType(array.type, PLACES))
    arguments = addresses, ir.Constant(ir.IntType(32), _NUMBER_BYTES), is_read, ir.Constant(vector, None)
    types = (one.type for one in arguments)
    return builder.call(declare(builder, f"llvm.masked.gather.{name}.v8p0", vector, *types), arguments)


def pack(builder: Any, values: Any, is_kept: Any) -> Any:
    """Put those numbers of a vector that are kept into the first lanes, in their order."""
    arguments = values, is_kept, ir.Constant(values.type, ir.Undefined)
    name = (
        f"v{values.type.count}f64"
        if values.type == DOUBLES
        else f"v{values.type.count}i{values.type.element.width}"
    )
    types = (one.type for one in arguments)
    return builder.call(
        declare(builder, f"llvm.experimental.vector.compress.{name}", values.type, *types), arguments
    )


def store_some(builder: Any, values: Any, is_stored: Any, array: Any, at: Any) -> None:
    """Write those of 8 numbers that are to be stored, each to its place."""
    vector, name = _lanes_of(array)
    address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
    arguments = values, address, ir.Constant(ir.IntType(32), _NUMBER_BYTES), is_stored
    types = (one.type for one in arguments)
    builder.call(declare(builder, f"llvm.masked.store.{name}.p0", ir.VoidType(), *types), arguments)


def transpose(builder: Any, rows: list[Any]) -> list[Any]:
    """Make columns of 8 rows of 8 numbers: lane i of column j is lane j of row i."""
    rows = list(rows)
    lanes = range(PLACES)
    for step in (1, 2, 4):
        for i in lanes:
            if i & step:
                continue
            one, other = rows[i], rows[i + step]
            low = [PLACES + lane - step if lane & step else lane for lane in lanes]
            high = [PLACES + lane if lane & step else lane + step for lane in lanes]
            rows[i] = builder.shuffle_vector(one, other, _constants(low))
            rows[i + step] = builder.shuffle_vector(one, other, _constants(high))
    return rows


def _constants(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def _lanes_of(array: Any) -> tuple[Any, str]:
    """The type of 8 numbers of an array, and LLVM's name for it."""
    return (DOUBLES, "v8f64") if isinstance(array.type.pointee, ir.DoubleType) else (INTS, "v8i64")
