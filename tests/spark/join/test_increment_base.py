"""Where a run has no base to be an increment on, it is joined as a whole, and the plan says why."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epsjoin.errors import UnfitTableError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import base, merge_join, replicate
from epsjoin.spark.join.base import Increment, find_increment
from oracles import increment as twin
from tests.spark.conftest import JobMaker, copy_of
from tests.spark.join.months import (
    DIMENSIONS,
    EPS,
    JOINING,
    MONTHS,
    NAMES,
    in_lake,
    process,
    states,
    write_snapshot,
)
from tests.spark.real_data import JOIN_STEPS, content
from tests.tiny import coordinate

WHOLE: dict[str, tuple[dict[str, Any], str]] = {
    "switched off": ({"increment": 0.0}, "increments are switched off"),
    "too much": (
        {"increment": 0.01},
        r"3\.\d+% of the points are new or moved since run 2023-01-01, 1% may be",
    ),
    "generations": ({"most_generations": 0}, "run 2023-01-01 is increment number 0 in a row"),
    "eps": ({"eps": 0.25}, r"run 2023-01-01 has eps 0.5, this one 0.25"),
    "regular": ({"cuts": "regular"}, "the cuts are regular"),
    "many pairs": ({"max_pairs": 1}, "pairs are expected, more than max_pairs"),
}


@pytest.fixture(scope="module")
def read(first_month: Job, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The second month is read and has its eps, no plan yet. Not to be changed."""
    job = replace(copy_of(first_month, tmp_path_factory.mktemp("read") / "copy"), run=MONTHS[1])
    for step in JOIN_STEPS[:2]:
        step(job)
    return job


@pytest.mark.parametrize("case", WHOLE)
def test_replicate__joins_all_where_an_increment_is_not_allowed_and_says_why(read: Job, case: str) -> None:
    params, why = WHOLE[case]
    found = find_increment(
        Fingerprints(read.lake, read.run), replace(read.params, **params), params.get("eps", EPS)
    )
    assert isinstance(found, str)
    assert re.search(why, found), found


def test_replicate__joins_all_where_the_base_is_not_whole(job: Job) -> None:
    first = slices.read_row(job.lake, Slice("join_plan", MONTHS[0]))
    assert first["why"] == "there is no earlier run with pairs"
    ingest.run(replace(job, run=MONTHS[0]))  # its pairs are of other points now
    made = process(job, MONTHS[1], JOINING)
    assert made.plan["kind"] == "planned"
    assert "run 2023-01-01 cannot be its base" in made.plan["why"]
    assert "run fit_epsilon again" in made.plan["why"]


def test_replicate__joins_all_in_another_metric(job: Job) -> None:
    source = replace(job.lake.source, metric="manhattan")
    made = process(replace(job, lake=replace(job.lake, source=source)), MONTHS[1], JOINING)
    assert made.plan["why"] == "run 2023-01-01 has the metric euclidean, this one manhattan"


def test_replicate__joins_all_where_a_point_has_no_digest(job: Job) -> None:
    """Of the base or of the run itself: what has no digest cannot be told from what has not changed."""
    process(job, MONTHS[1], JOINING)
    inputs = Fingerprints(job.lake, MONTHS[1])
    assert isinstance(find_increment(inputs, job.params, EPS), Increment)
    for run in MONTHS[:2]:
        where = Fingerprints(job.lake, run).slice("digests")
        rows = slices.read_slice(job.lake, where, ["id", "record", "place"])
        slices.write_slice(job.lake, where, rows.slice(1))
        found = find_increment(Fingerprints(job.lake, MONTHS[1]), job.params, EPS)
        assert found == "run 2023-01-01 or this one has not a digest for each point"
        slices.write_slice(job.lake, where, rows)


def test_replicate__joins_all_where_the_placed_points_do_not_fit_a_worker(
    read: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a worker's rows may be placed points, and not one more."""
    n_placed = len(twin.placed(*states()[:2]))
    asked = []

    def rows_that_fit(memory_mb: int, dimensions: int) -> int:
        asked.append((memory_mb, dimensions))
        return fit

    monkeypatch.setattr(base, "rows_that_fit", rows_that_fit)
    inputs = Fingerprints(read.lake, read.run)
    fit = 2 * n_placed
    assert isinstance(find_increment(inputs, read.params, EPS), Increment)
    fit -= 1
    assert find_increment(inputs, read.params, EPS) == (
        f"{n_placed} points new or moved since run 2023-01-01 do not fit a worker of 1,024 MB "
        "(worker_memory_mb)"
    )
    assert asked == [(1024, DIMENSIONS)] * 2


def test_replicate__joins_all_of_a_source_without_a_key(make_job: JobMaker, tmp_path: Path) -> None:
    for run, state in zip(MONTHS[:2], states()[:2], strict=True):
        write_snapshot(tmp_path, run, state)
    columns = [{"name": "note", "logicalType": "string"}, *map(coordinate, NAMES)]
    job = make_job(columns, path="{date}.csv", interval="month", params={"eps": EPS})
    process(job, MONTHS[0], JOINING)
    assert "the source has no key" in process(job, MONTHS[1], JOINING).plan["why"]


def test_merge_join__of_an_increment_does_not_take_a_base_that_was_replaced(job: Job) -> None:
    now = replace(job, run=MONTHS[1])
    for step in JOIN_STEPS[:3]:
        step(now)
    write_snapshot(job.project, MONTHS[0], states()[2])
    process(job, MONTHS[0], JOINING)
    with pytest.raises(
        UnfitTableError, match=r"run 2023-01-01, which has changed since .* run replicate again"
    ):
        merge_join.run(now)
    replicate.run(now)
    for digests in (job.project / "lake").rglob("digests/run=*"):
        shutil.rmtree(digests)  # the plan says which points have changed
    merge_join.run(now)
    whole = process(in_lake(job, "whole", increment=0.0), MONTHS[1], JOINING)
    assert content(now, "pairs").equals(whole.tables["pairs"])
