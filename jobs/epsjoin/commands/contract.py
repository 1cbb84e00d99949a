"""The command ``epsjoin contract``: draft the contract of a data set, check and publish versions."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq
import yaml

from epsjoin.contracts import versions
from epsjoin.contracts.odcs import NAME, RESERVED, load_source
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake.arguments import add_contracts
from epsjoin.paths import PROJECT
from epsjoin.source.bounds import check_expansion, parquet_bytes

MAX_ROWS = 100_000
"""Maximum number of rows from which a contract is guessed; a file may have more."""

MAX_BYTES = 64 << 20
"""Maximum number of bytes of text from which a contract is guessed, after decompression.

A line may be long, and a small gzip file may become endless.
"""

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
"""Formats of files, by the ends of their names."""

_LATITUDE = re.compile(r"lat(itude)?(_deg(rees)?)?", re.IGNORECASE)
_LONGITUDE = re.compile(r"(lon|lng|long)(itude)?(_deg(rees)?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def main(argv: Sequence[str]) -> int:
    """Draft a contract and write it, or print it; compare contracts with the published ones; publish them."""
    parser = argparse.ArgumentParser(
        prog="epsjoin contract", description="Contracts of data sets and tables."
    )
    commands = parser.add_subparsers(dest="what", required=True)
    new = commands.add_parser(
        "new", help="draft a contract from a file", description="Draft a contract from a file."
    )
    for name, what in (
        ("check", "check that the version of every contract fits its changes"),
        ("publish", "record the present contracts under their versions"),
    ):
        other = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        add_contracts(other)
    new.add_argument("file", type=Path, help="CSV, JSON lines or Parquet, .gz allowed")
    new.add_argument(
        "--name", help="name of the data set: lower-case letters, digits, _ (default: from the file)"
    )
    new.add_argument("--to", type=Path, help="folder to write <name>.odcs.yaml into (default: it is printed)")
    arguments = parser.parse_args(argv)
    if arguments.what == "check":
        wrong = versions.check(arguments.contracts)
        for sentence in wrong:
            print(f"epsjoin contract: {sentence}", file=sys.stderr)
        return 1 if wrong else 0
    if arguments.what == "publish":
        print("\n".join(versions.publish(arguments.contracts)) or "nothing is new")
        return 0
    name = arguments.name or _name_of(arguments.file)
    text = draft(arguments.file, name)
    if arguments.to is None:
        print(text, end="")
        return 0
    file = arguments.to / f"{name}.odcs.yaml"
    try:
        with file.open("x", encoding="utf-8") as handle:
            handle.write(text)
    except OSError as error:
        raise ArgumentError(f"--to: {file} is not written: {error.strerror}") from error
    print(f"{file}: read it, correct what was guessed, then add dags/{name}.py", file=sys.stderr)
    return 0


def draft(file: Path, name: str) -> str:
    """Draft a data set's contract, as YAML that :func:`epsjoin.contracts.odcs.load_source` reads.

    These are guessed from the first ``MAX_ROWS`` rows: the types, and the columns that are never empty; the
    key, by its name and its unique values; the coordinates, by names such as lat and lon, otherwise all
    columns of numbers that are no key. Comments in the draft name the guesses.

    Parameters
    ----------
    file : one snapshot; a date in its name becomes ``{date}`` in the contract's path.
    name : name of the data set.

    Raises
    ------
    ArgumentError
        There is no such file; its format is unknown; the name is not allowed for a data set.
    DataRefusedError
        The file cannot be read or exceeds a bound; no column could be a coordinate.
    """
    rows, format_ = _read_rows(file)
    usable = [c for c in rows.column_names if NAME.fullmatch(c) and (c == "id" or c not in RESERVED)]
    types = {c: _type_of(rows.schema.field(c).type) for c in usable}
    key = _key_of(rows, types)
    roles = _roles_of(types, key)
    if not roles:
        raise DataRefusedError(f"{file}: no column holds numbers that could be coordinates")
    is_map = "latitude" in roles.values()
    path = _DATE.sub("{date}", _path_in_contract(file))
    properties = []
    for column in usable:
        body: dict[str, Any] = {"name": column, "logicalType": types[column]}
        if column == key:
            body |= {"primaryKey": True}
        if column == key or column in roles or rows[column].null_count == 0:
            body |= {"required": True}
        body |= {"description": f"{column}."}
        if column in roles:
            body |= {"customProperties": [{"property": "role", "value": roles[column]}]}
        properties.append(body)
    custom: dict[str, Any] = {"interval": "day", "metric": "haversine" if is_map else "euclidean"}
    if is_map:
        custom["unit"] = "km"
    custom |= {"max_quarantine_share": 0.01, "defaults": {"min_pts": 5, "neighbours": 5}}
    contract = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": f"epsjoin.source.{name}",
        "name": name,
        "version": "1.0.0",
        "status": "draft",
        "servers": [{"server": "snapshots", "type": "local", "path": path, "format": format_}],
        "customProperties": [{"property": p, "value": v} for p, v in custom.items()],
        "schema": [{"name": name, "logicalType": "object", "physicalType": "file", "properties": properties}],
    }
    text = _write_comments(rows, usable, key, roles, path) + yaml.safe_dump(
        contract, sort_keys=False, width=110
    )
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, f"{name}.odcs.yaml").write_text(text, encoding="utf-8")
        load_source(Path(scratch), name)  # the jobs must not refuse the draft
    return text


def _write_comments(
    rows: pa.Table, usable: list[str], key: str | None, roles: dict[str, str], path: str
) -> str:
    lines = [f"Drafted from {len(rows):,} rows. Check what was guessed:"]
    lines.append(f"- key: {key or 'none; a record is known by its place in the file'}")
    lines.append(f"- coordinates: {', '.join(roles)}")
    lines.append("- interval, metric, min_pts and neighbours (or eps): customProperties")
    if "{date}" in path:
        lines.append("- path: {date} stands for the date of a snapshot")
    left_out = [column for column in rows.column_names if column not in usable]
    if left_out:
        lines.append(f"- left out, their names cannot be columns here: {', '.join(map(repr, left_out))}")
    return "".join(f"# {line}\n" for line in lines)


def _read_rows(file: Path) -> tuple[pa.Table, str]:
    """Read the first rows of a file; return them and the file's format."""
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    format_ = FORMATS.get(suffixes[-1].lower() if suffixes else "")
    if format_ is None:
        raise ArgumentError(f"{file}: the name must end with one of {', '.join(FORMATS)}, .gz may follow")
    if not file.is_file():
        raise ArgumentError(f"{file}: no such file")
    try:
        if format_ == "parquet":
            with pq.ParquetFile(file) as parquet:
                schema = parquet.schema_arrow
                decoded = parquet_bytes(parquet.metadata, schema, schema.names)
                check_expansion(str(file), file.stat().st_size, decoded)
                batch = next(parquet.iter_batches(MAX_ROWS), None)
                rows = pa.Table.from_batches([] if batch is None else [batch], parquet.schema_arrow)
        elif format_ == "csv":
            with _read_head(file) as stream:
                rows = pacsv.read_csv(
                    stream,
                    parse_options=pacsv.ParseOptions(newlines_in_values=True),
                    convert_options=pacsv.ConvertOptions(strings_can_be_null=True),
                )
        else:
            with _read_head(file) as stream:
                rows = pajson.read_json(stream)
    except (OSError, pa.ArrowException) as error:
        raise DataRefusedError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    return rows.slice(0, MAX_ROWS), format_


def _read_head(file: Path) -> pa.NativeFile:
    """Read the first lines of a file, decompressed if its name ends in .gz."""
    with pa.input_stream(file) as stream:
        head = stream.read(MAX_BYTES)
    if len(head) == MAX_BYTES:
        head = head[: head.rfind(b"\n") + 1]
        if not head:
            raise DataRefusedError(f"{file}: the first line is longer than {MAX_BYTES:,} bytes")
    return pa.BufferReader(head)


def _type_of(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    return "timestamp" if pa.types.is_timestamp(kind) else "string"


def _key_of(rows: pa.Table, types: dict[str, str]) -> str | None:
    """The first column whose values are unique; columns with the name of a key come before others."""
    candidates = [c for c, kind in types.items() if kind in ("integer", "string")]
    named = [c for c in candidates if re.search(r"(^|_)(id|key|code|uuid)$", c, re.IGNORECASE)]
    for column in (*named, *(c for c in candidates if types[c] == "string" or c == candidates[0])):
        values = rows[column]
        if len(rows) and not values.null_count and pc.count_distinct(values).as_py() == len(rows):
            return column
    return None


def _roles_of(types: dict[str, str], key: str | None) -> dict[str, str]:
    numbers = [c for c, kind in types.items() if kind == "number" and c != key]
    integers = [c for c, kind in types.items() if kind == "integer" and c != key]
    places = {}
    for role, pattern in (("latitude", _LATITUDE), ("longitude", _LONGITUDE)):
        for column in (*numbers, *integers):
            if pattern.fullmatch(column):
                places[column] = role
                break
    if len(places) == 2:
        return places
    return dict.fromkeys(numbers or integers, "coordinate")


def _name_of(file: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", _DATE.sub("", file.name.split(".")[0]).lower()).strip("_")
    return words if re.match(r"[a-z]", words) else f"set_{words}".strip("_")


def _path_in_contract(file: Path) -> str:
    whole = file.resolve()
    return str(whole.relative_to(PROJECT)) if PROJECT and whole.is_relative_to(PROJECT) else str(whole)
