"""Reports in a lake as jobs write them, and what a page says of them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.routing import APIRoute

import report_files
from reports import PREFIX

RUN = "2023-06-01"
PAGE = "<!doctype html>\n<html>\n<head>\n<title>the report of {}</title>\n</head>\n<body>\n</body>\n</html>\n"
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


def write_report(lake: Path, dataset: str, run: str, summary: dict[str, Any] | str | None = None) -> Path:
    folder = lake / dataset / "reports" / f"run={run}"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(PAGE.format(run))
    for name in report_files.MEDIA_TYPES:
        if name.endswith(".png"):
            (folder / name).write_bytes(b"\x89PNG " + name.encode())
    if summary is not None:
        (folder / "run.json").write_text(summary if isinstance(summary, str) else json.dumps(summary))
    return folder


def token_of(role: str | None) -> str:
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="somebody", role=role))


def is_report(html: str, run: str) -> bool:
    """Whether this is the page that ``write_report`` wrote, with what only Airflow's pages have."""
    assert html.count("<script>") == html.count("<nav ") == 1
    bare = re.sub(r"<script>.*?</script>\n|<nav .*?</nav>\n?", "", html, flags=re.DOTALL)
    return "".join(bare.split()) == "".join(PAGE.format(run).split())


def words(html: str) -> str:
    text = re.sub(r"<(style|title|script)>.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(text.split())


def urls_of_all_routes() -> list[str]:
    import report_pages  # needs Airflow's settings, which conftest makes first

    values = {"dag_id": "beacons", "run_id": "later", "run": RUN, "name": "report.html"}
    routes = [route for route in report_pages.app.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(report_pages.app.routes), "a route that is not guarded, such as /openapi.json"
    return [PREFIX + route.path.format(**values) for route in routes]
