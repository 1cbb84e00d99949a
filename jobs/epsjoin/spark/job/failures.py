"""What a job says about an error that is not ours: of Java, of pyspark, of a file, of a task."""

from __future__ import annotations

import os
import re
import tempfile
import traceback
from pickle import PicklingError

from epsjoin.errors import is_forbidden, to_one_line
from epsjoin.lake.parquet import explain_unreadable
from epsjoin.pipeline import TABLES

_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")
"""Errors of the system for a file that cannot grow."""

_RAISED = "epsjoin.errors."
"""Beginning of a line with one of our errors in the trace of a task."""

_SPILLED = re.compile(r"Error while calling spill\(\) .*")
"""What Spark says if it could not move a task's rows to a disk; it keeps only the text of the cause."""

_LOST_BY_WORKER = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor (\d+)\): ")
"""What Spark says of a task that failed outside of the driver: its machine and executor."""


def needs_trace(error: Exception) -> bool:
    """Whether a trace says more than the error's text: not for a file, nor if a task refused its input."""
    return not _is_of_file(error) and _RAISED not in str(error)


def summarize_error(error: Exception) -> str:
    """Say in a sentence what went wrong, and what to do if one of Spark's disks is full."""
    broken_file = _find_broken_file(str(error))
    if broken_file is not None:
        return broken_file
    told = to_one_line(error) if _is_of_file(error) else _find_line(error)
    spilled = _SPILLED.search(told)
    # tables are not written by the JVM, nor by pyspark in the driver
    is_of_spark = told.startswith("java.io.") or spilled is not None or _is_raised_in_pyspark(error)
    if not is_of_spark or not any(reason in told for reason in _NO_ROOM):
        return told
    told = spilled[0] if spilled else told
    worker = _LOST_BY_WORKER.search(str(error))
    if worker is not None:
        return (
            f"Spark cannot write its temporary files on the machine {worker[1]}, executor {worker[2]} "
            f"({told}); make room in the folders that Spark has there, or give it others "
            "(SPARK_LOCAL_DIRS of the worker, spark.local.dir)"
        )
    folders = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()  # of several, any may be full
    return (
        f"Spark cannot write its temporary files in {folders} ({told}); make room there, or set "
        "SPARK_LOCAL_DIRS to a folder on another disk"
    )


def _find_broken_file(text: str) -> str | None:
    """One sentence about a file that Spark's own scan could not read; ``None`` for any other error."""
    found = re.search(r"(?:reading file|does not exist:) (.*?/([a-z_]+)/run=.*?\.parquet)", text)
    if found is None or found[2] not in TABLES:
        return None
    why = "permission denied" if is_forbidden(text) else "missing or broken"
    return explain_unreadable(found[2], found[1], why, text)


def _is_of_file(error: Exception) -> bool:
    """Whether the error is about a file that cannot be opened, or a store that does not answer."""
    return isinstance(error, OSError) and not isinstance(error, ConnectionError)


def _is_raised_in_pyspark(error: Exception) -> bool:
    """Whether the error comes from pyspark's own writing in the driver, of rows or of a broadcast."""
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    is_of_python = isinstance(error, (OSError, PicklingError))  # py4j raises what the JVM throws
    return is_of_python and any(name.startswith("pyspark.") for name in names)


def _find_line(error: Exception) -> str:
    """Find the line of an error that says what went wrong; in a Java stack trace it is the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    python = [line.partition(": ")[2] for line in lines if line.startswith(_RAISED)]
    _, traced, trace = str(error).rpartition("Traceback (most recent call last):\n")
    if traced and not python:  # of a task; the first line that is not indented has what it raised
        python = [line for line in trace.splitlines() if line.strip() and not line[0].isspace()][:1]
    # of py4j; the next line has what Java threw
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = [line.removeprefix(": ") for line in lines[1:]] or lines
    # what Python raised says most, then the causes; the first cause of all comes last
    return (python or causes or lines or [type(error).__name__])[-1 if causes else 0]
