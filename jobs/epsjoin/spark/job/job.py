"""The frame of every job: arguments, parameters, one step, counters, exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from epsjoin.console import printable
from epsjoin.errors import INTERRUPTED, ArgumentError, EpsjoinError, NothingToDoError
from epsjoin.lake import delta_log, slices, uris
from epsjoin.lake.arguments import add_lake, check_writable, open_lake, parse_run
from epsjoin.lake.lake import Lake
from epsjoin.params import RunParams
from epsjoin.spark.job.failures import needs_trace, summarize_error
from epsjoin.spark.job.session import get_session, heed_interrupt, say_if_interrupted
from epsjoin.spark.tasks.arrow import keep_pandas_out
from epsjoin.spark.tasks.cost import Meter


@dataclass(frozen=True)
class Job:
    """Everything that a step may use.

    Parameters
    ----------
    session : returns the session of the job, which is started by the first call: a job on small slices may
        not need one.
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


EXIT_CODES = """
Exit codes: 0 done; 1 something broke, and another try may help; 2 an argument or a setting is wrong; 3 a
table or the data was refused; 4 the result would be larger than a limit; 5 there is nothing to do.
docs/operate.md says what to do about each.
"""
"""What ``--help`` of a job says of its exit codes."""

Step = Callable[[Job], Mapping[str, float]]
"""The work of one job: it reads slices of tables, replaces others, and returns its counters."""


def run_job(
    name: str,
    step: Step,
    argv: Sequence[str] | None = None,
    own: argparse.ArgumentParser | None = None,
    *,
    starts_session: bool = True,
    doc: str | None = None,
) -> int:
    """Run one step from command-line arguments and return the exit code (see ``errors.py``).

    If the step fails, the last line on stderr (of spark-submit: on stdout) says why in one sentence. If it
    succeeds, its counters and those of its cost (:mod:`epsjoin.spark.tasks.cost`) go to the table
    ``job_metrics`` and, as one JSON object, to the file ``--metrics-out``. Ctrl-C ends it with one sentence
    and exit code 130.

    Parameters
    ----------
    name : the job's name, for messages and metrics.
    step : the job's work.
    argv : command-line arguments; by default those of the process.
    own : parser of the arguments that only this job has. They appear in ``--help``, with its name and texts;
        the step gets their values from its caller.
    starts_session : whether the session is started before the step; otherwise by the step, if it needs one.
    doc : docstring of the job's file; ``--help`` shows the part of it after the command.
    """
    interrupted = f"{name}: interrupted; the same command again makes the run anew"
    heed_interrupt(interrupted)
    try:
        meter = Meter()
        keep_pandas_out()
        arguments = _parse(own or _parser(name, doc), argv)
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
            with uris.writing(f"--metrics-out: {arguments.metrics_out}"):
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
    except Exception as error:  # noqa: BLE001  # any other error becomes one sentence and exit code 1
        if say_if_interrupted(interrupted):
            return INTERRUPTED
        if needs_trace(error):
            traceback.print_exc()
        print(f"{name}: {printable(summarize_error(error))}", file=sys.stderr)
        return EpsjoinError.exit_code
    print(f"{name}: done in {counters['seconds']:.1f} s")
    return 0


def _parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    """A parser without arguments of the job's own."""
    what = (doc or "").partition(": ")[2]
    description = what[:1].upper() + what[1:]
    return argparse.ArgumentParser(add_help=False, prog=name, description=description, epilog=EXIT_CODES)


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
