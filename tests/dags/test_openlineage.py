"""OpenLineage: which tables a task names; nothing is sent until a setting says where to. Fake Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.openlineage import conf

from dags.fake_spark import REPOSITORY, FakeSpark
from dags.scripts import run


@pytest.mark.parametrize(
    ("lake", "namespace", "pairs"),
    [
        ("file:///data/lake", "file", "/data/lake/navaids/pairs"),
        ("s3://bucket/lake/", "s3://bucket", "lake/navaids/pairs"),
        ("s3://bucket", "s3://bucket", "navaids/pairs"),
    ],
)
def test_openlineage__is_told_the_tables_where_they_lie(
    monkeypatch: pytest.MonkeyPatch, lake: str, namespace: str, pairs: str
) -> None:
    monkeypatch.setenv("EPSJOIN_LAKE", lake)
    dag = DagBag(REPOSITORY / "dags" / "navaids.py").dags["navaids"]
    told = dag.task_dict["merge_join"].get_openlineage_facets_on_start()
    assert [(dataset.namespace, dataset.name) for dataset in told.outputs] == [(namespace, pairs)]
    assert [dataset.name.rpartition("/")[2] for dataset in told.inputs] == ["join_plan", "replicas"]
    (report,) = dag.task_dict["report"].get_openlineage_facets_on_start().outputs
    assert report.name.endswith("navaids/report")
    (source,) = dag.task_dict["ingest"].get_openlineage_facets_on_start().inputs
    assert (source.namespace, source.name) == ("epsjoin", "navaids/source")


def test_openlineage__is_off_by_the_projects_settings() -> None:
    assert conf.is_disabled()


def test_openlineage__sends_events_where_a_setting_says(
    fake_spark: FakeSpark, database: None, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    settings = {"AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport)}
    others = ("--mark-success-pattern", "(?!ingest$).*")  # each task that runs takes a second
    done = run("airflow", "run", "navaids", "2023-06-01", *others, AIRFLOW_VENV=sys.prefix, **settings)
    assert done.returncode == 0, done.stderr
    assert fake_spark.jobs == ["ingest"]
    told = [json.loads(line) for line in events.read_text().splitlines()]
    written = {
        out["name"].rpartition("/")[2]
        for event in told
        if event["eventType"] == "COMPLETE"
        for out in event["outputs"]
    }
    assert "points" in written
