"""A join in parts while it runs: how far it is, and that it ends as soon as it will be too large."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import epsjoin.spark
import epsjoin.spark.frames as public
from epsjoin import Cuts, get_metric, self_join
from epsjoin.errors import BudgetError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import frames, merge_join, pairs_table, parts
from epsjoin.spark.join import running as running_module
from epsjoin.spark.join.pairs import to_batch
from epsjoin.spark.join.pairs_table import GrowingPairsTable
from epsjoin.spark.join.running import RunningJoin
from epsjoin.spark.tasks import progress
from epsjoin.spark.tasks.reports import TaskReport
from tests import open_sets
from tests.spark.conftest import JobMaker, submit
from tests.spark.real_data import JOIN_STEPS, job_on
from tests.tiny import RUN, has_slice

EPS = 0.11
POINTS = open_sets.read("pendigits")[:3000, :5]
Work = Callable[[Any], Iterable[pa.RecordBatch]]


@pytest.fixture
def job(make_job: JobMaker, tmp_path: Path) -> Job:
    """The steps before the join have run, and have planned 32 parts."""
    job = job_on(make_job, tmp_path, POINTS, {"eps": EPS, "n_parts": 32, "replication_budget": 50.0})
    for step in JOIN_STEPS[:3]:
        step(job)
    return job


def mislead(monkeypatch: pytest.MonkeyPatch, of: Any) -> None:
    """Let the plan that is watched expect a tenth of the pairs, as by a sample that misleads."""

    def misled(spark: SparkSession, plan: JoinPlan, *rest: Any) -> RunningJoin:
        assert plan.parts is not None
        of_parts = plan.parts._replace(pairs=plan.parts.pairs / 10)
        return RunningJoin(spark, replace(plan, parts=of_parts), *rest)

    monkeypatch.setattr(of, "RunningJoin", misled)


def slowed(work: Work, n_fast: int, seconds: float) -> Work:
    """Let all tasks but the first take so many seconds more."""

    def slow(rows: Any) -> Iterator[pa.RecordBatch]:
        from epsjoin.spark.tasks.reports import task_number

        if task_number() >= n_fast:
            time.sleep(seconds)
        yield from work(rows)

    return slow


def slow_parts(monkeypatch: pytest.MonkeyPatch, of: Any, n_fast: int = 7, seconds: float = 1.0) -> None:
    make = of.make_joiner
    monkeypatch.setattr(of, "make_joiner", lambda *given: slowed(make(*given), n_fast, seconds))


def test_merge_join__ends_with_exit_code_4_and_an_eps_that_fits_before_a_quarter_of_its_parts(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, where = len(self_join(POINTS, EPS).left), Slice("join_plan", RUN)
    plan = slices.read_row(job.lake, where) | {"expected_pairs": whole / 10}
    slices.write_slice(job.lake, where, slices.table_of(job.lake, "join_plan", [plan]))
    with monkeypatch.context() as misled:
        mislead(misled, parts)
        slow_parts(misled, merge_join, seconds=3.0)
        with pytest.raises(BudgetError) as refused:
            merge_join.run(replace(job, params=replace(job.params, max_pairs=int(0.25 * whole))))
    said = str(refused.value)
    assert refused.value.exit_code == 4
    n_done, n_parts = map(int, re.search(r"(\d+) of (\d+) parts joined", said).groups())
    assert n_done < 0.25 * n_parts, said
    assert not has_slice(job.lake, "pairs", RUN)
    fitting = float(re.search(r"the largest eps that fits is about ([\d.]+)", said)[1])
    assert 0.05 * whole < len(self_join(POINTS, fitting).left) <= 0.25 * whole
    assert submit(job, "merge_join", capsys)[0] == 0


def test_merge_join__says_percent_pairs_and_time_left(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow_parts(monkeypatch, merge_join, n_fast=4, seconds=0.1)
    monkeypatch.setattr(progress, "SECONDS", 0.3)
    counters = merge_join.run(job)
    said = capsys.readouterr().err.splitlines()
    of_parts = [line for line in said if "parts joined" in line]
    assert of_parts, said
    pairs = r"about [\d,]+ \([\d,]+ to [\d,]+\) pairs"
    form = rf"  at work: (\d+)%, (\d+) of 32 parts joined; {pairs}, about \d+ s left"
    matches = [re.fullmatch(form, line) for line in of_parts]
    assert any(matches), of_parts
    found = len(self_join(POINTS, EPS).left)
    assert counters["pairs"] == found
    for share in (50, 90):
        name = f"pairs_expected_at_{share}_percent"
        assert counters[f"{name}_low"] <= found <= counters[f"{name}_high"]
        assert counters[name] == pytest.approx(found, rel=0.3)
    monkeypatch.undo()
    again = merge_join.run(job)
    assert {name: again[name] for name in again if "expected_at" in name} == {
        name: counters[name] for name in counters if "expected_at" in name
    }


@pytest.mark.parametrize(("max_files", "n_fast"), [(10_000, 2), (0, 6)])
def test_similarity_join__that_will_be_too_large_ends_and_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_files: int, n_fast: int
) -> None:
    """By files and by a shuffle; so many parts say it, and others, asleep then, write after it."""
    whole = len(self_join(POINTS, EPS).left)
    plan_of = public.plan_pairs
    monkeypatch.setattr(public, "plan_pairs", lambda *given: plan_of(*given[:-1], 10**9))
    monkeypatch.setattr(public, "MAX_FILES", max_files)
    mislead(monkeypatch, frames)
    slow_parts(monkeypatch, frames, n_fast, 1.0)
    join_frame = frames.join_frame

    def slow_frame(*given: Any, **options: Any) -> Any:
        rows = join_frame(*given, **options)
        return replace(rows, work=slowed(rows.work, n_fast, 1.0))

    monkeypatch.setattr(frames, "join_frame", slow_frame)
    rows = [(i, *map(float, point)) for i, point in enumerate(POINTS)]
    frame = spark.createDataFrame(rows, "id long, a double, b double, c double, d double, e double")
    with pytest.raises(BudgetError, match=r"pairs are expected now, .* the largest eps that fits is about"):
        epsjoin.spark.similarity_join(
            frame,
            eps=EPS,
            columns=list("abcde"),
            cuts=Cuts(n_parts=32, replication_budget=50.0),
            max_pairs=int(0.6 * whole),
            to=str(tmp_path / "pairs"),
        )
    time.sleep(1.0)  # those that slept have written by now, if they could
    assert not list(tmp_path.rglob("*.parquet"))
    assert spark.range(3).count() == 3
    assert not spark.sparkContext.getJobTags()


class EndedBefore:
    """Reports of tasks that have ended before anybody looked."""

    def __init__(self, reports: list[TaskReport]) -> None:
        self._news = list(enumerate(reports))

    def reporting(self, work: Work) -> Work:
        return work

    def news(self) -> list[tuple[int, TaskReport]]:
        news, self._news = self._news, []
        return news


def test_look__counts_the_pairs_that_a_growing_table_had_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the pairs come first, half of the parts are done: without the first there are not too many."""
    whole, random = self_join(POINTS, EPS), np.random.default_rng(0)
    plan = plan_join(
        POINTS, np.arange(len(POINTS)), len(POINTS), EPS, get_metric("euclidean"), Cuts(n_parts=32)
    )
    place = random.integers(-plan.n_parts, plan.n_parts, len(whole.left))  # below 0: given first
    into = frames.target_at(str(tmp_path / "pairs"))

    def write(chosen: np.ndarray) -> File:
        file = into.write([to_batch(Pairs(*(column[chosen] for column in whole)))])
        assert file is not None
        return file

    table = GrowingPairsTable(into, math.inf, Pairs(*(column[place < 0] for column in whole)))
    done = [TaskReport([write(place == part)]) for part in range(plan.n_parts // 2)]
    monkeypatch.setattr(running_module, "EndedTasks", lambda _: EndedBefore(done))
    told: list[Any] = []

    def refuse(*given: Any) -> BudgetError:
        told.extend(given)
        return BudgetError("too many")

    max_pairs = int(0.6 * len(whole.left))
    watch = RunningJoin(None, plan, range(plan.n_parts), None, max_pairs, table, refuse)
    with pytest.raises(BudgetError, match="too many"):
        watch.look()
    estimate, _, fitting = told
    assert estimate.low <= len(whole.left) <= estimate.high
    assert estimate.pairs == pytest.approx(len(whole.left), rel=0.05)
    assert 0.3 * len(whole.left) < np.count_nonzero(whole.distance <= fitting) <= max_pairs


def test_growing_table__takes_new_files_when_it_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(pairs_table, "time", SimpleNamespace(monotonic=lambda: now[0]))
    into = frames.target_at(str(tmp_path / "pairs"))
    table, files = GrowingPairsTable(into, 10.0, None), list[File]()
    n_files = []
    for now[0] in (100.0, 101.0, 109.0, 110.0, 115.0, 130.0):
        file = into.write([to_batch(Pairs(np.array([0]), np.array([1]), np.array([0.5])))])
        assert file is not None
        files.append(file)
        table.grow(files)
        n_files.append(len(DeltaTable(str(tmp_path / "pairs")).file_uris()))
    assert n_files == [1, 1, 1, 4, 4, 6]


def test_fitting_eps__is_not_told_where_a_part_may_have_ended_early() -> None:
    """A part ends by all its pairs, of which those that were given first are not in its files."""
    running = RunningJoin.__new__(RunningJoin)
    running._found, running._max_pairs, running._n_first = np.array([3.0, 95.0]), 100, 6
    assert running._fitting_eps() is None
