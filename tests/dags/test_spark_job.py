"""The operator: what it submits, and what it makes of the exit code. Real hook, real wrapper, fake Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.serialization.serialized_objects import DagSerialization
from airflow.utils.session import create_session
from sqlalchemy import select

from dags.fake_spark import REPOSITORY, FakeSpark, write_script
from password_uris import WITH_PASSWORD, WITHOUT_PASSWORD
from project import find_lake_uri
from spark_job import SparkJobOperator

JUNE, JULY = datetime(2023, 6, 1, tzinfo=UTC), datetime(2023, 7, 1, tzinfo=UTC)
TASKS = [
    *("ingest", "quality_input", "fit_epsilon", "replicate", "merge_join", "cluster", "outliers"),
    *("compare", "quality_results", "report"),
]
IN_ORDER = [task.partition("_")[0] if task.startswith("quality") else task for task in TASKS]
"""The scripts; the two gates have one."""


def run_dag(dag: DAG, conf: dict[str, Any] | None = None, **changes: Any) -> dict[str, str]:
    """Run the DAG as ``airflow dags test`` does; returns the run's and every task's state."""
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
        task.retry_exponential_backoff = 0
        for name, value in changes.items():
            setattr(task, name, value)
    return states_of(dag.test(logical_date=JUNE, run_conf=conf))


def states_of(run: Any) -> dict[str, str]:
    """The state of a run of a DAG, and those of its tasks."""
    return {"run": str(run.state)} | {ti.task_id: str(ti.state) for ti in run.get_task_instances()}


def execute(context: dict[str, Any] | None = None, **kwargs: Any) -> dict[str, Any]:
    """Execute one operator by itself."""
    arguments = {"job": "ingest", "dataset": "navaids", "writes": ["points"], "run": "2023-06-01"} | kwargs
    operator = SparkJobOperator(**arguments)
    operator.application_args = ["--run", operator.run]
    return operator.execute(context or {"outlet_events": OutletEventAccessors()})


# --- one operator


def test_connection__of_a_cluster_is_handed_on_and_the_package_is_shipped(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(fake_spark.venv / "bin" / "python", "#!/bin/sh\necho /ship/epsjoin-1.tar.gz\n")
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT",
        '{"conn_type":"spark","host":"spark://127.0.0.1","port":7077,"extra":{"deploy-mode":"client"}}',
    )
    execute()
    assert fake_spark.command("ingest")[:2] == ["--master", "spark://127.0.0.1:7077"]
    assert "spark.archives=/ship/epsjoin-1.tar.gz#shipped" in fake_spark.calls_text()


def test_success__returns_the_metrics_and_puts_them_on_the_assets(fake_spark: FakeSpark) -> None:
    events = OutletEventAccessors()
    metrics = execute({"outlet_events": events}, writes=["points", "quarantine"])
    assert metrics == {"job": "ingest", "rows": 11020}
    assert [event.extra for event in events._dict.values()] == [metrics, metrics]


def test_success__removes_the_metrics_file(fake_spark: FakeSpark) -> None:
    execute()
    metrics_file = Path(fake_spark.command("ingest")[-1])
    assert metrics_file.name == "metrics.json"
    assert not metrics_file.parent.exists()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (2, r"arguments or parameters were refused \(exit code 2\): .*contract in data_contracts/"),
        (3, r"data was refused \(exit code 3\): .*quarantine"),
        (4, r"budget would be exceeded \(exit code 4\): .*largest eps that fits"),
    ],
)
def test_exit_code__that_no_second_try_can_change_fails_at_once(
    fake_spark: FakeSpark, code: int, says: str
) -> None:
    fake_spark.ends("ingest", code, "epsjoin: 12 is more than 7")
    with pytest.raises(AirflowFailException, match=f"(?s){says}") as failed:
        execute()
    assert "ingest of navaids, run 2023-06-01" in str(failed.value)
    assert "epsjoin: 12 is more than 7" in str(failed.value), "the job's last line belongs to the message"


@pytest.mark.parametrize("code", [1, 6, 134])
def test_exit_code__of_something_broken_may_be_tried_again(fake_spark: FakeSpark, code: int) -> None:
    fake_spark.ends("ingest", code)
    with pytest.raises(
        AirflowException, match=rf"broke \(exit code {code}\): epsjoin: the last word"
    ) as failed:
        execute()
    assert type(failed.value) is AirflowException
    assert len(str(failed.value).splitlines()) == 2, "the log is above; its repetition buries the message"
    assert failed.value.__suppress_context__, "the provider's own error repeats the log, too"
    assert failed.value.__cause__ is None


def test_exit_code__5_skips(fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 5, "epsjoin: no snapshot from 2023-06-01 to 2023-06-30")
    with pytest.raises(AirflowSkipException, match=r"nothing to do \(exit code 5\): epsjoin: no snapshot"):
        execute()


def test_exit_code__is_not_read_from_what_the_job_prints(fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 1, "Error code is: 5.")
    with pytest.raises(AirflowException, match=r"exit code 1\)"):
        execute()


@pytest.mark.parametrize("code", [-9, 137], ids=["the JVM", "Python below it"])
def test_job_killed__may_be_tried_again(fake_spark: FakeSpark, code: int) -> None:
    if code < 0:
        fake_spark.dies("ingest")
    else:  # as the kernel does where memory is short; the JVM ends with its code
        fake_spark.ends("ingest", code, "WARNING: Using incubator modules: jdk.incubator.vector")
    why = (
        rf"broke \(exit code {code}\): killed, because somebody cleared or marked the task or stopped "
        r"Airflow, because the machine's memory was short .* or .* lost its API server"
    )
    with pytest.raises(AirflowException, match=why) as failed:
        execute()
    assert type(failed.value) is AirflowException


def test_no_metrics__is_a_bug_and_said_to_be_one(fake_spark: FakeSpark) -> None:
    fake_spark.writes_no_metrics()
    with pytest.raises(AirflowFailException, match=r"bug of jobs/ingest\.py"):
        execute()


@pytest.mark.parametrize("lake", ["", "lake", "/data/lake", "file://", "file:///"])
def test_lake__that_is_no_uri_is_refused(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, lake: str
) -> None:
    monkeypatch.setenv("EPSJOIN_LAKE", lake)
    with pytest.raises(AirflowFailException, match="EPSJOIN_LAKE must be a URI such as file:///data/lake"):
        execute()
    assert fake_spark.jobs == []


def test_lake__with_a_password_is_refused_without_showing_it(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the page is read: Airflow's database has the arguments of every task."""
    for uri in WITH_PASSWORD:
        monkeypatch.setenv("EPSJOIN_LAKE", uri)
        with pytest.raises(ValueError, match="EPSJOIN_LAKE holds a password") as failed:
            SparkJobOperator(job="ingest", dataset="navaids", writes=["points"])
        assert "ret" not in str(failed.value)
        assert "KEY" not in str(failed.value)
    assert fake_spark.jobs == []
    for uri in WITHOUT_PASSWORD:
        monkeypatch.setenv("EPSJOIN_LAKE", uri)
        assert find_lake_uri() == uri


def test_connection__missing_is_refused_instead_of_going_to_yarn(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, database: None
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(
        AirflowFailException, match="spark_default is missing; create it, for one machine: AIRFLOW_CONN_"
    ):
        execute()
    assert fake_spark.jobs == []


def test_connection__in_cluster_mode_is_refused(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT",
        '{"conn_type":"spark","host":"spark://master:7077","extra":{"deploy-mode":"cluster"}}',
    )
    with pytest.raises(AirflowFailException, match=r"deploy-mode cluster.*set it to client"):
        execute()
    assert fake_spark.jobs == []


def test_connection__to_kubernetes_names_the_package_that_is_missing(
    fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = '{"conn_type":"spark","host":"k8s://https://10.0.0.1","port":6443}'
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
    with pytest.raises(AirflowFailException, match="apache-airflow-providers-cncf-kubernetes; install it"):
        execute()
    assert fake_spark.jobs == []


def test_retries__that_are_no_number_are_refused_by_the_name_of_their_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EPSJOIN_RETRIES", "x")
    with pytest.raises(ValueError, match="^EPSJOIN_RETRIES must be a number of tries after the first, not"):
        SparkJobOperator(job="ingest", dataset="navaids", writes=["points"])


def test_run__without_a_logical_date_is_refused(fake_spark: FakeSpark) -> None:
    with pytest.raises(AirflowFailException, match=r"no logical date.*the first day of"):
        execute(run="")
    assert fake_spark.jobs == []


def test_run__with_an_unknown_parameter_is_refused_before_spark_starts(fake_spark: FakeSpark) -> None:
    context = {"outlet_events": OutletEventAccessors(), "params": {"eps": 1, "lake": "s3://x", "Eps": 2}}
    with pytest.raises(AirflowFailException, match="conf has 'Eps', 'lake', which is no parameter.*min_pts"):
        execute(context)
    assert fake_spark.jobs == []


# --- the whole DAG, as "airflow dags test" runs it


SECRETS = ("hunter2", "hunter3")
CONNECTION = {"conn_type": "spark", "host": "local[2]", "login": "me", "extra": {"deploy-mode": "client"}}


class Submitted(NamedTuple):
    """A run of the whole DAG, and what its Spark was asked."""

    dag: DAG
    run: Any
    spark: FakeSpark


@pytest.fixture(scope="module")
def submitted(database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submitted]:
    """A run with parameters, with what another DAG adds for its own use, and with secrets around it."""
    spark = FakeSpark(tmp_path_factory.mktemp("whole") / "spark")
    with pytest.MonkeyPatch.context() as patch:
        spark.put_in_place(patch)
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(CONNECTION | {"password": SECRETS[0]}))
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS[1])
        dag = DagBag(REPOSITORY / "dags" / "navaids.py").dags["navaids"]
        conf = {"eps": 0.5, "min_pts": None, "cuts": "regular", "openlineage": {"parentRunId": "x"}}
        yield Submitted(dag, dag.test(logical_date=JULY, run_conf=conf), spark)


def test_dag__submits_every_job_once_in_order(submitted: Submitted) -> None:
    assert states_of(submitted.run) == dict.fromkeys(["run", *TASKS], "success")
    assert submitted.spark.jobs == IN_ORDER


def test_dag__submits_this_command_with_nothing_that_another_dag_adds(submitted: Submitted) -> None:
    command = submitted.spark.command("merge_join")
    assert command[:-1] == [
        *("--master", "local[2]", "--name", "navaids merge_join 2023-07-01", "--deploy-mode", "client"),
        str(REPOSITORY / "jobs" / "merge_join.py"),
        *("--lake", (REPOSITORY / "lake").as_uri(), "--dataset", "navaids", "--run", "2023-07-01"),
        *("--params", '{"cuts": "regular", "eps": 0.5}', "--metrics-out"),
    ]
    assert json.loads(command[-3]) == {"cuts": "regular", "eps": 0.5}


def test_dag__keeps_metrics_as_xcom_and_on_the_asset_event(submitted: Submitted) -> None:
    dag, run, _ = submitted
    (pairs,) = [ti for ti in run.get_task_instances() if ti.task_id == "merge_join"]
    assert pairs.xcom_pull(task_ids="merge_join") == {"job": "merge_join", "rows": 11020}
    with create_session() as session:
        of_run = AssetEvent.source_run_id == run.run_id
        found = session.execute(
            select(AssetModel.name, AssetEvent.extra)
            .join(AssetEvent, AssetEvent.asset_id == AssetModel.id)
            .where(of_run)
        ).all()
    rows = {name: extra["rows"] for name, extra in found}
    assert len(found) == sum(len(task.outlets) for task in dag.tasks)
    assert len(rows) == len(found) - 1, "both gates write quality"
    assert rows["navaids/points"] == rows["navaids/pairs"] == rows["navaids/report"] == 11020


def test_dag__shows_no_secret(submitted: Submitted) -> None:
    with create_session() as session:
        of_run = RenderedTaskInstanceFields.run_id == submitted.run.run_id
        rendered = session.scalars(select(RenderedTaskInstanceFields).where(of_run)).all()
        shown = json.dumps([row.rendered_fields for row in rendered])
    assert len(rendered) == len(IN_ORDER)
    for secret in SECRETS:
        assert secret not in submitted.spark.calls_text()
        assert secret not in shown
    assert SECRETS[1] in submitted.spark.environment.values(), "secrets travel by the environment"


def test_dag__with_an_unknown_parameter_fails_in_its_first_task_without_a_spark(
    navaids: DAG, fake_spark: FakeSpark
) -> None:
    states = run_dag(navaids, conf={"unknown": 1})
    assert (states["run"], states["ingest"]) == ("failed", "failed")
    assert fake_spark.jobs == []


def test_dag__without_a_snapshot_skips_what_follows(navaids: DAG, fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 5)
    states = run_dag(navaids)
    assert states == {"run": "success"} | dict.fromkeys(TASKS, "skipped")
    assert fake_spark.jobs == ["ingest"]


def test_dag__does_not_retry_a_refusal(navaids: DAG, fake_spark: FakeSpark) -> None:
    fake_spark.ends("merge_join", 4)
    states = run_dag(navaids)
    assert states["run"] == "failed"
    assert states["merge_join"] == "failed"
    assert states["report"] == "upstream_failed"
    assert fake_spark.jobs == IN_ORDER[:5]


def test_dag__retries_what_broke(navaids: DAG, fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 1)
    states = run_dag(navaids)
    assert states["ingest"] == "failed"
    assert fake_spark.jobs == ["ingest"] * 3


def test_dag__with_a_missing_connection_fails_at_once(
    navaids: DAG, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    states = run_dag(navaids)
    assert states["ingest"] == "failed"
    assert fake_spark.jobs == []


def test_dag__is_serialized_as_by_airflow_alone_but_with_few_checks_of_its_params(
    dag_bag: DagBag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow serializes DAGs after each parse; by its own list it checks all params of each task."""
    checked = []
    validate = jsonschema.validate
    monkeypatch.setattr(
        jsonschema, "validate", lambda *given, **named: (checked.append(given), validate(*given, **named))
    )
    dag = dag_bag.dags["navaids"]
    ours, n_ours = DagSerialization.to_dict(dag), len(checked)
    monkeypatch.delattr(SparkJobOperator, "get_serialized_fields")
    assert ours == DagSerialization.to_dict(dag)
    tasks = [task["__var"] for task in ours["dag"]["tasks"]]
    assert all(len(task["params"]) == len(dag.params) for task in tasks)
    assert n_ours * len(tasks) < len(checked)
