"""What joins of embeddings on Spark cost beside what ``epsjoin.spark.estimate`` says; prints a table.

``PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.embedding_blocks``. Each set is joined by few and by
many pairs of blocks. What more of them cost gives ``BLOCK_NS_PER_TASK`` where rows are few, and then
``BLOCK_NS_PER_BYTE`` where they are many (:mod:`epsjoin.local.plan.costs`). CPU is that of this process, the
JVM and the Python workers.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .embeddings import DIMENSIONS, SETS, Rows, embeddings
from .page import count, machine, seconds, spread, table
from .spark.bench import cpu_of_all, environment

ROUNDS = 3
FEW, MANY = 8, 60
"""Minimum numbers of tasks."""


class Joined(NamedTuple):
    """What a join was expected to do, and its CPU seconds."""

    tasks: int
    products: float
    sent_bytes: float
    expected: float
    planning: float
    running: float
    pairs: int


def write(rows: Rows, file: Path) -> None:
    """Rows as arrays of floats, in files of several row groups."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), DIMENSIONS)
    whole = pa.table({"id": np.arange(len(rows)), "at": flat.cast(pa.list_(pa.float32()))})
    pq.write_table(whole, file, row_group_size=10_000)


def join(frame: Any, name: str, n_tasks: int) -> Joined:
    import epsjoin.spark
    from epsjoin.local.plan import block_planner

    asked: dict[str, Any] = {"eps": SETS[name], "columns": "at", "metric": "cosine"}
    # the planner makes so many tasks however little work each has
    with patch.multiple(block_planner, MIN_TASKS=n_tasks, BLOCK_NS_PER_TASK=1.0):
        expected = epsjoin.spark.estimate(frame, **asked)
        began = cpu_of_all()
        pairs = epsjoin.spark.similarity_join(frame, **asked)
    planned = cpu_of_all()
    n_pairs = pairs.count()
    work = expected.candidates, expected.sent_bytes, expected.seconds
    return Joined(expected.tasks, *work, planned - began, cpu_of_all() - planned, n_pairs)


def main() -> int:
    os.environ |= environment(2)
    from epsjoin.spark.job.session import get_session

    spark = get_session("bench")
    lines, more = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for name, n in (("digits", 2000), ("noise", 30_000), ("digits", 30_000)):
            file = Path(folder, f"{name}-{n}.parquet")
            write(embeddings(name, n)[0], file)
            frame = spark.read.parquet(str(file))
            join(frame, name, FEW)  # starts workers
            runs = [[join(frame, name, n_tasks) for n_tasks in (FEW, MANY)] for _ in range(ROUNDS)]
            more[name, n] = [(many, few) for few, many in runs]
            for each in zip(*runs, strict=True):
                one, running = each[0], [run.running for run in each]
                planning = statistics.median(run.planning for run in each)
                of_all = f"{one.products:.3g}", f"{one.sent_bytes / 1e9:.3f}", seconds(one.expected)
                cpu = seconds(planning), spread(running)
                lines.append([name, count(n), count(one.tasks), *of_all, *cpu, count(one.pairs)])
    spark.stop()
    head = [
        "set",
        "rows",
        "tasks",
        "products",
        "GB sent",
        "expected s",
        "CPU s to plan",
        "CPU s to run",
        "pairs",
    ]
    print("\n".join([f"Measured on {machine()}, {ROUNDS} rounds.", "", *table(head, lines)]))
    per_task = statistics.median(
        (a.running - b.running) / (a.tasks - b.tasks) for a, b in more["digits", 2000]
    )
    per_byte = [
        (a.running - b.running - per_task * (a.tasks - b.tasks)) / (a.sent_bytes - b.sent_bytes)
        for (_, n), pairs in more.items()
        if n > 2000
        for a, b in pairs
    ]
    print(f"\na task {per_task:.3f} s; a byte that is sent {spread([1e9 * each for each in per_byte])} ns")
    print("(with the filter rows that are made of it)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
