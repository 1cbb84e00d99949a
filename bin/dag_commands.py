"""Airflow's own commands ``dags test``, which ``bin/airflow run`` is, too, and ``dags trigger``.

What they refuse, they say in one sentence. And a run that is triggered has the interval of its own date:
Airflow 3.3 would ask for that of the present time (https://github.com/apache/airflow/pull/64740).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it; that of the jobs (``epsjoin.errors``), too."""

try:
    import psutil  # type: ignore[import-untyped]  # it has no types
    from airflow import __main__ as airflow
    from airflow.api.client import local_client
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.cli import cli_parser
    from airflow.cli.commands import dag_command
    from airflow.exceptions import DagNotFound, DagRunAlreadyExists, ParamValidationError
    from airflow.jobs.job import most_recent_job
    from airflow.models import dagrun
    from airflow.models.dag import DagModel
    from airflow.sdk import DAG
    from airflow.sdk.exceptions import AirflowException
    from airflow.sdk.timezone import utcnow
    from airflow.utils.cli import get_bagged_dag
    from airflow.utils.session import create_session
    from sqlalchemy import select
    from sqlalchemy.exc import IntegrityError, PendingRollbackError

    from dag_checks import (
        Refusal,
        check_database,
        check_lake,
        check_names,
        check_params,
        describe_missing,
        read_conf,
    )
    from intervals import NoIntervalError
    from project import AIRFLOW, TAG
except KeyboardInterrupt:  # the imports take seconds
    print("airflow: interrupted; nothing was begun", file=sys.stderr)
    raise SystemExit(INTERRUPTED) from None

_create_run = dagrun.get_or_create_dagrun


def main(argv: Sequence[str]) -> int:
    """Run ``airflow dags`` with these arguments, or ``run`` for ``test``; return its exit code."""
    if argv[:1] == ["run"]:
        argv = ["test", *argv[1:]]
        sys.tracebacklimit = 0  # of what a task raises, the sentence is for people
    arguments = cli_parser.get_parser().parse_args(["dags", *argv])
    # Airflow's own have no such parameters: their names in its modules are the only place to give them
    own = SimpleNamespace(trigger_dag=_trigger)
    local_client.trigger_dag = own  # type: ignore[assignment, attr-defined]  # no module; not exported
    dagrun.get_or_create_dagrun = _begin_now
    sys.argv = ["airflow", "dags", *argv]
    try:
        conf = read_conf(arguments.conf)
        check_database()
        dag_command.get_bagged_dag = partial(_find_dag, conf)  # type: ignore[attr-defined]  # not exported
        signal.signal(signal.SIGINT, _interrupt)
        airflow.main()  # type: ignore[no-untyped-call]  # of Airflow
    except SystemExit as end:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return INTERRUPTED
        if end.code != "DagRun failed":
            raise
        print(f"airflow: {_describe_failed(arguments.dag_id)}", file=sys.stderr)
        return 1
    except (IntegrityError, PendingRollbackError) as error:  # two first runs of new data sets at once
        told = str(error.orig if isinstance(error, IntegrityError) else error).splitlines()[0]
        print(
            "airflow: another process wrote to Airflow's database at the same moment; the same command again "
            f"makes the run ({told})",
            file=sys.stderr,
        )
        return 1
    except (NoIntervalError, ParamValidationError, Refusal) as error:
        print(f"airflow: {str(error).splitlines()[0]}", file=sys.stderr)  # the whole schema would follow
        return 2
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End at once, or as soon as the running job has ended, which by Ctrl-C gets the signal, too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(2, b"airflow: interrupted; the same command again makes the run anew\n")
    jobs = [child for child in psutil.Process().children() if "spark" in " ".join(child.cmdline())]
    if not jobs:
        os._exit(INTERRUPTED)  # an exception would be taken for one of a DAG file or a task
    nothing = os.open(os.devnull, os.O_WRONLY)  # Airflow goes on to tell, with traces, that the task fails
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    for job in jobs:
        job.send_signal(signal.SIGINT)


def _find_dag(conf: Mapping[str, Any], bundle_names: list[str] | None, dag_id: str, **more: Any) -> DAG:
    """Find the DAG of a test, and check what its run is given."""
    check_lake()
    _check_scheduler(dag_id)
    try:
        dag = get_bagged_dag(bundle_names, dag_id, **more)
    except AirflowException:
        raise _missing(dag_id) from None
    check_params(dag, conf)
    return dag


def _check_scheduler(dag_id: str) -> None:
    """Refuse a test beside a scheduler, which would take tasks of its run and run them elsewhere."""
    job = most_recent_job("SchedulerJob")
    if job is None or not job.is_alive():
        return
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        if dag is not None and not dag.is_paused:
            raise Refusal(
                f"a scheduler runs, and would take over tasks of this run: trigger it by {AIRFLOW} dags "
                f"trigger, or pause {dag_id} first by {AIRFLOW} dags pause"
            )


def _begin_now(**asked: Any) -> dagrun.DagRun:
    """Create the run of a test, as one that begins now: by that date ``housekeeping`` deletes runs."""
    return _create_run(**asked | {"start_date": utcnow()})


def _describe_failed(dag_id: str) -> str:
    """Say which tasks of the last run of a DAG failed."""
    last = select(dagrun.DagRun).where(dagrun.DagRun.dag_id == dag_id)
    with create_session() as session:
        run = session.scalars(last.order_by(dagrun.DagRun.start_date.desc()).limit(1)).one()
        failed = ", ".join(task.task_id for task in run.get_task_instances() if task.state == "failed")
        return f"run {run.logical_date:%Y-%m-%d} of {dag_id} failed in {failed}; the lines above say why"


def _missing(dag_id: str) -> Refusal:
    with create_session() as session:
        known = session.scalars(select(DagModel.dag_id).where(~DagModel.is_stale)).all()
    return Refusal(describe_missing(dag_id, known))


def _refuse_taken_name(dag_id: str, logical_date: Any, run_id: str | None) -> None:
    """Refuse a run whose name another one has, if that is of another date."""
    named = select(dagrun.DagRun).where(dagrun.DagRun.dag_id == dag_id, dagrun.DagRun.run_id == run_id)
    with create_session() as session:
        other = session.scalars(named).one_or_none()
        if other is not None and other.logical_date != logical_date:
            raise Refusal(f"the run of {other.logical_date:%Y-%m-%d} of {dag_id} is called {run_id} already")


def _trigger(*, dag_id: str, logical_date: Any, conf: str | None, **asked: Any) -> Any:
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        tags = [tag.name for tag in dag.tags] if dag else []
    check_names(tags, read_conf(conf))
    if TAG in tags:
        check_lake()
    try:
        return trigger_dag(
            dag_id=dag_id, logical_date=logical_date, run_after=logical_date, conf=conf, **asked
        )
    except DagNotFound:
        raise _missing(dag_id) from None
    except (DagRunAlreadyExists, IntegrityError):
        _refuse_taken_name(dag_id, logical_date, asked.get("run_id"))
        date = f"{logical_date:%Y-%m-%d}"
        raise Refusal(
            f"{dag_id} has a run of {date} already; clear its tasks, or make it again with another conf: "
            f"{AIRFLOW} backfill run {dag_id} {date} {date} --reprocess-behavior completed --dag-run-conf ..."
        ) from None


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # before the signal has its own handler
        print("airflow: interrupted; nothing was begun", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
