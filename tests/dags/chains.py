"""The data sets with a DAG, the jobs of their chains, and their tasks."""

from __future__ import annotations

import pytest
from airflow.dag_processing.dagbag import DagBag

from epsjoin.pipeline import jobs_of
from spark_job import SparkJobOperator

CHAIN_OF = {"navaids": "join", "landmarks": "join", "vega_specs": "trees"}
"""Data sets whose pairs are found, with their chains."""
DATA_SETS = tuple(CHAIN_OF)
GATES = ("quality_input", "quality_results")
every_task = pytest.mark.parametrize(
    ("dataset", "job"), [(dataset, job) for dataset, chain in CHAIN_OF.items() for job in jobs_of(chain)]
)
every_dag = pytest.mark.parametrize("dataset", DATA_SETS)


def task_of(dag_bag: DagBag, dataset: str, job: str) -> SparkJobOperator:
    task = dag_bag.dags[dataset].task_dict[job]
    assert isinstance(task, SparkJobOperator), f"{job} is not a SparkJobOperator: use plugins/spark_job.py"
    return task
