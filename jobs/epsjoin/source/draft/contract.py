"""The draft of a data set's contract, guessed from the first records of one of its files."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from epsjoin.console import counted
from epsjoin.contracts.load_source import check_name, load_source
from epsjoin.contracts.snapshot_names import DATE
from epsjoin.contracts.sources import COMMA, SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.delimiters import describe
from epsjoin.source.draft.guess import FileGuess, guess_file, try_contract
from epsjoin.source.draft.guess_column import Guess
from epsjoin.source.draft.path import snapshots_of
from epsjoin.source.draft.roles import (
    BAD_FRACTION,
    MAX_PLACE,
    TEXT_OF_CODES,
    TEXT_OF_LISTS,
    TEXT_WITH_COMMAS,
    key_of,
    roles_of,
    why_no_coordinates,
    why_no_key,
)
from epsjoin.source.reasons import remedy_of
from epsjoin.source.records import Record, format_of
from epsjoin.source.values import kind_of


def draft(file: Path, name: str, delimiter: str | None = None) -> str:
    """Draft a data set's contract, as YAML that :func:`epsjoin.contracts.load_source.load_source` reads.

    These are guessed from the first records, read as ``ingest`` reads them: the types; the key, by its name
    and its unique values; the coordinates, by names that contain lat and lon, otherwise all columns of
    numbers that are no key; the interval, by the dates of the files. Comments in the draft name the guesses,
    and what becomes of the records that were looked at.

    Parameters
    ----------
    file : one snapshot; a date in its name, or else in its folder's, becomes ``{date}`` in the path.
    name : name of the data set.
    delimiter : of CSV: what separates the fields; by default it is guessed where it is certain.

    Raises
    ------
    ArgumentError
        There is no such file; its format is unknown; the name is not allowed for a data set, or the delimiter
        for a file.
    DataRefusedError
        The file cannot be read or exceeds a bound; no column could be a coordinate.
    """
    check_name(name)
    format_ = format_of(file)
    found = guess_file(file, format_, delimiter)
    columns = {guess.name: guess for guess in found.columns if not guess.unusable}
    key = key_of(columns)
    roles, doubts = roles_of(columns, key)
    columns = {name: guess for name, guess in columns.items() if name in roles or not guess.n_items}
    if not roles:
        raise DataRefusedError(f"{file}: {why_no_coordinates(found, key)}{found.separated}")
    path, interval, why_interval = snapshots_of(file)
    body = _contract(name, columns, key, roles, path, format_, found.delimiter, interval)
    text = yaml.safe_dump(body, sort_keys=False, width=110, allow_unicode=True)
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, f"{name}.odcs.yaml").write_text(text, encoding="utf-8")
        source = load_source(Path(scratch), name)  # the jobs must not refuse the draft
    tried, has_more = try_contract(file, source)
    rows = counted(len(tried), "row")
    drafted_from = f"the first {rows}; the file has more" if has_more else rows
    lines = [f"Drafted from {drafted_from}. Check what was guessed:"]
    if found.delimiter != COMMA:
        lines.append(f"- delimiter: {describe(found.delimiter)}")
    lines.append(f"- key: {', '.join(source.key) or why_no_key(columns, found.n_records)}")
    if source.key and has_more:
        lines[-1] += ", by these rows; a later one may have one of its values again"
    lines.append(f"- coordinates: {_name_coordinates(columns, roles)}")
    lines += [f"- {doubt}" for doubt in doubts]
    lines += [f"- {line}" for line in _describe_columns(found, roles)]
    lines.append(f"- interval: {why_interval}")
    lines.append("- metric, unit, min_pts and neighbours (or eps): customProperties")
    if dated := DATE.search(path):
        lines.append(f"- path: {dated[0]} stands for the date of a snapshot")
    lines += [f"- {line}" for line in _describe_trial(tried, source)]
    return "".join(f"# {line}\n" for line in lines) + text


def _contract(
    name: str,
    columns: Mapping[str, Guess],
    key: str | None,
    roles: Mapping[str, str],
    path: str,
    format_: str,
    delimiter: str,
    interval: str,
) -> dict[str, Any]:
    properties = [_property(guess, guess.name == key, roles.get(guess.name)) for guess in columns.values()]
    custom = _custom_properties(columns, roles, delimiter, interval)
    return {
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


def _property(guess: Guess, is_key: bool, role: str | None) -> dict[str, Any]:
    """What the contract says of a column."""
    body: dict[str, Any] = {"name": guess.given}
    if guess.given != guess.name:
        body |= {"physicalName": guess.name}
    body |= {"logicalType": guess.type}
    if guess.n_items:
        body |= {"items": {"logicalType": "number"}}
        body |= {"logicalTypeOptions": {"minItems": guess.n_items, "maxItems": guess.n_items}}
    if len(guess.forms) == 1:
        body |= {"logicalTypeOptions": {"format": guess.forms[0]}}
    if is_key:
        body |= {"primaryKey": True, "required": True}
    if role is not None:
        body |= {"required": not guess.n_missing}
    body |= {"description": f"{guess.name}."}
    if role is not None:
        body |= {"customProperties": [{"property": "role", "value": role}]}
    return body


def _custom_properties(
    columns: Mapping[str, Guess], roles: Mapping[str, str], delimiter: str, interval: str
) -> dict[str, Any]:
    """What the contract says beyond the standard: how records are compared, and which are bad."""
    is_map = "latitude" in roles.values() and len(roles) == 2
    has_lists = any(columns[name].n_items > MAX_PLACE for name in roles)
    markers = sorted({marker for guess in columns.values() for marker in guess.markers})
    return {
        "interval": interval,
        "metric": "haversine" if is_map else "cosine" if has_lists else "euclidean",
        **({"unit": "km"} if is_map else {}),
        **({"missing_values": markers} if markers else {}),
        **({"delimiter": delimiter} if delimiter != COMMA else {}),
        "max_quarantine_share": BAD_FRACTION,
        "defaults": {"min_pts": 5, "neighbours": 5},
    }


def _describe_columns(found: FileGuess, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each column about which a person must decide."""
    for guess in found.columns:
        if guess.unusable:
            yield f"{guess.name!r} is left out: {guess.unusable}"
            continue
        if guess.given != guess.name:
            yield f"{guess.given} is what the file calls {guess.name!r} (physicalName); choose its name"
        if guess.name in roles and guess.n_missing:
            yield (
                f"{guess.given} is missing in {counted(guess.n_missing, 'row')}: left out, or with "
                "required: true bad"
            )
        if guess.n_odd:
            kind = f"list of {guess.n_items} numbers" if guess.n_items else guess.type
            odd = f"{counted(guess.n_odd, 'value')} of no {kind}, such as {guess.odd!r}"
            yield f"{guess.given}: {odd}"
        if len(guess.forms) > 1:
            forms = " or ".join(guess.forms)
            how = "set logicalType: date and that format (logicalTypeOptions)"
            yield f"{guess.given} has dates as {forms}: {how}"
        if guess.is_text_of_lists:
            yield f"{guess.given} {TEXT_OF_LISTS}"
        if guess.code:
            yield f"{guess.given} {TEXT_OF_CODES} {guess.code}"
        if guess.has_commas:
            yield f"{guess.given} {TEXT_WITH_COMMAS}"
        if guess.markers:
            verb = "stand" if guess.markers[1:] else "stands"
            yield f"{guess.given}: {', '.join(guess.markers)} {verb} for no value (missing_values)"


def _describe_trial(tried: Sequence[Record], source: SourceContract) -> Iterator[str]:
    """Yield what becomes of the records, where not all of them become points."""
    reasons = Counter(kind_of(record.reason) for record in tried if record.reason is not None)
    left_out = sum(record.is_left_out for record in tried)
    n_bad = sum(reasons.values())
    if not n_bad and not left_out:
        return
    n_points = len(tried) - n_bad - left_out
    yield f"of these rows, points: {n_points:,}, left out: {left_out:,}, bad: {n_bad:,}"
    if reasons:
        kind, n = min(reasons.items(), key=lambda item: (-item[1], item[0]))
        yield f"bad, most often ({n:,}): {kind}{remedy_of(kind)}"
    if n_bad > source.max_quarantine_share * (len(tried) - left_out):
        yield "these are more bad rows than max_quarantine_share allows: ingest will refuse the file"


def _name_coordinates(columns: Mapping[str, Guess], roles: Mapping[str, str]) -> str:
    """The names of the coordinates, with the length of a list."""
    return ", ".join(
        f"{columns[name].given}, a list of {columns[name].n_items} numbers"
        if columns[name].n_items
        else columns[name].given
        for name in roles
    )
