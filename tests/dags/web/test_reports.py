"""The pages of reports inside Airflow, over HTTP: where they are, what they show, what if there is none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin
from xml.etree import ElementTree

import pytest
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
from fastapi.testclient import TestClient
from markupsafe import escape

import report_files
from dags.fake_spark import REPOSITORY
from dags.web.made import PAGE, RUN, SUMMARY, is_report, urls_of_all_routes, words, write_report
from project import TAG
from reports import PREFIX


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
    (folder / "refused.txt").write_text(sentence)
    answer = words(viewer.get(f"{PREFIX}/").text)
    assert f"2023-06-01 – – – – – refused : {escape(sentence)} 2023-05-01 52.5141 km" in answer
    assert SUMMARY["title"] in answer, "a run that is held has no summary"
    page = viewer.get(f"{PREFIX}/reports/beacons/2023-06-01/report.html")
    assert page.status_code == 404
    assert f"no report of beacons, run 2023-06-01: its snapshot was refused. {escape(sentence)}" in words(
        page.text
    )


def test_list__shows_a_run_that_was_held_when_made_again_with_its_tables(
    viewer: TestClient, lake: Path
) -> None:
    (write_report(lake, "beacons", RUN, SUMMARY) / "refused.txt").write_text("too few")
    row = "332 60.7 % 25 of 26 expectations hold, 1 warning made again and refused : too few"
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
        ("beacons", "later", "There is no report of beacons, run 2024-06-01. The run"),
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
    (folder / "refused.txt").write_text("too few")
    answer = viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}")
    if name == "report.html":
        assert is_report(answer.text, RUN)
    else:
        assert answer.content == (folder / name).read_bytes()
    assert answer.headers["content-type"] == report_files.MEDIA_TYPES[name]


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("s3://bucket/lake", "install apache-airflow-providers-amazon[s3fs]"),
        ("s3a://bucket/lake", "install apache-airflow-providers-amazon[s3fs]"),
        ("hdfs://name/lake", "install the Airflow provider whose file system has this scheme"),
        ("lake", "EPSJOIN_LAKE must be a URI such as file:///data/lake"),
        ("/data/lake", "EPSJOIN_LAKE must be a URI such as file:///data/lake"),
        ("file://data/lake", "EPSJOIN_LAKE: a file URI has three slashes, file:///..., not "),
        ("file:///", "EPSJOIN_LAKE must be a URI such as file:///data/lake"),
        ("s3a://key:secret@bucket/lake", "EPSJOIN_LAKE holds a password, which logs would show"),
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
