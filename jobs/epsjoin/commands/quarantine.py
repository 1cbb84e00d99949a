"""The command ``epsjoin quarantine``: the records of a run that were refused, and why."""

from __future__ import annotations

import argparse
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from epsjoin.commands.runs import print_answer
from epsjoin.console import counted
from epsjoin.lake import parquet, refusals, slices
from epsjoin.lake.arguments import add_lake, open_stored, parse_run
from epsjoin.lake.lake import Lake, Slice
from epsjoin.report import words
from epsjoin.source.values import kind_of

BATCH_ROWS = 1 << 8
"""Maximum number of rows that are read at a time: a record may be long."""

COLUMNS = ("source", "line", "reason", "raw")

Row = dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Print how many records were refused for which reason, and the first of them."""
    parser = argparse.ArgumentParser(
        prog="epsjoin quarantine", description="Print the records of a run that were refused, and why."
    )
    add_lake(parser)
    parser.add_argument("--reason", default="", help="count and show only records whose reason has this text")
    parser.add_argument("--limit", type=int, default=20, help="records shown (default: %(default)s)")
    arguments = parser.parse_args(argv)
    run = parse_run(arguments.run)
    lake = open_stored(arguments)
    lines = describe(lake, run, arguments.reason, max(0, arguments.limit))
    print_answer(lake, f"run {run}", lines)
    return 0


def describe(lake: Lake, run: str, reason: str, limit: int) -> Iterator[str]:
    """Describe the kinds of reasons that have a text, the most frequent first, and the first records.

    The slice is read as it is, even if the run's snapshot did not come in: then it says why.
    """
    if why := refusals.read(lake, run):
        yield from (f"the last snapshot was refused: {why}", "")
        if run not in slices.list_runs(lake, "quarantine"):
            return
    kinds: Counter[str] = Counter()
    n_refused = 0

    def wanted() -> Iterator[Row]:
        nonlocal n_refused
        for row in _read(lake, run):
            n_refused += 1
            if reason in row["reason"]:
                kinds[kind_of(row["reason"])] += 1
                yield row

    n_held = max(1, limit)  # with 0, nothing would be read, and so nothing counted
    first = heapq.nsmallest(n_held, wanted(), key=lambda row: (row["source"], row["line"] or 0))[:limit]
    if not n_refused:
        yield "no record is in quarantine" if why else "no record was refused"
    elif not kinds:
        others = counted(n_refused, "record was", "records were")
        yield f"no reason has the text {reason!r}; {others} refused for others"
    for kind, number in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        yield f"{number:>10,}  {kind}"
    for row in first:
        yield from ("", _fault(row, lake.source.numbered_by), f"  {words.cell(row['raw'])}")
    n_wanted = kinds.total()
    if n_wanted > limit:
        yield from ("", f"and {counted(n_wanted - limit, 'other')}; --limit {n_wanted} shows all")


def _fault(row: Row, numbered_by: str) -> str:
    """Where a record is, and why it was refused; the reason of a whole file begins with its name."""
    source, number, reason = row["source"], row["line"], str(row["reason"])
    if reason.startswith(f"{source}: "):
        return reason
    return f"{source}: {reason}" if number is None else f"{source}, {numbered_by} {number}: {reason}"


def _read(lake: Lake, run: str) -> Iterator[Row]:
    """Read the rows of a run, some at a time."""
    columns = pa.schema([lake.schema("quarantine").field(name) for name in COLUMNS])
    for file in slices.files_of(lake, Slice("quarantine", run)):
        for batch in parquet.stream_file(lake.location("quarantine"), file, columns, BATCH_ROWS):
            yield from batch.to_pylist()
