"""What a contract demands of values, checked on whole columns: which rows the definition must decide.

Nothing here refuses a row or says why. A row with anything unusual is *odd*, and is read again by the
definition (:func:`epsjoin.source.records.to_records`), which has the reasons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.contracts.conditions import SOURCE_TYPES
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.values import EXACT, MAX_SQUARE, MIN_SQUARE, text_of_key, type_field
from epsjoin.vocabulary import NOISE

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_TINY = re.compile(rb"[eE]-0*[1-9][0-9]{2}")
"""The exponent of a number that may become 0."""

_TYPE_NAMES = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "timestamp": "datetime",
    "time": "float",
    "object": "str",
}
"""Names of Python's types of the values of a key, where they are not those of the contract."""


def is_read_by_columns(source: SourceContract) -> bool:
    """Whether files can be read by columns; documents have no type of one."""
    return not source.tree


def may_be_tiny(data: bytes) -> bool:
    """Whether some number in the data may become 0 as a float64 although its text is another number."""
    if b"0" * 100 in data:
        return True
    signs = np.frombuffer(data, np.uint8)
    places = np.flatnonzero((signs[:-4] | 0x20) == ord("e"))  # of e and E
    places = places[(signs[places + 1] == ord("-")) & _is_digit(signs[places + 4])]
    return any(_TINY.match(data, place) for place in places.tolist())


def _is_digit(signs: NDArray[np.uint8]) -> Flags:
    return (signs >= ord("0")) & (signs <= ord("9"))


def type_once(
    source: SourceContract, column: Column, texts: pa.Array, from_field: Callable[[Column, Any], Any]
) -> tuple[pa.Array, Flags]:
    """Texts of a column as typed values, and which are odd: each different text is typed by the definition.

    Parameters
    ----------
    from_field : function that types one text; see :data:`epsjoin.source.records.FORMATS`.
    """
    encoded = texts.dictionary_encode()
    found = [type_field(source, column, text, from_field) for text in encoded.dictionary.to_pylist()]
    values = pa.array([value for value, _ in found], SOURCE_TYPES[column.type]).take(encoded.indices)
    odd = pa.array([reason is not None for _, reason in found], pa.bool_()).take(encoded.indices)
    return values, _flags(odd, nulls=False)


class Judged(NamedTuple):
    """Rows that are odd, and others that the contract's condition leaves out."""

    odd: Flags
    left_out: Flags


def typed_schema(source: SourceContract) -> pa.Schema:
    """The typed columns of a source, in its order."""
    return pa.schema([(column.name, SOURCE_TYPES[column.type]) for column in source.columns])


def round_columns(source: SourceContract, table: pa.Table) -> pa.Table:
    """The table, with columns that have ``decimals`` rounded, bit for bit as Python's ``round`` does."""
    for place, column in enumerate(source.columns):
        if column.decimals is not None:
            values = table[column.name].combine_chunks()
            rounded = round_numbers(values.fill_null(0.0).to_numpy(), column.decimals)
            array = pa.array(rounded, mask=values.is_null().to_numpy(zero_copy_only=False))
            table = table.set_column(place, table.schema.field(place), array)
    return table


def round_numbers(values: Floats, decimals: int) -> Floats:
    """Round numbers as Python's ``round`` does: to the decimal nearest to what a float64 holds exactly.

    Notes
    -----
    The product with a power of ten is off by at most one part in 2^53. So the whole number next to it is the
    right one, unless it lies that near to the middle of two; then Python decides. The quotient of two numbers
    that float64 holds exactly is the float64 nearest to the decimal, which is what ``round`` returns.
    """
    scale = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * scale
        whole = np.rint(scaled)
        rounded = whole / scale
        is_near = np.abs(np.abs(scaled - whole) - 0.5) <= np.abs(scaled) * 2.0**-51
        by_python = np.flatnonzero((is_near | (np.abs(scaled) >= 2.0**52)) & np.isfinite(values))
    rounded[by_python] = [round(value, decimals) for value in values[by_python].tolist()]
    is_finite = np.isfinite(values)
    return rounded if is_finite.all() else np.where(is_finite, rounded, values)


def judge(source: SourceContract, table: pa.Table, odd: Flags) -> Judged:
    """Find the odd rows and those left out, among rows that have :func:`typed_schema`.

    Parameters
    ----------
    odd : rows that are known to be odd, for example where a value is not of its type: it is null.
    """
    odd = odd.copy()
    for column in source.columns:
        values = table[column.name]
        if column.type == "number":
            odd |= ~_flags(pc.is_finite(values), nulls=True)
        elif column.type == "integer" and column.name in source.coordinates:
            odd |= _beyond(values, EXACT[0], EXACT[-1])
    left_out = np.zeros(len(odd), bool)
    if source.filter is not None:
        left_out = ~_flags(source.filter.taken(table), nulls=False) & ~odd
    for column in source.columns:
        odd |= _breaks(source, column, table[column.name]) & ~left_out
    if source.metric == "cosine":
        odd |= _seems_without_direction(source, table) & ~left_out
    return Judged(odd, left_out)


def _seems_without_direction(source: SourceContract, table: pa.Table) -> Flags:
    """Rows that :func:`epsjoin.source.values.has_direction` may refuse: sums are rounded otherwise here."""
    square = np.zeros(table.num_rows)
    with np.errstate(over="ignore"):
        for name in source.coordinates:
            values = pc.fill_null(pc.cast(table[name], pa.float64(), safe=False), 0.0).to_numpy()
            square += values * values
    return ~((square >= 10.0 * MIN_SQUARE) & (square <= MAX_SQUARE / 10.0))


def _breaks(source: SourceContract, column: Column, values: pa.ChunkedArray) -> Flags:
    """Rows whose value the contract does not allow, though it is of the right type."""
    broken = np.zeros(len(values), bool)
    is_key = column.name in source.key
    if values.null_count and (column.required or is_key):
        broken |= _flags(pc.is_null(values), nulls=True)
    if column.type in ("integer", "number"):
        broken |= _beyond(values, column.minimum, column.maximum)
    if column.values:
        broken |= ~_flags(pc.is_in(values, pa.array(column.values)), nulls=True) & ~_flags(
            pc.is_null(values), nulls=True
        )
    if is_key and len(source.key) == 1 and column.type == "integer":
        broken |= _flags(pc.equal(values, NOISE), nulls=False)  # no id: it stands for noise among clusters
    return broken


def _beyond(values: pa.ChunkedArray, minimum: float | None, maximum: float | None) -> Flags:
    """Rows below or above the limits, compared exactly; a null is neither."""
    is_integer = pa.types.is_integer(values.type)
    beyond = np.zeros(len(values), bool)
    for limit, up, compare in ((minimum, True, pc.less), (maximum, False, pc.greater)):
        if limit is None or limit != limit:
            continue
        nearest = _nearest_integer(limit, up) if is_integer else _nearest_float(limit, up)
        if nearest is None:  # a limit beyond every integer of 64 bits
            beyond |= _flags(pc.is_valid(values), nulls=False) if up == (limit > 0) else False
        else:
            beyond |= _flags(compare(values, pa.scalar(nearest, values.type)), nulls=False)
    return beyond


def _nearest_float(limit: float, up: bool) -> float:
    """The first float at or beyond the limit, from which it keeps the same floats."""
    try:
        near = float(limit)
    except OverflowError:  # an integer of hundreds of digits
        near = math.copysign(math.inf, limit)
    if up:
        return near if near >= limit else math.nextafter(near, math.inf)
    return near if near <= limit else math.nextafter(near, -math.inf)


def _nearest_integer(limit: float, up: bool) -> int | None:
    if not math.isfinite(limit):
        return None
    near = math.ceil(limit) if up else math.floor(limit)
    return near if -(2**63) <= near < 2**63 else None


def _flags(answers: pa.ChunkedArray | pa.Array, *, nulls: bool) -> Flags:
    if answers.null_count:
        answers = pc.fill_null(answers, nulls)
    flags: Flags = (
        answers.to_numpy(zero_copy_only=False) if isinstance(answers, pa.Array) else answers.to_numpy()
    )
    return flags


def key_ids(source: SourceContract, table: pa.Table) -> Ints:
    """The ids of rows that are not odd, as :func:`epsjoin.source.records.key_id` has them.

    Raises
    ------
    ValueError
        The source has no key.
    """
    if not source.key:
        raise ValueError(f"{source.name} has no key")
    kinds = [source.column(name).type for name in source.key]
    if kinds == ["integer"]:
        ids: Ints = table[source.key[0]].to_numpy()
        return ids
    parts = [_key_parts(table[name], kind) for name, kind in zip(source.key, kinds, strict=True)]
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")
    digests = [blake2b(part, digest_size=8).digest() for part in joined.to_pylist()]
    return np.frombuffer(b"".join(digests), "<i8").astype(np.int64, copy=False)


def _key_parts(values: pa.ChunkedArray, kind: str) -> pa.ChunkedArray | pa.Array:
    """What each value adds to the hash of a key: the name of its type, its length in bytes, its text."""
    if kind in ("integer", "string"):
        texts = values.cast(pa.string()) if kind == "integer" else values
    else:
        texts = pa.array(map(text_of_key, values.to_pylist()), pa.string())
    name = _TYPE_NAMES.get(kind, kind)
    lengths = pc.binary_length(texts).cast(pa.string())
    return pc.binary_join_element_wise(f"{name}:", lengths, ":", texts, "").cast(pa.binary())
