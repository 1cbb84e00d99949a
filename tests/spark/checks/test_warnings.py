"""Every warning of the contracts: a case in which it appears, and the advice that ends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.params import RunParams
from epsjoin.pipeline import CHAINS
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import Job
from tests.spark.checks.test_quality import RULES
from tests.spark.conftest import REPO, STEPS, JobMaker
from tests.spark.real_data import job_on
from tests.tiny import RUN, coordinate, key

WARNINGS = {name for (_, name), rule in RULES.items() if rule.severity == "warning"}
PAGE = (REPO / "docs" / "understand-the-result.md").read_text(encoding="utf-8")


def square(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).random((n, 2))


def few_places() -> NDArray[np.float64]:
    """Points in a few places, at distances that differ by orders of magnitude: their pairs make no line."""
    random = np.random.default_rng(31)
    n = int(random.integers(20, 200))
    places = np.cumsum(np.exp(random.normal(0, 3, int(random.integers(7, 14)))))
    return random.choice(places, n)[:, None]


def hidden_clump() -> NDArray[np.float64]:
    """Points alone, and a clump of so few that a small sample has none of its pairs."""
    return np.concatenate([square(10_000) * 1e4, np.full((30, 2), 5e3)])


def warned(job: Job) -> set[str]:
    """Run all steps and gates, and return the warnings."""
    for step in STEPS.values():
        step(job)
    for stage in CHAINS["join"]:
        check_quality(job, stage)
    rows = slices.read_slice(job.lake, Slice("quality", job.run)).to_pylist()
    return {row["expectation"] for row in rows if not row["success"]}


CASES = {
    "the_fit_is_straight": (few_places(), {"neighbours": 10}, {"eps": 0.05}),
    "pairs_are_as_expected": (hidden_clump(), {"eps": 0.01, "sample_rows": 100}, {"sample_rows": 20_000}),
    "not_all_points_are_in_one_cluster": (square(500), {"eps": 0.5}, {"eps": 0.05}),
}
"""Of a warning: points, parameters with which it appears, and what the documents say to change."""


@pytest.mark.long  # two whole runs with their gates for each
@pytest.mark.parametrize("warning", CASES)
def test_warning__appears_and_ends_by_what_the_documents_advise(
    warning: str, make_job: JobMaker, tmp_path: Path
) -> None:
    points, params, advice = CASES[warning]
    job = job_on(make_job, tmp_path, points, params)
    assert warning in warned(job)
    kept = {name: value for name, value in params.items() if "eps" not in advice}
    assert warning not in warned(replace(job, params=RunParams(**{**kept, **advice})))


@pytest.mark.long
def test_warning_of_quarantine__ends_with_a_source_that_is_mended(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([key(), coordinate("x")], params={"eps": 1.0}, max_quarantine_share=0.5)
    for text, appears in (("id,x\n1,1\n2,n/a\n", True), ("id,x\n1,1\n2,2\n", False)):
        (tmp_path / "snapshot.csv").write_text(text)
        assert ("nothing_was_quarantined" in warned(job)) == appears


@pytest.mark.long
def test_warning_of_the_guard__ends_with_a_source_that_is_mended(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([key(), coordinate("x")], path="{date}.csv", params={"eps": 1.0})
    for run, n in ((RUN, 500), ("2023-06-02", 490), ("2023-06-02", 500)):
        (tmp_path / f"{run}.csv").write_text("id,x\n" + "".join(f"{i},{i}\n" for i in range(n)))
        assert ("nothing_was_unusual" in warned(replace(job, run=run))) == (n == 490)


@pytest.mark.long
def test_warning_of_many_increments__ends_when_all_points_are_joined(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = make_job([key(), coordinate("x")], path="{date}.csv", params={"eps": 1.0})
    for run in (RUN, "2023-06-02"):
        (tmp_path / f"{run}.csv").write_text("id,x\n" + "".join(f"{i},{i}\n" for i in range(500)))
    warned(job)
    where = Fingerprints(job.lake, RUN).slice("join_plan")
    row = slices.read_row(job.lake, where)
    del row["run"]
    for generation, increment, appears in ((29, 0.1, False), (30, 0.1, True), (30, 0.0, False)):
        rows = [row | {"generation": generation}]
        slices.write_slice(job.lake, where, slices.table_of(job.lake, "join_plan", rows))
        now = replace(job, run="2023-06-02", params=replace(job.params, increment=increment))
        assert ("all_points_were_joined_lately" in warned(now)) == appears
        expected = generation + 1 if increment else 0
        assert slices.read_row(job.lake, Slice("join_plan", now.run))["generation"] == expected


@pytest.mark.parametrize(
    ("points", "params"),
    [
        pytest.param(square(300) * 1e6, {"eps": 1.0}, marks=pytest.mark.long),  # all is noise
        (np.concatenate([square(300) * 1e6, np.zeros((6, 2))]), {"eps": 1.0}),  # noise but for one cluster
        (np.zeros((1, 2)), {"eps": 1.0, "min_pts": 1}),  # one point is its own cluster, whatever eps is
    ],
)
def test_warning_of_one_cluster__is_about_clusters_not_about_noise(
    points: NDArray[np.float64], params: dict[str, Any], make_job: JobMaker, tmp_path: Path
) -> None:
    assert "not_all_points_are_in_one_cluster" not in warned(job_on(make_job, tmp_path, points, params))


def test_warning_of_the_fit__is_none_where_eps_was_set(make_job: JobMaker, tmp_path: Path) -> None:
    """The advice is to set eps: whoever did so is not told to do it again."""
    assert "the_fit_is_straight" not in warned(job_on(make_job, tmp_path, few_places(), {"eps": 0.05}))


def test_warning_of_the_fit__is_none_where_eps_needs_no_law(make_job: JobMaker, tmp_path: Path) -> None:
    """The k-distances of all points are measured; where they are estimated of a sample, a law is needed."""
    lattice = np.stack(np.indices((5, 5)), axis=-1).reshape(-1, 2).astype(float)
    job = job_on(make_job, tmp_path, lattice, {"k_distance_quantile": 0.5})
    assert "the_fit_is_straight" not in warned(job)


def test_warnings__are_all_in_the_documents_and_tried_here() -> None:
    by_others = {"there_are_points"}  # ingest refuses a snapshot without a point
    own = {"nothing_was_quarantined", "nothing_was_unusual", "all_points_were_joined_lately"}
    elsewhere = {"no_value_unseen_for_w_runs"}  # tests/spark/ingest/test_value_counts.py
    assert {*CASES, *by_others, *own, *elsewhere} == WARNINGS
    assert {name for name in WARNINGS if f"| `{name}` |" in PAGE} == WARNINGS
