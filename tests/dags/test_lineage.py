"""What the tasks of a DAG read and write: the tables that the pipeline says."""

from __future__ import annotations

from airflow.dag_processing.dagbag import DagBag

from dags.chains import CHAIN_OF, GATES, every_dag, every_task, task_of
from epsjoin.pipeline import ANY_JOB, TABLES, jobs_of, joined_table, tables_at, tables_of, tables_up_to


@every_task
def test_outlets__are_the_tables_that_the_pipeline_says_the_job_writes(
    dag_bag: DagBag, dataset: str, job: str
) -> None:
    """DAG files import nothing of ours, so that the plugin says again what ``pipeline.py`` declares."""
    chain = CHAIN_OF[dataset]
    own = [table for table in tables_of(job, chain) if TABLES[table].written_by != ANY_JOB]
    written = [asset.name for asset in task_of(dag_bag, dataset, job).outlets]
    assert written == [f"{dataset}/{table}" for table in own or ["report"]], "writes and pipeline.py disagree"


@every_dag
def test_assets__are_named_by_data_set_and_table_in_a_group_of_the_data_set(
    dag_bag: DagBag, dataset: str
) -> None:
    task = task_of(dag_bag, dataset, "merge_join")
    assets = [*task.inlets, *task.outlets]
    assert [(asset.name, asset.uri, asset.group) for asset in assets] == [
        (f"{dataset}/{table}", f"epsjoin://{dataset}/{table}", dataset)
        for table in ("join_plan", "replicas", joined_table(CHAIN_OF[dataset]))
    ]


def made_from(table: str) -> set[str]:
    """The tables that a table is made from, directly or by others, and itself."""
    of = [made for made in TABLES[table].made_from if made.table != table]
    return {table}.union(*(made_from(made.table) for made in of))


@every_task
def test_inlets__are_what_the_pipeline_says_the_tables_are_made_from(
    dag_bag: DagBag, dataset: str, job: str
) -> None:
    read = [asset.name.removeprefix(f"{dataset}/") for asset in task_of(dag_bag, dataset, job).inlets]
    chain = CHAIN_OF[dataset]
    jobs = jobs_of(chain)
    before = [table for earlier in jobs[: jobs.index(job)] for table in tables_of(earlier, chain)]
    own = [table for table in tables_of(job, chain) if TABLES[table].written_by != ANY_JOB]
    if job == "ingest":
        assert read == ["source"]
    elif job in GATES:
        assert read == list(tables_at(job.removeprefix("quality_"), chain))
    elif job == "report":
        assert read == [*tables_up_to("results", chain), "quality"]
    else:
        assert set(read) <= set(before), "a task reads only what an earlier one has written"
        needed = set().union(*(made_from(table) for table in own)) - set(own)
        assert needed - set().union(*map(made_from, read)) == set(), "an inlet is missing"
        assert set(read) & needed, "none of the inlets is what pipeline.py declares"


@every_dag
def test_lineage__leads_from_the_source_to_the_report_through_every_table(
    dag_bag: DagBag, dataset: str
) -> None:
    tasks = [task_of(dag_bag, dataset, job) for job in jobs_of(CHAIN_OF[dataset])]
    read = {asset.name for task in tasks for asset in task.inlets}
    written = {asset.name for task in tasks for asset in task.outlets}
    assert read - written == {f"{dataset}/source"}
    assert written - read == {f"{dataset}/report"}
    for job in ("merge_join", "cluster", "outliers"):
        inlets = {asset.name for asset in task_of(dag_bag, dataset, job).inlets}
        before = task_of(dag_bag, dataset, job).upstream_task_ids
        assert any(
            asset.name in inlets
            for upstream in before
            for asset in task_of(dag_bag, dataset, upstream).outlets
        ), f"{job} reads nothing of the task before it"
