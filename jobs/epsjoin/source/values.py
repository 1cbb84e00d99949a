"""Typed values of a record's fields by the contract, or the reason why the record is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.source_columns import TIMES
from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.times import pattern_of
from epsjoin.source.reasons import NOT_UTF_8, refusal
from epsjoin.source.trees import read_document

VALUE = r"(?s): ['\"].*"
"""Pattern of the value at the end of a reason, without which it is a kind; Python and Java read it alike."""

INT64 = range(-(2**63), 2**63)
"""Integers of 64 bits."""

EXACT = range(-(2**53), 2**53 + 1)
"""Integers that float64 holds exactly; two different larger ones may become equal."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")  # int() refuses thousands of digits with a sentence of its own

DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Regular expression of a finite number in text, without blanks around it."""

_NUMBER = re.compile(rf"{DECIMAL}|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def kind_of(reason: str) -> str:
    """The kind of a reason: the reason without the value, by which records are counted."""
    return re.sub(VALUE, "", reason)


def kind_of_error(error: Exception) -> str:
    """The kind of reason for an error that the conversion of a value raised."""
    if isinstance(error, UnicodeError):
        return NOT_UTF_8
    return "out of range" if isinstance(error, OverflowError) else str(error)


MIN_SQUARE, MAX_SQUARE = 0.99e-298, 1.01e298
"""Bounds of the square of a vector's length; the kernels take more, however they add it up."""

_NO_DIRECTION = "cosine needs coordinates with a length from 1e-149 to 1e149"


def convert(
    source: SourceContract, fields: Sequence[Any], from_field: Callable[[Column, Any], Any]
) -> tuple[tuple[Any, ...] | None, str | None]:
    """Convert a record's fields to typed values.

    Parameters
    ----------
    source : the contract.
    fields : one field per column of the contract, in its order.
    from_field : function that types one field, :func:`from_text` or :func:`from_value`.

    Returns
    -------
    The values, or the reason why the record is refused; the other one is ``None``.
    """
    values: list[Any] = []
    for column, field in zip(source.columns, fields, strict=True):
        value, reason = type_field(source, column, field, from_field)
        if reason is None:
            reason = _breach(column, value, field)
        if reason is not None:
            return None, reason
        values.append(value)
    if source.metric == "cosine" and not has_direction(source, values):
        return None, refusal(_NO_DIRECTION)
    return tuple(values), None


def has_direction(source: SourceContract, values: Sequence[Any]) -> bool:
    """Whether the coordinates of a record are a vector of a length that cosine distances are exact for."""
    names = set(source.coordinates)
    held = (value for column, value in zip(source.columns, values, strict=True) if column.name in names)
    square = sum(float(value) * float(value) for value in held if value is not None)
    return MIN_SQUARE <= square <= MAX_SQUARE


def type_field(
    source: SourceContract, column: Column, field: Any, from_field: Callable[[Column, Any], Any]
) -> tuple[Any, str | None]:
    """Convert one field to the type of its column, rounded as it says, whatever is demanded of the value.

    Returns
    -------
    The value, ``None`` if it is missing, and ``None``; or ``None`` and the reason why it is no such value.
    """
    if is_missing(source, column, field):
        return None, None
    if column.max_nodes is not None:
        return read_document(column, field)
    try:
        value = from_field(column, field)
    except (ValueError, OverflowError) as error:
        return None, _refusal(column, kind_of_error(error), field)
    if column.type == "number" and not math.isfinite(value):
        return None, _refusal(column, "not finite", field)
    if column.type == "integer" and column.name in source.coordinates and value not in EXACT:
        return None, _refusal(column, "beyond 2**53, where float64 leaves numbers out", field)
    return value if column.decimals is None else round(value, column.decimals), None


def is_missing(source: SourceContract, column: Column, field: Any) -> bool:
    """Whether a field holds no value.

    Null and the empty text are no value. Where the column is not text, neither are blanks and what the
    contract lists as missing.
    """
    if field is None or field == "":
        return True
    if column.type in ("string", "object"):
        return False
    if isinstance(field, str):
        text = field.strip()
        return not text or text in source.missing
    return field != field and "nan" in source.missing


def _breach(column: Column, value: Any, field: Any) -> str | None:
    """The reason why the contract does not allow a value of the right type; ``None`` if it does."""
    if value is None:
        told = None if column.item is None else field  # of a list it says which of its numbers is missing
        return _refusal(column, "missing", told) if column.required else None
    if column.minimum is not None and value < column.minimum:
        return _refusal(column, f"below {_format_limit(column.minimum)}", field)
    if column.maximum is not None and value > column.maximum:
        return _refusal(column, f"above {_format_limit(column.maximum)}", field)
    if column.values and value not in column.values:
        return _refusal(column, f"not one of {', '.join(column.values)}", field)
    return None


def _refusal(column: Column, what: str, field: Any) -> str:
    return refusal(f"{column.in_file}: {what}", field, column.item)


def _format_limit(number: float) -> str:
    return str(number).removesuffix(".0")


def from_text(column: Column, text: str) -> Any:
    """Convert a text (CSV) to the type of its column.

    Raises
    ------
    ValueError
        The text is no value of this type; the error's text says why.
    """
    if column.type == "string":
        return text
    text = text.strip()
    if column.type == "number":
        if not _NUMBER.fullmatch(text):
            raise ValueError("not a number")
        value = float(text)
        if is_underflow(value, text):
            raise ValueError("too close to 0 for a float64")
        return value
    if column.type == "integer":
        if not _INTEGER.fullmatch(text) or int(text) not in INT64:
            raise ValueError("not a 64-bit integer")
        return int(text)
    if column.type == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError("not true or false")
        return text.lower() == "true"
    return _parse_iso(column, text)


def is_underflow(value: float, text: str) -> bool:
    """Whether a number became 0 although its text is another number."""
    return value == 0 and any(digit in "123456789" for digit in text.lower().partition("e")[0])


class Underflow(float):
    """A number of JSON that became 0 although its text is another number: it is of no type of a contract.

    Parameters
    ----------
    text : the number as it stands in the file.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def from_value(column: Column, value: Any) -> Any:
    """Convert a value that has a type already (JSON, Parquet) to the type of its column.

    Raises
    ------
    ValueError
        The value is of another type; the error's text names the type of the column.
    """
    if column.type == "string" and isinstance(value, str):
        value.encode()  # JSON can write half a surrogate pair, which no file can hold
        return value
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, (bool, Underflow))
    if column.type == "number" and is_number:
        return float(value)
    if column.type == "integer" and isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return value
    if column.type == "boolean" and isinstance(value, bool):
        return value
    if column.type in TIMES:
        if isinstance(value, str):
            return _parse_iso(column, value)
        if isinstance(value, time) and column.type == "time":
            return _seconds_of(value)
        if isinstance(value, datetime) and column.type == "timestamp" and value == value:  # not NaT
            # pandas has a type of its own for nanoseconds; the tables have microseconds
            plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
            return _check_year(plain)
        if isinstance(value, date) and not isinstance(value, datetime) and column.type == "date":
            return value
    raise ValueError(f"not of type {column.type}")


def _parse_iso(column: Column, text: str) -> date | datetime | float:
    if column.form:
        found = re.fullmatch(pattern_of(column.form), text)
        with suppress(ValueError):
            if found:
                return date(**{part: int(digits) for part, digits in found.groupdict().items()})
        raise ValueError(f"not a date written as {column.form}")
    try:
        if column.type == "time":
            return _seconds_of(time.fromisoformat(text))
        value = date.fromisoformat(text) if column.type == "date" else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not an ISO {column.type}") from error
    return _check_year(value) if isinstance(value, datetime) else value


def _seconds_of(value: time) -> float:
    """Seconds since midnight.

    Raises
    ------
    ValueError
        The time has an offset from UTC, without a day to count it from.
    """
    if value.tzinfo is not None:
        raise ValueError("not a time without an offset")
    return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6


def _check_year(value: datetime) -> datetime:
    """The value, if its year is 1 to 9999 in UTC, too, as the tables store it; otherwise OverflowError."""
    if value.tzinfo is not None:
        value.astimezone(UTC)
    return value


def text_of_key(value: Any) -> str:
    """The text of a value by which a key is hashed; one for each value that the tables tell apart."""
    if isinstance(value, datetime):
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value + 0.0 if isinstance(value, float) else value)
