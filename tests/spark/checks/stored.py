"""Tables in files that no lake knows, which may break every rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from epsjoin.lake.keys import FindKeys, KeyColumns, find_keys
from epsjoin.lake.parquet import File
from epsjoin.lake.questions import Stored
from tests.tiny import RUN


def store(tables: Mapping[str, pa.Table], folder: Path, run: str = RUN) -> tuple[dict[str, Stored], FindKeys]:
    """Write tables, and tell what queries about them need."""
    for name, rows in tables.items():
        write_deltalake(str(folder / name), rows)
    logs = {name: DeltaTable(str(folder / name)) for name in tables}

    def find(name: str, columns: Sequence[str]) -> KeyColumns:
        actions = pa.table(logs[name].get_add_actions(flatten=True)).to_pylist()
        files = [File(name, each["path"], each["size_bytes"], each["num_records"], {}) for each in actions]
        numbers = pa.schema([field for field in tables[name].schema if pa.types.is_integer(field.type)])
        return find_keys((folder / name).as_uri(), files, numbers, columns)

    stored = {name: Stored(log, {"run": run}, n_rows=len(tables[name])) for name, log in logs.items()}
    return stored, find
