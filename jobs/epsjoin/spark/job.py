"""The frame of every job: arguments, parameters, one step, counters, exit code."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pickle import PicklingError

from pyspark.sql import SparkSession

from epsjoin.console import printable
from epsjoin.errors import INTERRUPTED, ArgumentError, EpsjoinError, NothingToDoError, to_one_line
from epsjoin.lake import delta_log, slices
from epsjoin.lake.arguments import add_lake, check_writable, open_lake, parse_run
from epsjoin.lake.lake import Lake
from epsjoin.params import RunParams
from epsjoin.spark import scan
from epsjoin.spark.arrow import keep_pandas_out
from epsjoin.spark.cost import Meter
from epsjoin.spark.session import get_session, heed_interrupt, say_if_interrupted


@dataclass(frozen=True)
class Job:
    """Everything that a step may use.

    Parameters
    ----------
    session : returns the session of the job, and starts it when it is first called: not every job on small
        slices needs one.
    lake : the tables of the data set.
    run : the run's logical date in ISO format; it names the slices that the step replaces.
    params : the run's parameters.
    project : folder to which relative paths in contracts refer.
    """

    session: Callable[[], SparkSession]
    lake: Lake
    run: str
    params: RunParams
    project: Path

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session()


Step = Callable[[Job], Mapping[str, float]]
"""The work of one job: it reads slices of tables, replaces others, and returns its counters."""


def run_job(
    name: str,
    step: Step,
    argv: Sequence[str] | None = None,
    own: argparse.ArgumentParser | None = None,
    *,
    starts_session: bool = True,
) -> int:
    """Run one step from command-line arguments and return the exit code (see ``errors.py``).

    If the step fails, the last line on stderr (of spark-submit: on stdout) says why in one sentence. If it
    succeeds, its counters and those of its cost (:mod:`epsjoin.spark.cost`) go to the table ``job_metrics``
    and, as one JSON object, to the file ``--metrics-out``. Ctrl-C ends it with one sentence and exit code
    130.

    Parameters
    ----------
    name : the job's name, for messages and metrics.
    step : the job's work.
    argv : command-line arguments; by default those of the process.
    own : parser of the arguments that only this job has. They appear in ``--help``, with its name and texts;
        the step gets their values from its caller.
    starts_session : whether the session is started before the step; otherwise by the step, if it needs one.
    """
    interrupted = f"{name}: interrupted; the same command again makes the run anew"
    heed_interrupt(interrupted)
    try:
        meter = Meter()
        keep_pandas_out()
        arguments = _parse(own or argparse.ArgumentParser(add_help=False, prog=name), argv)
        lake = open_lake(arguments)
        check_writable(lake)
        lake = replace(lake, source=lake.source.of_run(arguments.run))
        lake = delta_log.pin_versions(lake, name)
        job = Job(
            session=partial(get_session, f"{arguments.dataset} {name} {arguments.run}"),
            lake=lake,
            run=arguments.run,
            params=RunParams.from_json(arguments.params, lake.source.defaults),
            project=arguments.contracts.resolve().parent,
        )
        if starts_session:
            job.session()
        with meter.step():
            counters = dict(step(job))
        counters |= meter.counters()
        slices.write_counters(job.lake, job.run, name, counters)
        if arguments.metrics_out:
            arguments.metrics_out.write_text(json.dumps(counters) + "\n", encoding="utf-8")
    except NothingToDoError as error:
        print(f"{name}: nothing to do: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except EpsjoinError as error:
        if say_if_interrupted(interrupted):
            return INTERRUPTED
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - any other error becomes one sentence and exit code 1
        if say_if_interrupted(interrupted):
            return INTERRUPTED
        # of a file, or where a task's input or its disk is at fault, the text says more than a trace
        if not _is_of_file(error) and _RAISED not in str(error):
            traceback.print_exc()
        print(f"{name}: {printable(summarize_error(error))}", file=sys.stderr)
        return EpsjoinError.exit_code
    print(f"{name}: done in {counters['seconds']:.1f} s")
    return 0


def _parse(own: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    # argparse exits with 2 by itself, which is the exit code for wrong arguments
    parser = argparse.ArgumentParser(
        prog=own.prog, description=own.description, epilog=own.epilog, parents=[own]
    )
    add_lake(parser)
    text = "parameters of the run as a JSON object, which replace the contract's: '{\"min_pts\": 8}'"
    parser.add_argument("--params", default="{}", help=text)
    parser.add_argument("--metrics-out", type=Path, help="file for the counters, one JSON object")
    arguments = parser.parse_args(argv)
    arguments.run = parse_run(arguments.run)
    out: Path | None = arguments.metrics_out
    if out is not None and (out.is_dir() or not os.access(out.parent, os.W_OK | os.X_OK)):
        raise ArgumentError(f"--metrics-out: {out} cannot be written; name a file in a folder of this user's")
    return arguments


_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")
"""What the system says of a file that cannot grow."""

_RAISED = "epsjoin.errors."
"""How a line begins, in the trace of a task, that has an error of ours."""

_SPILLED = re.compile(r"Error while calling spill\(\) .*")
"""What Spark says of a task's rows that it could not move to a disk; of the cause it keeps the text alone."""

_LOST_BY_WORKER = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor (\d+)\): ")
"""What Spark says of a task that failed in another process than the driver: its machine and executor."""


def _is_of_file(error: Exception) -> bool:
    """Whether the error is about a file that cannot be opened, or a store that does not answer."""
    return isinstance(error, OSError) and not isinstance(error, ConnectionError)


def summarize_error(error: Exception) -> str:
    """Say in a sentence what went wrong, and what to do where a disk of Spark's is full."""
    broken_file = scan.unreadable_by_spark(str(error))
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


def _is_raised_in_pyspark(error: Exception) -> bool:
    """Whether the error comes from pyspark's own writing in the driver, of rows or of a broadcast."""
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    is_of_python = isinstance(error, (OSError, PicklingError))  # what the JVM throws, py4j raises
    return is_of_python and any(name.startswith("pyspark.") for name in names)


def _find_line(error: Exception) -> str:
    """Find the line of an error that says what went wrong; in a Java stack trace it is the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    python = [line.partition(": ")[2] for line in lines if line.startswith(_RAISED)]
    _, traced, trace = str(error).rpartition("Traceback (most recent call last):\n")
    if traced and not python:  # of a task; what it raised is the first line that is not indented
        python = [line for line in trace.splitlines() if line.strip() and not line[0].isspace()][:1]
    # of py4j; what Java threw is the next line
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = [line.removeprefix(": ") for line in lines[1:]] or lines
    # what Python raised tells most, then the causes; what caused all others comes last
    return (python or causes or lines or [type(error).__name__])[-1 if causes else 0]
