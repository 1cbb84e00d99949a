"""Nearest neighbours from pairs and by search, local outlier factors, ranks: exact, in parts as in one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from epsjoin.errors import ArgumentError
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.db_outliers import db_outliers
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.from_pairs import NearestOfRows, complete, merge_nearest, nearest_within
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.lof import lof, lof_of_nearest
from epsjoin.local.neighbours.rank import deviating_dimensions, order_by_outlyingness, robust_spread
from oracles import examples
from oracles import join as join_twin
from oracles import outliers as twin
from tests.kernels.columns import pair_columns

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
    found = nearest_within(*pair_columns(pairs), k)
    assert listed(found) == twin.nearest(pairs, k)
    assert found.id.tolist() == sorted(found.id.tolist())


@examples(100)
@given(st.integers(0, 50), st.integers(1, 12), st.integers(1, 7), SEEDS)
def test_nearest_within__composes_over_chunks(n, k, n_chunks, seed):
    _, pairs = random_pairs(n, seed)
    random = np.random.default_rng(seed)
    dealt = random.integers(0, n_chunks, len(pairs))
    parts = [
        nearest_within(*pair_columns([pair for pair, at in zip(pairs, dealt, strict=True) if at == chunk]), k)
        for chunk in random.permutation(n_chunks)
    ]
    whole = nearest_within(*pair_columns(pairs), k)
    merged = merge_nearest(*(np.concatenate(column) for column in zip(*parts, strict=True)), k)
    assert [column.tolist() for column in merged] == [column.tolist() for column in whole]


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


@examples(50)
@given(
    st.sampled_from(join_twin.KINDS),
    st.integers(2, 50),
    st.lists(st.sampled_from([0.0, 0.25, 1.0, 5.0]), min_size=1, max_size=3),
    st.integers(1, 6),
    SEEDS,
)
def test_lof__with_weights_is_the_definition(kind, n, weights, k, seed):
    points, _ = join_twin.awkward_points(kind, n, len(weights), seed)
    k, ones = min(k, n - 1), [1.0] * len(weights)
    pairs = [
        (i, j, join_twin.scaled_sum(x, y, ones, weights, "manhattan"))
        for (i, x), (j, y) in itertools.combinations(enumerate(points.tolist()), 2)
    ]
    found = lof(points, k, "manhattan", weights=weights)
    expected = twin.lof(list(range(n)), pairs, k)
    assert found.k_distance.tolist() == [expected[row][0] for row in range(n)]
    assert found.lof.tolist() == [expected[row][1] for row in range(n)]


def from_pairs(points, eps, k, metric, seed, is_early=False):
    """What pairs within eps and a search of the others find; the pairs come in two batches, in any order.

    Points with few pairs may be searched early, between the batches.
    """
    left, right, distance = self_join(points, eps, metric)
    order = np.random.default_rng(seed).permutation(len(left))
    degree = np.bincount(np.concatenate([left, right]), minlength=len(points))
    near = NearestOfRows(len(points), k, is_searched=degree < k if is_early else None)
    for some in (order[: len(left) // 2], order[len(left) // 2 :]):
        near.add(left[some], right[some], distance[some])
        if is_early:
            near.search(np.flatnonzero(degree < k), points, get_metric(metric), 2, np.zeros)
            is_early = False
    n_open = near.find_open(eps).size
    return complete(near, points, eps, get_metric(metric)), n_open


@examples(200)
@given(
    st.sampled_from(join_twin.KINDS),
    st.integers(2, 60),
    st.integers(1, 3),
    st.integers(1, 12),
    st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    st.sampled_from([0.25, 1.0, 3.0]),
    st.booleans(),
    SEEDS,
)
def test_complete__is_the_knn_join_however_few_neighbours_the_pairs_have(
    kind, n, d, k, metric, factor, is_early, seed
):
    points, eps = join_twin.awkward_points(kind, n, d, seed)
    k = min(k, n - 1)
    found, _ = from_pairs(points, factor * eps, k, metric, seed, is_early)
    expected = knn_join(None, points, k, metric)
    assert found.neighbour.tolist() == expected.neighbour.tolist()
    assert found.distance.tolist() == expected.distance.tolist()
    by_pairs, by_join = lof_of_nearest(found), lof(points, k, metric)
    assert by_pairs.lof.tobytes() == by_join.lof.tobytes()
    assert by_pairs.k_distance.tobytes() == by_join.k_distance.tobytes()


@pytest.mark.parametrize(("metric", "eps"), [("haversine", 400.0), ("cosine", 0.01), ("minkowski", 0.02)])
def test_complete__is_the_knn_join_for_metrics_with_embedded_coordinates(metric, eps):
    random = np.random.default_rng(7)
    points = random.random((400, 2)) * [[170.0, 360.0]] - [[85.0, 180.0]]
    if metric == "minkowski":
        points, metric = points / 360, get_metric("minkowski", 3)
    points[200:240] = points[199]  # and some equal ones
    left, right, distance = self_join(points, eps, metric)
    near = NearestOfRows(len(points), 5)
    near.add(left, right, distance)
    chosen = metric if not isinstance(metric, str) else get_metric(metric)
    assert 0 < near.find_open(eps).size < len(points)
    found, expected = complete(near, points, eps, chosen), knn_join(None, points, 5, metric)
    assert found.neighbour.tolist() == expected.neighbour.tolist()
    assert found.distance.tolist() == expected.distance.tolist()


def test_complete__searches_nothing_where_the_pairs_have_all():
    points = np.random.default_rng(3).random((300, 2))
    _, n_open = from_pairs(points, 2.0, 5, "euclidean", 0)
    assert n_open == 0
    _, n_open = from_pairs(points, 0.05, 5, "euclidean", 0)
    assert 0 < n_open < 300


def test_find_open__trusts_no_neighbour_at_eps_itself():
    near = NearestOfRows(3, 1)
    near.add(np.array([0]), np.array([1]), np.array([math.nextafter(1.0, 2.0)]))  # a root that was rounded up
    assert near.find_open(1.0).tolist() == [0, 1, 2]
    assert near.find_open(1.1).tolist() == [2]


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


def test_db_outliers__with_weights_are_far_in_weighted_dimensions():
    points = [[0.0, 0.0], [1.0, 90.0], [2.0, 0.0], [9.0, 0.0]]
    assert db_outliers(points, 2.0, 0.75).tolist() == [False, True, False, True]
    assert db_outliers(points, 2.0, 0.75, weights=[1, 0]).tolist() == [False, False, False, True]
    assert db_outliers(points, 2.0, 0.75, weights=[0.01, 0]).tolist() == [False] * 4


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


def test_lof__refuses_points_of_which_no_factor_is_a_number():
    points = np.array([[0.0], [1.0], [2.5], [4.0], [1e200]])
    assert lof(points, 2).lof[4] == math.inf, "of all others it is a number"
    with pytest.raises(ArgumentError, match=r"row 0 \(one of 4\) has neighbours so far away"):
        lof(points[:4] * 1e170, 2)


def test_lof__of_equal_points_is_one_and_infinite_next_to_them():
    points = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0]])
    found = lof(points, 2)
    assert found.lof[:3].tolist() == [1.0, 1.0, 1.0]  # R's dbscan package: inf / inf is 1
    assert found.lof[3] == math.inf  # its two nearest are 0 and 1 among the equal ones
    assert np.isfinite(found.lof[5])
    assert np.isfinite(lof([[0.0], [0.0], [1.0], [2.0], [4.0]], 2).lof).all()  # exactly k equal points


def test_lof__ties_at_the_k_distance_go_to_the_smaller_id():
    # 0 has 1 and 2 at distance 1; with k = 1 only id 1 counts, as in scikit-learn, not both, as in the paper.
    found = nearest_within([0, 0, 1], [1, 2, 2], [1.0, 1.0, 2.0], 1)
    assert listed(found) == {0: [(1.0, 1)], 1: [(1.0, 0)], 2: [(1.0, 0)]}


def test_densities_and_factors__of_one_point_by_hand():
    density = reach_densities(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    assert density.tolist() == [2 / 5]
    assert outlier_factors(density, np.array([[0.4, 1.2]])).tolist() == [2.0]


def test_factors__where_densities_are_infinite_or_unknown():
    density = np.array([math.inf, math.inf, math.inf, 1.0, 1.0, NAN])
    of_neighbours = np.array(
        [[1.0, 2.0], [math.inf, 1.0], [math.inf, NAN], [1.0, math.inf], [NAN, 1.0], [1.0, 1.0]]
    )
    expected = [1.0, 1.0, NAN, math.inf, NAN, NAN]
    assert outlier_factors(density, of_neighbours).tolist() == pytest.approx(expected, nan_ok=True)


def test_lof__is_the_same_in_whatever_blocks_points_are_looked_at(monkeypatch):
    points = np.random.default_rng(1).integers(0, 9, (100, 2))
    whole = lof(points, 3)
    for block in (1, 20, 300):  # of neighbours: points one by one, by six, all
        monkeypatch.setattr("epsjoin.local.neighbours.lof._BLOCK", block)
        assert lof(points, 3).lof.tobytes() == whole.lof.tobytes()


@examples(200)
@given(st.integers(0, 400), SEEDS)
def test_outlyingness__is_by_factor_then_k_distance_then_row(n, seed):
    """Runs of ties are short ones and, of more than some 260 rows, long ones. Some differ in one bit."""
    random = np.random.default_rng(seed)
    k_distance = random.choice([0.0, 0.5, 1.0, math.inf, NAN], n)
    lof = random.choice([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), math.inf, NAN], n)
    expected = twin.rank(list(zip(range(n), plain(k_distance), plain(lof), strict=True)))
    found = order_by_outlyingness(lof, k_distance)
    assert found.tolist() == sorted(expected, key=expected.__getitem__)


def test_outlyingness__is_the_same_for_any_number_of_threads():
    """Of so many rows each thread has some; runs of ties lie across the places where those of one end."""
    random = np.random.default_rng(2)
    n = 1 << 16
    lof = np.repeat(random.permutation(16), n // 16) % 7 + random.choice([0.0, 1e-9, NAN], n)
    lof[: n // 8] = random.random(n // 8)
    k_distance = random.choice([0.5, 1.0, NAN], n)
    in_one = order_by_outlyingness(lof, k_distance)
    negative = [-np.where(np.isnan(column), math.inf, column) for column in (k_distance, lof)]
    assert in_one.tolist() == np.lexsort(negative).tolist()
    for n_jobs in (2, 3, 5):
        assert order_by_outlyingness(lof, k_distance, n_jobs).tobytes() == in_one.tobytes()


def test_outlyingness__by_hand():
    lof = np.array([1.0, 2.0, 1.0, math.inf, 2.0, 1.0])
    k_distance = np.array([3.0, 1.0, 4.0, 0.5, 2.0, 4.0])
    assert order_by_outlyingness(lof, k_distance).tolist() == [3, 4, 1, 2, 5, 0]


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
    assert [each.tolist() for each in robust_spread(np.empty((0, 2)))] == [[0.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nearest_within([1], [2], [0.5], 0), "k must be a whole number, at least 1, not 0"),
        (lambda: nearest_within([1], [2], [NAN], 1), "never NaN"),
        (lambda: nearest_within([1], [2, 3], [0.5], 1), "equally long"),
        (lambda: deviating_dimensions([[1.0, 2.0]], [0.0], [1.0]), r"\(1, 2\), \(1,\) and \(1,\)"),
        (lambda: deviating_dimensions([[1.0]], [0.0], [-1.0]), "spread must be finite numbers, at least 0"),
        (lambda: db_outliers([[1.0]], 1.0, 0.0), "share must be a number above 0 and at most 1, not 0.0"),
        (lambda: db_outliers([[1.0]], 1.0, 1.5), "share must be .* not 1.5"),
        (lambda: db_outliers([[1.0]], 1.0, NAN), "share must be .* not nan"),
        (lambda: db_outliers([[NAN]], 1.0, 0.5), "points must be finite; row 0, column 0 is nan"),
    ],
)
def test_outliers__refuse(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [40, 41])
def test_robust_spread__and_deviations_of_the_largest_numbers_are_those_of_small_ones(n):
    """Times a power of two, which rounds nothing; their sums and differences overflow."""
    random = np.random.default_rng(n)
    points = random.integers(9, 16, (n, 3)) / 2.0 * [1.0, -1.0, 2.0**-30]
    points[:3, 1] *= -1.0
    centre, spread = robust_spread(points)
    huge_centre, huge_spread = robust_spread(points * 2.0**1021)
    assert huge_centre.tolist() == (centre * 2.0**1021).tolist()
    assert huge_spread.tolist() == (spread * 2.0**1021).tolist()
    found = deviating_dimensions(points, centre, spread)
    huge = deviating_dimensions(points * 2.0**1021, huge_centre, huge_spread)
    assert [each.tolist() for each in huge] == [each.tolist() for each in found]


@pytest.mark.filterwarnings("error")
def test_robust_spread__of_numbers_that_lie_too_far_apart_is_infinite():
    largest = np.finfo(np.float64).max
    centre, spread = robust_spread(np.array([[largest], [-largest], [largest], [-largest]]))
    assert (centre.tolist(), spread.tolist()) == ([0.0], [np.inf])
    assert -2.0 < deviating_dimensions([[-8e306]], [largest], [largest]).z[0, 0] < -1.0
