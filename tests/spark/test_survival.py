"""A step that dies before or after any commit and is run again; steps that meet another run's changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from epsjoin import pipeline
from epsjoin.commands import show
from epsjoin.errors import ArgumentError, DataRefusedError, TableError
from epsjoin.lake import delta_log, slices, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.cluster import cluster
from epsjoin.spark.compare import compare
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job, Step
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers
from epsjoin.spark.report.gather import gather
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.tiny import coordinate, key

COMMITS: dict[Step, tuple[str, ...]] = {
    ingest.run: ("quarantine", "guard", "snapshots", "value_counts", "digests", "points"),
    fit_epsilon.run: ("epsilon_curve", "epsilon"),
    replicate.run: ("replicas", "join_plan"),
    merge_join.run: ("pairs",),
    cluster.run: ("clusters",),
    outliers.run: ("outliers",),
    compare.run: ("changes", "cluster_flows", "cluster_names", "cluster_events"),
}
"""The steps in their order, and the tables that each commits, in its order."""

OLD = {"eps": 0.2, "min_pts": 3}
NEW = {"eps": 0.1, "min_pts": 4}


class KilledError(BaseException):
    """As SIGKILL: no handler of an Exception sees it."""


class Commits:
    """Every commit to a table passes here; one of them may be the last thing that a step does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.last: tuple[int, str] | None = None
        real = DeltaTable.create_write_transaction

        def commit(log: DeltaTable, *arguments: Any, **named: Any) -> None:
            number = len(self.names)
            self.names.append(str(log.metadata().name))
            if self.last == (number, "before"):
                raise KilledError
            real(log, *arguments, **named)
            if self.last == (number, "after"):
                raise KilledError

        monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)

    def run(self, step: Step, job: Job, last: tuple[int, str] | None = None) -> list[str]:
        """Run a step up to this commit; the tables that it committed, or was about to."""
        self.names, self.last = [], last
        step(replace(job, lake=delta_log.pin_versions(job.lake, JOB_OF[step])))
        return self.names


JOB_OF = {step: pipeline.writer_of(names[0]) for step, names in COMMITS.items()}


def write_points(folder: Path, bad_rows: int = 1) -> None:
    rng = np.random.default_rng(7)
    points = np.concatenate([rng.normal(0, 0.1, (150, 2)), rng.random((150, 2))])
    lines = [f"{i},{x!r},{y!r}" for i, (x, y) in enumerate(points.tolist())]
    bad = [f"{900 + i},?,0" for i in range(bad_rows)]
    (folder / "snapshot.csv").write_text("\n".join(["id,x,y", *lines, *bad]) + "\n")


def tiny(make_job: JobMaker, folder: Path, params: Mapping[str, Any], *, bad_rows: int = 1) -> Job:
    write_points(folder, bad_rows)
    return make_job(
        [key(), coordinate("x"), coordinate("y")],
        params={**params, "n_parts": 4, "replication_budget": 9.0},
        max_quarantine_share=0.1,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """A run of all steps; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("done")
    job = tiny(partial(new_job, spark, folder), folder, NEW)
    run_steps(job, *COMMITS)
    # a reader wants the table
    transactions.commit(job.lake, {Slice("job_metrics", job.run, also=(("job", "none"),)): []})
    return job


@pytest.fixture
def job(done: Job, tmp_path: Path) -> Job:
    """The same, to be changed."""
    return copy_of(done, tmp_path / "copy")


def content(job: Job, table: str) -> list[str]:
    return sorted(map(repr, slices.read_slice(job.lake, Slice(table, job.run)).to_pylist()))


def sight(job: Job) -> list[tuple[str, str]] | None:
    """What ``epsjoin show`` says, nothing if it refuses."""
    try:
        return list(show.summarise(job.lake, job.run))
    except TableError:
        return None


@pytest.mark.long
def test_chain__killed_before_any_commit_or_after_the_last_and_run_again_gives_the_same_tables(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over slices made of another file with other parameters, never to be seen beside the new ones."""
    commits = Commits(monkeypatch)
    job = tiny(make_job, tmp_path, NEW)
    undisturbed = replace(job, lake=replace(job.lake, uri=(tmp_path / "undisturbed").as_uri()))
    for lake in (job.lake, undisturbed.lake):
        # a reader wants the table
        transactions.commit(lake, {Slice("job_metrics", job.run, also=(("job", "none"),)): []})
    for step, names in COMMITS.items():
        assert commits.run(step, undisturbed) == list(names)
        commits.run(step, tiny(make_job, tmp_path, OLD, bad_rows=3))
    tiny(make_job, tmp_path, NEW)
    old, new = sight(job), sight(undisturbed)
    assert None not in (old, new)
    assert old != new

    sights = []
    for step, names in COMMITS.items():
        for last in [*((number, "before") for number in range(len(names))), (len(names) - 1, "after")]:
            with pytest.raises(KilledError):
                commits.run(step, job, last)
            sights.append(sight(job))
        assert commits.run(step, job) == list(names)
        for table in names:
            assert content(job, table) == content(undisturbed, table), table
    assert all(seen in (None, old, new) for seen in sights), "a reader has seen two runs mixed"
    assert sights[:2] == [old] * 2, "what is not committed shows"
    assert sights[-1] == new


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, when: Callable[..., bool], do: Callable[[], Any]
) -> None:
    """Let ``do`` happen once, right after ``module.name`` was called with arguments that ``when`` accepts."""
    real, done = getattr(module, name), []

    def wrapped(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        if not done and when(*arguments):
            done.append(True)
            do()
        return found

    monkeypatch.setattr(module, name, wrapped)


def run_steps(job: Job, *steps: Step) -> None:
    for step in steps:
        step(job)


def test_merge_join__does_not_join_by_a_plan_that_is_replaced_meanwhile(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(job, params=replace(job.params, n_parts=7))
    meanwhile(
        monkeypatch, slices, "read_row", lambda *of: of[1].table == "join_plan", lambda: replicate.run(other)
    )
    with pytest.raises(TableError, match="replicas of run .* was made from other tables .* run replicate"):
        merge_join.run(job)


def test_replicate__of_points_that_are_replaced_meanwhile_is_not_joined(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, replicate, "stored_points", lambda *_: True, lambda: ingest.run(job))
    replicate.run(job)
    with pytest.raises(TableError, match="run fit_epsilon again"):
        merge_join.run(job)
    fit_epsilon.run(job)
    with pytest.raises(TableError, match="replicas of run .* was made from other tables .* run replicate"):
        merge_join.run(job)


def test_replicate__wants_an_eps_of_these_points(job: Job) -> None:
    ingest.run(job)
    with pytest.raises(
        TableError, match="epsilon of run .* was made from other tables .* run fit_epsilon again"
    ):
        replicate.run(job)


def test_merge_join__wants_the_plan_of_this_eps(job: Job) -> None:
    fit_epsilon.run(replace(job, params=replace(job.params, eps=0.15)))
    with pytest.raises(TableError, match="join_plan of run .* has eps 0.1, epsilon 0.15; run replicate"):
        merge_join.run(job)


@pytest.mark.long
def test_outliers_and_report__want_the_clusters_and_outliers_of_this_join(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(job, params=replace(job.params, min_pts=9))
    cluster.run(other)
    for read in (gather, lambda job: list(show.summarise(job.lake, job.run))):
        with pytest.raises(TableError, match="outliers of run .* was made from other .* run outliers again"):
            read(job)

    meanwhile(monkeypatch, outliers, "sample_of", lambda *_: True, lambda: cluster.run(job))
    outliers.run(job)
    with pytest.raises(TableError, match="run outliers again"):
        gather(job)

    replicate.run(replace(job, params=replace(job.params, n_parts=7)))
    merge_join.run(job)
    for step in (outliers.run, gather):
        with pytest.raises(TableError, match="clusters of run .* was made from other .* run cluster again"):
            step(job)


def test_outliers__want_the_min_pts_of_the_clusters(job: Job) -> None:
    slices.write_counters(job.lake, job.run, "cluster", {"min_pts": 9})
    with pytest.raises(ArgumentError, match="made with min_pts 9; give outliers the same"):
        outliers.run(job)


def test_fingerprints__are_of_the_points_as_they_are_now(job: Job) -> None:
    before = Fingerprints(job.lake, job.run).slice("pairs")
    run_steps(job, ingest.run, fit_epsilon.run)
    assert Fingerprints(job.lake, job.run).slice("pairs") != before


def test_report_and_gates__want_snapshot_quarantine_and_points_of_one_pass(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, whole = Commits(monkeypatch), sight(job)
    assert whole is not None
    write_points(job.project, bad_rows=3)

    def refused(reader: Callable[[], Any], table: str) -> None:
        with pytest.raises(TableError, match=f"{table} of run .* was made from other .* run ingest again"):
            reader()

    for number, table in ((1, "quarantine"), (3, "snapshots")):
        with pytest.raises(KilledError):
            commits.run(ingest.run, job, (number, "before"))
        refused(lambda: gather(job), table)
        refused(lambda: check_quality(job, "input"), table)
        assert sight(job) == (whole if table == "quarantine" else None), "show reads no quarantine"
    assert commits.run(ingest.run, job) == list(COMMITS[ingest.run])
    check_quality(job, "input")


def test_ingest__that_is_refused_leaves_what_show_and_the_report_say(job: Job) -> None:
    whole, reported = sight(job), gather(job)
    assert whole is not None
    write_points(job.project, bad_rows=200)
    with pytest.raises(DataRefusedError, match="200 of 500 rows"):
        ingest.run(job)
    now = sight(job)
    assert now is not None
    assert now[0][0] == "refused", "and that"
    assert now[1:] == whole
    again = gather(job)
    assert (again.quarantine_reasons, again.counters) == (reported.quarantine_reasons, reported.counters)


def test_report_and_gates__want_the_curve_of_this_fit(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(monkeypatch)
    other = replace(job, params=replace(job.params, seed=5))
    with pytest.raises(KilledError):
        commits.run(fit_epsilon.run, other, (0, "after"))
    for read in (gather, lambda job: check_quality(job, "results")):
        with pytest.raises(
            TableError, match="epsilon_curve of run .* made from other .* run fit_epsilon again"
        ):
            read(job)


def test_points_of_an_earlier_version__bear_no_fingerprint_and_are_read(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "new_fingerprint", lambda: "")
    ingest.run(job)
    assert Fingerprints(job.lake, job.run).slice("points") == Slice("points", job.run)
    check_quality(job, "input")


@pytest.mark.parametrize(
    ("step", "named"),
    [(ingest.run, "points|digests|guard|snapshots|quarantine"), (fit_epsilon.run, "epsilon_curve")],
)
def test_gates_and_report__refuse_what_is_replaced_while_they_read(
    done: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Step, named: str
) -> None:
    """Right after the first table of the step was read all of its tables are made again."""
    job = copy_of(done, tmp_path / "copy")
    first = {ingest.run: "snapshots", fit_epsilon.run: "epsilon"}[step]
    stage = {ingest.run: "input", fit_epsilon.run: "results"}[step]
    with monkeypatch.context() as patched:
        meanwhile(patched, slices, "log_and_files", lambda *given: given[1].table == first, lambda: step(job))
        with pytest.raises(TableError, match=f"({named}) of run .* was made from other"):
            check_quality(job, stage)
    job = copy_of(done, tmp_path / "again")
    read = {ingest.run: "read_slice", fit_epsilon.run: "read_row"}[step]
    with monkeypatch.context() as patched:
        # of epsilon: read_join reads it first, the report's own look comes second
        n_before = [0 if step is ingest.run else 1]

        def is_it(*given: Any) -> bool:
            n_before[0] -= given[1].table == first
            return given[1].table == first and n_before[0] < 0

        meanwhile(patched, slices, read, is_it, lambda: step(job))
        with pytest.raises(TableError, match=f"({named}) of run .* was made from other"):
            gather(job)
