"""Airflow's API server with our pages, before a lake of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.api_fastapi.app import create_app, purge_cached_app
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dags.web.made import DAG_RUNS, token_of
from project import TAG


@pytest.fixture(scope="module")
def airflow_app(database: None) -> Iterator[FastAPI]:
    """Airflow's API server with a login, its plugins, and four runs of a DAG of ours."""
    with create_session() as session:
        session.add(DagBundleModel(name="reports"))
        session.flush()
        for dag_id in ("beacons", "wells", "somebody_elses"):
            limits = {"max_active_tasks": 1, "max_consecutive_failed_dag_runs": 0}
            session.add(
                DagModel(dag_id=dag_id, bundle_name="reports", has_task_concurrency_limits=False, **limits)
            )
            if dag_id != "somebody_elses":
                session.add(DagTag(dag_id=dag_id, name=TAG))
        session.flush()
        for dag_id, run_id, date in [
            *(("beacons", run_id, date) for run_id, date in DAG_RUNS.items()),
            ("somebody_elses", "manual", DAG_RUNS["scheduled__2023-06-01T00:00:00+00:00"]),
        ]:
            session.add(
                DagRun(
                    dag_id,
                    run_id,
                    logical_date=date,
                    run_after=datetime(2023, 7, 1, tzinfo=UTC),
                    run_type="manual",
                    state=DagRunState.SUCCESS,
                )
            )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "False")
        purge_cached_app()
        yield create_app(apps="core")
    purge_cached_app()
    with create_session() as session:
        for model in (DagRun, DagTag, DagModel):
            for row in session.query(model).filter(model.dag_id.in_(["beacons", "wells", "somebody_elses"])):
                session.delete(row)
            session.flush()
        session.delete(session.get(DagBundleModel, "reports"))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a lake"
    folder.mkdir()
    monkeypatch.setenv("EPSJOIN_LAKE", folder.as_uri())
    return folder


@pytest.fixture
def stranger(airflow_app: FastAPI, lake: Path) -> TestClient:
    return TestClient(airflow_app, raise_server_exceptions=False)


@pytest.fixture
def viewer(airflow_app: FastAPI, lake: Path) -> TestClient:
    headers = {"Authorization": f"Bearer {token_of('VIEWER')}"}
    return TestClient(airflow_app, headers=headers, raise_server_exceptions=False)
