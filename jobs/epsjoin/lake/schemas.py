"""Types of columns: the names in contracts and in Spark's DDL, and the Arrow types."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

ARROW_TYPES = {
    "string": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def parse_ddl(ddl: str) -> pa.Schema:
    """Make an Arrow schema of a DDL text: names and types, with commas between."""
    columns = (column.split() for column in ddl.split(", "))
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns])


def to_ddl(columns: Iterable[pa.Field]) -> str:
    """Write Arrow columns as a DDL text."""
    names = {arrow: name for name, arrow in ARROW_TYPES.items()}
    return ", ".join(f"{quoted(column.name)} {names[column.type]}" for column in columns)


def quoted(name: str) -> str:
    """Write a column's name, whatever its characters are, as SQL and Spark's functions take it."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """Undo :func:`quoted`, in each part of a nested field's name."""
    return re.sub(r"`((?:[^`]|``)*)`", lambda part: part[1].replace("``", "`"), name)
