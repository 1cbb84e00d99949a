"""Progress of the running tasks on stderr, instead of Spark's own bar; a watch may end them."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

SECONDS = 10.0
"""Time between two lines of progress."""
LOOK_SECONDS = 0.2
"""Time between two looks of a watch."""
_MAX_END_SECONDS = 10.0
"""Time that tasks have to end when their job has failed; Spark gives a Python worker some 4 seconds."""
_SPARK_MAY_BE_GONE = suppress(Py4JError, OSError)
"""The error that is being raised, of work or of a watch, says more than that Spark does not answer."""


class Watch(Protocol):
    """Looks at what tasks have reported while others run, on a thread of its own."""

    def look(self) -> None:
        """Look; an error that it raises ends the tasks, and is raised by the call that waits for them."""

    def line(self, n_running: int) -> str | None:
        """Say how far the tasks are, of which ``n_running`` run; None: nothing is known yet."""


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let a watch look at the tasks that are started within."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def progress_shown(spark: SparkSession, seconds: float | None = None) -> Iterator[None]:
    """Print, every ``seconds``, how far the running tasks are, or that none can start.

    Within :func:`watched` the watch says how far they are, and looks every ``LOOK_SECONDS``. If it raises,
    the tasks are cancelled, and its error is raised here. After any error the tasks have ended, so that they
    write nothing more, unless they take longer than ``_MAX_END_SECONDS``.
    """
    watcher = _Watcher(spark, SECONDS if seconds is None else seconds, _WATCH.get())
    with watcher.tagged():
        watcher.start()
        try:
            yield
        finally:
            watcher.end()


class _Watcher(threading.Thread):
    def __init__(self, spark: SparkSession, seconds: float, watch: Watch | None) -> None:
        super().__init__(daemon=True)
        self._spark, self._seconds, self._watch = spark, seconds, watch
        self._over = threading.Event()
        self._tag = f"epsjoin-{uuid.uuid4().hex}"
        self._error: BaseException | None = None

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Tag the jobs that this thread starts, so that these, and no others, can be cancelled."""
        context = self._spark.sparkContext
        context.addJobTag(self._tag)
        try:
            yield
        except BaseException:
            with _SPARK_MAY_BE_GONE:
                _end_tasks(context, self._tag)
            if self._error is not None:  # the tasks failed because they were cancelled
                raise self._error from None
            raise
        finally:
            with _SPARK_MAY_BE_GONE:
                context.removeJobTag(self._tag)
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        pause = self._seconds if self._watch is None else min(LOOK_SECONDS, self._seconds)
        next_line = time.monotonic() + self._seconds
        while not self._over.wait(pause):
            if self._watch is not None and not self._look(self._watch):
                return
            if time.monotonic() >= next_line:
                next_line += self._seconds
                with _SPARK_MAY_BE_GONE:
                    for line in self._lines(self._spark.sparkContext):
                        print(f"  {line}", file=sys.stderr)

    def _look(self, watch: Watch) -> bool:
        try:
            watch.look()
        except Exception as error:  # noqa: BLE001  # raised where the tasks are waited for
            self._error = error
            with _SPARK_MAY_BE_GONE:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
        return self._error is None

    def _lines(self, context: SparkContext) -> Iterator[str]:
        if not _has_cores(context):
            yield "waits for cores: other jobs have all of the cluster's"
            return
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        said = None
        if self._watch is not None:
            said = self._watch.line(sum(stage.numActiveTasks for stage in stages if stage is not None))
        if said is not None:
            yield said
            return
        for stage in stages:
            if stage is not None:
                yield f"at work: {stage.numCompletedTasks:,} of {stage.numTasks:,} tasks done"


def _end_tasks(context: SparkContext, tag: str) -> None:
    """Cancel what runs, and wait: a job ends before those of its tasks that Spark has told to end."""
    context.cancelJobsWithTag(tag)
    until = time.monotonic() + _MAX_END_SECONDS
    while time.monotonic() < until and _has_tasks(context, tag):
        time.sleep(LOOK_SECONDS / 4)


def _has_tasks(context: SparkContext, tag: str) -> bool:
    tracker = context.statusTracker()
    for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag):  # PySpark's has no such method
        job = tracker.getJobInfo(number)
        if job is None:
            continue
        if job.status == "RUNNING":  # all of its tasks are known once its end is
            return True
        stages = map(tracker.getStageInfo, job.stageIds)
        if any(stage.numActiveTasks for stage in stages if stage is not None):
            return True
    return False


def _has_cores(context: SparkContext) -> bool:
    """Whether there is an executor that could run a task; on a local master the driver runs them itself."""
    holders = context._jsc.sc().getExecutorMemoryStatus()  # who holds blocks: the driver and every executor
    return bool(str(context.master).startswith("local") or holders.size() > 1)
