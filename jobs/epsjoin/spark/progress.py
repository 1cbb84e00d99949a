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
    """Print, every ``seconds``, how many tasks of each running stage have finished."""
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
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                print(
                    f"  at work: {info.numCompletedTasks:,} of {info.numTasks:,} tasks done", file=sys.stderr
                )
