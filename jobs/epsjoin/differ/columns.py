"""Which columns of two snapshots are compared, in which types, and which of an updated row's differ."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Context, Decimal, DecimalException
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.contracts.odcs import Column
from epsjoin.differ.snapshots import Snapshot, is_text, to_texts
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools
from epsjoin.local.arguments import as_number
from epsjoin.source.values import from_text

_KINDS = ("integer", "number", "boolean", "date", "timestamp", "time")
"""Types of a contract in which two texts may be one value."""

_OF_UPDATED = ("columns", "before", "now")
"""Names of columns that stand beside the key in what is told of an updated row."""

_UNITS = ("s", "ms", "us", "ns")
"""Units of Arrow's types of time, the coarsest first: the finer one of two holds the values of both, for as
long as it reaches."""

_FLOAT64_DIGITS, _INTEGER_DIGITS, _MOST_DIGITS = 15, 20, 76
"""Number of digits of decimals that float64 tells apart, of Arrow's integers and of its decimals, at most."""

_TOO_FINE = re.compile(r":[0-9]{2}[.,][0-9]{6}0*[1-9]")
"""Matches times whose seconds have more digits than are read of them."""


_EXACT = Context(prec=2000)
"""Digits enough for the difference of any two numbers that float64 holds."""

_MAY_BE_NUMBERS = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
)


class Compared(NamedTuple):
    """What is compared.

    Parameters
    ----------
    key, rest : names of the key columns, and of the other columns that are compared.
    schema : of all of them, in the types in which they are compared.
    only_old, only_new : columns that one snapshot alone has.
    """

    key: list[str]
    rest: list[str]
    schema: pa.Schema
    only_old: list[str]
    only_new: list[str]


def choose_columns(
    old: Snapshot, new: Snapshot, key: Sequence[str], columns: Sequence[str] | None
) -> Compared:
    """Choose the columns that are compared: those that both snapshots have, or of them ``columns``.

    Raises
    ------
    ArgumentError
        A snapshot lacks a column that was named, they have none in common, or a key column has a name that
        the answer needs.
    """
    for name in (*key, *(columns or ())):
        for snapshot in (old, new):
            if name not in snapshot.schema.names:
                raise ArgumentError(
                    f"{snapshot.label} has no column {name!r}; it has {', '.join(snapshot.schema.names)}"
                )
    for name in key:
        if name in _OF_UPDATED:
            raise ArgumentError(
                f"a key column cannot be called {name!r}, as the answer has a column of that name; "
                "give it another one"
            )
    both = [name for name in new.schema.names if name in old.schema.names]
    rest = [name for name in both if name not in key and (columns is None or name in columns)]
    if not key and not rest:
        raise ArgumentError(f"{old.label} and {new.label} have no column in common")
    fields = [
        (name, _common(old.schema.field(name).type, new.schema.field(name).type)) for name in (*key, *rest)
    ]
    only_old, only_new = (
        [name for name in mine.schema.names if name not in theirs.schema.names]
        for mine, theirs in ((old, new), (new, old))
    )
    return Compared(list(key), rest, pa.schema(fields), only_old, only_new)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared."""
    if one == other:
        return one
    if all(pa.types.is_integer(kind) for kind in (one, other)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in (one, other)):
        return _common_decimal(one, other)
    if all(map(_is_float64, (one, other))):
        return pa.float64()
    for is_kind in (_is_instant, _is_local_time, pa.types.is_duration, pa.types.is_time):
        if is_kind(one) and is_kind(other):
            return max(one, other, key=lambda kind: _UNITS.index(kind.unit))
    return pa.string()


def _is_float64(kind: pa.DataType) -> bool:
    """Whether float64 tells numbers of this type apart, or refuses them: not decimals of many digits."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= _FLOAT64_DIGITS)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _common_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The decimals that hold the values of two types, of decimals or of integers; texts where none do."""
    kinds = [
        (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (_INTEGER_DIGITS, 0)
        for kind in (one, other)
    ]
    scale = max(scale for _, scale in kinds)
    digits = scale + max(precision - scale for precision, scale in kinds)
    if digits > _MOST_DIGITS:
        return pa.string()
    return pa.decimal256(digits, scale)


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def mark_differing(old: pa.Table, new: pa.Table, names: Sequence[str]) -> dict[str, Bools]:
    """Which rows of two tables differ in each column: by digests, as the rows themselves."""
    digests = {name: [digest_table(table.select([name]), UNKEYED) for table in (old, new)] for name in names}
    return {name: (one != other).any(axis=1) for name, (one, other) in digests.items()}


def find_reformatted(
    old: pa.Table, new: pa.Table, differing: dict[str, Bools], snapshots: Sequence[Snapshot]
) -> dict[str, Bools]:
    """Which of the differing values are one value, written otherwise: 1.5 and 1.50.

    Only texts can be, and only where all values of the column in both snapshots are of that type: among codes
    such as 02, 2 and 2A nothing is a number.
    """
    found = {name: np.zeros(len(differs), bool) for name, differs in differing.items()}
    for name, differs in differing.items():
        if not is_text(old.schema.field(name).type):
            continue
        rows = np.flatnonzero(differs)
        texts = [to_texts(table[name].take(pa.array(rows))) for table in (old, new)]
        for kind in _KINDS:
            column = Column(name, kind)
            same = _same_rows(column, *texts)
            if same and all(_are_all(column, snapshot.texts(name)) for snapshot in snapshots):
                found[name][rows[same]] = True
                break
    return found


def find_within(
    old: pa.Table, new: pa.Table, differing: dict[str, Bools], tolerance: Mapping[str, float]
) -> dict[str, Bools]:
    """Which of the differing values are two numbers within the tolerance of their column.

    Numbers are compared as they are written, in decimals: 1.1 and 1.2 differ by 0.1.
    """
    found = {name: np.zeros(len(differs), bool) for name, differs in differing.items()}
    for name, most in tolerance.items():
        rows = np.flatnonzero(differing[name])
        before, now = (_as_written(table[name].take(pa.array(rows))) for table in (old, new))
        exact = Decimal(repr(float(most)))
        found[name][rows] = [_are_within(one, other, exact) for one, other in zip(before, now, strict=True)]
    return found


def check_tolerance(tolerance: Mapping[str, float], compared: Compared) -> None:
    """Check that each column of a tolerance is compared and may hold numbers, and that each is a number.

    Raises
    ------
    ArgumentError
        One is not.
    """
    if not isinstance(tolerance, Mapping):
        raise ArgumentError(f"tolerance must map columns to numbers, not {tolerance!r}")
    for name, most in tolerance.items():
        if name not in compared.rest:
            known = ", ".join(compared.rest)
            raise ArgumentError(f"tolerance: {name} is no compared column; those are {known}")
        kind = compared.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(is_kind(kind) for is_kind in _MAY_BE_NUMBERS):
            raise ArgumentError(f"tolerance: column {name} holds {kind}, not numbers")
        if not 0 <= as_number(most) < math.inf:
            raise ArgumentError(f"tolerance of {name} must be a finite number, at least 0, not {most!r}")


def _as_written(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; floats of few bits as texts, since as float64 1.1 has many more digits."""
    values: list[Any] = column.to_pylist()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not pa.types.is_floating(kind) or pa.types.is_float64(kind):
        return values
    few_bits = np.dtype(kind.to_pandas_dtype()).type
    return [None if value is None else str(few_bits(value)) for value in values]


def _are_within(one: object, other: object, most: Decimal) -> bool:
    with suppress(ValueError, DecimalException):  # no number
        return _EXACT.subtract(_to_decimal(one), _to_decimal(other)).copy_abs() <= most
    return False


def _to_decimal(value: object) -> Decimal:
    """A finite number as it is written; ValueError for all else, as for texts that are none to a contract."""
    if not math.isfinite(
        from_text(Column("", "number"), value) if isinstance(value, str) else as_number(value)
    ):
        raise ValueError(value)
    return Decimal(str(value).strip())


def _same_rows(column: Column, old: pa.ChunkedArray, new: pa.ChunkedArray) -> list[int]:
    """Rows whose two texts are one value of the column's type; none where a first text is no such value."""
    if not _are_all(column, (texts.drop_null()[:1] for texts in (old, new))):
        return []
    rows: Sequence[int] = range(len(old))
    if column.type in ("integer", "number"):
        with suppress(pa.ArrowInvalid):  # equal values are equal as float64, so most rows need no more
            numbers = (texts.cast(pa.float64()).to_numpy() for texts in (old, new))
            rows = np.flatnonzero(np.equal(*numbers)).tolist()
    pairs = ((row, old[row].as_py(), new[row].as_py()) for row in rows)
    return [row for row, *pair in pairs if _is_same(column, *pair)]


def _is_same(column: Column, one: str | None, other: str | None) -> bool:
    """Whether two texts are one value: numbers as float64, but whole ones to the last digit."""
    if one is None or other is None or any(map(_TOO_FINE.search, (one, other))):
        return False
    with suppress(ValueError, OverflowError):
        is_equal = bool(from_text(column, one) == from_text(column, other))
        if is_equal and column.type == "number":
            exact = Decimal(one), Decimal(other)
            return exact[0] == exact[1] or any(number != number.to_integral_value() for number in exact)
        return is_equal
    return False


def _are_all(column: Column, texts: Iterable[pa.Array]) -> bool:
    for part in texts:
        for text in part.to_pylist():
            try:
                from_text(column, text)
            except (ValueError, OverflowError):
                return False
    return True


def structs(table: pa.Table) -> pa.Array:
    """The rows of a table as one column."""
    columns: list[Any] = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(table.schema))


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as Python's values; times are texts where one is after the year 9999."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (OverflowError, ValueError):
        rows = table.cast(
            pa.schema([(field.name, _without_times(field.type)) for field in table.schema])
        ).to_pylist()
    return rows


def without_infinities(value: Any) -> Any:
    """The same value, without NaN and infinities in it, which JSON has not: they become texts."""
    if isinstance(value, dict):
        return {name: without_infinities(each) for name, each in value.items()}
    if isinstance(value, list | tuple):  # of tuples are the items of a map
        return [without_infinities(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_times(field.type)) for field in kind])
    if pa.types.is_duration(kind):
        return pa.int64()  # in its unit: Arrow writes no texts of these
    return pa.string() if pa.types.is_temporal(kind) else kind
