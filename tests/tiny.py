"""A small data set of a test's own: its contract, what is in its lake; without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import TableError
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.slices import files_of

RUN = "2023-06-01"
TABLES = Path(__file__).resolve().parents[1] / "data_contracts" / "tables"


def new_lake(
    folder: Path,
    columns: Sequence[Mapping[str, Any]],
    *,
    path: str = "snapshot.csv",
    format: str = "csv",
    **custom: Any,
) -> Lake:
    """An empty lake of a data set of the test's own, with its contracts, in the folder."""
    contracts = folder / "data_contracts"
    if not contracts.exists():
        shutil.copytree(TABLES, contracts / "tables")
    write_contract(contracts / "tiny.odcs.yaml", columns, path, format, custom)
    return Lake((folder / "lake").as_uri(), contracts, load_source(contracts, "tiny"))


def has_slice(lake: Lake, table: str, run: str) -> bool:
    try:
        files_of(lake, Slice(table, run))
    except TableError:
        return False
    return True


def write_contract(
    file: Path, columns: Sequence[Mapping[str, Any]], path: str, format_: str, custom: Mapping[str, Any]
) -> None:
    properties = []
    for column in columns:
        body = dict(column)
        own = {name: body.pop(name) for name in ("role", "windowed", "max_nodes") if name in body}
        if own:
            body["customProperties"] = [{"property": name, "value": value} for name, value in own.items()]
        properties.append(body)
    contract = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "tiny",
        "version": "1.0.0",
        "status": "active",
        "servers": [{"server": "files", "type": "local", "path": path, "format": format_}],
        "customProperties": [{"property": name, "value": value} for name, value in custom.items()],
        "schema": [{"name": "tiny", "logicalType": "object", "properties": properties}],
    }
    file.write_text(yaml.safe_dump(contract), encoding="utf-8")


def key(name: str = "id", type_: str = "integer", position: int = 1) -> dict[str, Any]:
    return {
        "name": name,
        "logicalType": type_,
        "primaryKey": True,
        "primaryKeyPosition": position,
        "required": True,
    }


def coordinate(name: str, role: str = "coordinate") -> dict[str, Any]:
    return {"name": name, "logicalType": "number", "required": True, "role": role}


def list_of_coordinates(name: str, n: int) -> dict[str, Any]:
    return {
        "name": name,
        "logicalType": "array",
        "items": {"logicalType": "number"},
        "logicalTypeOptions": {"minItems": n, "maxItems": n},
        "role": "coordinate",
    }
