"""Who may see the pages of reports, and that no path, link or text leads elsewhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.engine import Engine

import report_files
from dags.fake_spark import REPOSITORY
from dags.web.made import RUN, SUMMARY, token_of, urls_of_all_routes, write_report
from reports import PREFIX

THEME = REPOSITORY / "plugins" / "report_theme.js"


def test_every_route__needs_a_login(stranger: TestClient, viewer: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", RUN, SUMMARY)
    write_report(lake, "beacons", "2024-06-01", SUMMARY)
    urls = urls_of_all_routes()
    assert len(urls) == 4
    for url in urls:
        answer = stranger.get(url)
        assert answer.status_code == 401, url
        assert "beacons" not in answer.text, url
        assert viewer.get(url).status_code == 200, url
        forged = token_of("ADMIN")[:-4] + "AAAA"
        assert stranger.get(url, headers={"Authorization": f"Bearer {forged}"}).status_code == 403, url


def test_every_route__takes_the_cookie_of_airflows_pages(airflow_app: FastAPI, lake: Path) -> None:
    write_report(lake, "beacons", RUN)
    write_report(lake, "beacons", "2024-06-01")
    client = TestClient(airflow_app, cookies={"_token": token_of("VIEWER")})
    assert [client.get(url).status_code for url in urls_of_all_routes()] == [200] * 4


def test_every_route__is_closed_to_users_without_a_role(stranger: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", RUN)
    headers = {"Authorization": f"Bearer {token_of(None)}"}
    for url in urls_of_all_routes():
        assert stranger.get(url, headers=headers).status_code == 403, url


def test_reports__are_shown_to_those_who_may_read_the_runs_of_their_dag(
    viewer: TestClient, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def wells_alone(
        self: Any, *, method: str, user: Any, access_entity: Any = None, details: Any = None
    ) -> bool:
        asked.append((method, access_entity))
        return details is None or details.id in (None, "wells")

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", wells_alone)
    monkeypatch.setattr(SimpleAuthManager, "get_authorized_dag_ids", lambda *_, **__: {"wells"})
    for dataset in ("beacons", "wells"):
        write_report(lake, dataset, RUN)
    listed = viewer.get(f"{PREFIX}/")
    assert "wells" in listed.text
    assert "beacons" not in listed.text
    assert viewer.get(f"{PREFIX}/reports/wells/{RUN}/report.html").status_code == 200
    for name in report_files.MEDIA_TYPES:
        assert viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}").status_code == 403, name
        # what stands behind the question mark must not speak for another DAG
        assert viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}?dag_id=wells").status_code == 403, name
    assert viewer.get(f"{PREFIX}/runs/beacons/later").status_code == 403
    assert viewer.get(f"{PREFIX}/dags/beacons").status_code == 403
    assert viewer.get(f"{PREFIX}/dags/wells").status_code == 200
    assert set(asked) == {("GET", DagAccessEntity.RUN)}


def ask(app: FastAPI, path: str) -> tuple[int, str]:
    """Send a path as it is: clients put dots in order before they send, attackers do not."""
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"x"), (b"authorization", f"Bearer {token_of('ADMIN')}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("x", 80),
        "state": {},
    }
    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], body.decode(errors="replace")


OUTSIDE = "nobody may read this"


@pytest.fixture
def guarded(lake: Path) -> Path:
    """A lake with a report, and something to read wherever a careless path would lead."""
    folder = write_report(lake, "beacons", RUN, SUMMARY)
    outside = lake.parent / "outside"
    for place in (
        *(lake.parent / "reports", lake / "reports", outside / "reports", lake / "Beacons" / "reports"),
        *(lake / "beacons\n" / "reports", lake / "..wells" / "reports", lake / "1st" / "reports"),
    ):
        (place / f"run={RUN}").mkdir(parents=True)
        (place / f"run={RUN}" / "report.html").write_text(OUTSIDE)
    for run in ("latest", "2023-06", f"{RUN}T00", f"{RUN}\n", "..", "2023_06_01", "٢٠٢٣-٠٦-٠١"):
        (folder.parent / f"run={run}").mkdir()
        (folder.parent / f"run={run}" / "report.html").write_text(OUTSIDE)
    for name in ("secret.txt", ".env", "report.html.orig", "Report.html"):
        (folder / name).write_text(OUTSIDE)
    (lake / "beacons" / "report.html").write_text(OUTSIDE)
    (folder.parent / "report.html").write_text(OUTSIDE)
    return lake


@pytest.mark.parametrize(
    "path",
    [
        f"/reports/../{RUN}/report.html",
        f"/reports/./{RUN}/report.html",
        f"/reports/Beacons/{RUN}/report.html",
        f"/reports/beacons\n/{RUN}/report.html",
        f"/reports/..wells/{RUN}/report.html",
        f"/reports/1st/{RUN}/report.html",
        f"/reports/beacons\0/{RUN}/report.html",
        f"/reports/beacons/{RUN}\0/report.html",
        f"/reports/beacons/{RUN}/report.html\0",
        f"/reports/beacons/{RUN}/report.html\0.png",
        "/reports/beacons/latest/report.html",
        "/reports/beacons/2023-06/report.html",
        f"/reports/beacons/{RUN}T00/report.html",
        f"/reports/beacons/{RUN}\n/report.html",
        "/reports/beacons/../report.html",
        "/reports/beacons/2023_06_01/report.html",
        "/reports/beacons/٢٠٢٣-٠٦-٠١/report.html",
        f"/reports/beacons/{RUN}/..",
        f"/reports/beacons/{RUN}/../report.html",
        f"/reports/beacons/{RUN}/../../report.html",
        f"/reports/beacons/{RUN}/secret.txt",
        f"/reports/beacons/{RUN}/.env",
        f"/reports/beacons/{RUN}/report.html.orig",
        f"/reports/beacons/{RUN}/Report.html",
        f"/reports/beacons/{RUN}/",
        f"/reports/{'x' * 300}/{RUN}/report.html",
        "/reports//etc/passwd",
        "//etc/passwd",
        "/../outside",
        f"/runs/../{RUN}",
        "/runs/beacons/..",
        "/runs/beacons/\0",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path__leads_out_of_the_reports(airflow_app: FastAPI, guarded: Path, path: str) -> None:
    assert ask(airflow_app, f"{PREFIX}/reports/beacons/{RUN}/report.html")[0] == 200
    status, body = ask(airflow_app, f"{PREFIX}{path}")
    assert status == 404
    assert OUTSIDE not in body


@pytest.mark.parametrize("dots", ["%2e%2e", "..%2f..", "%2e%2e%2foutside", "..%5c", "%252e%252e", "%00"])
@pytest.mark.parametrize("place", ["/reports/{}/{run}/report.html", "/reports/beacons/{}/report.html", "/{}"])
def test_no_escaped_path__leads_out_of_the_reports(
    viewer: TestClient, guarded: Path, dots: str, place: str
) -> None:
    answer = viewer.get(PREFIX + place.format(dots, run=RUN))
    assert answer.status_code == 404
    assert OUTSIDE not in answer.text


def test_no_path__brings_to_the_database_what_some_refuse(airflow_app: FastAPI, lake: Path) -> None:
    asked: list[str] = []

    def note(*arguments: Any) -> None:
        asked.append(repr(arguments[3]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        for path in ("/runs/beacons/x\0", "/runs/beacons\0/x", f"/reports/beacons\0/{RUN}/report.html"):
            assert ask(airflow_app, PREFIX + path)[0] == 404
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert any("beacons" in parameters for parameters in asked)
    assert not [parameters for parameters in asked if "x00" in parameters], "PostgreSQL refuses it"


@pytest.mark.parametrize(
    ("dataset", "run", "name"),
    [
        ("../outside", RUN, "report.html"),
        ("beacons/../../outside", RUN, "report.html"),
        ("{outside}", RUN, "report.html"),
        ("beacons", f"{RUN}/../run=latest", "report.html"),
        ("beacons", RUN, "../report.html"),
        ("beacons", RUN, "../../report.html"),
        ("beacons", RUN, "{outside}/reports/run=2023-06-01/report.html"),
    ],
)
def test_read__knows_no_separators(guarded: Path, dataset: str, run: str, name: str) -> None:
    outside = guarded.parent / "outside"
    dataset, name = (text.format(outside=outside) for text in (dataset, name))
    assert Path(guarded, dataset, "reports", f"run={run}", name).is_file(), "there must be something to read"
    assert report_files.read_file(dataset, run, name) is None


def test_links__are_not_followed_out_of_the_reports(viewer: TestClient, guarded: Path) -> None:
    outside = guarded.parent / "outside"
    reports = guarded / "beacons" / "reports"
    (guarded / "wells").symlink_to(outside)
    (reports / "run=2020-01-01").symlink_to(outside / "reports" / f"run={RUN}")
    (reports / "run=2020-02-01").mkdir()
    (reports / "run=2020-02-01" / "report.html").symlink_to(
        outside / "reports" / f"run={RUN}" / "report.html"
    )
    (reports / "run=2020-02-01" / "run.json").symlink_to(outside / "reports" / f"run={RUN}" / "report.html")
    (reports / "run=2020-03-01").mkdir()
    (reports / "run=2020-03-01" / "report.html").symlink_to("report.html")
    for dataset, run in [("wells", RUN), ("beacons", "2020-01-01"), ("beacons", "2020-02-01")]:
        place = guarded / dataset / "reports" / f"run={run}" / "report.html"
        assert place.read_text() == OUTSIDE, "there must be something to read"
        answer = viewer.get(f"{PREFIX}/reports/{dataset}/{run}/report.html")
        assert answer.status_code == 404, (dataset, run)
        assert OUTSIDE not in answer.text
    assert viewer.get(f"{PREFIX}/reports/beacons/2020-03-01/report.html").status_code == 404, "to itself"
    listed = viewer.get(f"{PREFIX}/")
    assert listed.status_code == 200
    assert "wells" not in listed.text


def test_a_folder_or_a_pipe__is_no_report(viewer: TestClient, lake: Path) -> None:
    folder = lake / "beacons" / "reports" / f"run={RUN}"
    (folder / "report.html").mkdir(parents=True)
    os.mkfifo(folder / "cost.png")
    for name in ("report.html", "cost.png"):
        assert viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}").status_code == 404


def test_the_lake__may_itself_be_a_link(
    viewer: TestClient, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(lake, "beacons", RUN)
    link = lake.parent / "link"
    link.symlink_to(lake)
    monkeypatch.setenv("EPSJOIN_LAKE", link.as_uri() + "/")
    assert viewer.get(f"{PREFIX}/reports/beacons/{RUN}/report.html").status_code == 200


def test_pages__escape_whatever_came_from_elsewhere(viewer: TestClient, lake: Path) -> None:
    evil = "<script>alert(1)</script>"
    write_report(lake, "beacons", RUN, {**SUMMARY, "title": evil, "unit": evil})
    write_report(lake, "wells", RUN, {**SUMMARY, "title": [evil], "quality": evil})
    listed = viewer.get(f"{PREFIX}/").text
    assert listed.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3
    for html in (
        listed,
        viewer.get(f"{PREFIX}/runs/beacons/%3Cscript%3Ealert(1)").text,
        viewer.get(f"{PREFIX}/runs/%3Cscript%3Ealert(1)/x").text,
        viewer.get(f"{PREFIX}/%3Cscript%3Ealert(1)").text,
    ):
        assert html.count("<script") == 1, "the one of ours"
        assert html.count("<script>" + THEME.read_text(encoding="utf-8") + "</script>") == 1


def test_every_answer__bears_the_headers(
    viewer: TestClient, stranger: TestClient, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(lake, "beacons", RUN, SUMMARY)
    report = f"{PREFIX}/reports/beacons/{RUN}/report.html"
    answers = [viewer.get(f"{PREFIX}/"), viewer.get(report), viewer.get(f"{PREFIX}/no/such/page")]
    answers += [stranger.get(report), viewer.post(report), viewer.get(f"{PREFIX}/runs/beacons/later")]
    monkeypatch.setattr(report_files, "read_file", lambda *_: 1 / 0)
    answers.append(viewer.get(report))
    assert [answer.status_code for answer in answers] == [200, 200, 404, 401, 405, 404, 500]
    for answer in answers:
        policy = dict(
            rule.strip().split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split(";")
        )
        assert policy["default-src"] == "'none'", "nothing that is not named"
        assert set(policy) == {
            *("default-src", "script-src", "style-src", "img-src"),
            *("base-uri", "form-action", "frame-ancestors"),
        }
        digest = base64.b64encode(hashlib.sha256(THEME.read_bytes()).digest()).decode()
        assert policy["script-src"] == f"'sha256-{digest}'", "one script and no other, from nowhere"
        assert policy["style-src"] == "'unsafe-inline'"
        assert policy["img-src"] == "data:"
        assert policy["frame-ancestors"] == "'self'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_airflows_own_pages__are_left_alone(viewer: TestClient) -> None:
    assert "Content-Security-Policy" not in viewer.get("/api/v2/version").headers
