"""The command ``epsjoin history``: since when rows hold and until when, over all runs of a data set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from epsjoin.commands.runs import print_answer
from epsjoin.console import counted, first_fields
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ArgumentError
from epsjoin.lake import transactions, uris
from epsjoin.lake.arguments import add_lake, open_stored
from epsjoin.lake.history import KEYS, RANGE, View, open_view, read_ranges
from epsjoin.lake.lake import Lake
from epsjoin.lake.targets import Target
from epsjoin.report import words
from epsjoin.source.records import key_id
from epsjoin.source.values import from_text, type_field

MAX_RECORDS = 20
"""Maximum number of records whose ranges are printed; a point may have many pairs."""

HIDDEN = ("point",)
"""Columns that are not printed: the coordinates stand in columns of their own."""


def main(argv: Sequence[str]) -> int:
    """Print the ranges of an id, or count those of a table and write them to a folder."""
    parser = argparse.ArgumentParser(
        prog="epsjoin history",
        description="Print from which run on, and until when, the rows of an id or a key were as they are, "
        "or count all such ranges of runs in a table. A range begins with from_run and ends before to_run.",
    )
    add_lake(parser, has_run=False)
    parser.add_argument("--table", required=True, choices=list(KEYS), help="table that the rows are from")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--id", type=int, help="print the ranges of this point, or of its pairs")
    what.add_argument(
        "--key", action="append", help="the same for the point with this key; once for each column of the key"
    )
    text = "write all ranges to this folder, a Delta table, which is replaced: a URI or an absolute path"
    what.add_argument("--to", help=text)
    arguments = parser.parse_args(argv)
    lake = open_stored(arguments)
    view = open_view(lake, arguments.table)
    of = arguments.id if arguments.key is None else find_id(lake.source, arguments.key)
    asked = (
        f"the id {of}; ids are those of the table points" if arguments.key is None else "a record of this key"
    )
    rows = None if of is None else _ranges_of(lake, view, of, asked)
    lines = [count(lake, view, arguments.to)] if rows is None else describe(view, rows)
    span = f"{counted(len(view.runs), 'run')}, {view.runs[0]} to {view.runs[-1]}"
    print_answer(lake, f"{view.table}, {span}", lines)
    return 0


def find_id(source: SourceContract, key: Sequence[str]) -> int:
    """Find the id of the record of a key.

    Parameters
    ----------
    source : the contract.
    key : a text for each column of the key, in the contract's order, as CSV would have it.

    Raises
    ------
    ArgumentError
        The data set has no key, or one of another number of columns; a text is no value of its column.
    """
    if len(key) != len(source.key):
        columns, n = ", ".join(source.key) or "none", counted(len(key), "time")
        raise ArgumentError(f"--key must be given once for each column of the key ({columns}), not {n}")
    values: dict[str, Any] = {}
    for name, text in zip(source.key, key, strict=True):
        values[name], reason = type_field(source, source.column(name), text, from_text)
        if reason is not None:
            raise ArgumentError(f"--key: {reason}")
    found = key_id(source, [values.get(column.name) for column in source.columns])
    if isinstance(found, str):
        raise ArgumentError(f"--key: {found}")
    return found


def _ranges_of(lake: Lake, view: View, of: int, asked: str) -> list[dict[str, Any]]:
    """Read the ranges of an id; a point of this id may have no pair, but it stands in the other tables."""
    rows: list[dict[str, Any]] = pa.concat_tables(read_ranges(lake, view, of)).to_pylist()
    if not rows and view.table != "pairs":
        raise ArgumentError(f"no run has {asked}")
    return rows


def count(lake: Lake, view: View, to: str | None) -> str:
    """Count the ranges, write them if there is a folder for them, and say so."""
    into = None
    if to is not None:
        into = Target("history", uris.parse_table_uri(to, "--to"), view.schema, (), {})
        transactions.check_replaceable(into)
    ranges = holding = 0

    def counting() -> Iterator[pa.Table]:
        nonlocal ranges, holding
        for rows in read_ranges(lake, view):
            ranges += rows.num_rows
            holding += rows[RANGE[1]].null_count
            yield rows

    if into is None:
        for _ in counting():
            pass
        written = ""
    else:
        file = into.write(counting())
        transactions.replace_table(into, [file] if file else [])
        written = f"; written to {into.location}"
    return f"{counted(ranges, 'range')}, {words.count(holding)} of which still hold{written}"


def describe(view: View, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Describe the ranges of a record: the first one whole, of each later one only what differs."""
    records: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (*(row[name] for name in view.key), row[RANGE[0]])):
        records.setdefault(tuple(row[name] for name in view.key), []).append(row)
    if not records:
        yield "no run has a pair of this id"
    for key, ranges in list(records.items())[:MAX_RECORDS]:
        yield ", ".join(f"{name} {value}" for name, value in zip(view.key, key, strict=True))
        before: dict[str, Any] = {}
        for row in ranges:
            follows = before and before[RANGE[1]] == row[RANGE[0]]
            names = [name for name in view.columns.names if name not in (*view.key, *HIDDEN)]
            if follows:
                differing = ((name, *words.differing(before[name], row[name])) for name in names)
                texts = [f"{name}: {old} → {new}" for name, old, new in differing if old != new]
            else:
                texts = [f"{name} {words.cell(row[name])}" for name in names]
            yield f"  {row[RANGE[0]]}  {row[RANGE[1]] or 'still so':<10}  {first_fields(texts)}"
            before = row
    if len(records) > MAX_RECORDS:
        yield f"and {words.count(len(records) - MAX_RECORDS)} more; --to writes all of them"
