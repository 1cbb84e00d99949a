"""Verify on small lakes: silent on right tables, and every kind of damage found and named."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import verify as verify_job
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake import slices, uris
from epsjoin.lake.lake import Slice
from epsjoin.local.join.arrays import self_join
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.checks import verify
from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.cluster import cluster
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job, run_job
from epsjoin.spark.join import merge_join, replicate
from tests.spark.checks.damage import Damage
from tests.spark.checks.right_tables import (
    MIN_PTS,
    RightLake,
    change_labels,
    grid_points,
    right_lake,
    write_pairs,
)
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.tiny import RUN, coordinate, key


@pytest.fixture(scope="module")
def right_tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> RightLake:
    """Not to be changed."""
    return right_lake(partial(new_job, spark, tmp_path_factory.mktemp("right")))


@pytest.fixture
def lake(right_tables: RightLake, tmp_path: Path) -> RightLake:
    """The same, to be damaged."""
    job, pairs = right_tables
    return copy_of(job, tmp_path / "copy"), pairs


def findings(job: Job, capsys: pytest.CaptureFixture[str], request: Request) -> list[str]:
    """What was found; the last one is the sentence of the error."""
    capsys.readouterr()
    with pytest.raises(DataRefusedError) as refused:
        verify_tables(job, request)
    listed = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    return [line for line in listed if not line.endswith("tasks done")] + [str(refused.value)]


@pytest.mark.parametrize(
    "metric", ["haversine", *(pytest.param(m, marks=pytest.mark.long) for m in ("manhattan", "chebyshev"))]
)
def test_verify__is_silent_on_right_tables(make_job: JobMaker, metric: str) -> None:
    job, pairs = right_lake(make_job, metric)
    counters = verify_tables(job, Request(points=700, cells=5))
    assert counters["points_checked"] == 700
    assert counters["neighbours_checked"] == 2 * len(pairs.left) > 1000
    assert counters["missed_probability"] == 0.0


@pytest.mark.long
def test_verify__is_silent_on_what_the_chain_wrote(make_job: JobMaker) -> None:
    points = grid_points()
    job = make_job([key(), coordinate("f0"), coordinate("f1")], params={"eps": 3.0, "min_pts": MIN_PTS})
    lines = ["id,f0,f1", *(f"{i},{x!r},{y!r}" for i, (x, y) in enumerate(points.tolist()))]
    (job.project / "snapshot.csv").write_text("\n".join(lines) + "\n")
    for step in (ingest.run, fit_epsilon.run, replicate.run, merge_join.run):
        step(job)
    cluster.run(job)
    log = DeltaTable(job.lake.location("pairs")).version()
    counters = verify_tables(job, Request(points=100, cells=5))
    assert 100 < counters["points_checked"] < 200
    assert 0 < counters["missed_probability"] < 1
    assert DeltaTable(job.lake.location("pairs")).version() == log


def test_verify__ends_with_3_and_finds_pairs_removed_added_and_changed_and_a_wrong_label(
    lake: RightLake, capsys: pytest.CaptureFixture[str]
) -> None:
    job, pairs = lake
    distance = pairs.distance.copy()
    distance[3] = np.nextafter(distance[3], 10.0 if distance[3] < 2 else 0.0)
    left, right = np.r_[pairs.left[1:], 0], np.r_[pairs.right[1:], 699]
    write_pairs(job, Pairs(left, right, np.r_[distance[1:], 2.5]))
    labels = {row["id"]: row for row in slices.read_slice(job.lake, Slice("clusters", RUN)).to_pylist()}
    border = next(id_ for id_, row in labels.items() if row["role"] == "border")
    other = next(
        row["cluster_id"]
        for row in labels.values()
        if row["cluster_id"] not in (-1, labels[border]["cluster_id"])
    )
    change_labels(job, border, cluster_id=other)
    arguments = ["--lake", job.lake.uri, "--dataset", "tiny", "--run", RUN]
    arguments += ["--contracts", str(job.lake.contracts), "--params", f'{{"min_pts": {MIN_PTS}}}']
    capsys.readouterr()
    assert run_job("verify", lambda job: verify_tables(job, Request(points=700, cells=0)), arguments) == 3
    told = capsys.readouterr()
    found = [line.strip() for line in told.out.splitlines()]
    removed = f"pair ({pairs.left[0]}, {pairs.right[0]}) at {float(pairs.distance[0])!r} is missing"
    assert removed in found
    assert "pair (0, 699) at 2.5 is stored, but these points are no pair" in found
    was, is_now = float(pairs.distance[3]), float(distance[3])
    changed = f"pair ({pairs.left[3]}, {pairs.right[3]}) is stored at {is_now!r}, its distance is {was!r}"
    assert changed in found
    assert any(
        line.startswith(f"point {border}: cluster {other} is stored, its nearest core") for line in found
    )
    assert re.match(r"verify: the tables are wrong: pair .* \(\d+ findings, \d+ of them above\)", told.err)


@pytest.mark.long  # pairs that are removed one by one are found by the same comparison
def test_verify__finds_the_gap_that_a_lost_part_leaves(
    lake: RightLake, capsys: pytest.CaptureFixture[str]
) -> None:
    job, _ = lake
    write_pairs(job, self_join(grid_points(), 3.0), keep=[0, 1, 3])
    found = findings(job, capsys, Request(points=60, cells=0))
    assert sum(line.endswith("is missing") for line in found) > 3


ONE_POINT = Request(points=1, cells=0)


@pytest.mark.parametrize(
    ("damages", "request_"),
    [
        (
            [
                Damage.one_core_label,
                Damage.one_border_label,
                Damage.noise_made_border,
                Damage.one_distance_by_one_bit,
            ],
            ONE_POINT,
        ),
        (
            [Damage.the_label_of_a_core_without_others, Damage.border_made_noise, Damage.some_pairs_gone],
            ONE_POINT,
        ),
        pytest.param([Damage.a_tenth_of_all_distances], ONE_POINT, marks=pytest.mark.long),
        ([Damage.one_coordinate_by_one_bit], ONE_POINT),
        ([Damage.a_pair_of_noise_gone_and_degrees_made_to_fit], Request()),  # by brute force only
    ],
)
def test_verify__sees_every_kind_of_damage(
    lake: RightLake,
    capsys: pytest.CaptureFixture[str],
    damages: Sequence[Callable[[Damage], str]],
    request_: Request,
) -> None:
    """All but the last while one point of 700 is checked by brute force: all rows show them."""
    job, pairs = lake
    right = Damage(job, pairs)
    said = [damage(right) for damage in damages]
    found = findings(job, capsys, request_)
    for each in said:
        assert any(re.match(each, line) for line in found), (each, found)


@pytest.mark.long
def test_verify__by_cells_finds_what_one_point_cannot_show(
    lake: RightLake, capsys: pytest.CaptureFixture[str]
) -> None:
    job, pairs = lake
    write_pairs(job, Pairs(*(column[5:] for column in pairs)))
    request = Request(points=1, cells=1024)
    assert f"pair ({pairs.left[2]}, {pairs.right[2]}) at {float(pairs.distance[2])!r} is missing" in findings(
        job, capsys, request
    )


def test_verify__finds_a_file_that_is_gone(lake: RightLake, capsys: pytest.CaptureFixture[str]) -> None:
    job, _ = lake
    file = slices.files_of(job.lake, Slice("pairs", RUN))[0]
    filesystem, root = uris.filesystem_of(job.lake.location("pairs"))
    filesystem.delete_file(f"{root}/{file.path}")
    found = findings(job, capsys, Request(points=5, cells=0))
    assert f"{file.path} cannot be read" in found[0]


def test_verify__sees_in_all_rows_what_needs_no_brute_force(
    lake: RightLake, capsys: pytest.CaptureFixture[str]
) -> None:
    """Checked is one point of 700; everything else is found by looking at the rows."""
    job, pairs = lake
    left, right, distance = pairs
    more = Pairs(
        np.r_[left, left[7], right[9], 5, 6],
        np.r_[right, right[7], left[9], 6, 12345],
        np.r_[distance, distance[7], distance[9], 3.5, 1.0],
    )
    write_pairs(job, more)
    labels = slices.read_slice(job.lake, Slice("clusters", RUN)).to_pylist()
    core, other_core = [row["id"] for row in labels if row["role"] == "core" and row["id"] > 100][:2]
    noise = next(row["id"] for row in labels if row["role"] == "noise" and row["id"] > 100)
    change_labels(job, core, cluster_id=699_999)
    change_labels(job, other_core, role="noise")
    change_labels(job, noise, cluster_id=labels[core]["cluster_id"])
    found = "\n".join(findings(job, capsys, Request(points=1, cells=0)))
    assert f"pair ({left[7]}, {right[7]}) is stored 2 times" in found
    assert f"1 pair where left_id is not below right_id, such as ({right[9]}, {left[9]})" in found
    assert "1 pair where the distance is not from 0 to eps 3.0, such as (5, 6) at 3.5" in found
    assert "point 12345: it is in pairs or clusters, but not in points" in found
    assert re.search(r"point 5: degree \d+ is stored, its pairs make \d+", found)
    assert f"point {core}: cluster 699999 has no core point of that id" in found
    assert f"point {other_core}: role noise is stored, its degree is" in found
    assert f"point {noise}: role noise in cluster" in found


def test_verify__finds_tables_that_do_not_belong_together(
    lake: RightLake, capsys: pytest.CaptureFixture[str]
) -> None:
    job, _ = lake
    row = slices.read_row(job.lake, Slice("epsilon", RUN)) | {"eps": 2.0}
    del row["run"]
    slices.write_slice(job.lake, Slice("epsilon", RUN), slices.table_of(job.lake, "epsilon", [row]))
    points = slices.read_slice(job.lake, Slice("points", RUN))
    slices.write_slice(job.lake, Slice("points", RUN), points)  # the same rows in another file
    found = findings(job, capsys, Request(points=5, cells=0))
    assert found[0] == "epsilon of run 2023-06-01 is 2.0, pairs were joined with 3.0"
    assert "epsilon of run 2023-06-01 was made from other tables" in found[1]


@pytest.mark.long
def test_verify__checks_fewer_points_where_they_have_too_many_neighbours(
    lake: RightLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "MAX_NEIGHBOURS", 100)
    job, _ = lake
    counters = verify_tables(job, Request(points=50, cells=2))
    assert counters["points_checked"] < 30
    assert "points have 3 neighbours, so 11 are checked, not 50" in capsys.readouterr().out


def test_verify__asked_for_more_points_than_there_are_checks_all_of_them(
    lake: RightLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "MAX_NEIGHBOURS", 20_000)
    job, _ = lake
    n_points = slices.count_rows(job.lake, Slice("points", RUN))
    counters = verify_tables(job, Request(points=1_000_000, cells=2))
    assert counters["points_checked"] == n_points
    said = capsys.readouterr().out
    assert f"verify: {n_points} random points and 2 of" in said
    assert "not 1,000,000" not in said


@pytest.mark.parametrize("n_scores", [0, 5000])
def test_verify__of_fewer_points_takes_as_many_scores_as_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, n_scores: int
) -> None:
    monkeypatch.setattr(verify, "MAX_NEIGHBOURS", 100)
    fewer, _ = verify._limit_request(Request(points=50, cells=2, seed=3, scores=n_scores), 700, 1000)
    assert fewer.points < 50
    assert (fewer.cells, fewer.seed, fewer.scores) == (2, 3, n_scores)


@pytest.mark.parametrize(
    ("has_clusters", "sentence"),
    [
        (True, "7 neighbours and their labels are right, and all rows fit one another"),
        (
            False,
            "7 neighbours are right, and all rows fit one another; clusters has no slice of this run, so no "
            "label was checked",
        ),
    ],
)
def test_verify__of_a_run_without_clusters_says_that_no_label_was_checked(
    has_clusters: bool, sentence: str
) -> None:
    assert verify._say_neighbours(has_clusters, 7) == f"verify: {sentence}"


def test_verify__refuses_requests_that_make_no_sense(lake: RightLake) -> None:
    job, _ = lake
    for request, sentence in (
        (Request(points=0), "--points must be"),
        (Request(cells=-1), "--cells must be"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            verify_tables(job, request)


def test_verify__names_the_parameters_that_the_run_was_made_with(lake: RightLake) -> None:
    job, _ = lake
    k = job.params.n_neighbours
    for name, counters in (("cluster", {"min_pts": MIN_PTS}), ("outliers", {"k": k})):
        slices.write_counters(job.lake, RUN, name, counters)
    known = f'{{"min_pts": {MIN_PTS}, "lof_k": {k}}}'  # both: lof_k follows min_pts where it is not given
    said = re.escape(
        f"made with min_pts {MIN_PTS} and lof_k {k}; give verify the same: --params '{known}', or"
    )
    more = MIN_PTS + 4
    for others in ({"min_pts": more, "lof_k": k}, {"lof_k": k + 1}, {"min_pts": more, "lof_k": None}):
        with pytest.raises(ArgumentError, match=said):
            verify_tables(replace(job, params=replace(job.params, **others)), Request())
    assert verify_tables(job, Request(points=10, cells=0, scores=0))["points_checked"] == 10


def test_help_of_verify__says_what_it_does_what_it_costs_and_how_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["verify.py", "--help"])
    with pytest.raises(SystemExit, match="^0$"):
        verify_job.main()
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("usage: epsjoin verify ")
    for words in ("Check a run's stored pairs", "its time grows with", "Exit codes: 0 nothing is wrong"):
        assert words in said
    assert said.count("(default: ") == 5, "four numbers and the folder of the contracts"
