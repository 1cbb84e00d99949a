"""k-distances, counted on all points, and what other eps would find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.epsilon.fit import EpsilonFit
from epsjoin.report.page import render
from epsjoin.spark.epsilon.k_distances import FACTORS, k_distances, other_eps, refit
from epsjoin.spark.job import Job
from epsjoin.spark.points import stored_points
from epsjoin.spark.report.gather import gather
from epsjoin.spark.stored import StoredSlice
from tests.spark.conftest import JobMaker
from tests.spark.two_runs import job_on, run_steps, snapshot, some_rows
from tests.tiny import RUN


def refit_of(job: Job) -> EpsilonFit | None:
    _, sample = stored_points(job).sample(job.params.sample_rows, job.params.seed)
    return refit(sample, job.lake.source.metric, job.params, len(sample))


def test_k_distances__are_counted_on_all_points(make_job: JobMaker, tmp_path: Path) -> None:
    rows = some_rows()
    snapshot(tmp_path, RUN, rows)
    job = run_steps(job_on(make_job, RUN))
    fit = refit_of(job)
    where = Fingerprints(job.lake, RUN).slice("outliers")
    curve = k_distances(StoredSlice.of(job, where), 1.5)

    places = np.array([row[1:] for row in rows.values()])
    all_distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    true = np.sort(np.sort(all_distances, axis=1)[:, 4])  # the point itself is first
    # a distance of the grid may differ by a rounding from one that a point has
    expected = np.searchsorted(true, curve.distance * (1 + 1e-12), "right") / len(rows)
    np.testing.assert_array_equal(curve.share, expected)
    assert (np.diff(curve.distance) > 0).all()
    assert curve.distance[-1] == pytest.approx(true[-1])
    assert curve.share[-1] == 1

    others = other_eps(fit, curve, 1.5, 4)
    at = {row["eps"]: row for row in others}
    assert {factor * 1.5 for factor in (1, *FACTORS)} <= set(at)
    assert [row["eps"] for row in others if row["is_chosen"]] == [1.5]
    assert sum(row["is_knee"] for row in others) == 1
    for factor in (*FACTORS, 1.0):
        share = at[factor * 1.5]["share"]
        assert share == np.count_nonzero(true <= factor * 1.5) / len(rows), factor
    n_pairs = np.count_nonzero(np.triu(all_distances <= 1.5, 1))
    assert at[1.5]["pairs"] == pytest.approx(n_pairs, rel=0.1)
    assert at[1.5]["neighbours"] == 2 * at[1.5]["pairs"] / len(rows)


def test_k_distances__of_far_points_need_no_fit(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, {i: ("a", float(10 * i), 0.0) for i in range(9)})  # no pairs, and so no power law
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)
    assert refit_of(job) is None
    assert found.k_distance.min() == 0.25 * 1.5
    assert found.k_distance.max() == 40.0
    assert [row["pairs"] for row in found.other_eps] == [None] * 7
    assert [row["share"] for row in found.other_eps] == [0.0] * 7
    assert "None" not in render(found)


def test_k_distances__of_a_slice_of_the_contract_before_end_at_eps(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Its tables know no k-distance beyond eps, and have a column that says so."""
    snapshot(tmp_path, RUN, some_rows())
    job = run_steps(job_on(make_job, RUN))
    where = Fingerprints(job.lake, RUN).slice("outliers")
    rows = slices.read_slice(job.lake, where)
    known = [None if value > 1.5 else value for value in rows["k_distance"].to_pylist()]
    lof = [None if k_distance is None else 1.0 for k_distance in known]
    for name, values in (("k_distance", known), ("lof", lof)):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.float64()))
    slices.write_slice(job.lake, where, rows)
    found = gather(job)
    assert found.k_distance[-1] == 1.5
    assert found.k_share[-1] < 1
    assert [row["share"] is None for row in found.other_eps] == [row["eps"] > 1.5 for row in found.other_eps]
    assert "None" not in render(found)
