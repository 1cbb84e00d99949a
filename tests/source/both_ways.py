"""A file column by column, by batches, beside record by record, by the definition."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import batches
from epsjoin.source.batches import open_batches
from epsjoin.source.records import key_id, open_records
from epsjoin.source.rules import typed_schema
from tests.source.tiny_source import SOURCE

COLUMNS = (
    Column("id", "integer", required=True),
    Column("x", "number", required=True, minimum=-1000, maximum=1e300),
    Column("n", "integer", minimum=-5.5, maximum=2**63),
    Column("name", "string", values=()),
    Column("ok", "boolean"),
    Column("day", "date"),
    Column("at", "timestamp"),
)
WIDE = replace(SOURCE, columns=COLUMNS, missing=("NA", "nan", "-999", " N "))
RENAMED = tuple(replace(column, name=f"c_{column.name}", physical_name=column.name) for column in COLUMNS)
ROUNDED = replace(COLUMNS[1], minimum=-999.96, maximum=300.05, decimals=1)
SOURCES = {
    "plain": WIDE,
    "no key": replace(WIDE, key=(), missing=()),
    "text key": replace(WIDE, key=("name", "n", "x", "day", "ok")),
    "key of times": replace(WIDE, key=("at",)),
    "left out": replace(WIDE, where="n < 3 OR name = 'a'", optional=("x",)),
    "left out by all": replace(WIDE, where="ok AND day >= '2020-01-01' AND at < '2030-01-01'"),
    "integer coordinate": replace(WIDE, coordinates=("n",)),
    "directions": replace(WIDE, metric="cosine", coordinates=("x",)),
    "values": replace(
        WIDE, columns=(*COLUMNS[:3], Column("name", "string", values=("a", "é")), *COLUMNS[4:])
    ),
    "true is missing": replace(WIDE, missing=("true", "0", "1.0")),
    "renamed": replace(WIDE, columns=RENAMED, key=("c_id",), coordinates=("c_x",), where="c_n < 7 OR c_ok"),
    "rounded": replace(
        WIDE, columns=(COLUMNS[0], ROUNDED, *COLUMNS[2:]), key=("x", "name"), where="x <> 0.2"
    ),
    "one column": replace(SOURCE, columns=COLUMNS[:1], key=(), coordinates=("id",)),
}

BY_COLUMNS = {
    "one column": {"one column": SOURCES["one column"]},
    "seven columns": {name: source for name, source in SOURCES.items() if name != "one column"},
}
"""The same by what a file of theirs looks like: it is drawn once, and every source reads it."""

GOOD_SOURCES = {
    "plain": WIDE,
    "read otherwise": replace(
        SOURCES["renamed"], columns=(RENAMED[0], replace(RENAMED[1], decimals=3), *RENAMED[2:]), where=""
    ),
}

PLACES: dict[str, tuple[str, ...]] = {
    "plain": ("id", "x", "n", "name", "ok", "day", "at"),
    "no key": ("id", "x", "n", "name", "ok", "day", "at"),
    "text key": ("x", "n", "name", "ok", "day"),
    "key of times": ("at",),
    "left out": ("x", "n", "name"),
    "left out by all": ("ok", "day", "at"),
    "integer coordinate": ("n",),
    "directions": ("x",),
    "values": ("name",),
    "true is missing": ("id", "x", "n", "ok"),
    "renamed": ("id", "x", "n", "ok"),
    "rounded": ("x", "name"),
    "one column": ("id",),
}
"""The columns in which a source may decide of a cell otherwise than the plain one."""

TIMES = [
    *("2023-06-04", "20230604", "2023-W22-7", "0000-01-01", "0001-01-01", "9999-12-31", "2023-02-30"),
    *("04.06.2023", "2023-06-04T10:00:00", "2023-06-04 10:00:00.123456", "2023-06-04T10:00:00.123456789"),
    *("2023-06-04T10:00:00Z", "2023-06-04T10:00:00+02:00", "0001-01-01T00:00:00+12:00"),
    *("9999-12-31T23:59:59-12:00", "2023-06-04T24:00:00", "2023-06-04T10", "2023-06-04x10:00"),
    *(" 2023-06-04 ", "true", "TRUE", " False ", "1", "yes", "tRuE"),
]
"""Texts that are times, or nearly."""


class Outcome(NamedTuple):
    """What becomes of a file."""

    taken: list[tuple[int, int, str]]
    refused: list[tuple[int, str, str]]
    n_records: int
    n_left_out: int
    columns: list[str]
    sentence: str | None


def by_definition(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    records = open_records(io.BytesIO(data), name, source)
    found = Outcome([], [], 0, 0, [], None)
    n = n_left_out = 0
    sentence = None
    schema = typed_schema(source)
    try:
        for place, record in enumerate(records):
            n, n_left_out = n + 1, n_left_out + record.is_left_out
            id_: Any = record.reason
            if record.values is not None:
                id_ = key_id(source, record.values) if source.key else place
                # as a table has them: times in UTC
                columns = zip(record.values, schema, strict=True)
                values = [typed_array([value], field)[0].as_py() for value, field in columns]
            if record.values is not None and not isinstance(id_, str) and place not in aside:
                found.taken.append((place, id_, repr(values)))
            elif isinstance(id_, str):
                found.refused.append((record.line, record.raw, id_))
    except DataRefusedError as error:
        sentence = str(error)
    return found._replace(
        n_records=n, n_left_out=n_left_out, columns=records.found_columns, sentence=sentence
    )


def typed_array(values: list[Any], field: Any) -> Any:
    return pa.array(values, field.type)


def by_batches(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    opened = open_batches(io.BytesIO(data), name, source, aside=np.array(aside, np.int64))
    found = Outcome([], [], 0, 0, [], None)
    n = n_left_out = 0
    sentence = None
    try:
        for batch in opened:
            n, n_left_out = n + batch.n_records, n_left_out + batch.n_left_out
            assert batch.values.schema == typed_schema(source)
            rows = [repr(list(row.values())) for row in batch.values.to_pylist()]
            found.taken.extend(zip(batch.places.tolist(), batch.ids.tolist(), rows, strict=True))
            found.refused.extend((each.line, each.raw, str(each.reason)) for each in batch.refused)
    except DataRefusedError as error:
        sentence = str(error)
    return found._replace(n_records=n, n_left_out=n_left_out, columns=opened.found_columns, sentence=sentence)


def compare(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    found = by_batches(data, source, name, aside)
    assert found == by_definition(data, source, name, aside), (data, source)
    return found


def count_asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of the records that the definition is asked for, as they come."""
    asked: list[int] = []
    to_records = batches.to_records

    def counting(source: SourceContract, untyped: Any, from_field: Any) -> Any:
        for record in to_records(source, untyped, from_field):
            asked.append(record.line)
            yield record

    monkeypatch.setattr(batches, "to_records", counting)
    return asked
