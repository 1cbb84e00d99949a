"""``bin/airflow backfill run``: make the runs of a range of dates and wait for them.

The runs are made by the Airflow of this home; where none runs, one is started and, at the end, stopped. If
two commands run at once, the second waits where it would be in the other's way.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

try:
    from airflow import settings
    from airflow.cli.commands.backfill_command import create_backfill
    from airflow.configuration import conf
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.backfill import Backfill
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from airflow.models.pool import Pool
    from airflow.models.taskinstance import TaskInstance
    from airflow.sdk.timezone import coerce_datetime
    from airflow.utils.session import create_session
    from sqlalchemy import select
    from sqlalchemy.exc import OperationalError

    from backfill_airflow import LOG, Wait, airflow_for, alone, say
    from dag_checks import Refusal, check_database, check_lake, check_params, describe_missing, read_conf
    from intervals import IntervalTimetable, NoIntervalError
    from project import AIRFLOW, POOL
except KeyboardInterrupt:  # the imports take seconds
    print("backfill: interrupted; nothing was begun", file=sys.stderr)
    raise SystemExit(INTERRUPTED) from None

ENDED = ("success", "failed")
"""States of runs that have ended."""

SKIPPED = "skipped: no snapshot"
NOTHING_TO_DO = "no run is missing; --reprocess-behavior completed makes them again"


def main(argv: Sequence[str]) -> int:
    """Make the runs of a range of dates; return 0 when all of them ended well."""
    parser = argparse.ArgumentParser(
        prog="bin/airflow backfill run",
        description="Make the runs of a range of dates, and wait for them. If no Airflow is running, one is "
        "started, and stopped at the end. A back-fill that was interrupted is finished first.",
    )
    parser.add_argument("dag_id", metavar="DATASET", help="name of the data set and of its DAG")
    parser.add_argument("from_date", metavar="FROM", type=_parse_date, help="first logical date, YYYY-MM-DD")
    parser.add_argument("to_date", metavar="TO", type=_parse_date, help="last logical date, YYYY-MM-DD")
    parser.add_argument("--max-active-runs", type=_parse_count, default=2, help="runs at once (default: 2)")
    parser.add_argument("--run-backwards", action="store_true", help="the newest run first")
    text = "which dates are made again: none, those whose run failed, or all (default: none)"
    behaviors = ["none", "failed", "completed"]
    parser.add_argument("--reprocess-behavior", choices=behaviors, default="none", help=text)
    parser.add_argument("--dag-run-conf", type=_check_json, help="parameters of all runs, a JSON object")
    parser.set_defaults(dry_run=False, run_on_latest_version=None)  # arguments of Airflow's own command
    arguments = parser.parse_args(argv)
    try:
        _check(arguments)
    except (NoIntervalError, Refusal) as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as by Ctrl-C
    try:
        return _make_runs(arguments)
    except OperationalError as error:  # as where its services were stopped
        why = " ".join(str(error.orig).split())
        raise SystemExit(
            f"backfill: Airflow's database does not answer any more ({why}); once it does, the same command "
            "goes on with the runs"
        ) from None


def _make_runs(arguments: argparse.Namespace) -> int:
    """Make the runs, and say how each one ends; return 0 when all of them ended well."""
    dag_id = arguments.dag_id
    with (
        alone(f"dag-{dag_id}", f"another back-fill of {dag_id}"),
        airflow_for(dag_id) as wait,
        _unpause(dag_id),
    ):
        for unfinished in _find_backfills(dag_id):
            if _has_open_runs(unfinished):
                say(f"an earlier backfill of {dag_id} is not finished; it goes on first")
                _wait_for(unfinished, wait)
        while _find_backfills(dag_id):  # completed up to half a minute after the last run has ended
            wait()
        create_backfill(arguments)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Airflow's own would end with exit code 0
        created = _find_backfills(dag_id)
        if not created:  # there was nothing to do, and the scheduler has completed it already
            say(NOTHING_TO_DO)
            return 0
        return _wait_for(created[0], wait)


def _parse_date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(f"{text}T00:00+00:00")
    except ValueError:
        raise argparse.ArgumentTypeError(f"it must be a date like 2023-06-01, not {text}") from None


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"it must be a number, 1 or more, not {text}")
    return int(text)


def _check_json(text: str) -> str:
    try:
        read_conf(text)
    except Refusal as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None
    return text


def _check(arguments: argparse.Namespace) -> None:
    """Refuse arguments of which no Airflow would make runs, as to start one takes a minute."""
    first, last = arguments.from_date, arguments.to_date
    if first > last:
        raise Refusal(f"FROM must not be after TO, as {first:%Y-%m-%d} is after {last:%Y-%m-%d}")
    check_lake()
    check_database()
    dags = DagBag(settings.DAGS_FOLDER).dags
    if (dag := dags.get(arguments.dag_id)) is None:
        raise Refusal(describe_missing(arguments.dag_id, dags))
    check_params(dag, read_conf(arguments.dag_run_conf))
    if isinstance(dag.timetable, IntervalTimetable):
        dag.timetable.find_interval(coerce_datetime(first), coerce_datetime(last))


@contextmanager
def _unpause(dag_id: str) -> Iterator[None]:
    """Unpause a DAG for a while: one that is paused makes no runs, not even those of a backfill.

    A file says that it was paused, for the next command, should this one be killed.
    """
    mark = LOG.parent / f"backfill-dag-{dag_id}.paused"
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        if dag is None:
            raise SystemExit(f"backfill: Airflow has no DAG {dag_id}")
        was_paused = bool(dag.is_paused)
        if was_paused:
            mark.touch()
        elif mark.exists():
            was_paused = True
            say(f"{dag_id} was paused before a back-fill that was killed; it will be again at the end")
        dag.is_paused = False
    try:
        yield
    finally:
        with create_session() as session:
            session.get_one(DagModel, dag_id).is_paused = was_paused
        mark.unlink(missing_ok=True)


def _find_backfills(dag_id: str) -> list[int]:
    """List the backfills of a DAG that are not completed."""
    with create_session() as session:
        active = select(Backfill.id).where(Backfill.dag_id == dag_id, Backfill.completed_at.is_(None))
        return list(session.scalars(active))


def _has_open_runs(backfill: int) -> bool:
    """Whether a run of a backfill has not ended; where all have, the scheduler has not looked since."""
    of_backfill = select(DagRun.id).where(DagRun.backfill_id == backfill)
    with create_session() as session:
        return session.scalar(of_backfill.where(DagRun.state.not_in(ENDED)).limit(1)) is not None


def _wait_for(backfill: int, wait: Wait) -> int:
    """Say how each run ends, and why none goes on; return 0 when all ended well."""
    ended: dict[datetime | None, str] = {}
    has_skipped, pause = False, None
    while True:
        with create_session() as session:
            runs = session.scalars(select(DagRun).where(DagRun.backfill_id == backfill)).all()
            for run in runs:
                if run.state in ENDED and run.logical_date not in ended:
                    ended[run.logical_date] = str(run.state)
                    told = _describe(run)
                    has_skipped |= told == SKIPPED
                    say(f"{run.logical_date:%Y-%m-%d} {told} ({len(ended)} of {len(runs)})")
                    for reason in _find_reasons(run):
                        say(f"  {reason}")
            if len(ended) == len(runs):
                break
        earlier, pause = pause, _find_pause(backfill)
        if pause and pause != earlier:
            say(pause)
        wait()
    failed = list(ended.values()).count("failed")
    if not ended:
        say(NOTHING_TO_DO)
    elif failed:
        say(f"{failed} of {len(ended)} runs failed; --reprocess-behavior failed makes those again")
    if has_skipped:
        say("when a missing snapshot has come, --reprocess-behavior completed makes its date again")
    return 1 if failed else 0


def _find_pause(backfill: int) -> str | None:
    """Find who keeps the runs of a backfill from beginning, and how that ends; nothing where nobody does."""
    with create_session() as session:
        found = session.get_one(Backfill, backfill)
        if session.get_one(DagModel, found.dag_id).is_paused:
            unpause = f"{AIRFLOW} dags unpause {found.dag_id}"
            return f"{found.dag_id} is paused, and its runs wait; {unpause} lets them go on"
        if found.is_paused:
            return "the backfill is paused, and its runs wait; the DAG's page lets it go on, or be cancelled"
        pool = session.scalar(select(Pool).where(Pool.pool == POOL))
    if pool is None:
        return f"there is no pool {POOL}, for which all jobs wait; {AIRFLOW} setup makes it"
    if pool.slots == 0:
        return f"the pool {POOL} has no slots, for which all jobs wait; give it some (Admin, Pools)"
    return None


def _describe(run: DagRun) -> str:
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    if broken := [task for task, state in states.items() if state == "failed"]:
        return f"failed in {', '.join(broken)}"
    if run.state == "failed":
        return "failed, though none of its tasks did: cancelled, or marked as failed"
    # of two data sets that are matched, each has a task
    if any(state == "skipped" and task.startswith("ingest") for task, state in states.items()):
        return SKIPPED
    if states.get("approve_epsilon") == "success" and states.get("replicate") == "skipped":
        return "ended before the join: its eps was rejected"
    seconds = (run.end_date - run.start_date).total_seconds() if run.end_date and run.start_date else 0
    return f"done in {seconds:.0f} s"


def _find_reasons(run: DagRun) -> list[str]:
    """Find why the failed tasks of a run failed, in their logs; nothing where the logs lie elsewhere."""
    failed = [task for task in run.get_task_instances() if task.state == "failed"]
    return [reason for task in failed if (reason := _read_reason(_log_of(task)))]


def _log_of(task: TaskInstance) -> Path:
    folder = Path(conf.get("logging", "base_log_folder"), f"dag_id={task.dag_id}", f"run_id={task.run_id}")
    return folder / f"task_id={task.task_id}" / f"attempt={task.try_number}.log"


def _read_reason(log: Path) -> str | None:
    """Read the first line of the last exception in a log of Airflow's, whose lines are JSON."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return str(json.loads(line)["error_detail"][0]["exc_value"]).partition("\n")[0]
        except (ValueError, TypeError, LookupError):  # a line without an exception
            continue
    return None


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("backfill: interrupted; the same command makes the runs that are not done", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
