"""Who is told that a request for runs has a name that is no parameter, and of which DAGs."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dags.web.made import token_of

ASKED = {
    "dags/{}/dagRuns": {"logical_date": "2024-07-01T00:00:00Z", "conf": {"epss": 2}},
    "backfills": {
        "from_date": "2024-07-01T00:00:00Z",
        "to_date": "2024-08-01T00:00:00Z",
        "dag_run_conf": {"epss": 2},
    },
}


def post(client: TestClient, path: str, dag_id: str, role: str | None) -> tuple[int, str]:
    of_dag = {"dag_id": dag_id} if path == "backfills" else {}
    headers = {} if role is None else {"Authorization": f"Bearer {token_of(role)}"}
    answer = client.post(f"/api/v2/{path.format(dag_id)}", json=ASKED[path] | of_dag, headers=headers)
    return answer.status_code, answer.text


@pytest.mark.parametrize("path", ASKED)
def test_unknown_params__are_told_to_those_who_may_ask_for_runs(stranger: TestClient, path: str) -> None:
    for role, status in {None: 401, "VIEWER": 403, "USER": 400}.items():
        answered, text = post(stranger, path, "beacons", role)
        assert (answered, "conf has 'epss'" in text) == (status, status == 400), role


@pytest.mark.parametrize("path", ASKED)
def test_unknown_params__are_no_matter_of_ours_in_other_dags(airflow_app: FastAPI, path: str) -> None:
    client = TestClient(airflow_app, raise_server_exceptions=False)
    status, text = post(client, path, "somebody_elses", "ADMIN")
    assert status == 404, "Airflow has looked for it"
    assert "epss" not in text
