"""spark-submit application.py FOLDER: what can be seen on a cluster alone.

Tasks that fail and are tried again, or run twice, write a table; a worker says what it sees.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from pyspark import TaskContext
from pyspark.sql import SparkSession

from epsjoin.lake import transactions
from epsjoin.lake.targets import Target
from epsjoin.spark.job.session import get_session
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.reports import TaskReport, add_counters

ROWS = {"fails within its file": 1 << 22, "fails after its file": 3, "is too slow": 5, "does well": 7}
"""A task each, and the rows that it writes; the first one's are more than a row group."""


def write_by_attempts(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Write the table; which attempt of each task counts, and what is in the table and in its folder."""
    into = Target("attempts", folder.as_uri(), pa.schema([("task", pa.int64())]), (), {})

    def work(task: int) -> Iterator[pa.RecordBatch]:
        what, n_rows = list(ROWS.items())[task]
        context = TaskContext.get()
        is_first = context is None or context.attemptNumber() == 0

        def rows() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"task": np.full(n_rows, task)})
            if what == "fails within its file" and is_first:
                raise OSError(what)

        report = TaskReport(counters={what: 1.0 if is_first else 2.0})
        report.write(into, rows())
        if what == "fails after its file" and is_first:
            raise OSError(what)
        if what == "is too slow" and is_first:
            time.sleep(600)
        yield report.to_batch()

    reports = TaskReport.of_batches(tasks.run_tasks(spark, range(len(ROWS)), work))
    files = transactions.replace_table(into, [file for report in reports for file in report.files])
    rows = DeltaTable(folder).to_pyarrow_table()["task"].value_counts().to_pylist()
    found: dict[str, Any] = {
        "attempts": add_counters(reports),
        "rows": {list(ROWS)[row["values"]]: row["counts"] for row in rows},
        "files in the log": len(files),
        "files": len(list(folder.glob("*.parquet"))),
    }
    found["attempts"].pop("largest_worker_bytes")
    return found


def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run in a worker: its folder, its path, where epsjoin came from."""
    import os
    import sys

    import epsjoin

    list(batches)
    # not all of it: the cluster's secret is in there, too
    settings = {name: text for name, text in os.environ.items() if name.startswith(("NUMBA_", "OMP_"))}
    folder = os.getcwd()  # noqa: PTH109  # as the worker has it
    seen = {"folder": folder, "path": sys.path, "package": epsjoin.__file__, "settings": settings}
    yield pa.record_batch({"seen": [json.dumps(seen)]})


def main(folder: Path) -> None:
    spark = get_session("application")
    found = write_by_attempts(spark, folder)
    row = spark.range(0, 1, 1, 1).mapInArrow(look, "seen string").first()
    assert row is not None
    print(f"found: {json.dumps({**found, 'seen': json.loads(row['seen'])})}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
