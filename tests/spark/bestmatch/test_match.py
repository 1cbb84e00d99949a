"""The step match: the table says what other programs have found, once for each record, in whatever order."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from epsjoin.commands import clusters, show, trend
from epsjoin.errors import ArgumentError, DataRefusedError, NothingToDoError, UnfitTableError
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.slices import read_slice, table_of, write_counters, write_slice
from epsjoin.report.costs import list_steps
from epsjoin.report.publish import publish
from epsjoin.spark.bestmatch import match
from epsjoin.spark.bestmatch.sides import Sides, read_sides
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.matches import gather_matches
from tests.earthquakes import EXPECTED
from tests.spark.bestmatch.catalogues import LEFT, RIGHT, copy_contracts, job_of, match_of, moved

RUN = "2016-01-01"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """Both catalogues, whole, are matched for either side; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    custom: dict[str, dict[str, Any]] = {
        LEFT: {"where": "Type = 'Earthquake'", "match": match_of(how="outer", order=None)},
        RIGHT: {"where": ""},
    }
    contracts = copy_contracts(folder, custom, {})
    jobs = {name: job_of(spark, contracts, (folder / "lake").as_uri(), name, RUN) for name in (LEFT, RIGHT)}
    for job in jobs.values():
        ingest.run(job)
        check_quality(job, "input")
    match.run(jobs[LEFT])
    return jobs[LEFT]


def test_verify__of_matches_says_what_checks_them(whole: Job) -> None:
    with pytest.raises(ArgumentError, match=f"{LEFT} has matches; run the gate quality_matches"):
        verify_tables(whole, Request())


def rows_of(job: Job, run: str = RUN, table: str = "matches") -> pa.Table:
    return read_slice(job.lake, Slice(table, run)).drop_columns(["run"])


def test_matches__of_two_catalogues_are_those_that_other_programs_found(whole: Job) -> None:
    rows, expected = rows_of(whole), EXPECTED["all"]["float64"]
    best = Counter(rows["best_for"].to_pylist())
    pairs = rows.filter(pc.not_equal(rows["best_for"], "nobody"))
    lonely = rows.filter(pc.equal(rows["best_for"], "nobody"))
    for_left = pairs.filter(pc.not_equal(pairs["best_for"], "right"))
    found = {
        "left_rows": len(set(rows["left_id"].to_pylist()) - {None}),
        "right_rows": len(set(rows["right_id"].to_pylist()) - {None}),
        "left_rows_matched": len(set(pairs["left_id"].to_pylist())),
        "right_rows_matched": len(set(pairs["right_id"].to_pylist())),
        "left_rows_unmatched": len(lonely) - lonely["left_id"].null_count,
        "right_rows_unmatched": len(lonely) - lonely["right_id"].null_count,
        "best_for_left": best["left"] + best["both"],
        "best_for_right": best["right"] + best["both"],
        "outer": len(pairs),
        "mutual": best["both"],
        "left_rows_with_several_best": sum(n > 1 for n in Counter(for_left["left_id"].to_pylist()).values()),
    }
    assert found == {name: expected[name] for name in found}
    sums = EXPECTED["all"]["sums_over_best_for_left"]
    assert pc.sum(for_left["d_time"]).as_py() == pytest.approx(sums["seconds"], abs=0.005)
    assert pc.sum(for_left["d_place"]).as_py() == pytest.approx(sums["km"], abs=0.00005)
    assert pc.sum(for_left["d_magnitude"]).as_py() == pytest.approx(sums["magnitudes"], abs=0.005)


def test_unmatched_records__lack_what_an_as_of_join_by_time_alone_says(whole: Job) -> None:
    rows = rows_of(whole)
    lonely = rows.filter(pc.and_(pc.equal(rows["best_for"], "nobody"), pc.is_valid(rows["left_id"])))
    lacking = Counter(lonely["lacking"].to_pylist())
    assert lacking["time"] == EXPECTED["all"]["time_only_nearest"]["left_rows_unmatched"]
    assert set(lacking) == {"time", "place", "magnitude"}


def test_rows_with_a_timestamp_for_a_date__are_in_quarantine_with_the_reason(whole: Job) -> None:
    bad = rows_of(whole, table="quarantine")
    assert bad.num_rows == 3
    for row in bad.to_pylist():
        assert row["reason"].startswith("Date: not a date written as MM/dd/yyyy: '"), row["reason"]
        assert any(
            event in row["raw"] for event in EXPECTED["accidents"]["ISO timestamp in both Date and Time"]
        )


def test_gate__passes_what_the_job_has_written(whole: Job) -> None:
    counters = check_quality(whole, "matches")
    assert counters["errors"] == counters["warnings"] == 0
    assert {row["table"] for row in rows_of(whole, table="quality").to_pylist()} >= {"matches"}


def test_report__has_the_numbers_that_other_programs_found(whole: Job) -> None:
    found, expected = gather_matches(whole), EXPECTED["all"]["float64"]
    assert (found.n_left, found.n_right) == (expected["left_rows"], expected["right_rows"])
    assert found.n_left_alone == expected["left_rows_unmatched"]
    assert found.n_right_alone == expected["right_rows_unmatched"]
    assert (found.n_pairs, found.n_mutual) == (expected["outer"], expected["mutual"])
    assert found.n_several == expected["left_rows_with_several_best"]
    by_time = EXPECTED["all"]["time_only_nearest"]["left_rows_unmatched"]
    assert [sum(row["lacking"][side] for row in found.criteria) for side in (0, 1)] == [
        found.n_left_alone,
        found.n_right_alone,
    ]
    assert found.criteria[0]["lacking"][0] == by_time
    for row in found.criteria:
        assert row["counts"].sum() == found.n_pairs
        assert 0 <= row["median"] <= row["largest"] <= row["eps"] == row["edges"][-1]
    far = [sum(np.array(row["distances"]) / [30.0003, 100.003, 1.0003]) for row in found.farthest]
    assert far == sorted(far, reverse=True)
    assert len(far) == 10
    assert [row["lacking"] for row in found.alone]
    assert found.partner.dataset == RIGHT
    assert found.unknown_columns == (), "columns with another name in the file are read, too"


def test_show__of_matches_counts_them_and_trend_says_why_there_is_none(whole: Job) -> None:
    metrics = table_of(whole.lake, "job_metrics", [{"job": "match", "counter": "seconds", "value": 2.0}])
    write_slice(whole.lake, Slice("job_metrics", whole.run, also=(("job", "match"),)), metrics)
    told = dict(show.summarise(whole.lake, whole.run))
    assert told["seconds per step"] == "match 2"
    found = gather_matches(whole)
    left, right = (f"{n:,} records of" for n in (found.n_left_alone, found.n_right_alone))
    name, asked = whole.lake.source.name, whole.lake.source.match
    assert told["matches"] == f"{found.n_pairs:,} with iscgem ({left} {name} and {right} iscgem without one)"
    assert asked
    for how, others in (("left", f" (1 record of {name} without one)"), ("inner", "")):
        source = replace(whole.lake.source, match=replace(asked, how=how))
        assert show.describe_matches(source, 7, 1, 0) == f"7 with iscgem{others}", "only what was asked for"
    assert "clusters" not in told
    for read in (trend.read_runs, clusters.read_runs):
        with pytest.raises(UnfitTableError, match="is matched with iscgem, so it has no clusters; "):
            read(whole.lake)


def test_report__counts_the_jobs_that_took_in_either_data_set(whole: Job) -> None:
    for lake in (whole.lake, whole.lake.partner()):
        for job in ("ingest", "quality_input", "fit_epsilon"):  # the last as by a DAG of its own
            if lake is not whole.lake or job != "fit_epsilon":
                write_counters(lake, whole.run, job, {"seconds": 3.0})
    taken_in = ["ingest", f"ingest_{RIGHT}", "quality_input", f"quality_input_{RIGHT}"]
    found = list_steps(gather_matches(whole))
    assert [step.job for step in found if step.job not in ("match", "quality_matches")] == taken_in


@pytest.mark.parametrize("how", ["left", "right", "outer", "inner"])
def test_match__counts_the_records_of_the_sides_that_are_asked(whole: Job, how: Any) -> None:
    sides = read_sides(whole.lake, whole.run)
    asked = replace(sides.match, how=how)
    left, right = (
        replace(side, is_asked=np.full(side.ids.size, how in (name, "outer")))
        for name, side in (("left", sides.left), ("right", sides.right))
    )
    rows, counters = match.find_matches(Sides(asked, left, right), 10**9)
    pairs = rows.filter(pc.and_(rows["left_id"].is_valid(), rows["right_id"].is_valid()))
    told = []
    for side, name, n in ((LEFT, "left", sides.left.ids.size), (RIGHT, "right", sides.right.ids.size)):
        if how in (name, "outer") or (how, name) == ("inner", "left"):
            n_matched = len(pc.unique(pairs[f"{name}_id"]))
            told.append(f"{n:,} records of {side}, {n_matched:,} with a match")
    told.append(f"{len(pairs):,} matches in all")
    source = replace(whole.lake.source, match=asked)
    assert match.describe(source, counters) == "; ".join(told)


def test_report__draws_each_match_between_its_two_records(whole: Job) -> None:
    found = gather_matches(whole)
    longitude, latitude, other_longitude, other_latitude = found.map_pairs.T
    assert len(longitude) == found.n_pairs
    assert np.abs(latitude - other_latitude).max() < 1.0, "none is farther than 100 km"
    around = np.abs(longitude - other_longitude)
    east_west = np.minimum(around, 360 - around) * np.cos(np.radians(latitude))
    assert east_west.max() < 1.0
    assert around.max() > 359, "one lies on both sides of 180 degrees"
    assert np.abs(latitude).max() <= 90 < np.abs(longitude).max(), "x is the longitude"
    assert (len(found.map_left), len(found.map_right)) == (found.n_left_alone, found.n_right_alone)


WRONG = {
    "lost": "every_record_asked_for_is_there",
    "beaten": "no_best_match_of_a_left_record_is_beaten",
    "doubled": "no_left_record_has_matches_and_none",
    "wrong side": "no_right_record_has_matches_and_none",
}
"""What may be wrong with a row, and the rule that finds it."""


def break_rows(rows: pa.Table, faults: Iterable[str]) -> pa.Table:
    """The rows of matches with faults, each of rows of its own."""
    both = iter(np.flatnonzero(pc.equal(rows["best_for"], "both").to_numpy()).tolist())
    right = rows.to_pylist()
    body = [*right]
    for how in faults:
        first, other = right[next(both)], right[next(both)]
        if how == "lost":
            body.remove(first)
        elif how == "stranger":
            first["right_id"] = 1
        elif how == "beaten":
            body.append({**first, "right_id": other["right_id"], "d_time": 29.0, "d_place": 99.0})
        elif how == "doubled":
            body.append({**first, "best_for": "nobody", "right_id": None, "lacking": "time"})
            body[-1] |= dict.fromkeys(("d_time", "d_place", "d_magnitude"))
        elif how == "wrong side":
            alone = next(row for row in body if row["right_id"] is None)
            body.append({**alone, "left_id": None, "right_id": first["right_id"]})
    return pa.Table.from_pylist(body, rows.schema)


@pytest.mark.parametrize(
    ("faults", "rules"),
    [
        # the row that is beaten is the best of neither of its records
        (WRONG, {*WRONG.values(), "no_best_match_of_a_right_record_is_beaten"}),
        (["stranger"], {"every_record_is_one_of_the_points", WRONG["lost"]}),  # its record is not there
    ],
    ids=["rows of records", "a stranger"],
)
def test_gate__finds_each_wrong_row_by_its_rule(
    whole: Job, tmp_path: Path, faults: Iterable[str], rules: set[str]
) -> None:
    shutil.copytree(whole.project, tmp_path / "copy")
    job = moved(whole, (tmp_path / "copy" / "lake").as_uri())
    where = Fingerprints(job.lake, RUN).slice("matches")
    write_slice(job.lake, where, break_rows(rows_of(job), faults))
    with pytest.raises(DataRefusedError):
        check_quality(job, "matches")
    broken = {row["expectation"] for row in rows_of(job, table="quality").to_pylist() if not row["success"]}
    assert broken - {"nothing_was_quarantined"} == rules


def test_run_of_a_year__takes_its_own_records_and_one_without_any_is_skipped(
    tmp_path: Path, spark: SparkSession
) -> None:
    contracts = copy_contracts(tmp_path, {}, {})
    uri = (tmp_path / "lake").as_uri()
    for run in ("1973-01-01", "1974-01-01"):
        for name in (RIGHT, LEFT):
            ingest.run(job_of(spark, contracts, uri, name, run))
        match.run(job_of(spark, contracts, uri, LEFT, run))
        check_quality(job_of(spark, contracts, uri, LEFT, run), "matches")
    job = job_of(spark, contracts, uri, LEFT, "1973-01-01")
    days = rows_of(job, "1973-01-01", "points")["Date"]
    assert (pc.min(days).as_py().year, pc.max(days).as_py().year) == (1973, 1973)
    matched = [row for row in rows_of(job, "1973-01-01").to_pylist() if row["best_for"] != "nobody"]
    assert len(matched) > 0.5 * len(days)
    check_report(job_of(spark, contracts, uri, LEFT, "1974-01-01"))
    with pytest.raises(NothingToDoError, match="no record of iscgem is of the interval of run 2013-01-01"):
        ingest.run(job_of(spark, contracts, uri, RIGHT, "2013-01-01"))


def check_report(job: Job) -> None:
    """The page of a run that follows another one is about the records of its slice, and names both runs."""
    found, rows = gather_matches(job), rows_of(job, job.run)
    assert (found.asked_from, found.asked_until) == ("1973-12-31 23:58:59.999", "1974-12-31 23:58:59.999")
    assert found.n_left == len(set(rows["left_id"].to_pylist()))
    assert [row["run"] for row in found.trends] == ["1973-01-01", "1974-01-01"]
    publish(job)
    folder = Path(job.lake.location("reports").removeprefix("file://")) / f"run={job.run}"
    assert {file.name for file in folder.iterdir()} == {
        "report.html",
        "matches.png",
        "distances.png",
        "run.json",
    }
    assert f"of {found.n_left} records of earthquakes have a match in iscgem" in (
        folder / "report.html"
    ).read_text(encoding="utf-8")
