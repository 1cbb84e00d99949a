"""The k-nearest-neighbour join equals a look at everything, ties included, and does much less."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from epsjoin.errors import ArgumentError
from epsjoin.kernels.neighbours.knn import BLOCK
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.metric import METRICS, get_metric
from epsjoin.local.neighbours import by_joins, search
from epsjoin.local.neighbours.knn import k_distance, knn_join
from epsjoin.local.neighbours.tree import find_surplus_rows
from oracles import examples
from oracles import join as join_twin
from oracles import outliers as twin
from tests.local.neighbours.knn_cases import ROUNDED_ONCE, SEEDS, WAYS, by, chosen, many_joins, points_for


def sorted_by_all_distances(queries, points, k, metric):
    """Rows and distances by the package's distance of every pair, and a full sort."""
    asked = points if queries is None else queries
    both = np.concatenate((asked, points))
    left, right = (each.ravel() for each in np.indices((len(asked), len(points))))
    flat = paired_distances(metric.decision(math.inf), both, left, right + len(asked))
    distance = flat.reshape(len(asked), len(points))
    if queries is None:
        np.fill_diagonal(distance, np.inf)
    rows = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(distance, rows, axis=1)


@examples(200)
@given(
    st.sampled_from(sorted(set(METRICS) & {*ROUNDED_ONCE, "minkowski", "cosine", "haversine"})),
    st.sampled_from(join_twin.KINDS),
    st.integers(2, 60),
    st.integers(1, 5),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from(sorted(WAYS)),
    SEEDS,
)
def test_knn_join__is_a_full_sort(name, kind, n, d, k, is_self, way, seed):
    points = points_for(name, kind, n, d, seed)
    queries = None
    if not is_self:
        queries = np.concatenate((points[::3], points_for(name, "uniform", 9, d, seed + 1)))
    k = min(k, n - is_self)
    metric = chosen(name)
    with by(way):
        found = knn_join(queries, points, k, metric)
    rows, distance = sorted_by_all_distances(queries, points, k, metric)
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()


@examples(100)
@given(
    st.sampled_from(ROUNDED_ONCE),
    st.sampled_from(join_twin.KINDS),
    st.integers(2, 40),
    st.integers(1, 4),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(sorted(WAYS)),
    SEEDS,
)
def test_knn_join__is_the_definition(name, kind, n, d, k, is_self, way, seed):
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    queries = None if is_self else points[::-2] + 0.25
    k = min(k, n - is_self)
    with by(way):
        found = knn_join(queries, points, k, name)
    expected = twin.knn(
        None if queries is None else queries.tolist(),
        points.tolist(),
        k,
        lambda x, y: join_twin.distance(x, y, name),
    )
    assert found.neighbour.tolist() == [[row for _, row in each] for each in expected]
    assert found.distance.tolist() == [[distance for distance, _ in each] for each in expected]


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_scan__takes_every_point_of_every_block(name, n):
    random = np.random.default_rng(n)
    points, queries = random.integers(1, 6, (n, 3)).astype(float), random.integers(1, 6, (7, 3)).astype(float)
    found = knn_join(queries, points, n, name)  # all of them, in order
    rows, distance = sorted_by_all_distances(queries, points, n, chosen(name))
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev"])
def test_scan__sees_the_smallest_step_nearer(name):
    points = (1.0 - np.arange(300) * 2.0**-53)[:, None]
    assert knn_join([[0.0]], points, 2, name).neighbour.tolist() == [[299, 298]]


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev"])
def test_knn_join__agrees_with_scikit_learn(name):
    points = np.random.default_rng(8).normal(size=(500, 3))
    theirs, rows = NearestNeighbors(n_neighbors=6, metric=name).fit(points).kneighbors()
    with many_joins(32, 128):
        found = knn_join(None, points, 6, name)
    np.testing.assert_allclose(found.distance, theirs, rtol=1e-9)
    assert (found.neighbour == rows).all()
    assert k_distance(points, 6, name).tolist() == found.distance[:, -1].tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_places", [10, 300])
def test_knn_join__of_an_array_with_itself_finds_each_point_itself(way, n_places):
    """Unlike the points alone, of which none is its own neighbour; the array is the same object twice."""
    points = np.random.default_rng(4).random((n_places, 2)).repeat(600 // n_places, axis=0)
    with by(way):
        found = knn_join(points, points, 3)
    rows, distance = sorted_by_all_distances(points, points, 3, get_metric("euclidean"))
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()
    assert (found.distance[:, 0] == 0).all()


def with_square(number):
    """Twelve whole numbers whose squares add up to this number."""
    vector = []
    for _ in range(12):
        vector.append(math.isqrt(number))
        number -= vector[-1] ** 2
    assert number == 0
    return vector


def test_knn_join__does_not_lose_a_tie_that_rounding_of_the_root_made():
    # Squares N and N + 1 with one rounded root, and the root's square below N + 1: a join with just this eps
    # sees row 1 alone, but row 0 is as near, and smaller.
    for near in range(2**52 + 1, 2**52 + 100):
        root = math.sqrt(near)
        if root == math.sqrt(near + 1) and near <= root * root < near + 1:
            break
    else:
        pytest.fail("no such numbers")
    points = np.array([with_square(near + 1), with_square(near)], dtype=np.float64)
    with (
        many_joins(2),
        mock.patch.object(by_joins.Joins, "plan", return_value=by_joins.PlannedJoin(root, 1.0, 0.0)),
    ):
        found = knn_join(np.zeros((50, 12)), points, 1)
    assert found.neighbour.ravel().tolist() == [0] * 50
    assert (found.distance == root).all()


def test_knn_join__shows_its_progress_to_the_end():
    points = np.random.default_rng(5).random((20_000, 2))
    shown: list[float] = []
    knn_join(None, points, 1, progress=shown.append)
    assert len(shown) > 2
    assert shown == sorted(shown)
    assert shown[-1] == 1.0


@pytest.mark.parametrize("name", ["euclidean", "cosine"])
def test_equal_points__are_neighbours_of_one_another_but_not_of_themselves(name):
    points = np.tile([[1.0, 0.3], [0.1, 0.7]], (40, 1))
    found = knn_join(None, points, 3, name)
    rows, distance = sorted_by_all_distances(None, points, 3, get_metric(name))
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()
    assert found.neighbour[0].tolist() == [2, 4, 6]
    assert found.neighbour[4].tolist() == [0, 2, 6]


def test_surplus__is_found_whatever_the_hashes():
    points = np.array([[0.0], [1.0], [-0.0], [0.0], [1.0], [0.0]])
    assert find_surplus_rows(points, 2).tolist() == [-1, -1, -1, 0, -1, 0]
    assert find_surplus_rows(points, 1).tolist() == [-1, -1, 0, 0, 1, 0]


@pytest.mark.parametrize("k", [32, 33])  # lists in order, and heaps
def test_knn_join__of_many_neighbours_with_ties_is_a_full_sort(k):
    points = np.random.default_rng(9).integers(0, 12, (400, 2)).astype(np.float64)
    found = knn_join(None, points, k)
    rows, distance = sorted_by_all_distances(None, points, k, get_metric("euclidean"))
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()


def test_knn_join__of_no_queries_and_of_all_points():
    empty = knn_join(np.empty((0, 2)), np.ones((3, 2)), 5)
    assert (empty.neighbour.shape, empty.distance.shape) == ((0, 5), (0, 5))
    assert knn_join(None, np.empty((0, 2)), 5).neighbour.shape == (0, 5)
    assert knn_join([[1.0]], [[0.0], [3.0]], 2).neighbour.tolist() == [[0, 1]]


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_knn_join__bears_numbers_whose_squares_overflow():
    found = knn_join(None, [[0.0], [1e200], [-1e200], [1.0]], 2)
    assert found.neighbour.tolist() == [[3, 1], [0, 2], [0, 1], [0, 1]]
    assert found.distance[1].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("way", WAYS)
def test_knn_join__takes_distances_whose_powers_underflow_for_equally_far(way):
    """By an exponent of 100, what differs by less than a thousandth is at the distance 0."""
    points, metric = np.random.default_rng(3).random((400, 1)) ** 8, get_metric("minkowski", 100)
    rows, distance = sorted_by_all_distances(None, points, 3, metric)
    assert np.count_nonzero(distance == 0.0) > 50
    with by(way):
        found = knn_join(None, points, 3, metric)
    assert found.neighbour.tolist() == rows.tolist()
    assert found.distance.tolist() == distance.tolist()


def test_knn_join__takes_any_layout_and_leaves_it():
    points = np.random.default_rng(2).integers(0, 20, (80, 3))
    expected = knn_join(points[:30].astype(np.float64), points.astype(np.float64), 4)
    for kind in (np.asfortranarray, lambda each: each.astype(np.float32), lambda each: each.tolist()):
        left, right = kind(points[:30]), kind(points)
        found = knn_join(left, right, 4)
        assert [column.tolist() for column in found] == [column.tolist() for column in expected]
        assert (np.array(right) == points).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: knn_join(None, [[0.0], [1.0]], 2), "k must be at most the number of other points, 1, not 2"),
        (lambda: knn_join([[0.0]], [[0.0], [1.0]], 3), "k must be at most .* 2, not 3"),
        (lambda: knn_join(None, [[0.0], [1.0]], 0), "k must be a whole number, at least 1, not 0"),
        (
            lambda: knn_join([[0.0, 1.0]], [[0.0]], 1),
            "points and queries must have the same dimensions, not 1 and 2",
        ),
        (lambda: knn_join([[np.nan]], [[0.0]], 1), "queries must be finite; row 0, column 0 is nan"),
        (lambda: knn_join(None, [[0.0], [np.inf]], 1), "points must be finite; row 1, column 0 is inf"),
        (lambda: knn_join(None, [[0.0], [1.0]], 1, "hamming"), "unknown metric"),
        (lambda: knn_join([[0.0]], [[1.0]], 1, "cosine"), "queries: cosine needs vectors .*; row 0"),
        (lambda: knn_join(None, [[1.0], [0.0]], 1, "cosine"), "points: cosine needs vectors .*; row 1"),
        (lambda: k_distance([[0.0], [1.0]], 2), "k must be at most"),
        (
            lambda: knn_join(None, [[0.0], [1.0]], 1, weights=[1, 1]),
            r"weights must be one per dimension \(1\)",
        ),
        (lambda: knn_join(None, [[0.0], [1.0]], 1, weights=[-1]), "finite and at least 0"),
        (lambda: knn_join(None, [[1.0], [2.0]], 1, "cosine", weights=[1]), "cosine has .* no weights"),
    ],
)
def test_knn_join__refuses(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()


def test_knn_join__scans_a_bounded_number_of_coordinates_at_once(monkeypatch):
    points = np.random.default_rng(5).random((3000, 8))
    scanned, scan = [], search.knn.scan_nearest

    def count(decision, queries, rows, *rest):
        scanned.append(rows.size)
        return scan(decision, queries, rows, *rest)

    monkeypatch.setattr(search, "_MAX_TERMS_AT_ONCE", 100 * points.size)
    monkeypatch.setattr(search, "SCAN_FRACTION", 0.0)
    monkeypatch.setattr(search.knn, "scan_nearest", count)
    expected = sorted_by_all_distances(None, points, 3, chosen("euclidean"))
    found = knn_join(None, points, 3)
    assert max(scanned) == 100
    assert sum(scanned) == 3000 - search._SAMPLE_QUERIES
    assert found.neighbour.tolist() == expected[0].tolist()


def test_knn_join__refuses_counters_that_cannot_count():
    with pytest.raises(ArgumentError, match="counters must be a dictionary"):
        knn_join(None, [[0.0], [1.0]], 1, counters=[])
