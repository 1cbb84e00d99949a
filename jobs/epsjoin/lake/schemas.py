"""Column types of the tables, in Arrow and as Spark writes a schema."""

from __future__ import annotations

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


def arrow_schema(ddl: str) -> pa.Schema:
    """The Arrow columns of a schema as Spark writes it: names and types, with commas between."""
    columns = (column.split() for column in ddl.split(", "))
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns])


def ddl(columns: Iterable[pa.Field]) -> str:
    """Arrow columns as Spark writes a schema."""
    names = {arrow: name for name, arrow in ARROW_TYPES.items()}
    return ", ".join(f"`{column.name}` {names[column.type]}" for column in columns)
