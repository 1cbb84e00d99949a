"""Pairs at the border of eps: every join on Spark decides on values as given, none on scaled ones.

In decimals two values at exactly eps abound, and dividing them by eps first moves the border both ways: it
loses some pairs and lets others in.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import epsjoin.spark
from epsjoin import Cuts
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.spark.conftest import JobMaker
from tests.spark.lattice import frame_of, pairs_of
from tests.spark.real_data import JOIN_STEPS, pair_set
from tests.tiny import coordinate, key

DECIMALS = np.random.default_rng(8).integers(0, 31, (2, 90)).T / [1.0, 10.0]
EPS, ONE_EPS = [7.0, 0.3], 3.0
METRICS = ["chebyshev", "euclidean", "manhattan"]
one_metric = pytest.mark.parametrize(
    "metric", [METRICS[0], *(pytest.param(other, marks=pytest.mark.long) for other in METRICS[1:])]
)
"""Tests of the library, ``tests/local/test_border.py``, have all of them."""
COLUMNS: dict[str, Any] = {"columns": ["x0", "x1"]}


def n_moved(eps: list[float]) -> tuple[int, int]:
    """Number of pairs that dividing by eps would lose, and would let in."""
    apart = np.abs(DECIMALS[:, None] - DECIMALS)
    within, scaled = (
        (apart <= eps).all(axis=2),
        (np.abs(DECIMALS[:, None] / eps - DECIMALS / eps) <= 1.0).all(axis=2),
    )
    return int((within & ~scaled).sum()), int((scaled & ~within).sum())


def test_decimals__would_be_decided_otherwise_after_a_division() -> None:
    lost, let_in = n_moved(EPS)
    assert lost >= 5
    assert let_in >= 5
    assert n_moved([ONE_EPS] * 2)[0] >= 5


@pytest.mark.parametrize(
    ("kind", "kind_of_two"),
    [("planned", "regular"), pytest.param("regular", "planned", marks=pytest.mark.long)],
)
@one_metric
def test_similarity_join__with_eps_per_dimension_decides_on_values_as_given(
    spark: SparkSession, metric: str, kind: Any, kind_of_two: Any
) -> None:
    kinds: dict[str, Any] = {"eps": EPS, "metric": metric, **COLUMNS}
    of_one, of_two = (
        Cuts(each, 5, replication_budget=math.inf, sample_rows=50) for each in (kind, kind_of_two)
    )
    wanted = slow.scaled_pairs(DECIMALS, EPS, None, metric)
    assert pairs_of(epsjoin.spark.similarity_join(frame_of(spark, DECIMALS), cuts=of_one, **kinds)) == wanted
    left, right = (frame_of(spark, DECIMALS).where(f"id % 2 = {rest}") for rest in (0, 1))
    between = {pair: distance for pair, distance in wanted.items() if sum(pair) % 2}
    found = pairs_of(epsjoin.spark.similarity_join(left, right, cuts=of_two, **kinds))
    assert {(min(pair), max(pair)): distance for pair, distance in found.items()} == between


@pytest.mark.long  # its pairs are those of joins; that it takes an eps for each is tried in test_frames.py
def test_dbscan__with_eps_per_dimension_counts_values_as_given(spark: SparkSession) -> None:
    found = epsjoin.spark.dbscan(
        frame_of(spark, DECIMALS), eps=EPS, min_pts=6, metric="chebyshev", cuts=Cuts(n_parts=4), **COLUMNS
    )
    within = (np.abs(DECIMALS[:, None] - DECIMALS) <= EPS).all(axis=2).sum(axis=1)
    assert {row["id"]: row["degree"] for row in found.collect()} == dict(enumerate(within.tolist()))
    found.unpersist()


@pytest.mark.long  # that it has the library's distances bit for bit is tried in neighbours/test_search.py
@pytest.mark.parametrize("metric", METRICS)
def test_knn_join__ranks_values_as_given(spark: SparkSession, metric: str) -> None:
    found = epsjoin.spark.knn_join(frame_of(spark, DECIMALS), None, 4, metric=metric, **COLUMNS)
    near = slow_outliers.knn(None, DECIMALS.tolist(), 4, lambda x, y: slow.distance(x, y, metric))
    rows = {(row["left_id"], row["nth"]): (row["distance"], row["right_id"]) for row in found.collect()}
    assert rows == {(i, nth): each for i, of in enumerate(near) for nth, each in enumerate(of, 1)}
    found.unpersist()


@one_metric
def test_jobs__decide_on_values_as_given_in_a_whole_run_and_in_an_increment(
    make_job: JobMaker, tmp_path: Path, metric: str
) -> None:
    months = ("2023-01-01", "2023-02-01")
    moved = DECIMALS.copy()
    moved[:3] = DECIMALS[40:43] + 0.1
    for month, points in zip(months, (DECIMALS, moved), strict=True):
        rows = "".join(f"{i},{x!r},{y!r}\n" for i, (x, y) in enumerate(points.tolist()))
        (tmp_path / f"{month[:7]}-15.csv").write_text(f"id,x,y\n{rows}")
    job = make_job(
        [key(), coordinate("x"), coordinate("y")],
        path="{date}.csv",
        interval="month",
        metric=metric,
        params={"eps": ONE_EPS, "n_parts": 4},
    )
    kinds = []
    for month, points in zip(months, (DECIMALS, moved), strict=True):
        job = replace(job, run=month)
        for step in JOIN_STEPS:
            step(job)
        wanted = sorted(slow.brute_force(points, ONE_EPS, metric))
        assert [tuple(pair) for pair in pair_set(job).tolist()] == wanted
        kinds.append(slices.read_row(job.lake, Slice("join_plan", month))["kind"])
    assert kinds == ["planned", "increment"]
