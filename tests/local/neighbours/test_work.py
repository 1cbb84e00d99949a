"""What the k nearest cost, in points compared and pairs joined, by the shape of the data."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from epsjoin.local.neighbours import by_joins, search
from epsjoin.local.neighbours.knn import knn_join

_N, _SAMPLES = 1500, 48
_FEW_SAMPLES = 9 * _SAMPLES * (_N + 256)  # of eight rounds, and the last queries


def work_of(points, k, queries=None):
    """The result and the work by joins, with constants that suit a thousand points or two."""
    counters: dict[str, int] = {}
    with (
        mock.patch.object(search, "_SAMPLE_QUERIES", _SAMPLES),
        mock.patch.multiple(by_joins, _QUERY_WORK=-1, _ROUND_WORK=-1, _SAMPLE_POINTS=256),
    ):
        found = knn_join(queries, points, k, counters=counters)
    return found, counters


def checked(points, k, found, queries=None):
    """Ten rows by the definition, so that the work counted was that of a right answer."""
    of = points if queries is None else queries
    for row in np.linspace(0, len(of) - 1, 10, dtype=int):
        distance = np.sqrt(((points - of[row]) ** 2).cumsum(axis=1)[:, -1])
        if queries is None:
            distance[row] = np.inf
        nearest = np.argsort(distance, kind="stable")[:k]
        assert found.neighbour[row].tolist() == nearest.tolist()
        assert found.distance[row].tolist() == distance[nearest].tolist()


@pytest.mark.parametrize("is_self", [True, False])
def test_work__of_few_dimensions_is_that_of_the_tree(is_self):
    points = np.random.default_rng(6).random((5000, 2)) ** 4
    queries = None if is_self else points[::2] + 1e-4
    counters: dict[str, int] = {}
    knn_join(queries, points, 4, counters=counters)
    assert counters["comparisons"] < 80 * (5000 if is_self else 2500)
    assert not counters.get("rounds")


@pytest.mark.parametrize(("d", "n_searches"), [(6, 1), (7, 2)])
def test_work__of_few_rows_in_few_dimensions_has_no_sample(d, n_searches, monkeypatch):
    points = np.random.default_rng(6).random((1000, d))
    searched, search_tree = [], search._Search.search
    monkeypatch.setattr(
        search._Search, "search", lambda *of: (searched.append(len(of[2])), search_tree(*of))[1]
    )
    knn_join(points + 0.1, points, 3)
    assert len(searched) == n_searches
    assert sum(searched) == 1000


def test_work__of_queries_at_one_place_is_that_of_one_of_them():
    points = np.random.default_rng(8).random((2300, 2))
    points[100:2100] = points[:10].repeat(200, axis=0)
    counters: dict[str, int] = {}
    found = knn_join(None, points, 4, counters=counters)
    checked(points, 4, found)
    assert counters["comparisons"] < 80 * 400


def test_work__where_a_box_holds_much_more_than_a_ball_is_that_of_joins(monkeypatch):
    points = np.random.default_rng(7).random((20_000, 8))
    counters: dict[str, int] = {}
    knn_join(None, points, 4, counters=counters)
    assert not counters.get("rounds"), "a join has work before the first query"
    by_tree = counters["comparisons"]
    monkeypatch.setattr(by_joins, "_ROUND_WORK", 0)
    counters.clear()
    knn_join(None, points, 4, counters=counters)
    assert counters["rounds"] >= 1
    assert counters["comparisons"] < by_tree / 4
    assert counters["pairs"] < 20_000 * 4 * 16


def test_work__where_no_box_can_be_left_out_is_a_scan(monkeypatch):
    points = np.random.default_rng(5).normal(size=(1000, 40))
    scanned = []
    monkeypatch.setattr(search._Search, "scan", lambda _, rows: scanned.append(len(rows)))
    knn_join(None, points, 3, "manhattan")
    assert scanned == [1000 - search._SAMPLE_QUERIES]


def test_work__on_even_data_is_a_few_pairs_per_neighbour():
    n, k = _N, 5
    points = np.random.default_rng(1).random((n, 3))
    found, work = work_of(points, k)
    checked(points, k, found)
    assert 1 <= work["rounds"] <= 4
    assert work["pairs"] <= 2 * k * n
    _, of_two_sets = work_of(points, k, points.copy())
    assert work["pairs"] <= 0.6 * of_two_sets["pairs"], "the first round's serve both their ends"
    assert work["comparisons"] <= _FEW_SAMPLES


def test_work__with_a_third_of_equal_points_stays_small():
    n, k = _N, 5
    points = np.random.default_rng(2).random((n, 3))
    points[::3] = 0.5
    found, work = work_of(points, k)
    checked(points, k, found)
    assert work["rounds"] >= 1
    assert work["comparisons"] <= _FEW_SAMPLES
    assert found.neighbour[0].tolist() == [3, 6, 9, 12, 15]
    assert found.neighbour[-3].tolist() == [0, 3, 6, 9, 12]
    assert work.get("pairs", 0) <= 8 * k * n  # 125,000 pairs are of equal points


def test_work__with_a_hot_spot_of_different_points_stays_small():
    n, k = _N, 5
    points = np.random.default_rng(3).random((n, 3))
    points[: n // 10] = 0.5 + points[: n // 10] * 1e-9
    found, work = work_of(points, k)
    checked(points, k, found)
    assert work["rounds"] >= 1
    assert work["pairs"] <= 4 * k * n
    assert work["comparisons"] <= _FEW_SAMPLES


def test_work__with_far_points_does_not_grow_to_all_pairs():
    n, k = _N, 5
    points = np.random.default_rng(4).random((n, 3))
    points[:3] *= [[1e6], [1e9], [-1e12]]
    found, work = work_of(points, k)
    checked(points, k, found)
    assert work["pairs"] <= 8 * k * n
    assert work["comparisons"] <= _FEW_SAMPLES


def test_work__where_every_eps_finds_all_or_nothing_has_no_join():
    # All points in one ball far from every query: no eps finishes some queries with few pairs.
    random = np.random.default_rng(5)
    queries, points = random.normal(size=(500, 3)) * 1e6, random.random((400, 3))
    found, work = work_of(points, 3, queries)
    assert work.get("rounds", 0) == 0
    assert work["comparisons"] <= 500 * 400 + _SAMPLES * (400 + 256)
    checked(points, 3, found, queries)


@pytest.mark.parametrize(
    ("n_queries", "n", "d", "k", "metric", "are_few"),
    [
        (60, 900, 2, 4, "euclidean", True),
        (900, 60, 2, 4, "euclidean", True),
        (900, 60, 2, 4, "haversine", False),
        (300, 300, 2, 4, "euclidean", True),
        (300, 300, 2, 20, "euclidean", False),
        (1100, 100, 2, 4, "euclidean", False),
        (500, 500, 8, 4, "euclidean", True),
        (500, 500, 7, 4, "euclidean", False),
        (600, 500, 8, 4, "euclidean", False),
    ],
)
def test_work__where_there_are_few_rows_is_that_of_a_scan(n_queries, n, d, k, metric, are_few):
    random, told = np.random.default_rng(9), []
    queries, points = random.random((n_queries, d)), random.random((n, d))
    counters: dict[str, int] = {}
    found = knn_join(queries, points, k, metric, counters=counters, progress=told.append)
    if metric == "euclidean":
        checked(points, k, found, queries)
    assert (counters["comparisons"] == n_queries * n) == are_few
    assert told[-1] == 1.0


def test_work__of_few_rows_among_themselves_is_that_of_the_tree_sooner():
    points = np.random.default_rng(9).random((500, 8))
    counters: dict[str, int] = {}
    checked(points, 4, knn_join(None, points, 4, counters=counters))
    assert counters["comparisons"] < 500 * 500
