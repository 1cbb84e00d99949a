"""The report pages inside Airflow, in one file, since all tests ask one server: over HTTP."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin
from xml.etree import ElementTree

import pytest
from airflow import plugins_manager
from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from markupsafe import escape
from sqlalchemy import event
from sqlalchemy.engine import Engine

import report_files
from dags.fake_spark import REPOSITORY
from lake import TAG
from reports import PREFIX

THEME = REPOSITORY / "plugins" / "report_theme.js"
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


def write_report(lake: Path, data_set: str, run: str, summary: dict[str, Any] | str | None = None) -> Path:
    folder = lake / data_set / "reports" / f"run={run}"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(PAGE.format(run))
    for name in report_files.MEDIA_TYPES:
        if name.endswith(".png"):
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
def stranger(airflow_app: FastAPI, lake: Path) -> TestClient:
    return TestClient(airflow_app, raise_server_exceptions=False)


@pytest.fixture
def viewer(airflow_app: FastAPI, lake: Path) -> TestClient:
    headers = {"Authorization": f"Bearer {token_of('VIEWER')}"}
    return TestClient(airflow_app, headers=headers, raise_server_exceptions=False)


def is_report(html: str, run: str) -> bool:
    """Whether this is the page that ``write_report`` wrote, with what only Airflow's pages have."""
    assert html.count("<script>") == html.count("<nav ") == 1
    bare = re.sub(r"<script>.*?</script>\n|<nav .*?</nav>\n?", "", html, flags=re.DOTALL)
    return "".join(bare.split()) == "".join(PAGE.format(run).split())


def words(html: str) -> str:
    text = re.sub(r"<(style|title|script)>.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(text.split())


def test_plugins__are_loaded_once_and_nothing_else_is() -> None:
    plugins, errors = plugins_manager._get_plugins()
    assert errors == {}
    of_ours = [
        plugin for plugin in plugins if str(REPOSITORY) in str(plugin.source) or "epsjoin" in plugin.name
    ]
    assert sorted(plugin.name for plugin in of_ours) == ["epsjoin", "epsjoin_reports"]


def test_plugin__has_an_entry_in_the_navigation_and_a_tab_on_every_dag_and_run(viewer: TestClient) -> None:
    found = viewer.get("/api/v2/plugins").json()["plugins"]
    (plugin,) = (plugin for plugin in found if plugin["name"] == "epsjoin_reports")
    assert [app["url_prefix"] for app in plugin["fastapi_apps"]] == [PREFIX]
    views = plugin["external_views"]
    assert [(view["destination"], view["name"], view["href"]) for view in views] == [
        ("nav", "Reports", "epsjoin/"),
        ("dag", "Report list", "epsjoin/dags/{DAG_ID}"),
        ("dag_run", "Report", "epsjoin/runs/{DAG_ID}/{RUN_ID}"),
    ]
    routes = {view["url_route"] for view in views}
    assert None not in routes, "without one, a page is no part of Airflow's"
    assert len(routes) == len(views)
    for view in views:
        for icon in (view["icon"], view["icon_dark_mode"]):
            kind, _, picture = icon.partition(",")
            assert kind == "data:image/svg+xml", "nothing is fetched"
            assert ElementTree.fromstring(unquote(picture)).tag.endswith("}svg")


def test_plugin__costs_other_components_no_web_framework() -> None:
    heavy = {"fastapi", "airflow.models.dagrun", "report_pages"}
    code = f"import sys, reports; print(sorted({heavy} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "plugins")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]", "import it in report_pages.py, which is read when asked"


def test_dags__bear_the_tag_that_the_pages_look_for(dag_bag: DagBag) -> None:
    assert dag_bag.dags
    assert [dag_id for dag_id, dag in dag_bag.dags.items() if TAG not in dag.tags] == []


def urls_of_all_routes() -> list[str]:
    import report_pages  # needs Airflow's settings, which conftest makes first

    values = {"dag_id": "beacons", "run_id": "later", "run": RUN, "name": "report.html"}
    routes = [route for route in report_pages.app.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(report_pages.app.routes), "a route that is not guarded, such as /openapi.json"
    return [PREFIX + route.path.format(**values) for route in routes]


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
    for data_set in ("beacons", "wells"):
        write_report(lake, data_set, RUN)
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


def test_list__has_the_newest_first(viewer: TestClient, lake: Path) -> None:
    for run in ("2023-05-01", "2023-07-01", RUN):
        write_report(lake, "beacons", run, {**SUMMARY, "run": run})
    write_report(lake, "wells", "2023-06-15", {**SUMMARY, "title": "Wells"})
    write_report(lake, "wells", "2024-01-01", {**SUMMARY, "title": "Wells, newly named"})
    html = viewer.get(f"{PREFIX}/").text
    assert re.findall(r"<h2><bdi>(.*?)</bdi></h2>|<a href=\"\./(.*?)\"", html) == [
        ("Wells, newly named", ""),
        ("", "reports/wells/2024-01-01/report.html"),
        ("", "reports/wells/2023-06-15/report.html"),
        ("Beacons of a made-up land", ""),
        ("", "reports/beacons/2023-07-01/report.html"),
        ("", "reports/beacons/2023-06-01/report.html"),
        ("", "reports/beacons/2023-05-01/report.html"),
    ]
    link = viewer.get(f"{PREFIX}/reports/wells/2023-06-15/report.html")
    assert is_report(link.text, "2023-06-15")
    assert link.headers["content-type"] == "text/html; charset=utf-8"


def test_list__shows_each_run_at_a_glance(viewer: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", RUN, SUMMARY)
    row = "2023-06-01 52.5141 km 11,020 16,532 332 60.7 % 25 of 26 expectations hold, 1 warning"
    assert row in words(viewer.get(f"{PREFIX}/").text)


@pytest.mark.parametrize(
    ("quality", "text"),
    [
        ({"held": 26, "warnings": 0, "errors": 0}, '<td class="good">26 of 26 expectations hold</td>'),
        (
            {"held": 23, "warnings": 2, "errors": 1},
            '<td class="error">23 of 26 expectations hold, 1 error, 2 warnings</td>',
        ),
        (None, '<td class="">not checked</td>'),
    ],
)
def test_list__says_how_good_the_tables_are(viewer: TestClient, lake: Path, quality: Any, text: str) -> None:
    write_report(lake, "beacons", RUN, {**SUMMARY, "quality": quality})
    assert text in viewer.get(f"{PREFIX}/").text


def test_list__shows_a_held_run_with_its_sentence(viewer: TestClient, lake: Path) -> None:
    sentence = '5 of 9 records of run 2023-05-01 are <missing>; run again with {"accept": ["lost"]}'
    write_report(lake, "beacons", "2023-05-01", SUMMARY)
    folder = lake / "beacons" / "reports" / "run=2023-06-01"
    folder.mkdir()
    (folder / "held.txt").write_text(sentence)
    answer = words(viewer.get(f"{PREFIX}/").text)
    assert f"2023-06-01 – – – – – held : {escape(sentence)} 2023-05-01 52.5141 km" in answer
    assert SUMMARY["title"] in answer, "a run that is held has no summary"
    page = viewer.get(f"{PREFIX}/reports/beacons/2023-06-01/report.html")
    assert page.status_code == 404
    assert f"no report of beacons, run 2023-06-01: the run is held. {escape(sentence)}" in words(page.text)


def test_list__shows_a_run_that_was_held_when_made_again_with_its_tables(
    viewer: TestClient, lake: Path
) -> None:
    (write_report(lake, "beacons", RUN, SUMMARY) / "held.txt").write_text("too few")
    row = "332 60.7 % 25 of 26 expectations hold, 1 warning made again and held : too few"
    assert row in words(viewer.get(f"{PREFIX}/").text)


@pytest.mark.parametrize(
    "damaged",
    [None, "", "{", "[1]", "\x00", '{"eps": "far", "quality": {"held": NaN}, "points": true, "pairs": [1]}'],
)
def test_list__needs_no_summary(viewer: TestClient, lake: Path, damaged: str | None) -> None:
    write_report(lake, "beacons", RUN, damaged)
    answer = viewer.get(f"{PREFIX}/")
    assert answer.status_code == 200
    assert "beacons data set beacons run" in words(answer.text), "without a title the name stands for it"
    assert f"{RUN} – – – – –" in words(answer.text)


def test_list__shows_a_number_of_runs_and_says_how_many_there_are(
    viewer: TestClient, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import report_pages

    monkeypatch.setattr(report_pages, "MAX_RUNS", 3)
    monkeypatch.setattr(report_pages, "MAX_RUNS_OF_EACH", 2)
    read = []
    read_summary = report_files.read_summary
    monkeypatch.setattr(report_files, "read_summary", lambda *of: (read.append(of), read_summary(*of))[1])
    runs = [f"2023-{month:02}-01" for month in (4, 3, 2, 1)]
    for run in runs:
        write_report(lake, "beacons", run, SUMMARY)
        write_report(lake, "wells", run, SUMMARY)
    html = viewer.get(f"{PREFIX}/").text
    assert "the newest 2 of 4 runs; more of them" in words(html)
    assert html.count('href="./dags/beacons"') == 1
    assert re.findall(r"reports/beacons/(.*?)/", html) == runs[:2]
    assert len(read) == 4, "each run is a file to read"
    of_one = viewer.get(f"{PREFIX}/dags/beacons").text
    assert "the newest 3 of 4 runs" in words(of_one)
    assert "more of them" not in of_one
    assert re.findall(r'href="../reports/beacons/(.*?)/report.html"', of_one) == runs[:3]
    assert "wells" not in of_one


def test_list__leaves_out_what_is_no_report(viewer: TestClient, lake: Path) -> None:
    write_report(lake, "somebody_elses", RUN, SUMMARY)
    (lake / "beacons" / "reports" / "run=latest").mkdir(parents=True)
    (lake / "beacons" / "reports" / "2023-01-01").mkdir()
    assert "There are no reports yet" in viewer.get(f"{PREFIX}/").text
    answer = viewer.get(f"{PREFIX}/dags/somebody_elses")
    assert answer.status_code == 404
    assert "somebody_elses is not the DAG of a data set" in words(answer.text)


@pytest.mark.parametrize(
    ("page", "of_what"), [("", "data sets whose DAGs you may read"), ("dags/beacons", "beacons")]
)
def test_list__says_how_to_start_a_run_where_there_is_none(
    viewer: TestClient, lake: Path, page: str, of_what: str
) -> None:
    lake.rmdir()
    text = words(viewer.get(f"{PREFIX}/{page}").text)
    assert f"There are no reports yet of {of_what}. To get one, start a run: open the DAG" in text


@pytest.mark.parametrize(
    ("run_id", "run"),
    [("scheduled__2023-06-01T00%3A00%3A00%2B00%3A00", RUN), ("east", RUN), ("later", "2024-06-01")],
)
def test_tab__shows_the_report_of_the_runs_logical_date(
    viewer: TestClient, lake: Path, run_id: str, run: str
) -> None:
    for date in ("2023-05-31", RUN, "2023-06-02", "2023-07-01", "2024-06-01"):
        write_report(lake, "beacons", date)
    answer = viewer.get(f"{PREFIX}/runs/beacons/{run_id}")
    assert answer.status_code == 200
    assert is_report(answer.text, run)
    assert "This run in Airflow" not in answer.text, "the tab is a part of it"


@pytest.mark.parametrize(
    ("run", "run_id"),
    [
        (RUN, "scheduled__2023-06-01T00%3A00%3A00%2B00%3A00"),
        ("2024-06-01", "later"),
        ("2022-06-01", None),
        ("2023-99-99", None),
    ],
)
def test_report__leads_back_to_the_lists_and_to_its_run(
    viewer: TestClient, lake: Path, run: str, run_id: str | None
) -> None:
    write_report(lake, "beacons", run)
    url = f"{PREFIX}/reports/beacons/{run}/report.html"
    links = re.findall('<a href="(.*?)"', viewer.get(url).text)
    targets = [urljoin(url, link) for link in links]
    of_run = [] if run_id is None else [f"/dags/beacons/runs/{run_id}"]
    assert targets == [f"{PREFIX}/", f"{PREFIX}/dags/beacons", *of_run]
    framed = viewer.get(url, headers={"Sec-Fetch-Dest": "iframe"}).text
    assert re.findall('<a href="(.*?)"', framed) == links[:2], "Airflow inside a frame of Airflow"


def test_tab__leads_to_the_lists(viewer: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", "2024-06-01")
    url = f"{PREFIX}/runs/beacons/later"
    links = re.findall('<a href="(.*?)"', viewer.get(url).text)
    assert [urljoin(url, link) for link in links] == [f"{PREFIX}/", f"{PREFIX}/dags/beacons"]


@pytest.mark.parametrize(
    ("dag_id", "run_id", "sentence"),
    [
        ("beacons", "later", "There is no report of beacons, run 2024-06-01, yet."),
        ("beacons", "without_date", "This run has no logical date"),
        ("beacons", "never_was", "beacons has no run never_was."),
        ("beacons", "%00", "beacons has no run"),
        ("beacons", "%3Cb%3E", "beacons has no run &lt;b&gt;."),
        ("somebody_elses", "manual", "somebody_elses is not the DAG of a data set"),
        ("Somebody.Elses", "manual", "Somebody.Elses is not the DAG of a data set"),
        ("nobodys", "manual", "nobodys is not the DAG of a data set"),
    ],
)
def test_tab__says_why_there_is_no_report(
    viewer: TestClient, lake: Path, dag_id: str, run_id: str, sentence: str
) -> None:
    write_report(lake, "beacons", RUN)
    write_report(lake, "somebody_elses", RUN)
    answer = viewer.get(f"{PREFIX}/runs/{dag_id}/{run_id}")
    assert answer.status_code == 404
    assert sentence in words(answer.text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("name", report_files.MEDIA_TYPES)
def test_files_of_a_report__are_served_as_what_they_are(viewer: TestClient, lake: Path, name: str) -> None:
    folder = write_report(lake, "beacons", RUN, SUMMARY)
    (folder / "held.txt").write_text("too few")
    answer = viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}")
    if name == "report.html":
        assert is_report(answer.text, RUN)
    else:
        assert answer.content == (folder / name).read_bytes()
    assert answer.headers["content-type"] == report_files.MEDIA_TYPES[name]


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
    ("data_set", "run", "name"),
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
def test_read__knows_no_separators(guarded: Path, data_set: str, run: str, name: str) -> None:
    outside = guarded.parent / "outside"
    data_set, name = (text.format(outside=outside) for text in (data_set, name))
    assert Path(guarded, data_set, "reports", f"run={run}", name).is_file(), "there must be something to read"
    assert report_files.read_file(data_set, run, name) is None


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
    for data_set, run in [("wells", RUN), ("beacons", "2020-01-01"), ("beacons", "2020-02-01")]:
        place = guarded / data_set / "reports" / f"run={run}" / "report.html"
        assert place.read_text() == OUTSIDE, "there must be something to read"
        answer = viewer.get(f"{PREFIX}/reports/{data_set}/{run}/report.html")
        assert answer.status_code == 404, (data_set, run)
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


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("s3://bucket/lake", "install apache-airflow-providers-amazon[s3fs]"),
        ("s3a://bucket/lake", "install apache-airflow-providers-amazon[s3fs]"),
        ("hdfs://name/lake", "install the Airflow provider whose file system has this scheme"),
        ("lake", "EPSJOIN_LAKE must be a URI such as file:///data/lake"),
        ("/data/lake", "EPSJOIN_LAKE must be a URI such as file:///data/lake"),
    ],
)
def test_a_lake_that_cannot_be_read__is_a_sentence(
    viewer: TestClient, monkeypatch: pytest.MonkeyPatch, uri: str, sentence: str
) -> None:
    monkeypatch.setenv("EPSJOIN_LAKE", uri)
    for url in urls_of_all_routes():
        answer = viewer.get(url)
        assert answer.status_code == 503, url
        assert sentence in words(answer.text), url


def test_a_lake_without_rights__is_a_sentence(
    viewer: TestClient, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(lake, "beacons", RUN)

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied", "/a/secret/path")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    for url in (f"{PREFIX}/", f"{PREFIX}/reports/beacons/{RUN}/report.html"):
        answer = viewer.get(url)
        assert answer.status_code == 503
        assert "The lake cannot be read: Permission denied." in words(answer.text)
        assert "secret" not in answer.text


def test_a_lake_in_object_storage__is_read_by_airflows_own_means(
    viewer: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import ObjectStoragePath

    monkeypatch.setattr("airflow.sdk.io.has_fs", lambda scheme: scheme == "memory")  # no provider has it
    monkeypatch.setenv("EPSJOIN_LAKE", "memory://bucket/lake")
    folder = ObjectStoragePath("memory://bucket/lake/beacons/reports/run=2023-06-01")
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(PAGE.format(RUN))
    (folder / "run.json").write_text(json.dumps(SUMMARY))
    assert is_report(viewer.get(f"{PREFIX}/reports/beacons/{RUN}/report.html").text, RUN)
    assert "11,020" in viewer.get(f"{PREFIX}/").text
    assert viewer.get(f"{PREFIX}/reports/beacons/2023-07-01/report.html").status_code == 404
    assert viewer.get(f"{PREFIX}/reports/wells/{RUN}/report.html").status_code == 404
