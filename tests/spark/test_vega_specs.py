"""The specifications of Vega-Lite through the chain, by its own contract, in any order of runs."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from epsjoin.contracts.load_source import load_source
from epsjoin.lake import delta_log, slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.params import RunParams
from epsjoin.pipeline import tables_up_to
from epsjoin.report.page import render
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.gather import gather
from tests.spark.conftest import REPO
from tests.spark.documents import STEPS_OF_TREES, run_until
from tests.spark.real_data import content

DATA = REPO / "tests" / "data" / "vega_specs"
OF_YEAR = {
    each["snapshot"][:4]: each for each in json.loads((DATA / "expected.json").read_text())["snapshots"]
}
"""What a program that shares no code with the package found in each yearly state, for eps 3 and min_pts 3."""

YEARS = tuple(OF_YEAR)
NEWEST = YEARS[-1]
ORDERS = {"backwards": YEARS[::-1], "mixed": ("2022", "2019", "2026", "2024", "2020", "2025", "2023", "2021")}
TOLD_BY_THE_ORDER = ("job_metrics", "quality", "join_plan", "replicas", "snapshots", "guard")
"""Tables that say how a run came to be; of increments, and of what the run before was then."""


def job_of_year(spark: SparkSession, folder: Path, year: str) -> Job:
    source = load_source(REPO / "data_contracts", "vega_specs").of_run(f"{year}-01-01")
    lake = Lake(folder.as_uri(), REPO / "data_contracts", source)
    return Job(lambda: spark, lake, f"{year}-01-01", RunParams(**source.defaults), REPO)


def numbers_of(job: Job) -> dict[str, Any]:
    """The run's numbers, by the words of the expected ones."""
    clusters = slices.read_slice(job.lake, Slice("clusters", job.run))
    roles = Counter(clusters["role"].to_pylist())
    edits = Counter(slices.read_slice(job.lake, Slice("pairs", job.run))["distance"].to_pylist())
    in_one = clusters.filter(pc.not_equal(clusters["role"], "noise"))
    snapshots = slices.read_slice(job.lake, Slice("snapshots", job.run))
    return {
        "files": pc.sum(snapshots["rows_read"]).as_py(),
        "trees": len(clusters),
        "pairs": sum(edits.values()),
        "pairs_by_distance": [edits[distance] for distance in (0.0, 1.0, 2.0, 3.0)],
        "clusters": len(in_one["cluster_id"].unique()),
        **{role: roles[role] for role in ("core", "border", "noise")},
    }


def expected_of(year: str) -> dict[str, Any]:
    names = ("files", "trees", "pairs", "pairs_by_distance", "clusters", "core", "border", "noise")
    return {name: OF_YEAR[year][name] for name in names}


def named_pairs(job: Job) -> set[tuple[str, str, int]]:
    points = slices.read_slice(job.lake, Slice("points", job.run), ["id", "name"]).to_pylist()
    names = {row["id"]: row["name"] for row in points}
    return {
        (*sorted((names[row["left_id"]], names[row["right_id"]])), int(row["distance"]))
        for row in slices.read_slice(job.lake, Slice("pairs", job.run)).to_pylist()
    }


def test_vega_specs__of_the_newest_state_have_the_pairs_and_clusters_of_another_program(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = job_of_year(spark, tmp_path, NEWEST)
    run_until(job, "cluster")
    assert numbers_of(job) == expected_of(NEWEST)
    with (DATA / "expected_pairs_2026-07-01.csv").open(newline="") as file:
        rows = [(row["left"], row["right"], int(row["distance"])) for row in csv.DictReader(file)]
    assert named_pairs(job) == {row for row in rows if row[2] <= 3}
    refused = slices.read_slice(job.lake, Slice("quarantine", job.run))["reason"].to_pylist()
    assert {reason.split(": '")[0] for reason in refused} == {"spec: more than 300 nodes"}


@pytest.mark.long
def test_vega_specs__of_all_years_in_any_order_leave_the_same_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All steps and gates of eight runs in two orders, which have the numbers of another program."""
    kept: dict[tuple[str, str], Any] = {}
    increments = 0
    for order, years in ORDERS.items():
        for year in years:
            job = job_of_year(spark, tmp_path / order, year)
            for name, step in STEPS_OF_TREES.items():
                step(replace(job, lake=delta_log.pin_versions(job.lake, name)))
                if name == "ingest":
                    assert check_quality(job, "input")["errors"] == 0
            assert check_quality(job, "results")["errors"] == 0
        for year in YEARS:
            job = job_of_year(spark, tmp_path / order, year)
            assert numbers_of(job) == expected_of(year), (order, year)
            increments += slices.read_row(job.lake, Slice("join_plan", job.run))["kind"] == "increment"
            for table in tables_up_to("results", "trees"):
                if table in TOLD_BY_THE_ORDER:
                    continue
                rows = content(job, table)
                assert kept.setdefault((year, table), rows).equals(rows), (order, year, table)
    assert increments > 0, "one of the orders computes candidates from those of an earlier run"
    page = render(gather(job_of_year(spark, tmp_path / "mixed", NEWEST)))
    assert "Two documents of each of the 5 largest clusters" in page
    assert "test_invalid_filter" in page
