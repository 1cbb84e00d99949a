"""k-distances, counted on all points, and what other eps would find."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.report.page import render
from epsjoin.spark.epsilon.k_distances import (
    FACTORS,
    KDistances,
    PairCounts,
    k_distances,
    other_eps,
)
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.gather import gather
from epsjoin.spark.rows.stored import StoredSlice
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.spark.two_runs import job_on, run_steps, snapshot, some_rows
from tests.tiny import RUN


def counts_of(job: Job) -> PairCounts:
    """The counts of the report."""
    inputs = Fingerprints(job.lake, RUN)
    row, curve = inputs.row("epsilon"), slices.read_slice(job.lake, inputs.slice("epsilon_curve"))
    radius, pairs = (curve[name].to_numpy() for name in ("radius", "pairs"))
    law = row["exponent"], row["eps"], row["expected_pairs"]
    return PairCounts(radius, pairs, *law, row["n_points"], row["n_sample"])


@pytest.fixture(scope="module")
def of_some_rows(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """A run of all steps; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("some_rows")
    snapshot(folder, RUN, some_rows())
    return run_steps(job_on(partial(new_job, spark, folder), RUN))


def test_k_distances__are_counted_on_all_points(of_some_rows: Job) -> None:
    job, rows = of_some_rows, some_rows()
    where = Fingerprints(job.lake, RUN).slice("outliers")
    curve = k_distances(StoredSlice.of(job, where), 1.5)

    places = np.array([row[1:] for row in rows.values()])
    all_distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    true = np.sort(np.sort(all_distances, axis=1)[:, 4])  # the point itself is first
    # a distance of the grid may differ by a rounding from one that a point has
    expected = np.searchsorted(true, curve.distance * (1 + 1e-12), "right") / len(rows)
    np.testing.assert_array_equal(curve.fraction, expected)
    assert (np.diff(curve.distance) > 0).all()
    assert curve.distance[-1] == pytest.approx(true[-1])
    assert curve.fraction[-1] == 1

    others = other_eps(counts_of(job), curve)
    at = {row["eps"]: row for row in others}
    assert {factor * 1.5 for factor in (1, *FACTORS)} <= set(at)
    assert [row["eps"] for row in others if row["is_chosen"]] == [1.5]
    assert sum(row["is_knee"] for row in others) == 1
    for factor in (*FACTORS, 1.0):
        fraction = at[factor * 1.5]["fraction"]
        assert fraction == np.count_nonzero(true <= factor * 1.5) / len(rows), factor
    knee = next(row["eps"] for row in others if row["is_knee"])
    fraction, height = np.arange(1, len(true) + 1) / len(true), (true - true[0]) / (true[-1] - true[0])
    bend = fraction - height
    assert bend[np.searchsorted(true, knee, "right") - 1] > bend.max() - 0.02, "the curve bends most there"
    # all points were counted, up to the largest radius of the curve
    radius = counts_of(job).radius
    for row in others:
        n_pairs = np.count_nonzero(np.triu(all_distances <= row["eps"], 1))
        if row["eps"] <= radius.max() or row["is_chosen"]:
            assert row["pairs"] == pytest.approx(n_pairs, rel=0.05)
            assert row["neighbours"] == 2 * row["pairs"] / len(rows)
        else:
            assert (row["pairs"], row["neighbours"]) == (None, None)
        assert row["is_measured"] == (row["pairs"] is not None)
    assert {row["is_measured"] for row in others} == {True, False}


def test_other_eps__are_expected_by_the_counts_and_below_them_by_the_law() -> None:
    counts = PairCounts(np.array([1.0, 2.0, 4.0]), np.array([0.0, 100.0, 400.0]), 3.0, 2.5, 150.0, 1000, 100)
    assert counts.expect(2.5) == 150, "what fit_epsilon said of its own eps"
    assert counts.expect(2**1.5) == pytest.approx(200)
    assert counts.expect(1.0) == pytest.approx(12.5), "no pair was counted there"
    assert counts.expect(4.1) is None, "beyond what was counted"
    assert not counts.suffices(4.0), "400 pairs are 4 of the sample"
    many = counts._replace(pairs=np.array([0.0, 1e4, 4e4]))
    assert [many.suffices(eps) for eps in (1.0, 2.0, 4.0)] == [False, True, True]
    none = counts._replace(radius=np.empty(0), pairs=np.empty(0), exponent=None)
    assert none.expect(2.5) is None


def test_k_distances__of_far_points_need_no_fit(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, {i: ("a", float(10 * i), 0.0) for i in range(9)})  # no pairs, and so no power law
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)
    assert counts_of(job).exponent is None
    assert found.k_distance.min() == 0.25 * 1.5
    assert found.k_distance.max() == 40.0
    assert {row["pairs"] for row in found.other_eps} == {None}
    assert [row["fraction"] for row in found.other_eps if not row["is_knee"]] == [0.0] * 7
    assert "None" not in render(found)


def test_knee__of_equal_points_is_none() -> None:
    distances, everybody = np.array([0.125, 0.25, 0.5]), np.ones(3)
    assert KDistances(distances, everybody).knee() is None
    assert KDistances(distances, np.array([0.9, 0.95, 1.0])).knee() == 0.125


def test_k_distances__of_a_slice_of_the_contract_before_end_at_eps(of_some_rows: Job, tmp_path: Path) -> None:
    """Its tables know no k-distance beyond eps, and have a column that says so."""
    job = copy_of(of_some_rows, tmp_path / "copy")
    where = Fingerprints(job.lake, RUN).slice("outliers")
    rows = slices.read_slice(job.lake, where)
    known = [None if value > 1.5 else value for value in rows["k_distance"].to_pylist()]
    lof = [None if k_distance is None else 1.0 for k_distance in known]
    for name, values in (("k_distance", known), ("lof", lof)):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.float64()))
    slices.write_slice(job.lake, where, rows)
    found = gather(job)
    assert found.k_distance[-1] == 1.5
    assert found.k_distance_fraction[-1] < 1
    assert [row["fraction"] is None for row in found.other_eps] == [
        row["eps"] > 1.5 for row in found.other_eps
    ]
    assert "None" not in render(found)
