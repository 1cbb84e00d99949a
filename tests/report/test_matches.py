"""The page of a run whose records were matched: sentences, tables and pictures, from the findings alone."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

import report_files
from epsjoin.findings import Intake, MatchFindings
from epsjoin.report import matches
from epsjoin.report.costs import list_steps
from epsjoin.report.figures import figure
from epsjoin.report.figures.matches import draw_distances, draw_matches
from epsjoin.report.sentences import cpu

EVIL = "<script>alert('x')</script>"


def intake(dataset: str, **changed: Any) -> dict[str, Any]:
    snapshot = {"source": f"{dataset}.csv", "rows_read": 9, "rows_ok": 8, "rows_quarantined": 1}
    return {
        "dataset": dataset,
        "title": f"The {dataset}",
        "key": ("code",),
        "label": "",
        "snapshots": [snapshot],
        "unknown_columns": (),
        "quarantine_reasons": {},
        "quarantine_examples": [],
        **changed,
    }


def criterion(name: str, eps: float, unit: str, lacking: tuple[int, int]) -> dict[str, Any]:
    distances = np.random.default_rng(len(name)).uniform(0, min(eps, 50.0), 60)
    end = eps if math.isfinite(eps) else distances.max()
    counts, edges = np.histogram(distances, 40, (0, end))
    named = {"name": name, "eps": eps, "unit": unit, "lacking": lacking, "edges": edges, "counts": counts}
    return {**named, "median": float(np.median(distances)), "largest": float(distances.max())}


def record(code: str) -> dict[str, Any]:
    return {"id": 7, "key": [code], "values": ["2020-01-01 12:00:00", 1.5]}


@pytest.fixture(scope="module")
def example() -> MatchFindings:
    rng = np.random.default_rng(23)
    places = rng.uniform([150, -60], [210, 60], (60, 2))
    places[:, 0] = (places[:, 0] + 180) % 360 - 180  # on both sides of 180 degrees
    pair = {"left": record("A"), "right": record(EVIL), "distances": [3.0, 40.0, 0.25], "best_for": "both"}
    return MatchFindings(
        **intake("quakes"),
        partner=Intake(**intake("catalogue", quarantine_reasons={EVIL: 1})),
        run="2020-01-01",
        params={},
        quality=[
            {"table": "matches", "expectation": "e", "severity": "error", "success": True, "observed": ""}
        ],
        counters={"match": {"seconds": 2.0, "left_rows": 70.0}},
        seconds_before={},
        refusal="",
        how="left",
        take="all",
        criteria=[
            criterion("time", 30.0, "s", (6, 0)),
            criterion("place", 100.0, "km", (3, 0)),
            criterion("size", math.inf, "", (0, 0)),
        ],
        asked_from="2019-12-31 23:59:00",
        asked_until="2020-12-31 23:59:00",
        n_left=69,
        n_right=58,
        n_left_alone=9,
        n_right_alone=0,
        n_pairs=61,
        n_mutual=57,
        n_several=1,
        map_pairs=np.hstack([places, places + 0.25]),
        map_left=rng.uniform(-20, 20, (9, 2)),
        map_right=np.empty((0, 2)),
        is_on_map=True,
        farthest=[pair],
        several=[pair, pair],
        alone=[{"side": "left", **record(EVIL), "lacking": "time"}],
        trends=[{"run": "2020-01-01", "records": 69, "matched": 60, "pairs": 61, "unmatched": 9}],
    )


def test_cost__is_that_of_the_jobs_and_rows_of_both_data_sets(example: MatchFindings) -> None:
    read = [{"source": "a", "rows_read": 1_000}]
    jobs = ("match", "ingest_catalogue", "quality_matches", "ingest", "quality_input_catalogue")
    told = dataclasses.replace(
        example,
        snapshots=read,
        partner=dataclasses.replace(example.partner, snapshots=read),
        counters={job: {"seconds": 1.0, "cpu_seconds_jvm": 2.0} for job in jobs},
    )
    order = ["ingest", "ingest_catalogue", "quality_input_catalogue", "match", "quality_matches"]
    assert [step.job for step in list_steps(told)] == order
    assert "5,000 µs of CPU a row, for 2,000 rows read" in cpu(told)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "60 of 69 records of quakes have a match in catalogue within 30 s and 100 km."),
        ({"how": "right"}, "58 of 58 records of catalogue have a match in quakes within 30 s and 100 km."),
        (
            {"how": "outer", "n_right_alone": 4},
            "60 of 69 records of quakes and 54 of 58 records of catalogue have a match in the other data set "
            "within 30 s and 100 km.",
        ),
        ({"how": "inner"}, "61 matches within 30 s and 100 km that no match of any records is better than."),
    ],
)
def test_first_sentence__says_how_many_records_have_a_match(
    example: MatchFindings, changed: dict[str, Any], text: str
) -> None:
    assert matches.first_sentence(dataclasses.replace(example, **changed)) == text


def test_first_sentence__names_a_criterion_without_a_unit(example: MatchFindings) -> None:
    sizes = dataclasses.replace(example, criteria=[criterion("size", 0.5, "", (0, 0))])
    assert matches.first_sentence(sizes).endswith("within 0.5 in size.")


def test_list_lacking__says_what_the_criteria_before_left(example: MatchFindings) -> None:
    assert matches.list_lacking(example) == [
        ("time", [6], "no record is within 30 s"),
        ("place", [3], "no record of those within 30 s is within 100 km"),
    ]
    free = dataclasses.replace(example, criteria=[criterion("size", math.inf, "", (0, 0)), *example.criteria])
    assert matches.list_lacking(free) == matches.list_lacking(example), "any size is within it"
    both = dataclasses.replace(example, how="outer", criteria=[criterion("time", 30.0, "s", (6, 2))])
    assert matches.list_lacking(both) == [("time", [6, 2], "no record is within 30 s")]


def test_page__says_all_and_runs_nothing_of_the_data(example: MatchFindings) -> None:
    page = matches.render_matches(example)
    for text in (
        "from 2019-12-31 23:59:00 until before 2020-12-31 23:59:00, UTC",
        "no record of those within 30 s is within 100 km",
        "57 of them are mutual",
        "2020-01-01 12:00:00",
        "The catalogue",
        "1 of 1 expectations of the tables&#39; contracts hold".replace("&#39;", "'"),
    ):
        assert text in page, text
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize("how", ["left", "inner"])
def test_page__needs_nothing_to_be_there(example: MatchFindings, how: str) -> None:
    nobody = dict.fromkeys(("n_left", "n_right", "n_left_alone", "n_pairs", "n_mutual", "n_several"), 0)
    empty = {name: [] for name in ("farthest", "several", "alone", "trends", "quality", "snapshots")}
    nowhere = {"map_pairs": np.empty((0, 4)), "map_left": np.empty((0, 2)), "counters": {}}
    lacking_nothing = [
        {**row, "lacking": (0, 0), "median": None, "largest": None} for row in example.criteria
    ]
    found = dataclasses.replace(
        example,
        **nobody,
        **empty,
        **nowhere,
        criteria=lacking_nothing,
        how=how,
    )
    page = matches.render_matches(found)
    assert "There are no matches." in page
    assert ("There are no records." in page) == (how == "left")


def test_map__has_both_ends_of_a_match_side_by_side_at_180_degrees(example: MatchFindings) -> None:
    (ax,) = draw_matches(example).axes
    line = next(line for line in ax.lines if len(line.get_xdata()) == 3 * len(example.map_pairs))
    x = np.asarray(line.get_xdata()).reshape(-1, 3)
    assert np.abs(x[:, 1] - x[:, 0]).max() == pytest.approx(0.25)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["61 matches", "9 only in quakes"]


def test_distances__have_a_panel_for_each_criterion_that_ends_at_eps(example: MatchFindings) -> None:
    axes = draw_distances(example).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["time, s", "place, km", "size"]
    assert [ax.get_xlim()[1] for ax in axes] == [row["edges"][-1] for row in example.criteria]
    for ax, row in zip(axes, example.criteria, strict=True):
        assert sum(bar.get_height() for bar in ax.patches) == 60
        assert any("ε" in text.get_text() for text in ax.texts) == math.isfinite(row["eps"])


def test_map__without_a_place_says_so(example: MatchFindings) -> None:
    found = dataclasses.replace(example, is_on_map=False)
    assert "No criterion is a place" in figure.to_svg(draw_matches(found), "map", "Map")
    assert "Coastlines" in matches.render_matches(example)
    assert "Coastlines" not in matches.render_matches(found)


def test_make_matches__makes_files_that_airflow_shows(example: MatchFindings) -> None:
    first = matches.make_matches(example)
    assert first == matches.make_matches(example)
    assert set(first) == {"report.html", "matches.png", "distances.png", "run.json"}
    assert set(first) <= set(report_files.MEDIA_TYPES)
    summary = json.loads(first["run.json"])
    assert {name: summary[name] for name in ("points", "pairs", "mutual", "unmatched")} == {
        "points": 69,
        "pairs": 61,
        "mutual": 57,
        "unmatched": 9,
    }
    assert summary["quality"] == {"held": 1, "warnings": 0, "errors": 0}
