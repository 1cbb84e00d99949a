"""k-distances and what other eps would find: counted up to eps, of the sample beyond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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


def test_k_distances__are_counted_up_to_eps_and_the_samples_beyond(
    make_job: JobMaker, tmp_path: Path
) -> None:
    rows = some_rows()
    snapshot(tmp_path, RUN, rows)
    job = run_steps(job_on(make_job, RUN))
    fit = refit_of(job)
    where = Fingerprints(job.lake, RUN).slice("outliers")
    curve = k_distances(StoredSlice.of(job, where), 1.5, job.params.n_neighbours, fit)

    places = np.array([row[1:] for row in rows.values()])
    all_distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    true = np.sort(np.sort(all_distances, axis=1)[:, 4])  # the point itself is first
    counted = curve.is_counted
    assert curve.distance[counted].max() == 1.5
    # a distance of the grid may differ by a rounding from one that a point has
    expected = np.searchsorted(true, curve.distance[counted] * (1 + 1e-12), "right") / len(rows)
    np.testing.assert_array_equal(curve.share[counted], expected)
    assert (np.diff(curve.distance) > 0).any()
    assert (np.diff(curve.share) >= 0).all()
    assert curve.share[-1] == 1
    # all points are in the sample, so beyond eps it is exact as well
    np.testing.assert_allclose(np.unique(curve.distance[~counted]), np.unique(true[true > 1.5]))

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


def test_k_distances__end_at_eps_without_a_fit(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, {i: ("a", float(10 * i), 0.0) for i in range(9)})  # no pairs, so no k-distances
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)
    assert refit_of(job) is None
    assert found.k_share.max() == 0
    assert [row["pairs"] for row in found.other_eps] == [None] * 7
    assert [row["share"] for row in found.other_eps] == [0.0] * 4 + [None] * 3
    assert "None" not in render(found)
