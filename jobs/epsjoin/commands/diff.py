"""The command ``epsjoin diff``: what differs between two snapshots, in plain English or as JSON.

The snapshots are files, or the points of two runs of a data set.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from epsjoin.console import counted, first_fields, printable
from epsjoin.differ.columns import to_rows, without_infinities
from epsjoin.differ.differences import SnapshotDiff, snapshot_diff
from epsjoin.differ.nearness import Near
from epsjoin.errors import ArgumentError
from epsjoin.lake import slices
from epsjoin.lake.arguments import add_lake, open_stored, parse_run
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.differ.methods import METHODS
from epsjoin.report import words
from epsjoin.source.delimiters import parse_delimiter
from epsjoin.vocabulary import CHANGES

MAX_TEXT = 40
"""Number of characters of a value of a whole row that are shown."""


def main(argv: Sequence[str]) -> int:
    """Print what differs."""
    arguments = _parser().parse_args(argv)
    old, new, key = _choose_snapshots(arguments)
    delimiter = parse_delimiter(arguments.delimiter)
    found = snapshot_diff(
        old,
        new,
        key=key,
        columns=arguments.columns,
        method=arguments.method,
        memory_mb=arguments.memory_mb,
        near=_read_near(arguments.near),
        near_columns=arguments.near_columns,
        tolerance=_read_tolerance(arguments.tolerance),
        delimiter=delimiter,
    )
    if arguments.json:
        print(json.dumps(without_infinities(to_json(found, arguments.limit)), default=str, allow_nan=False))
    else:
        for line in to_lines(found, key, arguments.limit):
            print(printable(line))
    return 0


def _read_near(given: Sequence[str] | None) -> Near | None:
    """One distance, or the eps of each criterion."""
    if given is None:
        return None
    near: dict[str | tuple[str, str], float] = {}
    try:
        if len(given) == 1 and "=" not in given[0]:
            return float(given[0])
        for word in given:
            columns, _, eps = word.rpartition("=")
            if not columns:
                raise ValueError(word)
            first, comma, second = columns.partition(",")
            near[(first, second) if comma else first] = float(eps)
    except ValueError as error:
        said = " ".join(given)
        raise ArgumentError(f"--near must be EPS, or COLUMN=EPS of each criterion, not {said}") from error
    return near


def _read_tolerance(given: Sequence[str]) -> dict[str, float]:
    """The tolerance of each column."""
    found: dict[str, float] = {}
    for word in given:
        name, _, most = word.rpartition("=")
        if name in found:
            raise ArgumentError(f"--tolerance has two numbers for the column {name}")
        try:
            found[name] = float(most)
        except ValueError:
            name = ""
        if not name:
            raise ArgumentError(f"--tolerance must be COLUMN=NUMBER, of each column, not {word}")
    return found


def _choose_snapshots(arguments: argparse.Namespace) -> tuple[str | pa.Table, str | pa.Table, list[str]]:
    """The two files and the key that was named; or the points of two runs and the key of their contract."""
    of_files = [name for name in ("old", "new", "key", "delimiter") if getattr(arguments, name)]
    of_runs = [name for name in ("lake", "dataset", "from", "to") if getattr(arguments, name) is not None]
    if {"old", "new"} <= {*of_files} and not of_runs:
        return arguments.old, arguments.new, arguments.key
    if of_files or len(of_runs) < 4:
        files = ["two files"] if arguments.new else ["one file"] if arguments.old else []
        options = [f"--{name}" for name in [*of_files, *of_runs] if name not in ("old", "new")]
        raise ArgumentError(
            "give either two files (and --key, --delimiter), or --lake, --dataset, --from and --to; not "
            f"{', '.join([*files, *options]) or 'nothing'}"
        )
    runs = [parse_run(getattr(arguments, end), f"--{end}") for end in ("from", "to")]
    lake = open_stored(arguments)
    names = [column.name for column in lake.source.columns]
    old, new = (slices.read_as_now(lake, Fingerprints(lake, run).slice("points"), names) for run in runs)
    return old, new, list(lake.source.key)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epsjoin diff", description="Print what differs between two snapshots of a data set."
    )
    parser.add_argument("old", nargs="?", help="CSV, JSON lines (also .gz) or Parquet")
    parser.add_argument("new", nargs="?", help="the same; the formats may differ")
    text = "a key column, more than once for several; without one whole rows are compared"
    parser.add_argument("--key", action="append", default=[], metavar="COLUMN", help=text)
    text = "what separates the fields of CSV files: ';', '|', tab (default: by header and first records)"
    parser.add_argument("--delimiter", metavar="SIGN", help=text)
    add_lake(parser, has_run=False, instead_of_files=True)
    parser.add_argument("--from", metavar="RUN", help="with --lake: the earlier run, YYYY-MM-DD")
    parser.add_argument("--to", metavar="RUN", help="with --lake: the later run")
    parser.add_argument(
        "--columns", nargs="+", metavar="COLUMN", help="compare only these (default: all that both have)"
    )
    text = (
        "a deleted and an inserted row count as one row with a new key if each is the nearest of the other, "
        "within EPS; or criteria: COLUMN=EPS of numbers or texts (0 to 1), LATITUDE,LONGITUDE=KM of a place"
    )
    parser.add_argument("--near", nargs="+", metavar="EPS", help=text)
    text = "the coordinates for --near (default: all columns of numbers)"
    parser.add_argument("--near-columns", nargs="+", metavar="COLUMN", help=text)
    text, form = "do not count differences of at most this much in a column as an update", "COLUMN=NUMBER"
    parser.add_argument("--tolerance", nargs="+", action="extend", default=[], metavar=form, help=text)
    text = (
        "how rows find their partners; all are exact except window, which counts a row as deleted and "
        "inserted if its partner comes too late (default: %(default)s)"
    )
    parser.add_argument("--method", choices=METHODS, default="auto", help=text)
    parser.add_argument(
        "--memory-mb", type=float, default=256, help="memory for rows, in 2^20 bytes (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=int, default=20, help="rows shown of each kind (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    return parser


def to_lines(found: SnapshotDiff, key: Sequence[str], limit: int) -> Iterable[str]:
    """The answer in lines."""
    numbers = {
        "inserted": len(found.inserted),
        "updated": len(found.updated),
        "deleted": len(found.deleted),
        "rekeyed": len(found.rekeyed),
    }
    named = [f"{n:,} {kind}" for kind, n in numbers.items() if n]
    yield f"{', '.join(named) or 'no difference'}; {counted(found.n_same, 'row')} the same"
    if found.n_reformatted:
        yield f"{counted(found.n_reformatted, 'row')} of these written otherwise, with the same values"
    if found.n_within:
        yield f"{counted(found.n_within, 'row')} of these with other numbers, within the tolerance"
    if len(found.n_by_column) > 1:
        yield f"updated columns: {first_fields(f'{name} {n:,}' for name, n in found.n_by_column.items())}"
    for names, which in ((found.only_old, "old"), (found.only_new, "new")):
        if names:
            yield f"not compared, for only the {which} snapshot has them: {', '.join(names)}"
    if found.waiting:
        yield (
            f"the order differs: distance {found.distance:.2g} (1 is reversed), at most "
            f"{counted(found.waiting, 'row')} waited for a partner"
        )
    if found.missed_probability > 0:
        yield f"an update was missed with probability {found.missed_probability:.1g}"
    for kind, mark, lines in (
        ("inserted", "+", (_row(row) for row in _rows(found.inserted))),
        ("deleted", "-", (_row(row) for row in _rows(found.deleted))),
        ("updated", "*", (_update(row, key) for row in _rows(found.updated))),
        ("rekeyed", ">", (_rekeying(row, key) for row in _rows(found.rekeyed))),
    ):
        if numbers[kind]:
            yield ""
            yield f"{kind}:"
            yield from (f"  {mark} {line}" for line in islice(lines, max(0, limit)))
            if numbers[kind] > limit:
                yield f"  and {numbers[kind] - max(0, limit):,} more; --limit {numbers[kind]} shows all"


def to_json(found: SnapshotDiff, limit: int) -> dict[str, Any]:
    """The answer as one object: for each kind the number of rows, and at most ``limit`` of them."""
    kinds = (*CHANGES, "rekeyed")
    counts = {f"n_{kind}": len(getattr(found, kind)) for kind in kinds}
    rows = {kind: to_rows(getattr(found, kind).slice(0, max(0, limit))) for kind in kinds}
    rest = {name: value for name, value in vars(found).items() if name not in kinds}
    return {**counts, **rest, "n_by_column": found.n_by_column, **rows}


def _rows(table: pa.Table) -> Iterable[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1000):
        yield from to_rows(pa.Table.from_batches([batch]))


def _row(row: Mapping[str, Any]) -> str:
    return first_fields(f"{name} {_shown(value)}" for name, value in row.items() if value is not None)


def _update(row: Mapping[str, Any], key: Sequence[str]) -> str:
    differing = ((name, *words.differing(row["before"][name], row["now"][name])) for name in row["columns"])
    changes = first_fields(f"{name} {before} → {now}" for name, before, now in differing)
    return f"{_row({name: row[name] for name in key})}: {changes}"


def _rekeying(row: Mapping[str, Any], key: Sequence[str]) -> str:
    before, now = (_row({name: row[side][name] for name in key}) for side in ("before", "now"))
    apart = "with equal content" if row["distance"] is None else f"{row['distance']:.4g} apart"
    return f"{before} → {now}, {apart}"


def _shown(value: Any) -> str:
    """A value of a whole row; numbers with all digits, as they may be a key."""
    text = repr(value).removesuffix(".0") if isinstance(value, float) else words.cell(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
