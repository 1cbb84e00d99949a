"""The operator of every task: it submits one job to Spark, and the exit code says what to do next."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, BaseHook, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from airflow.sdk.timezone import utcnow

from assets import asset_of
from intervals import IntervalTimetable, NoIntervalError
from project import AIRFLOW, POOL, REPOSITORY, check_lake_uri, find_lake_uri
from run_params import RUN_PARAMS, name_unknown

if TYPE_CHECKING:  # imported when OpenLineage is on, and by nobody else
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

NOTHING_TO_DO = 5
TRY_AGAIN_AFTER = timedelta(hours=1)
JOB_LIMIT = timedelta(hours=4)
"""A job that takes longer is ended, and tried again, where the page of a data set does not say otherwise."""

AGAIN = (
    "{airflow} backfill run {dataset} {run} {run} --reprocess-behavior failed --dag-run-conf "
    "'{{\"eps\": ...}}'"
)
"""How a run is made again with other parameters: Airflow refuses to trigger one of its date (a format)."""

REFUSALS = {
    2: (
        "the arguments or parameters were refused",
        "the run's conf, the data set's contract in data_contracts/ and the worker's variables; then clear "
        f"the task, or make the run again with another conf: {AGAIN}",
    ),
    3: (
        "a table or the data was refused",
        "the refused records (bin/epsjoin quarantine --lake {lake} --dataset {dataset} --run {run}), at the "
        "tables guard (what differs from the run before) and quality (what a gate found), and at the "
        "contract; clear ingest when the source is repaired, or the task that the last line names",
    ),
    4: (
        "a budget would be exceeded",
        "the number in the last line above and the largest eps that fits; make the run again with that eps "
        f"or, knowingly, with a higher limit: {AGAIN}",
    ),
}
"""Exit codes that a second try would not change: what happened, and where to look (a format)."""


def _read_retries() -> int:
    given = os.environ.get("EPSJOIN_RETRIES", "2")
    if not (given.isascii() and given.isdecimal()):
        raise ValueError(f"EPSJOIN_RETRIES must be a number of tries after the first, not {given!r}")
    return int(given)


class SparkJobOperator(SparkSubmitOperator):
    """Run ``jobs/<job>.py`` by spark-submit for one data set and one run.

    The exit code decides: 0 is success, 2 to 4 fail at once, 5 skips the task and all tasks that follow it,
    any other code is tried again. The job's metrics become the task's return value (XCom) and the ``extra``
    of its asset events.

    Parameters
    ----------
    job : name of the script in ``jobs/``; also the id of the task unless another is given.
    dataset : name of the data set, that of its contract.
    reads, writes : tables the job reads and writes; one inlet or outlet asset each, called
        ``<data set>/<table>``, in a group of the data set's name.
    run : the run to make, an ISO date (templated); the logical date unless another is given.
    arguments : arguments that only this job has, such as ``["--stage", "input"]``.
    wait : how long after the end of the run's interval a job that has nothing to do is tried again every hour
        instead of skipped. Between two tries the task occupies no worker and no slot of a pool. ``bin/airflow
        run`` waits for nothing (``EPSJOIN_WAITS=no``).
    **kwargs : further arguments of ``SparkSubmitOperator``; they win over the defaults set here.

    Raises
    ------
    AirflowFailException
        On execution: exit code 2, 3 or 4, or nothing was submitted because the lake, the Spark connection,
        the logical date or a parameter is missing or cannot be used. Not retried.
    AirflowSkipException
        On execution: exit code 5.
    AirflowRescheduleException
        On execution: exit code 5 while there is time to ``wait``.
    AirflowException
        On execution: any other exit code. Retried.

    Notes
    -----
    The Spark driver runs beside the task (client mode): exit code and metrics file come from there. Params
    are rendered into the command line, which logs and ``ps`` show: they must never hold a secret.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "run")

    def __init__(
        self,
        *,
        job: str,
        dataset: str,
        reads: Sequence[str] = (),
        writes: Sequence[str],
        run: str = "{{ ds | default('') }}",
        arguments: Sequence[str] = (),
        wait: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        lake = find_lake_uri()
        # Empty fields of the form are left out: to the job they mean "the data set's default".
        known = f"selectattr(0, 'in', {list(RUN_PARAMS)})"
        params = f"{{{{ dict(params.items() | {known} | selectattr(1, 'ne', none)) | tojson }}}}"
        defaults: dict[str, Any] = {
            "task_id": job,
            "application": str(REPOSITORY / "jobs" / f"{job}.py"),
            "application_args": [
                *("--lake", lake, "--dataset", dataset, "--run", run, "--params", params),
                *arguments,
            ],
            "name": f"{dataset} {job} {run}",
            "conn_id": "spark_default",
            # an operator's argument may be a path, a connection's may not
            "spark_binary": str(REPOSITORY / "bin" / "spark-submit"),
            "inlets": [asset_of(dataset, table) for table in reads],
            "outlets": [asset_of(dataset, table) for table in writes],
            "pool": POOL,
            "execution_timeout": JOB_LIMIT,
            "retries": _read_retries(),
            "retry_delay": timedelta(minutes=1),
            "retry_exponential_backoff": 2.0,  # a factor; True would be 1, no growth at all
            "max_retry_delay": timedelta(minutes=15),
        }
        super().__init__(**(defaults | kwargs))
        self.job = job
        self.dataset = dataset
        self.wait = None if os.environ.get("EPSJOIN_WAITS") == "no" else wait
        self.run = run
        self.lake = lake

    @classmethod
    def get_serialized_fields(cls) -> frozenset[str]:
        """Name what Airflow serializes field by field, after each parse and in every ``dags test``.

        Notes
        -----
        Not ``params``, which Airflow writes by themselves anyway. As a field it would first compare and print
        them, for which it checks each of them against its schema, and that against the schema of schemas.
        """
        return frozenset(super().get_serialized_fields() - {"params"})  # type: ignore[no-untyped-call]  # of Airflow

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]  # the base returns nothing
        """Submit the job, wait for it, and return its metrics."""
        self._check_before_submit()
        self._check_run(context)
        given = self.application_args
        with TemporaryDirectory(prefix=f"epsjoin-{self.job}-") as folder:
            metrics_file = Path(folder, "metrics.json")
            self.application_args = [*(given or []), "--metrics-out", str(metrics_file)]
            self._hook = self._get_hook()
            try:
                super().execute(context)
            except AirflowException as error:
                translated = self._translate_error(error)  # the error itself repeats the log above
                if isinstance(translated, AirflowSkipException) and (then := self._find_next_try(context)):
                    self.log.info("%s; the next try is at %s UTC", translated, f"{then:%Y-%m-%d %H:%M}")
                    raise AirflowRescheduleException(then) from None  # type: ignore[no-untyped-call]  # of Airflow
                raise translated from None
            finally:
                self.application_args = given
            metrics = self._read_metrics(metrics_file)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = metrics
        return metrics

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Name the tables that the job reads and writes, where they lie; only OpenLineage's provider asks."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        return OperatorLineage(
            inputs=[self._locate(asset) for asset in self.inlets],
            outputs=[self._locate(asset) for asset in self.outlets],
        )

    def _locate(self, asset: Asset) -> Dataset:
        from openlineage.client.event_v2 import Dataset

        at = urlsplit(self.lake)
        if asset.name.endswith("/source"):  # only the contract says where
            return Dataset("epsjoin", asset.name)
        path = f"{at.path.rstrip('/')}/{asset.name}"
        return (
            Dataset(f"{at.scheme}://{at.netloc}", path.lstrip("/")) if at.netloc else Dataset(at.scheme, path)
        )

    def _check_before_submit(self) -> None:
        """Refuse settings that would write to a wrong place or end in a stack trace of Java."""
        try:
            check_lake_uri(self.lake)
        except ValueError as error:
            raise AirflowFailException(str(error)) from None
        if not self.run:
            raise AirflowFailException(
                "this run has no logical date, so there is no snapshot to take; trigger it again "
                "with one, the first day of the snapshot's interval"
            )
        how = (
            f'AIRFLOW_CONN_{self._conn_id.upper()}=\'{{"conn_type":"spark","host":"local[2]",'
            '"extra":{"deploy-mode":"client"}}\''
        )
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except AirflowException:
            # Without a connection the provider would go on with --master yarn.
            raise AirflowFailException(
                f"the connection {self._conn_id} is missing; create it, for one machine: {how}"
            ) from None
        if "k8s" in (connection.host or "") and find_spec("airflow.providers.cncf") is None:
            raise AirflowFailException(  # its own would be a NameError
                f"the connection {self._conn_id} is one to Kubernetes, for which Airflow's environment lacks "
                "the package apache-airflow-providers-cncf-kubernetes; install it there"
            )
        if connection.extra_dejson.get("deploy-mode", "client") != "client":
            raise AirflowFailException(
                f"the connection {self._conn_id} asks for deploy-mode cluster, but exit code and "
                f"metrics come from a driver beside the task; set it to client, for one machine: {how}"
            )

    def _check_run(self, context: Context) -> None:
        """Refuse a run by hand that no timetable saw, and what Airflow takes as parameters though none is."""
        dag, logical_date = context.get("dag"), context.get("logical_date")
        if dag and logical_date and isinstance(dag.timetable, IntervalTimetable):
            try:
                dag.timetable.find_begun(logical_date)  # by the clock of this machine it may not be over
            except NoIntervalError as error:
                raise AirflowFailException(str(error)) from None
        if unknown := name_unknown(context.get("params") or ()):
            raise AirflowFailException(unknown)

    def _find_next_try(self, context: Context) -> datetime | None:
        end = context.get("data_interval_end")
        if self.wait is None or end is None or (now := utcnow()) >= end + self.wait:
            return None
        return min(now + TRY_AGAIN_AFTER, end + self.wait)

    def _translate_error(self, error: AirflowException) -> AirflowException:
        """Translate the job's exit code into the exception that makes Airflow do the right thing."""
        process = self._hook._submit_sp if self._hook else None
        if process is None or not process.returncode:
            return error  # the submit itself failed
        code = process.returncode
        last = str(error).splitlines()[-1].strip()  # the last line of a job is one sentence
        what = f"{self.job} of {self.dataset}, run {self.run}"
        if code == NOTHING_TO_DO:
            return AirflowSkipException(f"{what}: nothing to do (exit code {code}): {last}")
        if code in REFUSALS:
            happened, look = REFUSALS[code]
            look = look.format(airflow=AIRFLOW, lake=self.lake, dataset=self.dataset, run=self.run)
            return AirflowFailException(f"{what}: {happened} (exit code {code}): {last}\nLook at {look}.")
        # the JVM, or Python below it, of which the JVM has the code; the last line is whatever it said before
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            last = (
                "killed, because somebody cleared or marked the task or stopped Airflow, because the "
                "machine's memory was short (its kernel's log says so), or because Airflow lost its API "
                "server (this log says 'heartbeat')"
            )
        return AirflowException(f"{what}: broke (exit code {code}): {last}\nThe job's own lines are above.")

    def _read_metrics(self, file: Path) -> dict[str, Any]:
        try:
            metrics = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            metrics = error
        if not isinstance(metrics, dict):
            raise AirflowFailException(
                f"{self.job} ended well, its tables are written, but --metrics-out is not one JSON object "
                f"({metrics!r}); this is a bug of jobs/{self.job}.py"
            )
        return metrics
