"""House rules for DAGs: every message says how to repair what it found."""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import DataInterval, TimeRestriction
from pendulum import DateTime

from dags.chains import CHAIN_OF, DATA_SETS, GATES, every_dag, every_task, task_of
from dags.fake_spark import REPOSITORY
from epsilon_join import epsilon_join
from epsjoin.pipeline import STAGES, jobs_of
from intervals import IntervalTimetable
from run_params import RUN_PARAMS
from spark_job import REFUSALS, SparkJobOperator

MATCHED = {"earthquakes": "iscgem"}
"""Data sets that are matched with another one."""
CRON = {
    "day": "0 0 * * *",
    "week": "0 0 * * 1",
    "month": "0 0 1 * *",
    "quarter": "0 0 1 */3 *",
    "year": "0 0 1 1 *",
}
PAGES = sorted((REPOSITORY / "dags").glob("*.py"))
PLUGINS = sorted((REPOSITORY / "plugins").glob("**/*.py"))
every_matched = pytest.mark.parametrize(("dataset", "other"), MATCHED.items())


def test_tour__has_the_data_set_with_a_question() -> None:
    bag = DagBag(REPOSITORY / "tests" / "tour" / "dags")
    assert bag.import_errors == {}
    assert list(bag.dags) == ["navaids"]
    assert "approve_epsilon" in bag.dags["navaids"].task_ids


def test_dags__are_found_and_import(dag_bag: DagBag) -> None:
    assert not dag_bag.import_errors, f"repair these files: {dag_bag.import_errors}"
    assert set(dag_bag.dags) == {*DATA_SETS, *MATCHED}, (
        "a data set's DAG is new or gone: name it in CHAIN_OF or MATCHED"
    )


@pytest.mark.parametrize("file", [*PAGES, *PLUGINS], ids=lambda file: f"{file.parent.name}/{file.name}")
def test_dags_and_plugins__import_nothing_of_the_jobs(file: Path) -> None:
    heavy = {"pyspark", "numba", "epsjoin", "delta", "deltalake", "numpy", "pandas", "pyarrow"}
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert not imported & heavy, (
        f"{file.name} imports {sorted(imported & heavy)}: Airflow reads this file every few seconds in an "
        "environment without them; do the work in a job"
    )


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_dag_files__hold_the_words_airflow_looks_for(file: Path) -> None:
    text = file.read_text().lower()
    assert "dag" in text, f"{file.name}: without the word 'dag' Airflow does not read it"
    assert "airflow" in text, f"{file.name}: without the word 'airflow' Airflow does not read it"


def test_plugins_folder__offers_no_dag_modules_as_plugins() -> None:
    ignored = (REPOSITORY / "plugins" / ".airflowignore").read_text().split()
    for module in {file.name for file in PLUGINS} - {"reports.py", "registered.py"}:
        assert module in ignored, f"name {module} in plugins/.airflowignore: it would be loaded twice"


@every_dag
def test_dag__is_the_chain_of_the_design(dag_bag: DagBag, dataset: str) -> None:
    tasks = dag_bag.dags[dataset].tasks
    edges = {(task.task_id, after) for task in tasks for after in task.downstream_task_ids}
    of_trees = {("merge_join", "refine"), ("refine", "cluster")}
    joined = of_trees if CHAIN_OF[dataset] == "trees" else {("merge_join", "cluster")}
    assert edges == {
        ("ingest", "quality_input"),
        ("quality_input", "fit_epsilon"),
        ("fit_epsilon", "replicate"),
        ("replicate", "merge_join"),
        *joined,
        ("cluster", "outliers"),
        ("outliers", "compare"),
        ("compare", "quality_results"),
        ("quality_results", "report"),
    }


@every_dag
def test_dag__refines_candidates_if_the_metric_of_its_contract_is_of_trees(dataset: str) -> None:
    contract = yaml.safe_load((REPOSITORY / "data_contracts" / f"{dataset}.odcs.yaml").read_text())
    custom = {each["property"]: each["value"] for each in contract["customProperties"]}
    assert (CHAIN_OF[dataset] == "trees") == (custom["metric"] == "tree_edit")


@pytest.mark.parametrize("more", [{"match_with": "other"}, {"approve_within": timedelta(days=1)}])
def test_dag_of_trees__is_neither_matched_nor_asks_for_an_eps(more: dict[str, Any]) -> None:
    start = datetime(2023, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="specs compares trees by the eps of its contract; leave match_with"):
        epsilon_join(
            dataset="specs", compares_trees=True, schedule="0 0 1 1 *", start_date=start, doc_md="", **more
        )


@pytest.mark.parametrize(
    ("dataset", "start", "sentence"),
    [
        ("Bad-Name", datetime(2023, 1, 1, tzinfo=UTC), "'Bad-Name': a name is lower-case letters, digits"),
        ("a" * 246, datetime(2023, 1, 1, tzinfo=UTC), "a letter first, 245 at most"),
        ("wells", datetime(2023, 1, 1), "start_date of wells has no time zone"),
    ],
)
def test_dag__refuses_a_name_and_a_date_with_which_every_run_would_fail(
    dataset: str, start: datetime, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        epsilon_join(dataset=dataset, schedule="0 0 1 * *", start_date=start, doc_md="")


@every_matched
def test_dag_of_two_data_sets__takes_both_in_and_matches_them(
    dag_bag: DagBag, dataset: str, other: str
) -> None:
    tasks = dag_bag.dags[dataset].tasks
    edges = {(task.task_id, after) for task in tasks for after in task.downstream_task_ids}
    assert edges == {
        ("ingest", "quality_input"),
        (f"ingest_{other}", f"quality_input_{other}"),
        ("quality_input", "match"),
        (f"quality_input_{other}", "match"),
        ("match", "quality_matches"),
        ("quality_matches", "report"),
    }
    assert set(jobs_of("match")) == {task.task_id.removesuffix(f"_{other}") for task in tasks}
    for task in tasks:
        assert isinstance(task, SparkJobOperator)
        assert task.dataset == (other if task.task_id.endswith(other) else dataset)
        assert task.doc_md
        assert task.trigger_rule == "all_success", "a year that one catalogue lacks is skipped"
    match = task_of(dag_bag, dataset, "match")
    assert [asset.name for asset in match.outlets] == [f"{dataset}/{table}" for table in STAGES["matches"]]
    assert {asset.name for asset in match.inlets} == {f"{dataset}/points", f"{other}/points"}


@every_matched
def test_dag_of_two_data_sets__is_as_their_contracts_say(dag_bag: DagBag, dataset: str, other: str) -> None:
    custom = {}
    for name in (dataset, other):
        contract = yaml.safe_load((REPOSITORY / "data_contracts" / f"{name}.odcs.yaml").read_text())
        custom[name] = {each["property"]: each["value"] for each in contract["customProperties"]}
        assert dag_bag.dags[dataset].timetable.summary == CRON[custom[name]["interval"]]
    assert custom[dataset]["match"]["with"] == other


@every_dag
def test_dag__starts_at_a_fixed_date_without_catching_up(dag_bag: DagBag, dataset: str) -> None:
    dag = dag_bag.dags[dataset]
    assert dag.start_date is not None, "give start_date a date: runs are named by it"
    assert dag.start_date < datetime(2026, 1, 1, tzinfo=UTC), "start_date must not move with the clock"
    assert dag.catchup is False, "catchup=False: old snapshots are back-filled on purpose"
    assert dag.max_active_runs == 1, "max_active_runs=1: runs of one data set share a machine"
    assert "epsjoin" in dag.tags, "add the tag epsjoin"
    assert dag.owner == "epsjoin", "set the owner"


@every_dag
def test_dag__has_the_interval_of_its_contract(dag_bag: DagBag, dataset: str) -> None:
    contract = yaml.safe_load((REPOSITORY / "data_contracts" / f"{dataset}.odcs.yaml").read_text())
    interval = next(p["value"] for p in contract["customProperties"] if p["property"] == "interval")
    timetable = dag_bag.dags[dataset].timetable
    assert isinstance(timetable, IntervalTimetable), "other timetables take a run by hand for any day"
    assert timetable.summary == CRON[interval], (
        f"the contract says {interval}: the schedule must be {CRON[interval]!r}"
    )


def scheduled_dates(dag: DAG, until: datetime) -> list[tuple[str, str]]:
    """Logical date and due date of the runs that a back-fill makes."""
    timetable = coerce_to_core_timetable(dag.timetable)
    restriction = TimeRestriction(earliest=dag.start_date, latest=until, catchup=True)
    found = []
    last: DataInterval | None = None
    while info := timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction):
        last = info.data_interval
        found.append((f"{info.logical_date:%Y-%m-%d}", f"{info.run_after:%Y-%m-%d}"))
    return found


def test_scheduled_runs__are_named_by_the_start_of_their_interval(dag_bag: DagBag) -> None:
    assert scheduled_dates(dag_bag.dags["navaids"], datetime(2022, 1, 1, tzinfo=UTC)) == [
        ("2021-11-01", "2021-12-01"),
        ("2021-12-01", "2022-01-01"),
        ("2022-01-01", "2022-02-01"),
    ]
    assert scheduled_dates(dag_bag.dags["landmarks"], datetime(2024, 6, 1, tzinfo=UTC)) == [
        ("2023-01-01", "2024-01-01"),
        ("2024-01-01", "2025-01-01"),
    ]


@every_dag
def test_dag_page__says_what_to_do_when_it_fails(dag_bag: DagBag, dataset: str) -> None:
    page = dag_bag.dags[dataset].doc_md or ""
    for code in (1, *REFUSALS, 5):
        assert re.search(rf"^\| {code}\b", page, re.MULTILINE), f"the page must explain exit code {code}"
    for word in ("quarantine", "Clear", "backfill create", "logical date", f"bin/airflow run {dataset}"):
        assert word in page, f"the page must say something about {word!r}"
    assert "{" not in page, "a placeholder was left open"


@every_task
def test_task__keeps_the_house_rules(dag_bag: DagBag, dataset: str, job: str) -> None:
    task = task_of(dag_bag, dataset, job)
    assert (task.retries or 0) >= 2, "retries=2: machines and networks break"
    assert task.retry_exponential_backoff >= 2, (
        "retry_exponential_backoff is a factor; True means 1, no growth"
    )
    assert task.retry_delay >= timedelta(minutes=1), "retry_delay: give the machine a minute"
    assert task.max_retry_delay, "max_retry_delay: bound the backoff"
    assert task.execution_timeout, "execution_timeout: a job that hangs must be killed"
    assert task.pool == "lake_writers", "pool='lake_writers' bounds Spark jobs, back-fills included"
    assert task._conn_id == "spark_default", "conn_id='spark_default': the one that conf/airflow.env makes"
    assert task.owner == "epsjoin", "set the owner"
    assert task.doc_md, "doc_md: one sentence on what the job does and where to look"
    assert task.outlets, "writes=[...]: name the tables, so that others can be scheduled on them"
    assert task.trigger_rule == "all_success", "what follows a skipped or failed job must not run"
    assert Path(task._spark_binary or "").is_absolute(), "spark_binary: the wrapper, by its absolute path"
    assert Path(task._spark_binary or "").is_file(), "bin/spark-submit is missing"
    script = "quality" if job in GATES else job
    assert task.application == str(REPOSITORY / "jobs" / f"{script}.py"), (
        "one script per job, of the same name"
    )


@every_dag
def test_gates__look_at_the_tables_that_are_there(dag_bag: DagBag, dataset: str) -> None:
    for job in GATES:
        task = task_of(dag_bag, dataset, job)
        assert task.application_args
        assert task.application_args[-2:] == ["--stage", job.removeprefix("quality_")]
        assert [asset.name for asset in task.outlets] == [f"{dataset}/quality"]


def test_pools__are_those_that_tasks_name(dag_bag: DagBag) -> None:
    pools = json.loads((REPOSITORY / "conf" / "pools.json").read_text())
    named = {task.pool for dag in dag_bag.dags.values() for task in dag.tasks}
    assert named == set(pools), "a task in a pool that does not exist waits for ever: see conf/pools.json"


@every_dag
def test_params__are_a_checked_form(dag_bag: DagBag, dataset: str) -> None:
    params = dag_bag.dags[dataset].params
    assert set(params) == set(RUN_PARAMS)
    for name in params:
        param = params.get_param(name)
        assert param.value is None, f"{name}: the default is the data set's, so the field starts empty"
        assert "null" in param.schema["type"], f"{name}: must be allowed to stay empty"
        assert param.schema["section"], f"{name}: give it a section of the form"
        assert param.schema["title"], f"{name}: give it a title, the name that people see"
        assert len(param.schema["description_md"]) > 30, f"{name}: say what it does, with its unit"
        assert "`" not in param.schema["description_md"], f"{name}: the form draws code over the line above"
        assert not re.search("secret|password|token|key", name), f"{name}: params are shown in logs"


def code_of(page: str) -> list[str]:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_docs__the_dag_that_sends_mail_is_one(tmp_path: Path) -> None:
    (code,) = [code for code in code_of("run.md") if "SmtpNotifier" in code]
    (tmp_path / "mail.py").write_text(code)
    bag = DagBag(tmp_path)
    assert bag.import_errors == {}
    dag = bag.dags["navaids"]
    assert isinstance(dag.on_failure_callback, SmtpNotifier)
    (deadline,) = dag.deadline
    assert deadline.callback.path == "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
    assert SmtpNotifier(**deadline.callback.kwargs).to == "team@example.org"


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_docs__ask_for_runs_that_there_are(dag_bag: DagBag, page: Path) -> None:
    """None of an interval that is not over, which every door refuses."""
    day = r"(\d{4}-\d\d-\d\d)"
    asked = re.findall(rf"airflow (?:backfill )?run (\w+) {day}(?: {day})?", page.read_text(encoding="utf-8"))
    for dataset, first, last in asked:
        if dataset in dag_bag.dags:
            timetable = dag_bag.dags[dataset].timetable
            begin, end = (DateTime.fromisoformat(f"{each}T00:00Z") for each in (first, last or first))
            assert timetable.find_interval(begin, end).start == begin


def test_docs__the_dag_of_a_new_data_set_is_one(tmp_path: Path) -> None:
    (code,) = code_of("add-a-data-set.md")
    (tmp_path / "wells.py").write_text(code)
    bag = DagBag(tmp_path)
    assert bag.import_errors == {}
    dag = bag.dags["wells"]
    assert {"ingest", "report"} <= set(dag.task_ids)
    assert f'schedule="{CRON["day"]}"' in code, "the interval that a drafted contract has"
    assert dag.doc_md.startswith("Wells, daily")
