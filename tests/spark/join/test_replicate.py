"""The step replicate: the same rows whatever the files and tasks, within the budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import BudgetError, TableError
from epsjoin.lake import parquet, slices, targets, transactions
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import parse_ddl
from epsjoin.lake.targets import Target
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.join import replicate
from epsjoin.spark.join.replicas import FLUSH_BYTES
from epsjoin.spark.join.replicate import n_files
from epsjoin.spark.points import points
from epsjoin.spark.points.points import Points
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows import splits
from epsjoin.spark.rows.rows import StoredRows
from epsjoin.spark.tasks.reports import TaskReport
from tests import open_sets
from tests.spark.conftest import JobMaker
from tests.spark.real_data import JOIN_STEPS, content, job_on
from tests.tiny import RUN


def test_replicate__makes_replicas_and_keeps_to_the_budget(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of points that tasks read from files, neither this step nor the one before asks Spark for a frame."""
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:, :3], {"eps": 0.05, "n_parts": 16})
    ingest.run(job)

    def refuse(*_: object) -> Any:
        raise AssertionError("a frame was made")

    monkeypatch.setattr(points.scan, "read", refuse)
    fit_epsilon.run(job)
    counters = replicate.run(job)
    n_points = slices.count_rows(job.lake, Slice("points", RUN))
    assert counters["replicated_points"] > 100
    assert (
        n_points + counters["replicated_points"]
        <= counters["rows"]
        <= job.params.replication_budget * n_points
    )
    assert counters["rows"] == slices.count_rows(job.lake, Slice("replicas", RUN))


def test_replicate__brings_parts_together_before_it_writes_many_files(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file a part, the same rows; a budget that does not suffice is refused, lost rows are noticed."""
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:, :3], {"eps": 0.05, "n_parts": 16})
    for step in JOIN_STEPS[:2]:
        step(job)

    def rows() -> list[dict[str, Any]]:
        found = slices.read_slice(job.lake, Slice("replicas", RUN))
        return found.sort_by([("part", "ascending"), ("id", "ascending")]).to_pylist()

    counted = ("points", "rows", "replicated_points")
    many = replicate.run(job)
    by_many = rows()
    few = replicate.run(job, max_files=0)
    assert [few[name] for name in counted] == [many[name] for name in counted]
    assert rows() == by_many
    files = slices.files_of(job.lake, Slice("replicas", RUN))
    assert len(files) == len({file.partition["part"] for file in files}) == many["parts"]

    def on_disk() -> set[Path]:
        return {file for file in tmp_path.rglob("*.parquet") if "replicas" in file.parts}

    before = on_disk()
    assert before
    tight = replace(job, params=replace(job.params, cuts="regular", k=3, msl=4, replication_budget=1.0))
    for max_files in (0, 10_000):
        with pytest.raises(BudgetError, match="replication_budget"):
            replicate.run(tight, max_files=max_files)
    assert on_disk() == before, "what a refused step has written is deleted"
    read = TaskReport.of_batches

    def one_file_less(batches: Any) -> list[TaskReport]:
        first, *others = read(batches)
        return [replace(first, files=[]), *others]

    monkeypatch.setattr(TaskReport, "of_batches", one_file_less)
    with pytest.raises(TableError, match="rows were made, another number was written"):
        replicate.run(job, max_files=0)


def test_replicate__again_writes_files_of_the_same_bytes_whatever_those_of_the_points_are_called(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:, :3], {"eps": 0.05, "n_parts": 4})
    ingest.run(job)
    points = slices.read_slice(job.lake, Slice("points", RUN)).drop_columns("run")
    into, found = targets.target_of(job.lake, Slice("points", RUN)), []
    for order in ("ab", "ba"):
        names = iter(order)
        with monkeypatch.context() as patched:
            patched.setattr(Target, "new_name", lambda *_, names=names: f"{next(names)}.parquet")
            files = [into.write([points.slice(0, 2000)]), into.write([points.slice(2000)])]
        transactions.commit(job.lake, {Slice("points", RUN): files})
        fit_epsilon.run(job)
        counters = replicate.run(job)
        rows = [
            parquet.read_file(
                job.lake.location("replicas"), file, parse_ddl("id long, point binary")
            ).to_pylist()
            for file in sorted(
                slices.files_of(job.lake, Slice("replicas", RUN)), key=lambda f: f.partition["part"]
            )
        ]
        found.append((counters["bytes"], rows))
    assert found[0] == found[1]


def test_replicate__reads_one_large_file_by_many_tasks(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:, :3], {"eps": 0.05, "n_parts": 4})
    ingest.run(job)
    points = slices.read_slice(job.lake, Slice("points", RUN)).drop_columns("run")
    monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1)
    groups = [points.slice(begin, 500) for begin in range(0, len(points), 500)]
    file = targets.target_of(job.lake, Slice("points", RUN)).write(groups)
    transactions.commit(job.lake, {Slice("points", RUN): [file]})
    fit_epsilon.run(job)

    read, n_tasks = TaskReport.of_batches, []

    def counted(batches: Any) -> list[TaskReport]:
        reports = read(batches)
        n_tasks.append(sum(report.counters["points"] > 0 for report in reports))
        return reports

    monkeypatch.setattr(TaskReport, "of_batches", counted)
    replicate.run(job)
    by_one = content(job, "replicas")
    for bound in ("MIN_SPLIT_BYTES", "MAX_SPLIT_BYTES"):
        monkeypatch.setattr(splits, bound, 1 << 14)
    monkeypatch.setattr(splits, "OPEN_COST_BYTES", 1 << 10)
    monkeypatch.setattr("epsjoin.spark.points.points.MAX_BATCH_ROWS", 77)
    replicate.run(job)
    assert n_tasks[0] == 1
    assert n_tasks[1] > 3
    assert content(job, "replicas").equals(by_one)


def test_replicate__refuses_what_fit_epsilon_would_by_the_first_rows_of_its_one_sample(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:1000], {"eps": 0.3, "sample_rows": 300})
    for step in JOIN_STEPS[:2]:
        step(job)
    small = replace(job, params=replace(job.params, max_pairs=1000))
    drawn = list[int]()

    def draw_sample(*given: Any) -> Sample:
        sample = drawing(*given)
        drawn.append(len(sample[0]))
        return sample

    drawing = points.draw_sample
    monkeypatch.setattr(points, "draw_sample", draw_sample)
    said = []
    for step in (fit_epsilon.run, replicate.run):
        with pytest.raises(BudgetError, match="the largest eps that fits") as refused:
            step(small)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert drawn == [300, 800], "of the fit; of the plan, 100 for each of 8 parts"


def test_n_files__counts_the_times_that_a_task_writes() -> None:
    """A partition of a frame may be large: its task writes whenever it holds enough."""
    sample = np.random.default_rng(1).random((500, 2))
    ids, metric = np.arange(500), get_metric("euclidean")
    of_frame = Points(None, Reading(("x", "y"), 2), 500, 3)
    small, large = (plan_join(sample, ids, n, 0.01, metric, Cuts(n_parts=4)) for n in (500, 10**9))
    assert n_files(of_frame, small) == pytest.approx(small.n_parts * 3, rel=0.01)
    flushes = large.expected_rows * (2 * 8 + 8 + 8 + 4) / FLUSH_BYTES
    assert n_files(of_frame, large) == pytest.approx(large.n_parts * (3 + flushes), rel=0.01)
    assert flushes > 500
    stored = [File("points", f"{i}.parquet", 30 << 20, 1, {}) for i in range(2)]
    files = StoredRows(None, "file:///nowhere", stored, "id long, point binary", 7)
    of_table = Points(None, Reading(("x", "y"), 2), 500, files=files)
    assert n_files(of_table, small) == pytest.approx(small.n_parts * len(files.splits()), rel=0.01)
    assert len(files.splits()) > 1
