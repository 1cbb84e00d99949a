"""The pages of reports in a real Airflow API server, with users of several rights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from lake import TAG
from reports import PREFIX

RUN = "2023-06-01"
PAGE = "<!doctype html><title>the report of {}</title>"
SUMMARY = {
    "dataset": "beacons",
    "title": "Beacons of a made-up land",
    "run": RUN,
    "eps": 52.5141,
    "unit": "km",
    "points": 11_020,
    "pairs": 16_532,
    "clusters": 332,
    "noise_share": 0.6067,
    "quality": {"held": 25, "warnings": 1, "errors": 0},
}
DAG_RUNS = {
    "scheduled__2023-06-01T00:00:00+00:00": datetime(2023, 6, 1, tzinfo=UTC),
    "east": datetime(2023, 6, 2, 1, tzinfo=timezone(timedelta(hours=2))),
    "later": datetime(2024, 6, 1, tzinfo=UTC),
    "without_date": None,
}
"""Runs of the DAG beacons: id and logical date."""


def write_report(lake: Path, data_set: str, run: str, summary: dict[str, Any] | str | None = None) -> Path:
    folder = lake / data_set / "reports" / f"run={run}"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(PAGE.format(run))
    for name in ("clusters.png", "pair_count.png", "cost.png"):
        (folder / name).write_bytes(b"\x89PNG " + name.encode())
    if summary is not None:
        (folder / "run.json").write_text(summary if isinstance(summary, str) else json.dumps(summary))
    return folder


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


def token_of(role: str | None) -> str:
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="somebody", role=role))


@pytest.fixture
def viewer(airflow_app: FastAPI, lake: Path) -> TestClient:
    headers = {"Authorization": f"Bearer {token_of('VIEWER')}"}
    return TestClient(airflow_app, headers=headers, raise_server_exceptions=False)


def words(html: str) -> str:
    text = re.sub(r"<(style|title)>.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(text.split())


def urls_of_all_routes() -> list[str]:
    import report_pages  # needs Airflow's settings, which conftest makes first

    values = {"dag_id": "beacons", "run_id": "later", "run": RUN, "name": "report.html"}
    routes = [route for route in report_pages.app.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(report_pages.app.routes), "a route that is not guarded, such as /openapi.json"
    return [PREFIX + route.path.format(**values) for route in routes]
