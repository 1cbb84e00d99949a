"""Progress of the running tasks on stderr, where Spark's own bar would stand."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

SECONDS = 10.0
"""Time between two lines of progress."""


@contextmanager
def progress_shown(spark: SparkSession, seconds: float = SECONDS) -> Iterator[None]:
    """Print, every ``seconds``, how many tasks of each running stage have ended, or that none can begin."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, seconds, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: SparkSession, seconds: float, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(seconds):
        if not _has_cores(spark):
            print("  waits for cores: other jobs have all of the cluster's", file=sys.stderr)
            continue
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                print(
                    f"  at work: {info.numCompletedTasks:,} of {info.numTasks:,} tasks done", file=sys.stderr
                )


def _has_cores(spark: SparkSession) -> bool:
    """Whether there is an executor that could run a task; on a local master the driver runs them itself."""
    context = spark.sparkContext
    holders = context._jsc.sc().getExecutorMemoryStatus()  # who holds blocks: the driver and every executor
    return bool(str(context.master).startswith("local") or holders.size() > 1)
