"""Spark's parent process of the Python workers, with the package already imported.

Workers are forks of it, so they start at once. The setting ``spark.python.daemon.module`` in
``conf/spark-defaults.conf`` names this module. Without it each worker would import NumPy, numba, pyarrow and
the steps by itself, which takes some two seconds of CPU.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.daemon

from epsjoin.digests import UNKEYED, digest_table
from epsjoin.spark.tasks.arrow import keep_pandas_out
from epsjoin.spark.tasks.cost import leave_cpu_seconds_to_workers

STEPS = (
    *("ingest.ingest", "join.replicate", "join.merge_join", "cluster.cluster", "neighbours.outliers"),
    "checks.verify",
)


def until_spark_hangs_up(worker: Callable[..., int]) -> Callable[..., int]:
    """Wrap pyspark's worker so that it ends silently when Spark has closed the connection.

    Spark does so when a job ends or fails while workers still write. A traceback would stand in the log of a
    job that has succeeded, or below the sentence that says why one has failed.
    """

    def quiet(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return quiet


def freeze_after_first_task(worker: Callable[..., int]) -> Callable[..., int]:
    """Wrap pyspark's worker so that what its first task has loaded is exempt from garbage collection.

    pyspark collects garbage after every task, and would look at all parts of the loaded kernels each time.
    """
    is_first = True

    def freezing(*arguments: Any) -> int:
        nonlocal is_first
        code = worker(*arguments)
        if is_first:
            is_first = False
            gc.collect()  # or garbage would stay
            gc.freeze()
        return code

    return freezing


def load_packages() -> None:
    """Import what tasks need: the steps, and what pyarrow imports for its first array; but not pandas.

    This includes what numba imports when it loads the first kernel: 0.4 seconds of CPU in each worker that
    calls one.
    """
    keep_pandas_out()
    pa.array(np.zeros(1))
    for step in STEPS:
        importlib.import_module(f"epsjoin.spark.{step}")
    digest_table(pa.table({"number": np.zeros(1)}), UNKEYED)


if __name__ == "__main__":
    if sys.flags.safe_path:  # modules beside a person's script are found, but replace no others
        sys.path.append(str(Path.cwd()))
    load_packages()
    leave_cpu_seconds_to_workers()
    gc.freeze()  # this exempts what was imported here
    pyspark.daemon.worker = freeze_after_first_task(until_spark_hangs_up(pyspark.daemon.worker))
    pyspark.daemon.manager()
