"""The command ``epsjoin contract``: draft the contract of a data set, check and publish versions."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from epsjoin.console import counted
from epsjoin.contracts import versions
from epsjoin.contracts.sources import SourceContract, load_source
from epsjoin.contracts.times import INTERVALS
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake.arguments import add_contracts
from epsjoin.paths import PROJECT
from epsjoin.source.degrees import are_degrees, find_places
from epsjoin.source.guess import FileGuess, guess_file, try_contract
from epsjoin.source.guess_column import Guess
from epsjoin.source.records import Record, format_of
from epsjoin.source.values import kind_of

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_PLACE, _MIN_VECTOR = 3, 8
"""Number of numbers up to which a list is a place; and from which on it is the coordinates, whatever numbers
stand beside it."""

_TEXT_OF_LISTS = "has lists of numbers as texts; in files of json or parquet they could be the coordinates"

_BAD_FRACTION = 0.01
"""The fraction of bad rows that a draft allows."""


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
        other.add_argument(
            "names", nargs="*", metavar="NAME", help="of a data set or a table (default: all contracts)"
        )
        add_contracts(other)
    new.add_argument("file", type=Path, help="CSV, JSON lines or Parquet, .gz allowed")
    new.add_argument(
        "--name", help="name of the data set: lower-case letters, digits, _ (default: from the file)"
    )
    new.add_argument("--to", type=Path, help="folder to write <name>.odcs.yaml into (default: it is printed)")
    arguments = parser.parse_args(argv)
    if arguments.what == "check":
        wrong = versions.check(arguments.contracts, arguments.names)
        for sentence in wrong:
            print(f"epsjoin contract: {sentence}", file=sys.stderr)
        return 1 if wrong else 0
    if arguments.what == "publish":
        print("\n".join(versions.publish(arguments.contracts, arguments.names)) or "nothing is new")
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
    except FileExistsError as error:
        raise ArgumentError(
            f"--to: {file} is there already and is not written; remove it, or choose another --name"
        ) from error
    except OSError as error:
        raise ArgumentError(f"--to: {file} is not written: {error.strerror}") from error
    print(f"{file}: read it, correct what was guessed, then add dags/{name}.py", file=sys.stderr)
    return 0


def draft(file: Path, name: str) -> str:
    """Draft a data set's contract, as YAML that :func:`epsjoin.contracts.sources.load_source` reads.

    These are guessed from the first records, read as ``ingest`` reads them: the types; the key, by its name
    and its unique values; the coordinates, by names that contain lat and lon, otherwise all columns of
    numbers that are no key; the interval, by the dates of the files. Comments in the draft name the guesses,
    and what becomes of the records that were looked at.

    Parameters
    ----------
    file : one snapshot; a date in its name, or else in its folder's, becomes ``{date}`` in the path.
    name : name of the data set.

    Raises
    ------
    ArgumentError
        There is no such file; its format is unknown; the name is not allowed for a data set.
    DataRefusedError
        The file cannot be read or exceeds a bound; no column could be a coordinate.
    """
    format_ = format_of(file)
    found = guess_file(file, format_)
    columns = {guess.name: guess for guess in found.columns if not guess.unusable}
    key = _key_of(columns)
    roles, doubts = _roles_of(columns, key)
    columns = {name: guess for name, guess in columns.items() if name in roles or not guess.n_items}
    if not roles:
        raise DataRefusedError(f"{file}: {_why_no_coordinates(found, key)}{found.separated}")
    path, interval, why_interval = _snapshots_of(file)
    body = _contract(name, columns, key, roles, path, format_, interval)
    text = yaml.safe_dump(body, sort_keys=False, width=110, allow_unicode=True)
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, f"{name}.odcs.yaml").write_text(text, encoding="utf-8")
        source = load_source(Path(scratch), name)  # the jobs must not refuse the draft
    tried, has_more = try_contract(file, source)
    rows = counted(len(tried), "row")
    drafted_from = f"the first {rows}; the file has more" if has_more else rows
    lines = [f"Drafted from {drafted_from}. Check what was guessed:"]
    lines.append(f"- key: {', '.join(source.key) or _why_no_key(columns, found.n_records)}")
    if source.key and has_more:
        lines[-1] += ", by these rows; a later one may have one of its values again"
    lines.append(f"- coordinates: {_name_coordinates(columns, roles)}")
    lines += [f"- {doubt}" for doubt in doubts]
    lines += [f"- {line}" for line in _describe_columns(found, roles)]
    lines.append(f"- interval: {why_interval}")
    lines.append("- metric, unit, min_pts and neighbours (or eps): customProperties")
    if "{date}" in path:
        lines.append("- path: {date} stands for the date of a snapshot")
    lines += [f"- {line}" for line in _describe_trial(tried, source)]
    return "".join(f"# {line}\n" for line in lines) + text


def _contract(
    name: str,
    columns: Mapping[str, Guess],
    key: str | None,
    roles: Mapping[str, str],
    path: str,
    format_: str,
    interval: str,
) -> dict[str, Any]:
    properties = []
    for column, guess in columns.items():
        body: dict[str, Any] = {"name": guess.given, "logicalType": guess.type}
        if guess.given != column:
            body = {"name": guess.given, "physicalName": column, "logicalType": guess.type}
        if guess.n_items:
            body |= {"items": {"logicalType": "number"}}
            body |= {"logicalTypeOptions": {"minItems": guess.n_items, "maxItems": guess.n_items}}
        if len(guess.forms) == 1:
            body |= {"logicalTypeOptions": {"format": guess.forms[0]}}
        if column == key:
            body |= {"primaryKey": True, "required": True}
        if column in roles:
            body |= {"required": not guess.n_missing}
        body |= {"description": f"{column}."}
        if column in roles:
            body |= {"customProperties": [{"property": "role", "value": roles[column]}]}
        properties.append(body)
    is_map = "latitude" in roles.values() and len(roles) == 2
    has_lists = any(columns[name].n_items > _MAX_PLACE for name in roles)
    metric = "haversine" if is_map else "cosine" if has_lists else "euclidean"
    custom: dict[str, Any] = {"interval": interval, "metric": metric}
    if is_map:
        custom["unit"] = "km"
    markers = sorted({marker for guess in columns.values() for marker in guess.markers})
    if markers:
        custom["missing_values"] = markers
    custom["max_quarantine_share"] = _BAD_FRACTION
    custom["defaults"] = {"min_pts": 5, "neighbours": 5}
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
            yield f"{guess.given} {_TEXT_OF_LISTS}"
        if guess.markers:
            yield f"{guess.given}: {', '.join(guess.markers)} stand for no value (missing_values)"


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
        yield f"bad, most often ({n:,}): {kind}"
    if n_bad > source.max_quarantine_share * (len(tried) - left_out):
        yield "these are more bad rows than max_quarantine_share allows: ingest will refuse the file"


def _why_no_coordinates(found: FileGuess, key: str | None) -> str:
    """The reason why no column can be a coordinate."""
    numeric = [guess for guess in found.columns if guess.type in ("integer", "number")]
    numbers = [guess for guess in numeric if guess.name != key]
    if not numbers:
        of = f" except the key {key}" if numeric else ""
        left_out = "; ".join(
            f"{guess.name!r} is left out: {guess.unusable}" for guess in found.columns if guess.unusable
        )
        texts = (f"{guess.name!r} {_TEXT_OF_LISTS}" for guess in found.columns if guess.is_text_of_lists)
        more = "; ".join(filter(None, (left_out, *texts)))
        return f"no column holds numbers{of}, so none can be a coordinate{'; ' * bool(more)}{more}"
    why = "; ".join(f"{guess.name!r}: {guess.unusable or 'beyond 2**53'}" for guess in numbers[:3])
    return f"columns hold numbers, but none of them can be a coordinate ({why}); rename them in the file"


def _key_of(columns: Mapping[str, Guess]) -> str | None:
    """The first column whose values are unique; columns with the name of a key come before others."""
    if "id" in columns and columns["id"].given == "id":  # it could be nothing else
        return "id"
    return next((name for name in _could_be_keys(columns) if columns[name].is_unique), None)


def _why_no_key(columns: Mapping[str, Guess], n_records: int) -> str:
    """Say what a contract without a key means, and which column is one but for a few records."""
    place = "none; a record is known by its place in the file"
    for guess in map(columns.__getitem__, _could_be_keys(columns)):
        faults = {
            ("repeated value", ""): guess.n_again,
            ("missing value", ""): guess.n_missing,
            ("value of another type", "values of another type"): guess.n_odd,
        }
        if 0 < sum(faults.values()) <= _BAD_FRACTION * n_records:
            named = ", ".join(counted(n, *what) for what, n in faults.items() if n)
            return f"{place}. {guess.given} would be one but for {named}"
    return place


def _could_be_keys(columns: Mapping[str, Guess]) -> Iterator[str]:
    """Columns that could be a key if their values were unique; those with the name of a key first."""
    candidates = [name for name, guess in columns.items() if guess.type in ("integer", "string")]
    named = [c for c in candidates if re.search(r"(^|_)(id|key|code|uuid)$", c, re.IGNORECASE)]
    others = (c for c in candidates if columns[c].type == "string" or c == candidates[0])
    yield from named
    yield from others


def _roles_of(columns: Mapping[str, Guess], key: str | None) -> tuple[dict[str, str], list[str]]:
    """The roles of the coordinates by name, and what a person must decide about them."""
    usable = {
        name: guess
        for name, guess in columns.items()
        if name != key
        and (
            guess.type == "number"
            or (guess.type == "integer" and max(-guess.minimum, guess.maximum) <= 2**53)
        )
    }
    places, far = find_places(usable)
    lists = {name: guess.n_items for name, guess in columns.items() if guess.n_items}
    vector = max(lists, key=lists.__getitem__, default=None)
    if vector is not None and not places and (lists[vector] >= _MIN_VECTOR or not usable):
        return {vector: "coordinate"}, _doubts_of_vector(vector, columns, usable)
    left_out = [
        f"{name} is left out: a list can only be the coordinates, which are other columns" for name in lists
    ]
    if places:
        (latitude, longitude), *others = places
        doubts = left_out
        if others:
            listed = ", ".join(" and ".join(place) for place in places)
            doubts.append(f"a row has several positions ({listed}); the first is taken")
        return {latitude: "latitude", longitude: "longitude"}, doubts
    doubts = left_out + [
        f"{name} looks like degrees by its name, but has values such as {value:g}" for name, value in far
    ]
    numbers = [name for name, guess in usable.items() if guess.type == "number"] or list(usable)
    if len(numbers) == 2 and not far and are_degrees([columns[name] for name in numbers]):
        doubts.append(
            f"{' and '.join(numbers)} look like degrees; if they are, give them the roles latitude and "
            "longitude, and set metric: haversine, unit: km"
        )
    return dict.fromkeys(numbers, "coordinate"), doubts


def _doubts_of_vector(vector: str, columns: Mapping[str, Guess], others: Iterable[str]) -> list[str]:
    """What a person must decide where the coordinates are a list."""
    lists = [name for name in columns if columns[name].n_items and name != vector]
    doubts = [f"{name} is left out: one list is taken" for name in lists]
    if columns[vector].n_items > _MAX_PLACE:
        doubts.append(
            "metric: cosine, as of embeddings, to which a length says nothing; if it does, euclidean"
        )
    else:
        doubts.append(
            f"if {vector} is a position in degrees, make columns of latitude and longitude of it: of a list "
            "they cannot be told apart"
        )
    if names := ", ".join(others):
        doubts.append(f"numbers that count in no distance: {names}")
    return doubts


def _name_coordinates(columns: Mapping[str, Guess], roles: Mapping[str, str]) -> str:
    """The names of the coordinates, with the length of a list."""
    return ", ".join(
        f"{columns[name].given}, a list of {columns[name].n_items} numbers"
        if columns[name].n_items
        else columns[name].given
        for name in roles
    )


def _snapshots_of(file: Path) -> tuple[str, str, str]:
    """Return the path in the contract, the interval, and why that one."""
    whole = file.resolve()
    leaf = _DATE.search(whole.name)
    dated, folder = (whole, whole.parent) if leaf else (whole.parent, whole.parent.parent)
    match = _DATE.search(dated.name)
    if match is None:
        return (
            _path_in_contract(whole),
            "day",
            "day; there is no date in the file's name, so every run takes it",
        )
    before, after = dated.name[: match.start()], dated.name[match.end() :]
    pattern = re.compile(re.escape(before) + f"({_DATE.pattern})" + re.escape(after))
    days = sorted(_dates(pattern.fullmatch(other.name) for other in folder.iterdir()))
    path = f"{_path_in_contract(folder)}/{before}{{date}}{after}"
    if len(days) < 2:
        return path, "day", "day; there is one snapshot only, so it could not be guessed"
    # the longest in which no snapshot is hidden by a later one
    for interval in reversed(INTERVALS):
        if len({_number_of(interval, day) for day in days}) == len(days):
            return (
                path,
                interval,
                f"{interval}, by the dates of {len(days)} snapshots, {days[0]} to {days[-1]}",
            )
    return path, "day", "day"


def _dates(matches: Iterable[re.Match[str] | None]) -> Iterator[date]:
    for match in matches:
        with suppress(ValueError):
            if match is not None:
                yield date.fromisoformat(match[1])


def _number_of(interval: str, day: date) -> int:
    """The number of the interval that a day is in."""
    months = day.year * 12 + day.month - 1
    return {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,
        "month": months,
        "quarter": months // 3,
        "year": day.year,
    }[interval]


def _name_of(file: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", _DATE.sub("", file.name.split(".")[0]).lower()).strip("_")
    return words if re.match(r"[a-z]", words) else f"set_{words}".strip("_")


def _path_in_contract(whole: Path) -> str:
    return str(whole.relative_to(PROJECT)) if PROJECT and whole.is_relative_to(PROJECT) else str(whole)
