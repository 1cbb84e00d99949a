"""The run at a glance: run.json."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import report_files
from epsjoin.findings import Findings
from epsjoin.lake import refusals
from epsjoin.report.page import make_report
from epsjoin.report.summary import summarise, to_json


def test_summarise__picks_the_numbers_of_the_run(mapless: Findings) -> None:
    assert summarise(mapless) == {
        "dataset": "beacons",
        "title": "Beacons of a made-up land",
        "run": "2023-06-04",
        "eps": 2.2134,
        "unit": "km",
        "points": 737,
        "pairs": 4321,
        "clusters": 10,
        "noise_share": 400 / 737,
        "quality": {"held": 1, "warnings": 1, "errors": 0},
    }


@pytest.mark.parametrize(
    ("broken", "held", "warnings", "errors"),
    [([], 3, 0, 0), (["error"], 2, 0, 1), (["warning", "error", "error"], 0, 1, 2)],
)
def test_summarise__counts_broken_expectations_by_severity(
    mapless: Findings, broken: list[str], held: int, warnings: int, errors: int
) -> None:
    rows = [
        {"table": "pairs", "expectation": f"e{i}", "severity": severity, "success": success, "observed": ""}
        for i, (severity, success) in enumerate(
            [(severity, False) for severity in broken] + [("error", True)] * (3 - len(broken))
        )
    ]
    found = summarise(dataclasses.replace(mapless, quality=rows))
    assert found["quality"] == {"held": held, "warnings": warnings, "errors": errors}


def test_summarise__needs_nothing_to_be_there(nothing: Findings) -> None:
    found = summarise(nothing)
    assert found["eps"] is None
    assert found["noise_share"] is None, "no share of no points"
    assert found["quality"] is None, "not checked is not the same as all held"
    assert found["points"] == found["pairs"] == found["clusters"] == 0


def test_to_json__is_the_summary_with_sorted_keys(mapless: Findings) -> None:
    text = to_json(summarise(dataclasses.replace(mapless, title="Łódź <b>")))
    found = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    assert [key for key, _ in found] == sorted(key for key, _ in found)
    assert [key for key, _ in dict(found)["quality"]] == ["errors", "held", "warnings"]
    assert dict(found)["title"] == "Łódź <b>"
    assert text.endswith(b"}\n")


def test_to_json__holds_no_time(mapless: Findings) -> None:
    slower = {job: {"seconds": 1e6} for job in mapless.counters}
    assert to_json(summarise(dataclasses.replace(mapless, counters=slower))) == to_json(summarise(mapless))


def test_to_json__is_json_where_a_number_is_none(mapless: Findings) -> None:
    odd = dataclasses.replace(mapless, epsilon={"eps": float("nan")})
    assert json.loads(to_json(summarise(odd)))["eps"] is None


def test_airflows_pages__find_what_is_written(
    mapless: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPSJOIN_LAKE", tmp_path.as_uri())
    folder = tmp_path / "beacons" / "reports" / "run=2023-06-04"
    folder.mkdir(parents=True)
    written = make_report(mapless)
    for name, content in written.items():
        (folder / name).write_bytes(content)
    of_matches = {"matches.png", "distances.png"}
    assert set(written) == set(report_files.MEDIA_TYPES) - {refusals.FILE} - of_matches
    assert report_files.list_runs("beacons") == ["2023-06-04"]
    assert report_files.read_summary("beacons", "2023-06-04") == summarise(mapless)
    for name, content in written.items():
        assert report_files.read_file("beacons", "2023-06-04", name) == content
