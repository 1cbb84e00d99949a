"""The k nearest rows of frames: brute force, ties by the smaller id, whatever cells they lie in."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import epsjoin
from epsjoin.errors import ArgumentError
from epsjoin.local.metric import Metric, get_metric
from epsjoin.spark import frames
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.spark.lattice import LATTICE, columns_of, frame_of

Points = NDArray[np.float64]
PLACES = np.random.default_rng(6).integers(1, 9, (60, 2)).astype(float)
"""Integers, so that ties and equal places abound; no metric refuses them."""

METRICS = [
    *(get_metric(name) for name in ("euclidean", "manhattan", "chebyshev", "cosine", "haversine")),
    get_metric("minkowski", 3),
]


def small_cells(monkeypatch: pytest.MonkeyPatch, rows: int, k: int = 0) -> None:
    """Cells of so many rows; in one frame the lists of k neighbours count, too."""
    few = partial(frames.search_nearest, cell_bytes=(8 * 2 + 16 * k) * rows)
    monkeypatch.setattr(frames, "search_nearest", few)


def rows_of(found: DataFrame) -> dict[int, list[tuple[float, int]]]:
    near: dict[int, list[tuple[float, int]]] = {}
    for row in found.orderBy("left_id", "nth").collect():
        near.setdefault(row["left_id"], []).append((row["distance"], row["right_id"]))
        assert row["nth"] == len(near[row["left_id"]])
    found.unpersist()
    return near


def expected(
    left: Points | None, right: Points, left_ids: list[int], right_ids: list[int], k: int, metric: Metric
) -> dict[int, list[tuple[float, int]]]:
    """By the definition, on rows in the order of their ids."""
    order = np.argsort(right_ids)
    ascending = np.array(right_ids)[order].tolist()

    def distance(x: list[float], y: list[float]) -> float:
        return slow.distance(x, y, metric.name, metric.p)

    queries = None if left is None else left.tolist()
    near = slow_outliers.knn(queries, right[order].tolist(), k, distance)
    ids = ascending if left is None else left_ids
    return {
        id_: [(between, ascending[row]) for between, row in each] for id_, each in zip(ids, near, strict=True)
    }


@pytest.mark.parametrize(
    "metric",
    [pytest.param(each, marks=[pytest.mark.long] * (each.name != "haversine")) for each in METRICS],
    ids=lambda each: each.name,
)
def test_knn_join__of_two_frames_is_brute_force(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, metric: Metric
) -> None:
    small_cells(monkeypatch, 4)
    left, right = PLACES[:20] + 0.5, PLACES
    left_ids, right_ids = list(range(100, 120)), [7 * (i * 31 % 60) - 40 for i in range(60)]
    found = epsjoin.spark.knn_join(
        frame_of(spark, left, left_ids),
        frame_of(spark, right, right_ids),
        3,
        columns=["x0", "x1"],
        metric=metric,
    )
    near, wanted = rows_of(found), expected(left, right, left_ids, right_ids, 3, metric)
    assert {id_: [i for _, i in each] for id_, each in near.items()} == {
        id_: [i for _, i in each] for id_, each in wanted.items()
    }
    for id_, each in near.items():
        assert [between for between, _ in each] == pytest.approx([between for between, _ in wanted[id_]])


@pytest.mark.parametrize(
    ("k", "cell_rows"),
    [(5, 4), *(pytest.param(k, rows, marks=pytest.mark.long) for k, rows in ((1, 4), (59, 4), (5, 1000)))],
)
def test_knn_join__of_a_frame_with_itself_is_the_librarys_bit_for_bit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, k: int, cell_rows: int
) -> None:
    small_cells(monkeypatch, cell_rows, k)
    ids = list(range(60))
    found = epsjoin.spark.knn_join(frame_of(spark, PLACES, ids), None, k, columns=["x0", "x1"])
    by_library = epsjoin.knn_join(None, PLACES, k)
    assert rows_of(found) == {
        i: list(zip(by_library.distance[i].tolist(), by_library.neighbour[i].tolist(), strict=True))
        for i in ids
    }


@pytest.mark.parametrize("is_one", [True, pytest.param(False, marks=pytest.mark.long)])
def test_knn_join__with_weights_is_the_librarys_bit_for_bit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_one: bool
) -> None:
    """Of two groups far from each other, in the smaller of which numbers differ by their last bits."""
    small_cells(monkeypatch, 4, 3)
    steps = np.random.default_rng(8).integers(0, 40, (60, 2)) * 2.0**-22
    points, weights = steps + np.where(np.arange(60) % 3, -1.7e9, 1.7e9)[:, None], [0.1, 0.0]
    queries = None if is_one else points[::3] + 2.0**-22
    left = frame_of(spark, points if queries is None else queries)
    right = None if is_one else frame_of(spark, points)
    found = epsjoin.spark.knn_join(left, right, 3, columns=["x0", "x1"], weights=weights)
    by_library = epsjoin.knn_join(queries, points, 3, weights=weights)
    assert rows_of(found) == {
        i: list(zip(by_library.distance[i].tolist(), by_library.neighbour[i].tolist(), strict=True))
        for i in range(len(by_library.distance))
    }


def test_knn_join__with_weights_refuses_those_that_fit_no_row(spark: SparkSession) -> None:
    frame, given = frame_of(spark, PLACES), {"columns": ["x0", "x1"], "weights": [1.0]}
    with pytest.raises(ArgumentError, match=r"weights must be one per dimension \(2\)"):
        epsjoin.spark.knn_join(frame, None, 3, **given)
    assert rows_of(epsjoin.spark.knn_join(frame.limit(0), None, 3, **given)) == {}


@pytest.mark.long  # what a cell does with equal points is tried below
def test_knn_join__of_many_equal_rows_takes_those_with_the_smallest_ids(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_cells(monkeypatch, 8, 2)
    points = np.concatenate([np.zeros((80, 2)), [[3.0, 4.0]]])
    near = rows_of(epsjoin.spark.knn_join(frame_of(spark, points), None, 2, columns=["x0", "x1"]))
    assert near[0] == [(0.0, 1), (0.0, 2)]
    assert near[40] == [(0.0, 0), (0.0, 1)]
    assert near[80] == [(5.0, 0), (5.0, 1)]


def test_knn_join__of_extreme_ids_and_a_left_row_with_the_id_of_a_right_one(spark: SparkSession) -> None:
    low, high = -(2**63), 2**63 - 1
    points = np.array([[0.0], [0.0], [9.0]])
    right = frame_of(spark, points, [high, low, low + 1])
    near = rows_of(epsjoin.spark.knn_join(frame_of(spark, points[:1], [low]), right, 3, columns="x0"))
    assert near == {low: [(0.0, low), (0.0, high), (9.0, low + 1)]}
    near = rows_of(epsjoin.spark.knn_join(right, None, 2, columns="x0"))
    assert near[low] == [(0.0, high), (9.0, low + 1)]
    assert near[low + 1] == [(9.0, low), (9.0, high)]


def test_knn_join__refuses_a_k_that_no_row_has(spark: SparkSession) -> None:
    one, none = frame_of(spark, np.array([[1.0]])), frame_of(spark, np.array([[1.0]])).where("false")
    with pytest.raises(ArgumentError, match="k must be at most the number of other rows, 0, not 1"):
        epsjoin.spark.knn_join(one, None, 1, columns="x0")
    with pytest.raises(ArgumentError, match="k must be at most the number of other rows, 1, not 2"):
        epsjoin.spark.knn_join(one, one, 2, columns="x0")
    with pytest.raises(ArgumentError, match="k must be a whole number, at least 1, not 0"):
        epsjoin.spark.knn_join(one, one, 0, columns="x0")
    assert rows_of(epsjoin.spark.knn_join(one, one, 1, columns="x0")) == {0: [(0.0, 0)]}
    assert epsjoin.spark.knn_join(none, one, 5, columns="x0").count() == 0


def test_knn_join__that_fails_keeps_nothing_in_memory(spark: SparkSession) -> None:
    spark.catalog.clearCache()
    is_empty = spark._jsparkSession.sharedState().cacheManager().isEmpty
    rows = [(i, [float(i), 0.0]) for i in range(200)]
    bad = spark.createDataFrame([*rows, (1000, [math.nan, 0.0])], "id long, at array<double>")
    with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan"):
        epsjoin.spark.knn_join(bad, spark.createDataFrame(rows, "id long, at array<double>"), 2, columns="at")
    assert is_empty()
    found = epsjoin.spark.knn_join(bad.where("id < 1000"), None, 2, columns="at")
    assert found.count() == 400
    assert not is_empty()
    found.unpersist()
    assert is_empty()


@pytest.mark.long  # outliers by Spark search in three dimensions: test_rank.py
def test_knn_join__of_the_lattice_in_three_dimensions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_cells(monkeypatch, 10, 4)
    near = rows_of(epsjoin.spark.knn_join(frame_of(spark, LATTICE), None, 4, columns=columns_of(LATTICE)))
    ids = list(range(len(LATTICE)))
    assert near == expected(None, LATTICE, ids, ids, 4, get_metric("euclidean"))
