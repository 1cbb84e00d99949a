"""What reading costs: CPU microseconds a row of ``ingest``, by spark-submit, beside readers that only type.

``python -m benchmarks.ingest --rows 1300000 --against FOLDER``: this project and another checkout of it take
turns on the same files. The CPU time is that of all processes of a job (user and system) less that of the
same job on a file of one row. pyarrow and pandas read the same file with one thread into typed columns, and
do nothing more: no checks, no ids, no table.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tiny import RUN, coordinate, key, new_lake

from .measure import Run, in_own_process, timed

PROJECT = Path(__file__).resolve().parents[2]
DIMENSIONS = 16
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: whoever is left by its parent becomes a child of this process, and is counted."""

NUMBERS = [key(), *(coordinate(f"x{i}") for i in range(DIMENSIONS))]
PAYLOAD = [
    {"name": "name", "logicalType": "string"},
    {"name": "kind", "logicalType": "string", "required": True},
    {"name": "note", "logicalType": "string"},
    {"name": "day", "logicalType": "date"},
]
SETS: dict[str, list[dict[str, Any]]] = {
    "16 numbers": NUMBERS,
    "16 numbers, payload of text": [*NUMBERS, *PAYLOAD],
}


def write_csv(file: Path, columns: Sequence[dict[str, Any]], n_rows: int) -> None:
    """Write random numbers of six decimals; every fourth name is quoted, has a comma and a quote in it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pcsv

    random = np.random.default_rng(0)
    table: dict[str, Any] = {"id": random.permutation(n_rows)}
    table |= {f"x{i}": random.random(n_rows).round(6) for i in range(DIMENSIONS)}
    if len(columns) > len(NUMBERS):
        names = [f'Well {i}, the "old" one' if i % 4 == 0 else f"Well {i}" for i in range(n_rows)]
        table |= {"name": names, "kind": [("dry", "wet", "lost")[i % 3] for i in range(n_rows)]}
        table |= {"note": ["" if i % 5 else f"seen {i} times" for i in range(n_rows)]}
        table |= {"day": [f"2023-0{1 + i % 9}-{10 + i % 18}" for i in range(n_rows)]}
    pcsv.write_csv(pa.table(table), file, pcsv.WriteOptions(quoting_style="needed"))


def by_job(project: Path, folder: Path) -> float:
    """CPU seconds of all processes of the job."""
    shutil.rmtree(folder / "lake", ignore_errors=True)
    lake, contracts = (folder / "lake").as_uri(), folder / "data_contracts"
    arguments = ["--lake", lake, "--dataset", "tiny", "--run", RUN, "--contracts", str(contracts)]
    before = _cpu_of_children()
    done = subprocess.run(
        [
            project / "bin" / "spark-submit",
            "--master",
            "local[2]",
            project / "jobs" / "ingest.py",
            *arguments,
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    try:
        while True:
            os.wait()  # for whoever was left by its parent
    except ChildProcessError:
        return _cpu_of_children() - before


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_pyarrow(file: Path) -> Run:
    import pyarrow.csv as pcsv

    options = pcsv.ReadOptions(use_threads=False)
    return timed(lambda: pcsv.read_csv(file, options).num_rows)


def by_pandas(file: Path) -> Run:
    import pandas as pd

    return timed(lambda: len(pd.read_csv(file)))


def measure(
    name: str, n_rows: int, rounds: int, projects: Sequence[Path], folder: Path
) -> list[tuple[str, float]]:
    """CPU microseconds a row, the least of all rounds."""
    columns = SETS[name]
    sizes = {1: folder / "one", n_rows: folder / "all"}
    for size, place in sizes.items():
        place.mkdir(parents=True)
        new_lake(place, columns)
        write_csv(place / "snapshot.csv", columns, size)
    for project in projects:
        by_job(project, sizes[1])  # compiles what is not compiled yet
    cpu: dict[tuple[Path, int], list[float]] = {}
    for _ in range(rounds):
        for project in projects:
            for size, place in sizes.items():
                cpu.setdefault((project, size), []).append(by_job(project, place))
    found = []
    for project in projects:
        all_, start = min(cpu[project, n_rows]), min(cpu[project, 1])
        found.append((f"ingest ({project.name})", (all_ - start) / n_rows * 1e6))
        print(f"  {name}: {project.name}: {all_:.1f} s, of which start {start:.1f}", flush=True)
    peers: dict[str, Callable[[Path], Run]] = {"pyarrow.csv": by_pyarrow, "pandas.read_csv": by_pandas}
    for peer, read in peers.items():
        runs = [in_own_process(read, sizes[n_rows] / "snapshot.csv") for _ in range(rounds)]
        found.append((peer, min(run.cpu for run in runs) / n_rows * 1e6))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_300_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=list(SETS))
    parser.add_argument("--against", type=Path, action="append", default=[], help="another checkout, set up")
    arguments = parser.parse_args()
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1)
    projects = [PROJECT, *arguments.against]
    for number, name in enumerate([arguments.only] if arguments.only else SETS):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / str(number)
            for who, micros in measure(name, arguments.rows, arguments.rounds, projects, folder):
                print(f"{name:28} {who:24} {micros:6.2f} µs of CPU a row", flush=True)


if __name__ == "__main__":
    main()
