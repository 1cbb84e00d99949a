"""How somebody asks for runs of navaids: back-fills at the shell and by REST."""

from __future__ import annotations

from typing import Any

from airflow.cli.cli_parser import get_parser
from fastapi.testclient import TestClient

MONTHS = ["2022-01-01", "2022-02-01", "2022-03-01"]


def by_cli(*options: str, first: str = MONTHS[0], last: str = MONTHS[-1]) -> None:
    command = ["backfill", "create", "--dag-id", "navaids", "--from-date", first, "--to-date", last, *options]
    arguments = get_parser().parse_args(command)
    arguments.func(arguments)


def by_rest(rest: TestClient, **more: Any) -> int:
    body: dict[str, Any] = {
        "dag_id": "navaids",
        "from_date": f"{MONTHS[0]}T00:00:00Z",
        "to_date": f"{MONTHS[-1]}T00:00:00Z",
    }
    return rest.post("/api/v2/backfills", json=body | more).status_code
