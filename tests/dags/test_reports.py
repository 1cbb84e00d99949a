"""The report pages inside Airflow: asked over HTTP, through Airflow's own application."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from airflow import plugins_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.dag_processing.dagbag import DagBag
from fastapi import FastAPI
from fastapi.testclient import TestClient

import report_files
from dags.fake_spark import REPOSITORY
from dags.report_pages_app import (
    PAGE,
    RUN,
    SUMMARY,
    token_of,
    urls_of_all_routes,
    words,
    write_report,
)
from lake import TAG
from reports import PREFIX


@pytest.fixture
def stranger(airflow_app: FastAPI, lake: Path) -> TestClient:
    return TestClient(airflow_app, raise_server_exceptions=False)


def test_plugin__is_loaded_once_and_nothing_else_is() -> None:
    plugins, errors = plugins_manager._get_plugins()
    assert errors == {}
    of_ours = [
        plugin for plugin in plugins if str(REPOSITORY) in str(plugin.source) or "epsjoin" in plugin.name
    ]
    assert [plugin.name for plugin in of_ours] == ["epsjoin_reports"]


def test_plugin__has_an_entry_in_the_navigation_and_a_tab_on_every_run(viewer: TestClient) -> None:
    found = viewer.get("/api/v2/plugins").json()["plugins"]
    (plugin,) = (plugin for plugin in found if plugin["name"] == "epsjoin_reports")
    assert [app["url_prefix"] for app in plugin["fastapi_apps"]] == [PREFIX]
    views = {view["name"]: view for view in plugin["external_views"]}
    assert len(plugin["external_views"]) == len(views) == 2
    assert (views["Reports"]["destination"], views["Reports"]["href"]) == ("nav", "epsjoin/")
    assert views["Report"]["destination"] == "dag_run"
    assert views["Report"]["href"] == "epsjoin/runs/{DAG_ID}/{RUN_ID}"
    assert all(view["url_route"] for view in views.values()), "without one, a page is no part of Airflow's"
    for view in views.values():
        for icon in (view["icon"], view["icon_dark_mode"]):
            kind, _, picture = icon.partition(",")
            assert kind == "data:image/svg+xml", "nothing is fetched"
            assert ElementTree.fromstring(unquote(picture)).tag.endswith("}svg")  # noqa: S314 - our own


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


def test_every_route__needs_a_login(stranger: TestClient, viewer: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", RUN, SUMMARY)
    write_report(lake, "beacons", "2024-06-01", SUMMARY)
    urls = urls_of_all_routes()
    assert len(urls) == 3
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
    assert [client.get(url).status_code for url in urls_of_all_routes()] == [200, 200, 200]


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
    assert set(asked) == {("GET", DagAccessEntity.RUN)}


def test_list__has_the_newest_first(viewer: TestClient, lake: Path) -> None:
    for run in ("2023-05-01", "2023-07-01", RUN):
        write_report(lake, "beacons", run, {**SUMMARY, "run": run})
    write_report(lake, "wells", "2023-06-15", {**SUMMARY, "title": "Wells"})
    write_report(lake, "wells", "2024-01-01", {**SUMMARY, "title": "Wells, newly named"})
    html = viewer.get(f"{PREFIX}/").text
    assert re.findall(r"<h2>(.*?)</h2>|<a href=\"(.*?)\"", html) == [
        ("Wells, newly named", ""),
        ("", "reports/wells/2024-01-01/report.html"),
        ("", "reports/wells/2023-06-15/report.html"),
        ("Beacons of a made-up land", ""),
        ("", "reports/beacons/2023-07-01/report.html"),
        ("", "reports/beacons/2023-06-01/report.html"),
        ("", "reports/beacons/2023-05-01/report.html"),
    ]
    link = viewer.get(f"{PREFIX}/reports/wells/2023-06-15/report.html")
    assert link.text == PAGE.format("2023-06-15")
    assert link.headers["content-type"] == "text/html; charset=utf-8"


def test_list__shows_each_run_at_a_glance(viewer: TestClient, lake: Path) -> None:
    write_report(lake, "beacons", RUN, SUMMARY)
    row = "2023-06-01 52.51 km 11,020 16,532 332 60.7 % 25 of 26 expectations hold, 1 warning"
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

    monkeypatch.setattr(report_pages, "MAX_RUNS", 2)
    for month in (1, 2, 3):
        write_report(lake, "beacons", f"2023-{month:02}-01", SUMMARY)
    html = viewer.get(f"{PREFIX}/").text
    assert "the newest 2 of 3 runs" in words(html)
    assert re.findall(r"beacons/(.*?)/", html) == ["2023-03-01", "2023-02-01"]


def test_list__leaves_out_what_is_no_report(viewer: TestClient, lake: Path) -> None:
    write_report(lake, "somebody_elses", RUN, SUMMARY)
    (lake / "beacons" / "reports" / "run=latest").mkdir(parents=True)
    (lake / "beacons" / "reports" / "2023-01-01").mkdir()
    assert "There are no reports yet" in viewer.get(f"{PREFIX}/").text


def test_list__is_there_without_a_lake(viewer: TestClient, lake: Path) -> None:
    lake.rmdir()
    assert "There are no reports yet" in viewer.get(f"{PREFIX}/").text


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
    assert answer.text == PAGE.format(run)


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
        assert "<script" not in html


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
        assert policy["default-src"] == "'none'", "nothing that is not named: no scripts from anywhere"
        assert set(policy) == {
            "default-src", "style-src", "img-src", "base-uri", "form-action", "frame-ancestors"
        }  # fmt: skip
        assert policy["style-src"] == "'unsafe-inline'"
        assert policy["img-src"] == "data:"
        assert policy["frame-ancestors"] == "'self'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_airflows_own_pages__are_left_alone(viewer: TestClient) -> None:
    assert "Content-Security-Policy" not in viewer.get("/api/v2/version").headers
