"""Values of a record: typed by the contract's columns, or a reason why not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from epsjoin.contracts.odcs import Column, SourceContract

VALUE = r"(?s): ['\"].*"
"""The part of a reason that is dropped to count by its kind; Python and Java read this pattern alike."""
INT64 = range(-(2**63), 2**63)
EXACT = range(-(2**53), 2**53 + 1)
"""Whole numbers that all are float64 as well; of larger ones two different ones may become equal."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")  # int() refuses thousands of digits with a sentence of its own

_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE
)


def refusal(kind: str, value: object = None) -> str:
    """The reason why a record is refused: its kind, then the value in quotes.

    Kinds are fixed sentences about the columns of a contract, so there are few of them, however many
    records are bad; whatever differs from record to record belongs into the value. No column's name and
    no sentence has a quote after a colon, so the kind can be had back from the reason.
    """
    return kind if value is None else f"{kind}: {str(value)[:80]!r}"


def kind_of(reason: str) -> str:
    """A reason without the value that caused it, to count by."""
    return re.sub(VALUE, "", reason)


def kind_of_error(error: Exception) -> str:
    """What is wrong with a value, from the error that its conversion raised."""
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    return "out of range" if isinstance(error, OverflowError) else str(error)


def convert(
    source: SourceContract, fields: Sequence[Any], from_field: Callable[[Column, Any], Any]
) -> tuple[tuple[Any, ...] | None, str | None]:
    """The typed values of a record's fields, or the reason why it cannot be used.

    Parameters
    ----------
    source : the contract; ``fields`` are in the order of its columns.
    from_field : types one field, :func:`from_text` or :func:`from_value`.
    """
    values: list[Any] = []
    for column, given in zip(source.columns, fields, strict=True):
        if given is None or given == "":
            if column.required:
                return None, refusal(f"{column.name}: missing")
            values.append(None)
            continue
        try:
            value = from_field(column, given)
        except (ValueError, OverflowError) as error:
            return None, refusal(f"{column.name}: {kind_of_error(error)}", given)
        if column.type == "number" and not math.isfinite(value):
            return None, refusal(f"{column.name}: not finite", given)
        if column.type == "integer" and column.name in source.coordinates and value not in EXACT:
            return None, refusal(f"{column.name}: beyond 2**53, where float64 leaves numbers out", given)
        if column.minimum is not None and value < column.minimum:
            return None, refusal(f"{column.name}: below {_limit(column.minimum)}", given)
        if column.maximum is not None and value > column.maximum:
            return None, refusal(f"{column.name}: above {_limit(column.maximum)}", given)
        if column.values and value not in column.values:
            return None, refusal(f"{column.name}: not one of {', '.join(column.values)}", given)
        values.append(value)
    return tuple(values), None


def _limit(number: float) -> str:
    return str(number).removesuffix(".0")


def from_text(column: Column, text: str) -> Any:
    """The value in its column's type, of a text (CSV).

    Raises
    ------
    ValueError
        The text stands for no such value; the error's text says why.
    """
    if column.type == "string":
        return text
    text = text.strip()
    if column.type == "number":
        if not _NUMBER.fullmatch(text):
            raise ValueError("not a number")
        return float(text)
    if column.type == "integer":
        if not _INTEGER.fullmatch(text) or int(text) not in INT64:
            raise ValueError("not a 64-bit integer")
        return int(text)
    if column.type == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError("not true or false")
        return text.lower() == "true"
    return _from_iso(column, text)


def from_value(column: Column, value: Any) -> Any:
    """The value in its column's type, of one that has a type already (JSON, Parquet).

    Raises
    ------
    ValueError
        It is of another type; the text says which one is wanted.
    """
    if column.type == "string" and isinstance(value, str):
        value.encode()  # JSON can write half a surrogate pair, which no file can hold
        return value
    if column.type == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if column.type == "integer" and isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return value
    if column.type == "boolean" and isinstance(value, bool):
        return value
    if column.type in ("date", "timestamp"):
        if isinstance(value, str):
            return _from_iso(column, value)
        if isinstance(value, datetime) and column.type == "timestamp" and value == value:  # not NaT
            return _in_range(value)
        if isinstance(value, date) and not isinstance(value, datetime) and column.type == "date":
            return value
    raise ValueError(f"not of type {column.type}")


def _from_iso(column: Column, text: str) -> date | datetime:
    try:
        value = date.fromisoformat(text) if column.type == "date" else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not an ISO {column.type}") from error
    return _in_range(value) if isinstance(value, datetime) else value


def _in_range(value: datetime) -> datetime:
    """The value, if it is within the years 1 to 9999 in UTC too, as the tables hold it."""
    if value.tzinfo is not None:
        value.astimezone(UTC)
    return value
