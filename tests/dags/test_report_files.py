"""Files of reports: what is served, and that no path leads out of them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.engine import Engine

import report_files
from dags.report_pages_app import (
    PAGE,
    RUN,
    SUMMARY,
    token_of,
    urls_of_all_routes,
    words,
    write_report,
)
from reports import PREFIX


@pytest.mark.parametrize("name", report_files.MEDIA_TYPES)
def test_files_of_a_report__are_served_as_what_they_are(viewer: TestClient, lake: Path, name: str) -> None:
    folder = write_report(lake, "beacons", RUN, SUMMARY)
    answer = viewer.get(f"{PREFIX}/reports/beacons/{RUN}/{name}")
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
    assert ask(airflow_app, f"{PREFIX}/reports/beacons/{RUN}/report.html") == (200, PAGE.format(RUN))
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
    assert viewer.get(f"{PREFIX}/reports/beacons/{RUN}/report.html").text == PAGE.format(RUN)
    assert "11,020" in viewer.get(f"{PREFIX}/").text
    assert viewer.get(f"{PREFIX}/reports/beacons/2023-07-01/report.html").status_code == 404
    assert viewer.get(f"{PREFIX}/reports/wells/{RUN}/report.html").status_code == 404
