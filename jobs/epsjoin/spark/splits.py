"""What one task reads: files, or row groups of a file."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from epsjoin.lake import schemas
from epsjoin.lake.parquet import File

LEAST_SHARE_BYTES, MOST_SHARE_BYTES = 4 << 20, 64 << 20
"""Of files, that a task reads."""
OPENING_BYTES = 1 << 20
"""To open a file takes as long as to read so much of it."""


class Piece(NamedTuple):
    """A file of a table, or some of its row groups: number ``number`` of ``of`` pieces."""

    file: File
    number: int = 0
    of: int = 1


def bytes_read(file: File, schema: str) -> float:
    """Of a file for these columns: those of its rows, where all are numbers, but no more than it has."""
    types = schemas.parse_ddl(schema).types
    if not all(map(pa.types.is_primitive, types)):
        return file.size
    width = sum(int(each.bit_width) for each in types) / 8
    return min(file.size, file.rows * width)


def names_of(schema: str) -> list[str]:
    """The names of the columns of a schema in DDL."""
    return [column.split()[0] for column in schema.split(", ")]
