"""Local outlier factors from pairs: exact where they can be known, NaN elsewhere, in parts as in one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from epsjoin.errors import ArgumentError
from epsjoin.local.neighbours.db_outliers import db_outliers
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.from_pairs import (
    Neighbours,
    k_distances,
    lof_from_neighbours,
    merge_nearest,
    nearest_within,
)
from epsjoin.local.neighbours.lof import lof
from epsjoin.local.neighbours.rank import deviating_dimensions, rank, robust_spread
from oracles import examples
from oracles import join as join_twin
from oracles import outliers as twin

SEEDS = st.integers(0, 10**6)
NAN = math.nan


def pairs_of(points, ids, eps):
    pairs = []
    for (i, x), (j, y) in itertools.combinations(enumerate(points.tolist()), 2):
        distance = math.dist(x, y)
        if distance <= eps:
            pairs.append((min(ids[i], ids[j]), max(ids[i], ids[j]), distance))
    return pairs


def random_pairs(n, seed, eps=2.0):
    """Points on a small integer grid, so that ties and equal points abound."""
    random = np.random.default_rng(seed)
    points = random.integers(0, max(2, int(1.5 * n**0.5)), (n, 2)).astype(float)
    ids = (random.permutation(n) * 3 - n).tolist()
    return ids, pairs_of(points, ids, eps)


def columns(pairs):
    left, right, distance = ([row[i] for row in pairs] for i in range(3))
    return np.array(left, np.int64), np.array(right, np.int64), np.array(distance, np.float64)


def listed(neighbours):
    """Id -> its [(distance, neighbour)], in the order given."""
    found = {}
    for point, other, distance in zip(*(column.tolist() for column in neighbours), strict=True):
        found.setdefault(point, []).append((distance, other))
    return found


def plain(values):
    return [None if math.isnan(value) else value for value in values.tolist()]


@examples(200)
@given(st.integers(0, 50), st.integers(1, 12), SEEDS)
def test_nearest_within__is_the_k_smallest_by_distance_then_id(n, k, seed):
    _, pairs = random_pairs(n, seed)
    found = nearest_within(*columns(pairs), k)
    assert listed(found) == twin.nearest(pairs, k)
    assert found.id.tolist() == sorted(found.id.tolist())


@examples(100)
@given(st.integers(0, 50), st.integers(1, 12), st.integers(1, 7), SEEDS)
def test_nearest_within__composes_over_chunks(n, k, n_chunks, seed):
    _, pairs = random_pairs(n, seed)
    random = np.random.default_rng(seed)
    dealt = random.integers(0, n_chunks, len(pairs))
    parts = [
        nearest_within(*columns([pair for pair, at in zip(pairs, dealt, strict=True) if at == chunk]), k)
        for chunk in random.permutation(n_chunks)
    ]
    whole = nearest_within(*columns(pairs), k)
    merged = merge_nearest(*(np.concatenate(column) for column in zip(*parts, strict=True)), k)
    assert [column.tolist() for column in merged] == [column.tolist() for column in whole]


@examples(200)
@given(st.integers(0, 50), st.integers(1, 12), SEEDS)
def test_lof__is_the_definition_and_nan_where_it_cannot_be_known(n, k, seed):
    ids, pairs = random_pairs(n, seed)
    expected = twin.lof(ids, pairs, k)
    found = lof_from_neighbours(np.array(ids, np.int64), nearest_within(*columns(pairs), k), k, 2.0)
    assert found.ids.tolist() == ids
    assert plain(found.k_distance) == [expected[point][0] for point in ids]
    # Both add in the order of (distance, id): the same bits.
    assert plain(found.lof) == [expected[point][1] for point in ids]
    near = twin.nearest(pairs, k)
    assert found.neighbours.tolist() == [len(near.get(point, [])) for point in ids]


@examples(60)
@given(st.integers(2, 60), st.integers(1, 12), SEEDS)
def test_lof__does_not_depend_on_row_order_or_on_the_share_of_ids(n, k, seed):
    ids, pairs = random_pairs(n, seed)
    random = np.random.default_rng(seed)
    whole = lof_from_neighbours(ids, nearest_within(*columns(pairs), k), k, 2.0)
    mixed = nearest_within(*columns([pairs[i] for i in random.permutation(len(pairs))]), k)
    some = random.permutation(n)[: n // 2]
    share = lof_from_neighbours(np.array(ids)[some], mixed, k, 2.0)
    for all_values, values in zip(whole, share, strict=True):
        np.testing.assert_array_equal(all_values[some], values)


@examples(20)
@given(st.integers(30, 120), st.integers(1, 12), SEEDS)
def test_lof__agrees_with_scikit_learn_where_there_are_no_ties(n, k, seed):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    theirs = LocalOutlierFactor(n_neighbors=k, algorithm="brute").fit(points)
    pairs = pairs_of(points, range(n), 100.0)
    found = lof_from_neighbours(range(n), nearest_within(*columns(pairs), k), k, 100.0)
    np.testing.assert_allclose(found.lof, -theirs.negative_outlier_factor_, rtol=1e-7)


@examples(150)
@given(st.sampled_from(join_twin.KINDS), st.integers(2, 50), st.integers(1, 3), st.integers(1, 12), SEEDS)
def test_lof__of_an_array_is_the_definition(kind, n, d, k, seed):
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    k = min(k, n - 1)
    pairs = [
        (i, j, join_twin.distance(x, y, "manhattan"))
        for (i, x), (j, y) in itertools.combinations(enumerate(points.tolist()), 2)
    ]
    found = lof(points, k, "manhattan")
    expected = twin.lof(list(range(n)), pairs, k)
    assert found.k_distance.tolist() == [expected[row][0] for row in range(n)]
    assert found.lof.tolist() == [expected[row][1] for row in range(n)]
    near = twin.nearest(pairs, k)
    assert found.neighbour.tolist() == [[other for _, other in near[row]] for row in range(n)]
    assert found.distance.tolist() == [[distance for distance, _ in near[row]] for row in range(n)]


@pytest.mark.parametrize("k", [1, 5, 20])
def test_lof__of_an_array_agrees_with_scikit_learn_where_there_are_no_ties(k):
    points = np.random.default_rng(k).normal(size=(300, 3))
    theirs = LocalOutlierFactor(n_neighbors=k).fit(points)
    np.testing.assert_allclose(lof(points, k).lof, -theirs.negative_outlier_factor_, rtol=1e-7)


def test_lof__of_an_array_refuses_a_k_that_no_point_has():
    with pytest.raises(ArgumentError, match="k must be at most the number of other points, 2, not 3"):
        lof([[0.0], [1.0], [2.0]], 3)


@examples(150)
@given(
    st.sampled_from(join_twin.KINDS),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 40).flatmap(lambda whole: st.tuples(st.integers(1, whole), st.just(whole))),
    SEEDS,
)
def test_db_outliers__are_far_from_a_share_of_all_points(kind, n, d, share, seed):
    points, eps = join_twin.awkward_points(kind, n, d, seed)
    expected = twin.db_outliers(n, join_twin.brute_force(points, eps), share)
    found = db_outliers(points, eps, share[0] / share[1])
    assert found.dtype == np.bool_
    assert found.tolist() == expected


def test_db_outliers__by_hand():
    # Of ten points nine are within 1 of one another, one pair at exactly 1: a share of 0.9 is nine of ten.
    points = [[each / 8] for each in range(9)] + [[9.0]]
    assert db_outliers(points, 1.0, 0.9).tolist() == [False] * 9 + [True]
    assert db_outliers(points, 1.0, 0.1).tolist() == [True] * 10
    assert db_outliers(points, 1.0, 0.91).tolist() == [False] * 10
    assert db_outliers(points, 8.0, 0.1).tolist() == [True] * 8 + [False, True]
    two_places = [[0.0]] * 18 + [[9.0]] * 7
    assert db_outliers(two_places, 1.0, 0.28).all()  # 7 of 25, though 0.28 * 25 > 7 in float64
    assert db_outliers(two_places, 1.0, 0.32).tolist() == [False] * 18 + [True] * 7
    assert db_outliers(np.empty((0, 2)), 1.0, 0.9).tolist() == []
    assert db_outliers([[1.0]], 1.0, 0.9).tolist() == [False]


@pytest.mark.parametrize("eps", [0.2, 0.4, 0.8, 1.2])
def test_lof__known_values_are_those_of_an_unlimited_eps(eps):
    points = np.random.default_rng(4).normal(size=(300, 2))
    everything = lof_from_neighbours(
        range(300), nearest_within(*columns(pairs_of(points, range(300), 50.0)), 5), 5, 50.0
    )
    found = lof_from_neighbours(
        range(300), nearest_within(*columns(pairs_of(points, range(300), eps)), 5), 5, eps
    )
    known = ~np.isnan(found.lof)
    assert 0 < known.sum() < 300
    assert (found.lof[known] == everything.lof[known]).all()
    assert (np.isnan(found.k_distance) == (everything.k_distance > eps)).all()


def test_lof__of_equal_points_is_one_and_infinite_next_to_them():
    points = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0]])
    pairs = pairs_of(points, range(6), 10.0)
    found = lof_from_neighbours(range(6), nearest_within(*columns(pairs), 2), 2, 10.0)
    assert found.lof[:3].tolist() == [1.0, 1.0, 1.0]  # R's dbscan package: inf / inf is 1
    assert found.lof[3] == math.inf  # its two nearest are 0 and 1 among the equal ones
    assert np.isfinite(found.lof[5])
    assert plain(found.lof) == [factor for _, factor in twin.lof(list(range(6)), pairs, 2).values()]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_lof__with_an_added_distance_is_finite_and_that_of_scikit_learn(metric):
    random = np.random.default_rng(9)
    points = np.concatenate((np.repeat(random.random((4, 2)), 30, axis=0), random.random((80, 2))))
    assert np.isinf(lof(points, 5, metric).lof).any()
    peer = LocalOutlierFactor(n_neighbors=5, metric=metric).fit(points)
    found = lof(points, 5, metric, added_distance=1e-10)
    assert np.isfinite(found.lof).all()
    assert found.lof == pytest.approx(-peer.negative_outlier_factor_, rel=1e-6)


@pytest.mark.parametrize("added", [-1e-10, math.inf, math.nan, "1", True])
def test_lof__refuses_a_distance_that_cannot_be_added(added):
    with pytest.raises(ArgumentError, match="added_distance must be a finite number of at least 0, not"):
        lof([[0.0], [1.0], [2.0]], 1, added_distance=added)


def test_lof__with_exactly_k_equal_points_has_finite_densities():
    points = np.array([[0.0], [0.0], [1.0], [2.0], [4.0]])
    found = lof_from_neighbours(
        range(5), nearest_within(*columns(pairs_of(points, range(5), 9.0)), 2), 2, 9.0
    )
    assert np.isfinite(found.lof).all()


def test_lof__ties_at_the_k_distance_go_to_the_smaller_id():
    # 0 has 1 and 2 at distance 1; with k = 1 only id 1 counts, as in scikit-learn, not both, as in the paper.
    found = nearest_within([0, 0, 1], [1, 2, 2], [1.0, 1.0, 2.0], 1)
    assert listed(found) == {0: [(1.0, 1)], 1: [(1.0, 0)], 2: [(1.0, 0)]}


def test_lof__of_a_point_without_pairs_is_unknown():
    found = lof_from_neighbours([9, 1, 2], nearest_within([1], [2], [0.5], 1), 1, 1.0)
    assert plain(found.k_distance) == [None, 0.5, 0.5]
    assert plain(found.lof) == [None, 1.0, 1.0]
    assert found.neighbours.tolist() == [0, 1, 1]


def test_lof__with_a_k_beyond_memory_is_unknown_for_all():
    found = lof_from_neighbours([1, 2], nearest_within([1], [2], [0.5], 2**40), 2**40, 1.0)
    assert np.isnan(found.lof).all()
    assert found.neighbours.tolist() == [1, 1]


def test_lof__of_no_points():
    assert all(column.size == 0 for column in lof_from_neighbours([], nearest_within([], [], [], 3), 3, 1.0))


def test_lof__bears_a_root_that_was_rounded_up():
    neighbours = nearest_within([1], [2], [math.nextafter(1.0, 2.0)], 1)
    assert lof_from_neighbours([1, 2], neighbours, 1, 1.0).lof.tolist() == [1.0, 1.0]


def test_k_distances__of_the_ids_with_k_neighbours():
    ids, distances = k_distances(nearest_within([1, 1, 2], [2, 3, 4], [0.1, 0.2, 0.3], 2), 2)
    assert ids.tolist() == [1, 2]
    assert distances.tolist() == [0.2, 0.3]


def test_densities_and_factors__of_one_point_by_hand():
    density = reach_densities(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    assert density.tolist() == [2 / 5]
    assert outlier_factors(density, np.array([[0.4, 1.2]])).tolist() == [2.0]


@examples(200)
@given(st.integers(0, 30), SEEDS)
def test_rank__is_the_order_of_the_three_lists(n, seed):
    random = np.random.default_rng(seed)
    ids = (random.permutation(n) - n // 2).tolist()
    k_distance = random.choice([0.0, 0.5, 1.0, NAN], n)
    lof = np.where(np.isnan(k_distance), NAN, random.choice([0.9, 1.0, math.inf, NAN], n))
    degree = random.integers(1, 4, n)
    expected = twin.rank(list(zip(ids, plain(k_distance), plain(lof), degree.tolist(), strict=True)))
    found = rank(np.array(ids, np.int64), k_distance, lof, degree)
    assert found.tolist() == [expected[point] for point in ids]
    assert sorted(found.tolist()) == list(range(1, n + 1))


def test_rank__puts_far_points_first_then_their_surroundings_then_factors():
    ids = [1, 2, 3, 4, 5, 6]
    k_distance = np.array([0.5, NAN, 0.5, 0.9, NAN, 0.7])
    lof = np.array([3.0, NAN, 1.0, NAN, NAN, NAN])
    assert rank(ids, k_distance, lof, [9, 4, 9, 9, 2, 9]).tolist() == [5, 2, 6, 3, 1, 4]


def test_deviating_dimensions__are_the_two_with_the_largest_z():
    points = np.array([[0.0, 0.0, 0.0], [1.0, -9.0, 4.0], [3.0, 1.0, -20.0]])
    found = deviating_dimensions(points, [0.0, 0.0, 0.0], [1.0, 3.0, 4.0])
    assert found.dimension.tolist() == [[0, 1], [1, 2], [2, 0]]  # 4 off the centre goes before 1
    assert found.z.tolist() == [[0.0, 0.0], [-3.0, 1.0], [-5.0, 3.0]]


def test_deviating_dimensions__without_spread_are_infinite_off_the_centre():
    found = deviating_dimensions(
        [[5.0, 1.0, 2.0], [9.0, 0.0, -1.0], [1e9, 0.0, 0.0]], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]
    )
    assert found.dimension.tolist() == [[2, 1], [2, 0], [0, 1]]
    assert found.z.tolist() == [[math.inf, math.inf], [-math.inf, 9.0], [1e9, 0.0]]


def test_deviating_dimensions__of_one_dimension_is_one():
    found = deviating_dimensions([[3.0]], [1.0], [2.0])
    assert found.dimension.tolist() == [[0]]
    assert found.z.tolist() == [[1.0]]


def test_robust_spread__is_the_standard_deviation_of_normal_data():
    points = np.random.default_rng(1).normal(3.0, 2.0, (20_000, 2))
    points[:2_000] = 1e6  # a tenth of outliers moves neither by much
    centre, spread = robust_spread(points)
    np.testing.assert_allclose(centre, 3.0, atol=0.4)
    np.testing.assert_allclose(spread, 2.0, rtol=0.2)
    assert [each.tolist() for each in robust_spread(np.array([[1.0], [2.0], [4.0]]))] == [[2.0], [1.4826]]


NEAR = Neighbours(np.array([1, 2]), np.array([2, 1]), np.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nearest_within([1], [2], [0.5], 0), "k must be a whole number, at least 1, not 0"),
        (lambda: nearest_within([1], [2], [NAN], 1), "never NaN"),
        (lambda: nearest_within([1], [2, 3], [0.5], 1), "equally long"),
        (lambda: lof_from_neighbours([1, 1], NEAR, 1, 1.0), "ids must be distinct: id 1 comes twice"),
        (lambda: lof_from_neighbours([1, 2], NEAR, 1, 0.4), "distance 0.5 is beyond eps = 0.4"),
        (lambda: lof_from_neighbours([1, 2], NEAR, 1, NAN), "beyond eps = nan"),
        (
            lambda: lof_from_neighbours([1, 2], Neighbours(*(column[::-1] for column in NEAR)), 1, 1.0),
            "sorted by",
        ),
        (lambda: k_distances(Neighbours(*(np.repeat(column, 2) for column in NEAR)), 1), "each row once"),
        (lambda: rank([1, 2], [NAN, NAN], [NAN, 1.0], [1, 1]), "cannot be known where the k-distance is not"),
        (lambda: rank([1, 1], [1.0, 1.0], [NAN, 1.0], [1, 1]), "ids must be distinct"),
        (lambda: deviating_dimensions([[1.0, 2.0]], [0.0], [1.0]), r"\(1, 2\), \(1,\) and \(1,\)"),
        (lambda: deviating_dimensions([[1.0]], [0.0], [-1.0]), "spread must be finite numbers, at least 0"),
        (lambda: db_outliers([[1.0]], 1.0, 0.0), "share must be a number above 0 and at most 1, not 0.0"),
        (lambda: db_outliers([[1.0]], 1.0, 1.5), "share must be .* not 1.5"),
        (lambda: db_outliers([[1.0]], 1.0, NAN), "share must be .* not nan"),
        (lambda: db_outliers([[NAN]], 1.0, 0.5), "points must be finite; row 0, column 0 is nan"),
        (lambda: robust_spread(np.empty((0, 2))), "at least one row"),
    ],
)
def test_outliers__refuse(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()
