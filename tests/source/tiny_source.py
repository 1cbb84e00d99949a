"""A tiny source, and its records."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.records import Record, open_records

SOURCE = SourceContract(
    name="tiny",
    path="tiny.csv",
    format="csv",
    columns=(
        Column("id", "integer", required=True),
        Column("x", "number", required=True, minimum=-1, maximum=1),
    ),
    key=("id",),
    coordinates=("x",),
)


def read(content: str | bytes, source: SourceContract = SOURCE, name: str = "tiny.csv") -> list[Record]:
    data = content if isinstance(content, bytes) else content.encode()
    return list(open_records(io.BytesIO(data), name, source))


def typed(kind: str, text: str, *, as_json: bool = False) -> Any:
    """What a value of that type becomes: the value, or the reason why not."""
    source = replace(
        SOURCE, columns=(*SOURCE.columns, Column("v", kind)), format="json" if as_json else "csv"
    )
    content = f'{{"id": 1, "x": 0, "v": {text}}}' if as_json else f"id,x,v\n1,0,{text}\n"
    record = read(content, source)[0]
    return record.reason if record.values is None else record.values[2]
