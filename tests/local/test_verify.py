"""The independent check: brute force as the twin has it, and every fault that a point can show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from epsjoin.local.brute_force import QueryPairs, Scores, neighbours_by_brute_force
from epsjoin.local.join.arrays import self_join
from epsjoin.local.verify import (
    Cells,
    Chains,
    Labels,
    check_labels,
    compare_distances,
    compare_pairs,
    compare_scores,
    connect,
    missed_probability,
    nearest_cores,
    points_of_cells,
    torn_clusters,
)
from oracles import examples
from oracles import join as twin
from oracles.cluster import dbscan_of_rows

METRICS = ["euclidean", "manhattan", "chebyshev", "cosine", "haversine"]


def brute_force(points, eps, metric, queries=None):
    ids = np.arange(len(points))
    queries = ids if queries is None else np.asarray(queries)
    return neighbours_by_brute_force(queries, points[queries], ids, points, eps, metric)


def as_set(found):
    return set(zip(found.query.tolist(), found.other.tolist(), found.distance.tolist(), strict=True))


@examples(100)
@given(
    st.sampled_from(METRICS),
    st.integers(2, 4),
    st.lists(st.tuples(*[st.one_of(st.integers(-4, 4).map(float), st.floats(-80, 80))] * 4), max_size=12),
    st.one_of(st.sampled_from([1.0, 2.0, 5.0]), st.floats(0.01, 100)),
)
def test_brute_force__is_the_definition_bit_for_bit(metric, d, rows, eps):
    d = 2 if metric == "haversine" else d
    eps = eps * 100 if metric == "haversine" else eps
    points = np.array(rows).reshape(-1, 4)[:, :d]
    if metric == "cosine":
        points, eps = points[(np.abs(points) > 1e-100).any(axis=1)], eps / 100
    expected = {
        (i, j, twin.distance(x, y, metric))
        for i, x in enumerate(points.tolist())
        for j, y in enumerate(points.tolist())
        if i != j and twin.is_within(x, y, eps, metric)
    }
    assert as_set(brute_force(points, eps, metric)) == expected


@pytest.mark.parametrize(
    ("metric", "eps"),
    [("euclidean", 5.0), ("manhattan", 7.0), ("chebyshev", 4.0), ("cosine", 1e-5), ("haversine", 1000.0)],
)
def test_brute_force__has_the_bits_of_the_join(metric, eps):
    """More points than a batch has, ties at eps, equal points."""
    random = np.random.default_rng(1)
    points = np.r_[random.integers(-60, 60, (9000, 2)), random.integers(-60, 60, (9000, 2))] * 1.0
    points = points[points.any(axis=1)]  # what has no direction has no cosine
    queries = np.arange(0, len(points), 1500)
    left, right, distance = self_join(points, eps, metric)
    is_left, is_right = np.isin(left, queries), np.isin(right, queries)
    joined = QueryPairs(
        np.r_[left[is_left], right[is_right]],
        np.r_[right[is_left], left[is_right]],
        np.r_[distance[is_left], distance[is_right]],
    )
    assert as_set(brute_force(points, eps, metric, queries)) == as_set(joined)


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


@pytest.mark.parametrize("divisions", [1, 2, 7])
def test_points_of_cells__does_not_depend_on_how_the_points_are_divided(divisions):
    random = np.random.default_rng(2)
    ids, points = random.permutation(3000), random.random((3000, 3)) ** 3
    cells = Cells.over(points[:100], seed=5)
    whole = points_of_cells(ids, points, cells, 10, 4)
    rows = np.concatenate(
        [
            rows[points_of_cells(ids[rows], points[rows], cells, 10, 4)]
            for rows in np.array_split(np.arange(3000), divisions)
        ]
    )
    assert ids[rows[points_of_cells(ids[rows], points[rows], cells, 10, 4)]].tolist() == ids[whole].tolist()
    chosen, counts = np.unique(cells.of(points[whole]), return_counts=True)
    assert len(chosen) == 10
    in_all = [int((cells.of(points) == cell).sum()) for cell in chosen]
    assert counts.tolist() == [min(4, n) for n in in_all]


def test_points_of_cells__takes_thin_cells_as_often_as_dense_ones():
    points = np.r_[np.zeros((990, 2)), np.column_stack([np.linspace(1, 100, 10)] * 2)]
    taken = [
        (points_of_cells(np.arange(1000), points, Cells.over(points, seed), 1, 5) >= 990).any()
        for seed in range(50)
    ]
    assert sum(taken) > 35  # one in 100 points, but 9 in 10 cells


def test_points_of_cells__takes_random_points_of_a_cell():
    points = np.zeros((1000, 2))
    taken = [
        points_of_cells(np.arange(1000), points, Cells.over(points, seed), 1, 10).mean() for seed in range(20)
    ]
    assert 400 < np.mean(taken) < 600
    assert len(set(taken)) > 15


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


def test_nearest_cores__of_several_as_near_is_the_one_with_the_smallest_id():
    random = np.random.default_rng(8)
    ids, cores, distance = (
        random.integers(0, 40, 500),
        random.permutation(500),
        random.integers(0, 3, 500) / 2,
    )
    found = nearest_cores(ids, cores, distance, cores + 1000)
    expected = {}
    for id_, near in zip(ids.tolist(), zip(distance.tolist(), cores.tolist(), strict=True), strict=True):
        expected[id_] = min(near, expected.get(id_, near))
    assert (
        dict(zip(found.ids.tolist(), zip(found.distance, found.cores, strict=True), strict=True)) == expected
    )
    assert (found.clusters == found.cores + 1000).all()
    halves = [
        nearest_cores(ids[half], cores[half], distance[half], cores[half])
        for half in (slice(250), slice(250, 500))
    ]
    assert found.merge(halves).cores.tolist() == found.cores.tolist()
    nothing = np.empty(0, np.int64)
    assert len(nearest_cores(nothing, nothing, np.empty(0), nothing).ids) == 0


def test_missed_probability__is_that_of_a_draw_without_replacement():
    assert missed_probability(0.1, 10, 3) == pytest.approx(0.7)
    assert missed_probability(0.2, 10, 3) == pytest.approx((8 * 7 * 6) / (10 * 9 * 8))
    assert missed_probability(0.001, 10**9, 1000) == pytest.approx(0.999**1000, rel=1e-3)
    assert missed_probability(0.5, 10, 6) == 0.0
    assert missed_probability(0.001, 100, 10) == pytest.approx(0.9)  # a share above 0 is one point at least


@examples(200)
@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60))
def test_connect__is_what_scipy_says(n, edges):
    left, right = np.array([(i % n, j % n) for i, j in edges], np.int64).reshape(-1, 2).T
    _, labels = connected_components(coo_matrix((np.ones(len(left)), (left, right)), (n, n)), directed=False)
    _, first = np.unique(labels, return_index=True)
    assert connect(left, right, n).tolist() == first[labels].tolist()


@pytest.mark.parametrize("order", ["rising", "falling", "random"])
def test_connect__follows_a_long_chain(order):
    random = np.random.default_rng(0)
    along = {
        "rising": np.arange(20_000),
        "falling": np.arange(20_000)[::-1],
        "random": random.permutation(20_000),
    }
    path = along[order]
    assert not connect(path[:-1], path[1:], 20_000).any()


def chains_of(pairs, cluster):
    left, right = np.array(pairs).T
    return Chains(left, right, np.full(len(left), cluster))


def test_torn_clusters__are_those_whose_chains_do_not_meet_however_they_are_merged():
    parts = [
        Chains.merge([chains_of([(1, 4), (9, 30)], 1)]),
        Chains.merge([chains_of([(2, 5), (5, 6)], 2)]),
        Chains.merge([chains_of([(9, 12), (40, 41)], 1)]),
    ]
    assert list(torn_clusters(Chains.merge(parts))) == [
        "cluster 1 is 3 clusters: no chain of core points connects 1 and 9"
    ]
    assert list(torn_clusters(Chains.merge(parts[:1]))) == [
        "cluster 1 is 2 clusters: no chain of core points connects 1 and 9"
    ]
    whole = Chains.merge([Chains.merge(parts), chains_of([(30, 4), (12, 40)], 1)])
    assert list(torn_clusters(whole)) == []
    assert whole.roots.tolist() == [1, 2, 1, 2, 2, 1, 1, 1, 1, 1]
    assert list(torn_clusters(Chains.merge([Chains(*(np.empty(0, np.int64),) * 3)]))) == []


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
