"""Tables in files that no lake knows, which may break every rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from epsjoin.lake.keys import Key, ReadKey, read_key
from epsjoin.lake.parquet import File
from epsjoin.lake.questions import Stored
from tests.tiny import RUN


def store(tables: Mapping[str, pa.Table], folder: Path, run: str = RUN) -> tuple[dict[str, Stored], ReadKey]:
    """Write tables, and tell what queries about them need."""
    for name, rows in tables.items():
        write_deltalake(str(folder / name), rows)
    logs = {name: DeltaTable(str(folder / name)) for name in tables}

    def read(name: str, column: str) -> Key:
        actions = pa.table(logs[name].get_add_actions(flatten=True)).to_pylist()
        files = [File(name, each["path"], each["size_bytes"], each["num_records"], {}) for each in actions]
        numbers = pa.schema([field for field in tables[name].schema if pa.types.is_integer(field.type)])
        return read_key((folder / name).as_uri(), files, numbers, column)

    return {name: Stored(log, {"run": run}) for name, log in logs.items()}, read
