"""Every fault that stored rows can show is named, and right rows are passed in silence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.local.join.arrays import self_join
from epsjoin.local.verify.brute_force import QueryPairs, Scores, neighbours_by_brute_force
from epsjoin.local.verify.compare import (
    Labels,
    check_labels,
    compare_distances,
    compare_pairs,
    compare_scores,
)
from oracles.cluster import dbscan_of_rows

METRICS = ["euclidean", "manhattan", "chebyshev", "cosine", "haversine"]


def brute_force(points, eps, metric, queries=None):
    ids = np.arange(len(points))
    queries = ids if queries is None else np.asarray(queries)
    return neighbours_by_brute_force(queries, points[queries], ids, points, eps, metric)


# 0 - 1 - 2 within 1.5 of each other (one apart), 3 at the border of 2, 4 alone
LINE = np.array([[0.0], [1.0], [2.0], [3.5], [9.0]])
EPS, MIN_PTS = 1.5, 3


def right_labels():
    pairs = self_join(LINE, EPS)
    return Labels(np.arange(5), *dbscan_of_rows(5, *pairs, MIN_PTS))


def test_right_tables__are_silent():
    found = brute_force(LINE, EPS, "euclidean")
    assert list(compare_pairs(found, found)) == []
    assert list(check_labels(np.arange(5), found, right_labels(), MIN_PTS)) == []
    assert right_labels().role.tolist() == ["border", "core", "core", "border", "noise"]


def stored_without(found, left, right):
    keep = ~(np.isin(found.query, [left, right]) & np.isin(found.other, [left, right]))
    return QueryPairs(*(column[keep] for column in found))


def test_compare_pairs__names_what_is_missing_added_and_changed():
    found = brute_force(LINE, EPS, "euclidean")
    assert list(compare_pairs(found, stored_without(found, 1, 2))) == ["pair (1, 2) at 1.0 is missing"]
    assert list(compare_pairs(stored_without(found, 1, 2), found)) == [
        "pair (1, 2) at 1.0 is stored, but these points are no pair"
    ]
    other_bits = found._replace(distance=np.where(found.distance == 1.0, math.nextafter(1, 2), 1.5))
    assert list(compare_pairs(found, other_bits)) == [
        "pair (0, 1) is stored at 1.0000000000000002, its distance is 1.0",
        "pair (1, 2) is stored at 1.0000000000000002, its distance is 1.0",
    ]
    zeros = [
        QueryPairs(np.array([0]), np.array([1]), np.array([distance])) for distance in (0.0, -0.0, 5e-324)
    ]
    assert list(compare_pairs(zeros[0], zeros[0])) == []
    assert [list(compare_pairs(zeros[0], each)) for each in zeros[1:]] == [
        ["pair (0, 1) is stored at -0.0, its distance is 0.0"],
        ["pair (0, 1) is stored at 5e-324, its distance is 0.0"],
    ]


def test_compare_pairs__sees_a_pair_from_either_end():
    found = brute_force(LINE, EPS, "euclidean", queries=[2])
    assert list(compare_pairs(found, stored_without(found, 2, 1))) == ["pair (1, 2) at 1.0 is missing"]
    assert list(compare_pairs(found, found)) == []


@pytest.mark.parametrize(
    ("column", "point", "value", "sentence"),
    [
        ("degree", 1, 4, "point 1: degree 4 is stored, 3 points are within eps, itself included"),
        ("role", 1, "border", "point 1: role border is stored, it is core (degree 3, min_pts 3)"),
        ("role", 3, "noise", "point 3: role noise is stored, it is border (degree 2, min_pts 3)"),
        ("role", 4, "border", "point 4: role border is stored, it is noise (degree 1, min_pts 3)"),
        ("cluster_id", 4, 1, "point 4: it is noise, but in cluster 1"),
        ("cluster_id", 3, 7, "point 3: cluster 7 is stored, its nearest core point 2 is in 1"),
        ("cluster_id", 2, 0, "point 2: it is core in cluster 0, the core point 1 within eps is in 1"),
        ("cluster_id", 1, 2, "point 1: cluster 2 is stored, it is named by its smallest core id, at most 1"),
    ],
)
def test_check_labels__says_what_is_wrong(column, point, value, sentence):
    labels = right_labels()
    wrong = getattr(labels, column).copy()
    wrong[point] = value
    found = brute_force(LINE, EPS, "euclidean", queries=[point])
    faults = list(check_labels(np.array([point]), found, labels._replace(**{column: wrong}), MIN_PTS))
    assert faults == [sentence]


def test_check_labels__takes_the_nearest_core_and_of_equals_the_smallest_id():
    # 3 is one away from the cores 1 (cluster 0) and 5 (cluster 4), and not core itself
    found = QueryPairs(np.array([3, 3]), np.array([5, 1]), np.array([1.0, 1.0]))
    role = np.array(["core", "border", "core"])
    labels = Labels(np.array([1, 3, 5]), np.array([0, 0, 4]), role, np.array([9, 3, 9]))
    assert list(check_labels(np.array([3]), found, labels, 4)) == []
    nearer = found._replace(distance=np.array([0.5, 1.0]))
    assert list(check_labels(np.array([3]), nearer, labels, 4)) == [
        "point 3: cluster 0 is stored, its nearest core point 5 is in 4"
    ]


def test_check_labels__says_that_a_point_has_no_labels():
    found = brute_force(LINE, EPS, "euclidean", queries=[4])
    labels = Labels(*(column[:4] for column in right_labels()))
    assert list(check_labels(np.array([4]), found, labels, MIN_PTS)) == ["point 4: it has no row in clusters"]


@pytest.mark.parametrize("metric", METRICS)
def test_compare_distances__is_silent_on_a_join_and_sees_one_bit(metric):
    points = np.random.default_rng(4).random((300, 2))
    left, right, distance = self_join(points, {"haversine": 10.0, "cosine": 1e-4}.get(metric, 0.1), metric)
    ends = points[left], points[right]
    assert len(left) > 100
    assert list(compare_distances(left, right, distance, *ends, metric)) == []
    distance[7] = np.nextafter(distance[7], 100.0)
    (said,) = compare_distances(left, right, distance, *ends, metric)
    assert said.startswith(
        f"pair ({left[7]}, {right[7]}) is stored at {float(distance[7])!r}, its distance is"
    )
    same = points[:1], points[:1]
    assert list(compare_distances([3], [4], np.array([0.0]), *same, metric)) == []
    (said,) = compare_distances([3], [4], np.array([-0.0]), *same, metric)
    assert said == "pair (3, 4) is stored at -0.0, its distance is 0.0"


def test_compare_scores__names_what_is_off_by_one_bit_unknown_or_missing():
    ids, scored = np.array([1, 3, 5, 7]), np.array([1, 3])
    right = Scores(ids, np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, np.nan, 9.0, 9.0]))
    assert list(compare_scores(right, scored, right)) == []
    stored = Scores(
        ids[:3], np.array([1.0, math.nextafter(2, 3), 3.0]), np.array([math.nextafter(1, 2), 1.5, 8.0])
    )
    assert list(compare_scores(right, scored, stored)) == [
        "point 1: lof 1.0000000000000002 is stored, it is 1.0",
        "point 3: k_distance 2.0000000000000004 is stored, it is 2.0",
        "point 3: lof 1.5 is stored, it is null",
        "point 7: it has no row in outliers",
    ]
    zero, wrong = (Scores(ids[:2], np.zeros(2), np.array(lof)) for lof in ([0.0, 1.0], [-0.0, np.nan]))
    assert list(compare_scores(zero, scored, wrong)) == [
        "point 1: lof -0.0 is stored, it is 0.0",
        "point 3: lof null or NaN is stored, it is 1.0",
    ]
