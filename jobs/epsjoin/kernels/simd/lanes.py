"""Building blocks of instructions on vectors: lanes are filled, read, gathered, packed and stored.

Everything here writes LLVM's instructions for :func:`epsjoin.kernels.accelerate.njit_as`; LLVM makes them for
any processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir

PLACES = 8
"""Number of lanes of 8 bytes: places, candidates or pairs that are looked at together."""
INT, BIT = ir.IntType(64), ir.IntType(1)
DOUBLES = ir.VectorType(ir.DoubleType(), PLACES)
INTS = ir.VectorType(INT, PLACES)
_SHORTS = ir.VectorType(ir.IntType(32), PLACES)
_FEATURES = binding.get_host_cpu_features()
_IS_SHUFFLED = _FEATURES.get("avx2", False) and not _FEATURES.get("avx512f", False)
"""Whether the processor packs numbers soonest by a table: it has an instruction that puts 32 bytes in any
order, and none that packs. There LLVM packs number by number."""


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
    vector, name, n_bytes = _lanes_of(array)
    address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
    arguments = address, ir.Constant(ir.IntType(32), n_bytes), is_loaded, ir.Constant(vector, None)
    load = declare(builder, f"llvm.masked.load.{name}.p0", vector, *(one.type for one in arguments))
    return builder.call(load, arguments)


def load_rows(builder: Any, array: Any, at: Any, is_loaded: Any) -> Any:
    """Read 8 row numbers, at least 0, of 32 or 64 bits, widened to 64; zeros for those not read."""
    rows = load_some(builder, array, at, is_loaded)
    return rows if rows.type == INTS else builder.zext(rows, INTS)


def store_rows(builder: Any, values: Any, is_stored: Any, array: Any, at: Any) -> None:
    """Write those of 8 row numbers that are to be stored to an array of 32 or 64 bits."""
    is_short = array.type.pointee != INT
    store_some(builder, builder.trunc(values, _SHORTS) if is_short else values, is_stored, array, at)


def scatter(builder: Any, values: Any, places: Any, is_stored: Any, array: Any) -> None:
    """Write those of 8 numbers that are to be stored, each to its own place; row numbers also to 32 bits."""
    vector, name, n_bytes = _lanes_of(array)
    values = builder.trunc(values, vector) if vector == _SHORTS else values
    addresses = _addresses(builder, array, places, n_bytes)
    arguments = values, addresses, ir.Constant(ir.IntType(32), n_bytes), is_stored
    types = (one.type for one in arguments)
    builder.call(declare(builder, f"llvm.masked.scatter.{name}.v8p0", ir.VoidType(), *types), arguments)


def gather(builder: Any, array: Any, places: Any, is_read: Any) -> Any:
    """Read a number of an array at each of 8 places, zeros for those that are not to be read."""
    vector, name, n_bytes = _lanes_of(array)
    nothing = ir.Constant(vector, None)
    addresses = _addresses(builder, array, places, n_bytes)
    arguments = addresses, ir.Constant(ir.IntType(32), n_bytes), is_read, nothing
    types = (one.type for one in arguments)
    return builder.call(declare(builder, f"llvm.masked.gather.{name}.v8p0", vector, *types), arguments)


def pack(builder: Any, values: Any, is_kept: Any) -> Any:
    """Put those numbers of a vector that are kept into the first lanes, in their order."""
    arguments = values, is_kept, ir.Constant(values.type, ir.Undefined)
    number = "f64" if values.type == DOUBLES else f"i{values.type.element.width}"
    name = f"v{values.type.count}{number}"
    types = (one.type for one in arguments)
    return builder.call(
        declare(builder, f"llvm.experimental.vector.compress.{name}", values.type, *types), arguments
    )


def store_packed(builder: Any, values: Any, is_stored: Any, array: Any, at: Any) -> None:
    """Write those of 8 numbers that are to be stored, one behind the other.

    8 numbers are always written: these come first, and what follows them has no meaning.
    """
    vector, _, n_bytes = _lanes_of(array)
    if not _IS_SHUFFLED:
        address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
        builder.store(pack(builder, values, is_stored), address, align=n_bytes)
        return
    size = 32 // n_bytes
    for begin in range(0, PLACES, size):
        part = _constants(list(range(begin, begin + size)))
        lanes = builder.bitcast(builder.shuffle_vector(is_stored, is_stored, part), ir.IntType(size))
        words = builder.bitcast(builder.shuffle_vector(values, values, part), _SHORTS)
        packed = _in_order(builder, words, _packing_order(builder, lanes, size))
        address = builder.bitcast(builder.gep(array, [at]), _SHORTS.as_pointer())
        builder.store(packed, address, align=n_bytes)
        at = builder.add(at, builder.zext(builder.ctpop(lanes), INT))


def _packing_order(builder: Any, lanes: Any, size: int) -> Any:
    """Read from a table the order of 8 words that puts those of lanes that are set before the others."""
    words, order = PLACES // size, ir.VectorType(ir.IntType(8), PLACES)
    name = f"epsjoin_packing_order_{size}"
    if name not in builder.module.globals:
        orders = [
            [
                lane * words + word
                for lane in sorted(range(size), key=lambda lane: not bits >> lane & 1)
                for word in range(words)
            ]
            for bits in range(1 << size)
        ]
        table = ir.GlobalVariable(builder.module, ir.ArrayType(order, len(orders)), name)
        table.global_constant, table.linkage = True, "internal"
        table.initializer = ir.Constant(table.value_type, [ir.Constant(order, one) for one in orders])
    table = builder.module.globals[name]
    entry = builder.gep(table, [ir.Constant(INT, 0), builder.zext(lanes, INT)])
    return builder.zext(builder.load(entry, align=PLACES), _SHORTS)


def _in_order(builder: Any, words: Any, order: Any) -> Any:
    """Put 8 words in an order; LLVM makes one instruction of this where there is one."""
    ordered = ir.Constant(_SHORTS, ir.Undefined)
    for number in range(PLACES):
        lane = ir.Constant(ir.IntType(32), number)
        word = builder.extract_element(words, builder.extract_element(order, lane))
        ordered = builder.insert_element(ordered, word, lane)
    return ordered


def store_some(builder: Any, values: Any, is_stored: Any, array: Any, at: Any) -> None:
    """Write those of 8 numbers that are to be stored, each to its place."""
    vector, name, n_bytes = _lanes_of(array)
    address = builder.bitcast(builder.gep(array, [at]), vector.as_pointer())
    arguments = values, address, ir.Constant(ir.IntType(32), n_bytes), is_stored
    types = (one.type for one in arguments)
    builder.call(declare(builder, f"llvm.masked.store.{name}.p0", ir.VoidType(), *types), arguments)


def transpose(builder: Any, rows: list[Any]) -> list[Any]:
    """Turn 8 rows of 8 numbers into columns: lane i of column j is lane j of row i."""
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


def _addresses(builder: Any, array: Any, places: Any, n_bytes: int) -> Any:
    """The address of each of 8 places of an array."""
    begin = in_each_lane(builder, builder.ptrtoint(array, INT), INTS)
    offsets = builder.mul(places, ir.Constant(INTS, [n_bytes] * PLACES))
    return builder.inttoptr(builder.add(begin, offsets), ir.VectorType(array.type, PLACES))


def _lanes_of(array: Any) -> tuple[Any, str, int]:
    """The type of 8 numbers of an array, LLVM's name for it, and the bytes of a number."""
    if isinstance(array.type.pointee, ir.DoubleType):
        return DOUBLES, "v8f64", 8
    return (INTS, "v8i64", 8) if array.type.pointee == INT else (_SHORTS, "v8i32", 4)
