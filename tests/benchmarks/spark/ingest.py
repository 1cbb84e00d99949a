"""``make bench-ingest``: reading a file into typed columns, beside pyarrow and pandas, and the whole job.

Its page is docs/benchmarks/ingest.md. The readers run by one thread each, on the same file, one after the
other in every round; the memory of each is measured in a process of its own. ``ingest`` also judges every
value by the contract, finds what is refused with its line, and computes an id for each row.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tiny import RUN, coordinate, key, new_lake

from ..measure import Call, Run, growth_bytes, in_own_process, timed
from ..page import count, machine, megabytes, put, seconds, spread, table
from ..sets import cad
from .around import MASTER, PROJECT, Cost, cost_of

PAGE = PROJECT / "docs" / "benchmarks" / "ingest.md"
START_ROWS = 1_000
"""Rows of the file whose cost is that of the job's start."""

N_TEXTS = 3


class Kind(NamedTuple):
    """A kind of files.

    Parameters
    ----------
    format : the contract's.
    n_texts : number of columns of text beside 16 numbers.
    goal : at most so many µs of CPU a row are wanted of the whole job beyond its start; ``None``: no goal.
    """

    format: str
    n_texts: int
    goal: float | None = None


KINDS = {
    "CSV, 16 numbers": Kind("csv", 0, 3.0),
    f"CSV, 16 numbers and {N_TEXTS} texts": Kind("csv", N_TEXTS, 5.0),
    "JSON lines, 16 numbers": Kind("json", 0),
}


def make(folder: Path, kind: Kind, n: int) -> None:
    """Write a contract, and a file ``snapshot`` of n rows of the surface of ``cad``."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pcsv

    points = cad(n)
    names = [f"x{j}" for j in range(points.shape[1])]
    texts = [f"t{j}" for j in range(kind.n_texts)]
    columns = [key(), *map(coordinate, names), *({"name": each, "logicalType": "string"} for each in texts)]
    new_lake(folder, columns, path="snapshot", format=kind.format)
    shown = [pa.array([f"part {i % 1000:04}, {j}" for i in range(n)]) for j in range(kind.n_texts)]
    rows = pa.table([np.arange(n), *points.T, *shown], ["id", *names, *texts])
    if kind.format == "csv":
        pcsv.write_csv(rows, folder / "snapshot")
        return
    with (folder / "snapshot").open("w", encoding="utf-8") as file:
        for batch in rows.to_batches(10_000):
            file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def by_ingest(folder: Path) -> int:
    """The rows that ingest's reading takes."""
    from epsjoin.contracts.load_source import load_source
    from epsjoin.source.batches import open_batches

    source = load_source(folder / "data_contracts", "tiny")
    with (folder / "snapshot").open("rb") as stream:
        return sum(len(batch.places) for batch in open_batches(stream, "snapshot", source))


def by_pyarrow(folder: Path) -> int:
    import pyarrow.csv as pcsv
    import pyarrow.json as pjson

    if _format_of(folder) == "csv":
        return len(pcsv.read_csv(folder / "snapshot", pcsv.ReadOptions(use_threads=False)))
    return len(pjson.read_json(folder / "snapshot", pjson.ReadOptions(use_threads=False)))


def by_pandas(folder: Path) -> int:
    import pandas as pd

    if _format_of(folder) == "csv":
        return len(pd.read_csv(folder / "snapshot"))
    return len(pd.read_json(folder / "snapshot", lines=True))


def _format_of(folder: Path) -> str:
    with (folder / "snapshot").open("rb") as file:
        return "json" if file.read(1) == b"{" else "csv"


READERS: Mapping[str, Callable[[Path], int]] = {
    "ingest": by_ingest,
    "pyarrow": by_pyarrow,
    "pandas": by_pandas,
}


def race(folder: Path, warm: Path, rounds: int) -> list[dict[str, Run]]:
    """Let every reader read the file in every round; who begins changes."""
    _one_thread()
    for read in READERS.values():
        read(warm)
    found = []
    for number in range(rounds):
        names = list(READERS) if number % 2 == 0 else list(READERS)[::-1]
        found.append({name: timed(lambda name=name: READERS[name](folder)) for name in names})
    return found


def peak_of(name: str, folder: Path, warm: Path) -> int:
    """By how much the process grows while it reads."""
    _one_thread()
    READERS[name](warm)
    return growth_bytes(lambda: READERS[name](folder))


def _one_thread() -> None:
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def submit(folder: Path, lake: Path) -> list[str]:
    """The whole job on the folder's file."""
    run = ["--lake", lake.as_uri(), "--dataset", "tiny", "--run", RUN]
    program = [str(PROJECT / "bin" / "spark-submit"), "--master", MASTER, str(PROJECT / "jobs" / "ingest.py")]
    return [*program, *run, "--contracts", str(folder / "data_contracts")]


def compare(n: int, runs: Sequence[Mapping[str, Run]], peaks: Mapping[str, int]) -> list[str]:
    """The table of the readers.

    Raises
    ------
    ValueError
        A reader did not take all rows.
    """
    rows = []
    for name in READERS:
        mine = [each[name] for each in runs]
        if {run.answer for run in mine} != {n}:
            raise ValueError(f"{name} took {mine[0].answer} rows of {n}")
        ratios = [each["ingest"].cpu / each[name].cpu for each in runs]
        row = [name, seconds(1e6 * min(run.cpu for run in mine) / n), megabytes(peaks[name])]
        rows.append([*row, f"{statistics.median(ratios):.2f}"])
    return table(["", "µs of CPU a row", "memory, MB", "ingest takes, times as much CPU"], rows)


def whole_job(n: int, costs: Sequence[Cost], starts: Sequence[Cost], goal: float | None) -> list[str]:
    """The table of the whole job, and the verdict: medians of the rounds, and their spread."""
    rows = [
        [
            f"{count(rows)} rows",
            seconds(statistics.median(cost.wall for cost in found)),
            spread([cost.cpu for cost in found]),
            megabytes(max(cost.peak for cost in found)),
        ]
        for rows, found in ((START_ROWS, starts), (n, costs))
    ]
    per_row = [
        1e6 * (cost.cpu - start.cpu) / (n - START_ROWS) for cost, start in zip(costs, starts, strict=True)
    ]
    verdict = ""
    if goal is not None:
        is_met = statistics.median(per_row) <= goal
        verdict = f"At most {goal:g} are wanted: {'met' if is_met else '**missed**'}. "
    return [
        *table(["the whole job", "wall s", "CPU s", "largest process, MB"], rows),
        "",
        f"Beyond its start the whole job takes **{spread(per_row)} µs of CPU a row**: the median of "
        f"{len(per_row)} rounds, each less the job on {count(START_ROWS)} rows beside it. {verdict}"
        f"The CPU is that of {costs[0].counts}.",
    ]


def measure(kind: Kind, n: int, rounds: int, call: Callable[..., Any]) -> list[str]:
    """The tables of a kind of files."""
    with tempfile.TemporaryDirectory(prefix="bench-ingest-") as scratch:
        large, small = Path(scratch) / "large", Path(scratch) / "small"
        for folder, rows in ((large, n), (small, START_ROWS)):
            folder.mkdir()
            call(make, folder, kind, rows)
        runs = call(race, large, small, rounds)
        lines = compare(n, runs, {name: call(peak_of, name, large, small) for name in READERS})
        costs: dict[Path, list[Cost]] = {large: [], small: []}
        for number in range(rounds):
            for folder, found in costs.items():
                found.append(call(cost_of, submit(folder, folder / f"lake-{number}"), str(folder)))
        size = (large / "snapshot").stat().st_size
        head = f"{count(n)} rows, {megabytes(size)} MB; one thread each, rounds in turns: {rounds}."
        return [head, "", *lines, "", *whole_job(n, costs[large], costs[small], kind.goal)]


def main(arguments: Sequence[str], call: Call = in_own_process) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(KINDS), action="append", help="print it; no page is written")
    given = parser.parse_args(arguments)
    lines = [f"{machine()}; the whole job: {MASTER}"]
    for name in given.only or KINDS:
        part = ["", f"## {name}", "", *measure(KINDS[name], given.rows, given.rounds, call)]
        print("\n".join(part), flush=True)
        lines += part
    if not given.only:
        put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
