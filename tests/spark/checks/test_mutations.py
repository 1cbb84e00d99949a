"""Every way in which tables may be wrong is seen, by the gate or by ``verify``: see ``mutations/``."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from epsjoin.errors import DataRefusedError
from epsjoin.lake import slices, targets, transactions, uris
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.spark.checks import ends, scores
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.checks.verify import verify_tables
from epsjoin.spark.compare import compare
from epsjoin.spark.job.job import Job
from tests.spark.checks.mutations import MUTATIONS
from tests.spark.checks.mutations.clusters import two_clusters_merged
from tests.spark.checks.mutations.outliers import a_lof_off_by_one_bit
from tests.spark.checks.mutations.tables import ALL_POINTS, ONE_POINT, Change, Tables
from tests.spark.checks.right_tables import EPS, MIN_PTS, grid_points
from tests.spark.conftest import STEPS, JobMaker, copy_of, new_job
from tests.tiny import RUN, coordinate, key

CHANGED = "pairs", "clusters", "outliers"
IN_SHORT = (two_clusters_merged, a_lof_off_by_one_bit)
"""Those that ``make test`` takes, too."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """A whole run; not to be changed."""
    place = tmp_path_factory.mktemp("done")
    columns = [key(), coordinate("f0"), coordinate("f1")]
    job = new_job(spark, place, columns, params={"eps": EPS["euclidean"], "min_pts": MIN_PTS})
    return run_on(job, grid_points(), ("f0", "f1"))


def run_on(job: Job, points: NDArray[np.float64], names: tuple[str, str]) -> Job:
    """Run the chain on points."""
    lines = [f"id,{','.join(names)}", *(f"{i},{x!r},{y!r}" for i, (x, y) in enumerate(points.tolist()))]
    (job.project / "snapshot.csv").write_text("\n".join(lines) + "\n")
    for step in STEPS.values():
        step(job)
    return job


def write_as_a_job_does(job: Job, name: str, rows: pa.Table) -> None:
    """Replace a slice, wrong rows or not, with a log and names of files that fit."""
    where = Fingerprints(job.lake, RUN).slice(name)
    into = replace(targets.target_of(job.lake, where), constraints=())
    file = into.write([rows.drop_columns(["run"])])
    transactions.commit(job.lake, {where: [file] if file is not None else []})


def change(job: Job, mutate: Change) -> None:
    read = {name: slices.read_slice(job.lake, Slice(name, RUN)) for name in CHANGED}
    tables = Tables(*(read[name].to_pylist() for name in CHANGED))
    mutate(tables)
    for name in CHANGED:
        write_as_a_job_does(job, name, pa.Table.from_pylist(getattr(tables, name), read[name].schema))


def broken_rules(job: Job) -> list[str]:
    """The rules of the gate that do not hold, without warnings; the step that follows has run by then."""
    compare.run(job)
    try:
        check_quality(job, "results")
    except DataRefusedError:
        rows = slices.read_slice(job.lake, Slice("quality", RUN)).to_pylist()
        return [row["expectation"] for row in rows if not row["success"] and row["severity"] == "error"]
    return []


def test_tables_that_are_written_anew__pass_gate_and_verify(done: Job, tmp_path: Path) -> None:
    job = copy_of(done, tmp_path / "copy")
    change(job, lambda _: None)
    assert broken_rules(job) == []
    counters = verify_tables(job, ALL_POINTS)
    assert counters["points_checked"] == counters["scores_checked"] == 700


@pytest.mark.parametrize(
    "mutate",
    [
        pytest.param(mutate, id=mutate.__name__, marks=() if mutate in IN_SHORT else pytest.mark.long)
        for mutate in MUTATIONS
    ],
)
def test_mutation__is_seen_by_verify_and_by_the_rules_that_are_named(
    done: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], mutate: Change
) -> None:
    seen = MUTATIONS[mutate]
    job = copy_of(done, tmp_path / "copy")
    change(job, mutate)
    capsys.readouterr()
    with pytest.raises(DataRefusedError):
        verify_tables(job, seen.request)
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert any(re.match(seen.said, line) for line in said), said
    assert set(seen.rules) == set(broken_rules(job))  # by the gate alone, many pass


def test_verify__says_which_clusters_are_too_large_to_be_searched(
    done: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = copy_of(done, tmp_path / "copy")
    change(job, two_clusters_merged)
    labels = slices.read_slice(job.lake, Slice("clusters", RUN)).to_pylist()
    of_cores = Counter(row["cluster_id"] for row in labels if row["role"] == "core")
    most = max(of_cores.values()) - 1
    monkeypatch.setattr(ends, "MAX_CHAINED_CORES", most)
    verify_tables(job, ONE_POINT)
    said = f"1 cluster of more than {most} core points: whether chains connect all of them was not checked"
    assert said in capsys.readouterr().out


def test_verify__asked_for_more_scores_than_there_are_points_computes_all_of_them(
    done: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    n_points = slices.count_rows(done.lake, Slice("points", RUN))
    assert verify_tables(done, replace(ONE_POINT, scores=10**9))["scores_checked"] == n_points
    assert "verify: the scores of" not in capsys.readouterr().out


def test_verify__computes_fewer_scores_where_the_driver_can_hold_no_more_neighbours(
    done: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "MAX_NEAREST", 60)
    assert verify_tables(done, replace(ONE_POINT, scores=50))["scores_checked"] == 5
    said = capsys.readouterr().out
    assert "the scores of 5 points are computed again, not of 50" in said
    assert "and the LOF of 5 random points is right; if 5% of the points" in said
    assert verify_tables(done, ONE_POINT)["scores_checked"] == 0
    assert "verify: all ranks fit the scores, none of which was computed again" in capsys.readouterr().out


def test_verify__refuses_outliers_of_other_clusters_and_names_a_file_that_is_gone(
    done: Job, tmp_path: Path
) -> None:
    job = copy_of(done, tmp_path / "copy")
    file = slices.files_of(job.lake, Slice("outliers", RUN))[0]
    filesystem, root = uris.filesystem_of(job.lake.location("outliers"))
    filesystem.delete_file(f"{root}/{file.path}")
    with pytest.raises(DataRefusedError, match=f"{file.path} cannot be read"):
        verify_tables(job, ONE_POINT)
    write_as_a_job_does(job, "clusters", slices.read_slice(job.lake, Slice("clusters", RUN)))
    with pytest.raises(DataRefusedError, match=f"outliers of run {RUN} was made from other tables"):
        verify_tables(job, ONE_POINT)


def test_verify__takes_a_run_with_fewer_points_than_neighbours(
    make_job: JobMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [key(), coordinate("f0"), coordinate("f1")]
    job = make_job(columns, params={"eps": 3.0, "min_pts": 2, "lof_k": 3})
    run_on(job, grid_points()[:3], ("f0", "f1"))
    assert verify_tables(job, ALL_POINTS)["scores_checked"] == 0
    assert "none of which was computed again" in capsys.readouterr().out


def test_verify__sees_the_sign_of_a_zero(make_job: JobMaker, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [key(), coordinate("f0"), coordinate("f1")]
    job = make_job(columns, params={"eps": 3.0, "min_pts": 2, "lof_k": 3})
    run_on(job, np.concatenate([grid_points()[:40], np.ones((5, 2))]), ("f0", "f1"))
    for table, column, says in (
        ("pairs", "distance", "is stored at -0.0, its distance is 0.0"),
        ("outliers", "k_distance", "k_distance is -0.0"),
    ):

        def set_zeros(tables: Tables, to: float, at: tuple[str, str] = (table, column)) -> None:
            zeros = [row for row in getattr(tables, at[0]) if row[at[1]] == 0.0]
            assert zeros
            for row in zeros:
                row[at[1]] = to

        change(job, partial(set_zeros, to=-0.0))
        with pytest.raises(DataRefusedError):
            verify_tables(job, ONE_POINT)
        assert says in capsys.readouterr().out
        change(job, partial(set_zeros, to=0.0))
    assert verify_tables(job, ONE_POINT)["points_checked"] == 1


@pytest.mark.long
@pytest.mark.parametrize("metric", ["haversine", "manhattan", "chebyshev"])
def test_verify__of_all_scores_is_silent_under_every_metric(make_job: JobMaker, metric: str) -> None:
    is_on_sphere = metric == "haversine"
    roles = ("latitude", "longitude") if is_on_sphere else ("coordinate", "coordinate")
    columns = [key(), *(coordinate(f"f{i}", role) for i, role in enumerate(roles))]
    custom = {"metric": metric, **({"unit": "km"} if is_on_sphere else {})}
    job = make_job(columns, params={"eps": EPS[metric], "min_pts": MIN_PTS}, **custom)
    run_on(job, grid_points(), ("f0", "f1"))
    assert verify_tables(job, ALL_POINTS)["scores_checked"] == 700


def test_find_torn__finds_the_same_in_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of many sizes; every third one is torn."""
    monkeypatch.setattr(ends, "_MIN_NEW_CHAINS", 5)
    random, rows, expected = np.random.default_rng(0), [], []
    for name in range(0, 3000, 60):
        cores = name + np.arange(random.integers(4, 50))
        links = np.column_stack([cores[:-1], cores[1:]])
        if name % 180 == 0:
            links = np.delete(links, 1, axis=0)
            expected.append(
                f"cluster {name} is 2 clusters: no chain of core points connects {name} and {name + 2}"
            )
        rows.append(np.column_stack([random.permutation(links), np.full(len(links), name)]))
    a, b, c = np.concatenate(rows).T
    for size in (1, 7, 100, 10_000):
        steps = range(0, len(a), size)
        batches = [
            pa.record_batch({"a": a[i : i + size], "b": b[i : i + size], "c": c[i : i + size]}) for i in steps
        ]
        found = [text for batch in ends.find_torn(batches) for text in batch["fault"].to_pylist()]
        assert found == expected
