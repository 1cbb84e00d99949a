"""The step fit_epsilon: how it rounds what it chooses, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.params import RunParams
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import replicate
from tests import open_sets
from tests.spark.conftest import JobMaker
from tests.spark.ingest.here import reading_here
from tests.spark.real_data import job_on
from tests.tiny import RUN, has_slice


@pytest.fixture(autouse=True)
def ingest_here() -> Iterator[None]:
    """Who reads the points is no matter of these tests."""
    with reading_here():
        yield


@pytest.mark.parametrize("way", [{"neighbours": 3}, {"pairs": 5000}, {"k_distance_quantile": 0.5}])
def test_fit_epsilon__rounds_what_it_chooses_and_expects_its_pairs(
    make_job: JobMaker, tmp_path: Path, way: dict[str, float]
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:3000], {})
    ingest.run(job)

    def no_session() -> SparkSession:
        raise AssertionError("a few points need no session")

    def fitted(params: dict[str, float]) -> tuple[float, float]:
        fit_epsilon.run(replace(job, session=no_session, params=RunParams(**params)))
        row = slices.read_row(job.lake, Slice("epsilon", RUN))
        return row["eps"], row["expected_pairs"]

    rounded, exact = fitted(way), fitted({**way, "eps_digits": 17})
    assert rounded[0] == float(f"{rounded[0]:.3g}") != exact[0] == pytest.approx(rounded[0], rel=0.01)
    assert fitted({"eps": rounded[0]}) == rounded, "the pairs to expect are those of the rounded eps"
    assert fitted({"eps": exact[0]}) == exact, "an eps that is given is not rounded"


def test_fit_epsilon__refuses_too_many_pairs_and_names_the_eps_that_fits(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits"), {"eps": 2.0, "max_pairs": 10_000})
    ingest.run(job)
    with pytest.raises(
        BudgetError, match=r"would give about .* 10,000 are allowed .* largest eps that fits is about 0\.\d+"
    ):
        fit_epsilon.run(job)


@pytest.mark.parametrize(
    ("name", "within", "too_many", "max_pairs", "tolerance"),
    [
        ("pendigits", (0.302, 59_888), (0.6, 660_734), 100_000, 0.0),
        pytest.param("skin", (0.15, 929_220_814), (1.5, 1.032e10), 10**9, 0.05, marks=pytest.mark.long),
    ],
    ids=["pendigits", "skin"],
)
def test_fit_epsilon_and_replicate__take_what_fits_and_refuse_the_rest_by_the_same_number(
    make_job: JobMaker,
    tmp_path: Path,
    name: str,
    within: tuple[float, int],
    too_many: tuple[float, float],
    max_pairs: int,
    tolerance: float,
) -> None:
    """True pairs within an eps by scipy's trees; all rows of pendigits are in the sample."""
    job = job_on(make_job, tmp_path, open_sets.read(name), {"eps": within[0], "max_pairs": max_pairs})
    ingest.run(job)

    def at(eps: float) -> Job:
        return replace(job, params=replace(job.params, eps=eps))

    expected = fit_epsilon.run(job)["expected_pairs"]
    assert expected == pytest.approx(within[1], rel=tolerance)
    replicate.run(job)
    for table in ("epsilon", "join_plan"):
        assert slices.read_row(job.lake, Slice(table, RUN))["expected_pairs"] == expected
    with pytest.raises(BudgetError, match=f"{max_pairs:,} are allowed") as refused:
        fit_epsilon.run(at(too_many[0]))
    said = re.search(r"eps (\S+) would give about (\S+) pairs .* fits is about (\S+)$", str(refused.value))
    assert said is not None
    assert float(said[1]) == too_many[0]
    assert float(said[2].replace(",", "")) == pytest.approx(too_many[1], rel=0.05)
    largest = at(float(said[3]))
    assert fit_epsilon.run(largest)["expected_pairs"] == pytest.approx(max_pairs, rel=0.01)
    replicate.run(largest)


def test_fit_epsilon__refuses_to_choose_where_there_is_no_power_law(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, np.zeros((50, 2)), {})
    ingest.run(job)
    with pytest.raises(
        DataRefusedError, match="eps cannot be chosen from these points: .*; choose eps by hand"
    ):
        fit_epsilon.run(job)


def test_fit_epsilon__says_that_no_eps_fits_equal_points(make_job: JobMaker, tmp_path: Path) -> None:
    """It does not ask for an eps that was given."""
    job = job_on(make_job, tmp_path, np.zeros((2000, 2)), {"eps": 1.0, "max_pairs": 1000})
    ingest.run(job)
    with pytest.raises(
        BudgetError, match=r"eps 1 would give .* no eps fits: about 1,999,000 pairs are of equal"
    ):
        fit_epsilon.run(job)
    enough = replace(job, params=replace(job.params, max_pairs=10**7))
    assert fit_epsilon.run(enough)["expected_pairs"] == 1_999_000
    row = slices.read_row(job.lake, Slice("epsilon", RUN))
    assert (row["expected_pairs"], row["expected_neighbours"]) == (1_999_000, 1999)
    assert "no two different points" in row["note"]


@pytest.mark.parametrize("eps", [1e-320, 1e300])
def test_fit_epsilon__refuses_an_eps_that_no_join_takes(
    make_job: JobMaker, tmp_path: Path, eps: float
) -> None:
    job = job_on(make_job, tmp_path, open_sets.read("pendigits")[:100], {"eps": eps})
    ingest.run(job)
    with pytest.raises(ArgumentError, match="too small or too large for exact euclidean decisions"):
        fit_epsilon.run(job)
    assert not has_slice(job.lake, "epsilon", RUN)


def test_fit_epsilon__names_other_ways_to_choose_where_equal_points_have_more_neighbours(
    make_job: JobMaker, tmp_path: Path
) -> None:
    points = np.random.default_rng(0).random((1000, 2))
    points[:500] = 0.5
    job = job_on(make_job, tmp_path, points, {"neighbours": 10})
    ingest.run(job)
    with pytest.raises(DataRefusedError, match=r"equal points.* are too few; choose .*k_distance_quantile"):
        fit_epsilon.run(job)
    other = RunParams(k_distance_quantile=0.9)
    assert fit_epsilon.run(replace(job, params=other))["eps"] > 0


def lattice(n: int) -> NDArray[np.float64]:
    """Points of few different distances, which follow no power law."""
    return np.stack(np.indices((n, n)), axis=-1).reshape(-1, 2).astype(np.float64)


def test_fit_epsilon__takes_a_quantile_of_all_k_distances_without_a_power_law(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Of a lattice's 25 points, 9 are inside with four nearest at 1; at the border the fourth is farther."""
    job = job_on(make_job, tmp_path, lattice(5), {"k_distance_quantile": 0.3, "min_pts": 5})
    ingest.run(job)
    assert fit_epsilon.run(job) == {"n_sample": 25.0, "eps": 1.0, "expected_pairs": 40.0}
    row = slices.read_row(job.lake, Slice("epsilon", RUN))
    assert (row["eps"], row["method"], row["target"]) == (1.0, "k_distance_quantile", 0.3)
    assert row["exponent"] is None
    assert "too few pairs at different distances" in row["note"]
    assert not slices.read_slice(job.lake, Slice("epsilon_curve", RUN)).num_rows
    rounded = replace(job, params=replace(job.params, k_distance_quantile=0.5))
    assert fit_epsilon.run(rounded)["eps"] == 1.42, "the root of 2, rounded up to eps_digits"
    with pytest.raises(
        DataRefusedError, match=r"number 25 of a point \(min_pts 26\), and 25 points have 24 at most"
    ):
        fit_epsilon.run(replace(job, params=replace(job.params, min_pts=26)))


def test_fit_epsilon__of_a_quantile_of_neighbours_that_the_sample_does_not_have_says_which_setting_it_is(
    make_job: JobMaker, tmp_path: Path
) -> None:
    points = np.random.default_rng(5).random((300, 2))
    params = {"k_distance_quantile": 0.5, "min_pts": 101, "sample_rows": 100}
    job = job_on(make_job, tmp_path, points, params)
    ingest.run(job)
    sentence = (
        r"neighbour number 100 of a point \(min_pts 101\), and the 100 sampled points have 99 at most; lower "
        "min_pts, raise sample_rows or"
    )
    with pytest.raises(DataRefusedError, match=sentence):
        fit_epsilon.run(job)
    whole = replace(job, params=replace(job.params, min_pts=301, sample_rows=10_000))
    with pytest.raises(DataRefusedError, match="300 points have 299 at most; lower min_pts or choose"):
        fit_epsilon.run(whole)


@pytest.mark.parametrize("way", [{"neighbours": 3}, {"pairs": 40}])
def test_fit_epsilon__without_a_power_law_names_the_rule_that_needs_none(
    make_job: JobMaker, tmp_path: Path, way: dict[str, float]
) -> None:
    job = job_on(make_job, tmp_path, lattice(5), way)
    ingest.run(job)
    with pytest.raises(
        DataRefusedError, match=r"choose eps by hand \(parameter eps\) or by k_distance_quantile"
    ):
        fit_epsilon.run(job)


def test_fit_epsilon__takes_no_quantile_of_a_part_of_the_points_without_a_power_law(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"k_distance_quantile": 0.5, "sample_rows": 100}
    points = np.repeat(lattice(5), 5, axis=0)
    job = job_on(make_job, tmp_path, points, params)
    ingest.run(job)
    with pytest.raises(DataRefusedError, match=r"\(parameter eps\), or raise sample_rows \(100\) to all 125"):
        fit_epsilon.run(job)
    monkeypatch.setattr(fit_epsilon, "MAX_SAMPLE_ROWS", 124)
    with pytest.raises(DataRefusedError, match=r"\(parameter eps\)$"):
        fit_epsilon.run(job)
