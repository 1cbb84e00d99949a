"""Increments: whatever the order of the runs, the tables are those of runs that join all points."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import DataRefusedError, UnfitTableError
from epsjoin.lake import slices, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.params import RunParams
from epsjoin.pipeline import tables_of
from epsjoin.report.page import render
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import increment, merge_join, replicate
from epsjoin.spark.report.gather import gather
from oracles import increment as twin
from tests.spark.conftest import REPO, STEPS, JobMaker, copy_of
from tests.spark.join.months import (
    COMPARED,
    DIMENSIONS,
    EPS,
    JOINING,
    MONTHS,
    Made,
    history_job,
    in_lake,
    process,
    states,
    write_snapshot,
)
from tests.spark.real_data import JOIN_STEPS, content
from tests.spark.test_survival import COMMITS, Commits, KilledError

Row = dict[str, Any]


def orders(months: Sequence[str]) -> dict[str, list[str]]:
    shuffled = {seed: np.random.default_rng(seed).permutation(months).tolist() for seed in range(3)}
    return {
        "oldest first": [*months],
        **{f"shuffled {seed}": order for seed, order in shuffled.items()},
        "backwards": [*months][::-1],
        "each twice": [month for month in months for _ in range(2)],
    }


def test_increments__out_of_order_are_whole_runs(make_job: JobMaker, tmp_path: Path) -> None:
    """The third month by all steps; a long test has every order, and every step of all months."""
    job = history_job(make_job, tmp_path)
    whole, mine = in_lake(job, "whole", increment=0.0), in_lake(job, "mine")
    bases: dict[str, int] = {}
    for run in [MONTHS[place] for place in (1, 0, 3, 2, 3)]:
        steps = STEPS if run == MONTHS[2] else JOINING
        made, expected = process(mine, run, steps), process(whole, run, steps)
        for table, rows in made.tables.items():
            assert rows.equals(expected.tables[table]), (run, table)
        assert (expected.plan["kind"], expected.plan["base"]) == ("planned", None)
        assert made.plan["base"] == max((other for other in bases if other < run), default=None)
        generation = 0 if made.plan["base"] is None else bases[made.plan["base"]] + 1
        assert (made.plan["kind"] == "increment") == (generation > 0)
        assert made.plan["generation"] == generation
        bases[run] = generation
    assert bases == dict(zip(MONTHS, (0, 0, 1, 2), strict=False))


def no_session() -> SparkSession:
    raise AssertionError("a session is asked for")


def test_increment__joins_the_pairs_with_an_end_that_changed_and_no_others(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By tasks, and in every other month by the driver, which needs no session for that."""
    for before, now, run in zip(states(), states()[1:], MONTHS[1:], strict=False):
        for step in JOIN_STEPS[:2]:
            step(replace(job, run=run))
        is_here = run in MONTHS[1::2]
        monkeypatch.setattr(increment, "MAX_HERE_BYTES", 1 << 30 if is_here else 0)
        by = replace(job, session=no_session) if is_here else job
        made = process(by, run, dict(zip(("replicate", "merge_join"), JOIN_STEPS[2:], strict=True)))
        placed, gone = twin.placed(before, now), twin.gone(before, now)
        pairs, pairs_before = (twin.pairs_of(state, EPS, "euclidean") for state in (now, before))
        counters = made.counters["merge_join"]
        assert counters["joined_pairs"] == len(twin.touching(pairs, placed))
        assert counters["dropped_pairs"] == len(twin.touching(pairs_before, gone))
        assert counters["kept_pairs"] == len(pairs) - counters["joined_pairs"]
        assert counters["pairs"] == len(pairs) == made.tables["pairs"].num_rows
        assert (counters["placed"], counters["gone"]) == (len(placed), len(gone))
        assert (counters["distance_computations"] == 0) == (not placed)
        assert made.counters["replicate"]["rows"] == 0, "no replicas are made"
        assert (made.plan["placed"], made.plan["gone"], made.plan["why"]) == (len(placed), len(gone), None)
        for name, ids in (("placed_ids", placed), ("gone_ids", gone)):
            assert np.frombuffer(made.plan[name], "<i8").tolist() == sorted(ids)
        if not placed:
            assert counters["candidates"] == 0, "an unchanged run compares nothing"


FAULTS: dict[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    "deleted": (lambda rows: rows[1:], r"\(0, 1\) at .* is missing"),
    "added": (lambda rows: [*rows, {"left_id": 0, "right_id": 3, "distance": EPS}], r"\(0, 3\)\D.*\d"),
    "shifted": (
        lambda rows: [rows[0] | {"distance": float(np.nextafter(rows[0]["distance"], 0.0))}, *rows[1:]],
        r"\(0, 1\) is stored at .* its distance is",
    ),
}
"""Of a pair of points that stay: what becomes of the pairs of the base, and what is said of the increment."""


@pytest.mark.long
def test_verify__finds_in_an_increment_what_was_wrong_in_its_base(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pairs are copied from run to run, wrong ones, too; verify asks the points."""
    job = history_job(make_job, tmp_path)
    near = [(0.1 * number, *(0.0,) * (DIMENSIONS - 1)) for number in range(3)]
    before = dict(enumerate([*near, (9.0,) * DIMENSIONS, *((20.0 + i,) * DIMENSIONS for i in range(20))]))
    write_snapshot(tmp_path, MONTHS[0], before)
    write_snapshot(tmp_path, MONTHS[1], before | {30: near[2]})
    process(job, MONTHS[0], JOINING)
    now, request = replace(job, run=MONTHS[1]), Request(points=len(before) + 1, cells=0)
    assert process(job, MONTHS[1], JOINING).plan["kind"] == "increment"
    assert verify_tables(now, request)["points_checked"] == len(before) + 1
    where = Fingerprints(job.lake, MONTHS[0]).slice("pairs")
    pairs = slices.read_slice(job.lake, where, ["left_id", "right_id", "distance"])
    right = pairs.sort_by([("left_id", "ascending"), ("right_id", "ascending")]).to_pylist()
    for fault, (spoil, says) in FAULTS.items():
        slices.write_slice(job.lake, where, slices.table_of(job.lake, "pairs", spoil(right)))
        made = process(job, MONTHS[1], dict(zip(("replicate", "merge_join"), JOIN_STEPS[2:], strict=True)))
        assert made.plan["kind"] == "increment"
        capsys.readouterr()
        with pytest.raises(DataRefusedError):
            verify_tables(now, request)
        assert re.search(says, capsys.readouterr().out), fault


def test_increment__passes_the_gates_and_has_a_report(job: Job) -> None:
    assert process(job, MONTHS[1]).plan["kind"] == "increment"
    job = replace(job, run=MONTHS[1])
    for stage in ("input", "results"):
        assert check_quality(job, stage)["errors"] == 0
    transactions.commit(job.lake, {Slice("job_metrics", job.run, also=(("job", "none"),)): []})
    page = render(gather(job))
    assert "computed from those of an earlier run (increment on run 2023-01-01, number 1 in a row: " in page
    assert "largest part" not in page


def test_increment__shuffles_nothing_on_one_machine(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of Spark that shuffles has a stage for what is sent and one for what receives it."""
    tracker = job.spark.sparkContext.statusTracker()

    def stages(work: Callable[[], Any]) -> set[int]:
        seen = {*tracker.getJobIdsForGroup(None)}
        work()
        new = {*tracker.getJobIdsForGroup(None)} - seen
        return {len(tracker.getJobInfo(number).stageIds) for number in new}

    whole = copy_of(job, tmp_path / "whole")
    assert stages(lambda: replicate.run(whole, max_files=0)) == {1, 2}, "a shuffle is seen"
    now = replace(job, run=MONTHS[1])
    monkeypatch.setattr(increment, "MAX_HERE_BYTES", 0)
    found = {name: stages(partial(step, now)) for name, step in STEPS.items()}
    assert {name for name, of_step in found.items() if of_step <= {1}} == {*found}
    assert found["ingest"] == found["merge_join"] == {1}
    monkeypatch.undo()
    assert stages(lambda: merge_join.run(now)) == set(), "few points need no task"
    assert slices.read_row(job.lake, Slice("join_plan", MONTHS[1]))["kind"] == "increment"


@pytest.mark.long
def test_increment__whose_base_is_replaced_at_any_commit_or_that_is_killed_there_is_a_whole_run(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(monkeypatch)
    job = history_job(make_job, tmp_path)
    whole = process(in_lake(job, "whole", increment=0.0), MONTHS[1], JOINING)
    first, other = states()[0], states()[2]
    process(job, MONTHS[0], JOINING)
    now = replace(job, run=MONTHS[1])
    n_replaced, refused = 0, list[tuple[Any, str]]()
    for step in JOIN_STEPS:
        for number in range(len(commits.run(step, now))):
            with pytest.raises(KilledError):
                commits.run(step, now, (number, "after"))
            n_replaced += 1
            write_snapshot(tmp_path, MONTHS[0], other if n_replaced % 2 else first)
            commits.last = None
            process(job, MONTHS[0], JOINING)
            for later in JOIN_STEPS[JOIN_STEPS.index(step) :]:
                try:
                    commits.run(later, now)
                except UnfitTableError as error:
                    refused.append((later, str(error)))
                    commits.run(replicate.run, now)
                    commits.run(merge_join.run, now)
            assert slices.read_row(now.lake, Slice("join_plan", now.run))["kind"] == "increment"
            assert content(now, "pairs").equals(whole.tables["pairs"])
    # 6 of ingest, to which value_counts came last, 2 of fit_epsilon, 2 of replicate, 1 of merge_join
    assert n_replaced == sum(len(COMMITS[step]) for step in JOIN_STEPS) == 11
    assert refused
    assert all(step is merge_join.run and "run replicate again" in words for step, words in refused)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_increments__of_twelve_months_of_navaids_in_any_order_are_whole_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In the end every table of every run is that of whole runs, also of what tells runs apart."""
    source = load_source(REPO / "data_contracts", "navaids")
    project = tmp_path / "project"
    folder = project / "tests" / "data" / "navaids"
    shutil.copytree(REPO / "tests" / "data" / "navaids", folder)
    files = sorted(folder.glob("*.csv.gz"))
    runs = [f"{file.name[:7]}-01" for file in files]
    lake = Lake(f"{tmp_path.as_uri()}/navaids", REPO / "data_contracts", source)
    job = Job(lambda: spark, lake, runs[0], RunParams(**source.defaults), project)

    def tables(of: Job) -> dict[tuple[str, str], pa.Table]:
        """Every run's, as they are when all runs are there."""
        compared = (*COMPARED, *tables_of("compare"))
        return {
            (run, table): content(replace(of, run=run), table)
            for run in runs
            for table in compared
            if table != "job_metrics"
        }

    def made_in(order: Sequence[str], name: str, **params: Any) -> tuple[Job, dict[str, Made]]:
        of = in_lake(job, name, **params)
        return of, {run: process(of, run) for run in order}

    def differing(of: Job, expected: Mapping[tuple[str, str], pa.Table]) -> list[tuple[str, str]]:
        return [place for place, rows in tables(of).items() if not rows.equals(expected[place])]

    whole, made = made_in(runs, "whole", increment=0.0)
    assert {each.plan["kind"] for each in made.values()} == {"planned"}
    expected = tables(whole)
    for name, order in orders(runs).items():
        mine, made = made_in(order, name.replace(" ", "-"))
        assert differing(mine, expected) == [], name
        n_increments = sum(each.plan["kind"] == "increment" for each in made.values())
        assert n_increments == sum(any(other < run for other in order[: order.index(run)]) for run in runs)
        if name == "oldest first":
            assert [made[run].plan["generation"] for run in runs] == [*range(len(runs))]
            oldest_first = mine

    for replacing in (True, False):  # the sixth month is the twelfth's file for a while
        files[5].write_bytes((files[11] if replacing else REPO / files[5].relative_to(project)).read_bytes())
        process(whole, runs[5])
        for run in runs[5:7]:
            assert process(oldest_first, run).plan["kind"] == "increment"
        now = tables(whole)
        assert bool(len(now[runs[6], "changes"]) - len(expected[runs[6], "changes"])) == replacing
        assert differing(oldest_first, now) == [], f"{replacing=}"
    assert differing(whole, expected) == []
