"""Pairs at the border of eps: every function on arrays decides on values as given, none on scaled ones.

In decimals two values at exactly eps abound, and dividing them by eps first moves the border both ways: it
loses some pairs and lets others in.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import epsjoin
from epsjoin import Cuts
from epsjoin.local.verify.brute_force import neighbours_by_brute_force
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.local.join.brute_force import found_pairs

DECIMALS = np.random.default_rng(8).integers(0, 31, (2, 90)).T / [1.0, 10.0]
TABLE = np.random.default_rng(9).integers(0, 31, (2, 90)).T / [1.0, 10.0]
ONE_EPS, EPS = 3.0, np.array([7.0, 0.3])
METRICS = ("chebyshev", "euclidean", "manhattan")
ALL_CUTS = (
    None,
    Cuts(n_parts=5, replication_budget=math.inf),
    Cuts("regular", n_parts=3, replication_budget=1e9),
)


def apart(left, right):
    return np.abs(left[:, None] - right)


def within(left, right, eps):
    """The pairs within the border, as a matrix: the definition of chebyshev."""
    return (apart(left, right) <= eps).all(axis=2)


def pairs_of(matrix):
    return list(map(tuple, np.argwhere(matrix).tolist()))


def test_decimals__would_be_decided_otherwise_after_a_division():
    for eps in (ONE_EPS, EPS):
        scaled = (apart(DECIMALS / eps, TABLE / eps) <= 1.0).all(axis=2)
        right = within(DECIMALS, TABLE, eps)
        assert (right & ~scaled).sum() >= 5
    assert (scaled & ~right).sum() >= 5


def test_join__with_eps_per_dimension_finds_the_pair_at_exactly_eps():
    assert found_pairs(epsjoin.join([[22.0]], [[25.0]], eps=[3.0], metric="chebyshev")) == [(0, 0)]


@pytest.mark.parametrize("eps", [ONE_EPS, EPS], ids=["one eps", "eps of each"])
@pytest.mark.parametrize("cuts", ALL_CUTS, ids=["whole", "planned", "regular"])
def test_joins__decide_on_values_as_given(eps, cuts):
    two_tables = pairs_of(within(DECIMALS, TABLE, eps))
    one_table = pairs_of(np.triu(within(DECIMALS, DECIMALS, eps), 1))
    assert found_pairs(epsjoin.join(DECIMALS, TABLE, eps, "chebyshev", cuts=cuts)) == two_tables
    assert found_pairs(epsjoin.self_join(DECIMALS, eps, "chebyshev", cuts=cuts)) == one_table
    for metric in METRICS:
        if np.ndim(eps):
            expected = slow.scaled_pairs(DECIMALS, eps.tolist(), None, metric)
        else:
            expected = slow.brute_force(DECIMALS, eps, metric)
            weighted = epsjoin.self_join(DECIMALS, eps, metric, weights=[1.0, 1.0])
            assert found_pairs(weighted) == sorted(expected)
        assert found_pairs(epsjoin.self_join(DECIMALS, eps, metric, cuts=cuts)) == sorted(expected)


@pytest.mark.parametrize("eps", [ONE_EPS, EPS], ids=["one eps", "eps of each"])
def test_progressive_join__decides_on_values_as_given(eps):
    with epsjoin.progressive_join(DECIMALS, TABLE, epsjoin.Similarity(eps, "chebyshev")) as batches:
        pairs = [pair for batch, *_ in batches for pair in found_pairs(batch)]
    assert sorted(pairs) == pairs_of(within(DECIMALS, TABLE, eps))


@pytest.mark.parametrize("eps", [ONE_EPS, EPS], ids=["one eps", "eps of each"])
def test_best_matches__are_of_values_as_given(eps):
    """Of one right row, so that each pair within eps is best for its left row, and none hides another."""
    order = np.argsort(DECIMALS[:, 0], kind="stable")
    left = DECIMALS[order]
    n_moved = 0
    for one in TABLE:
        expected = np.flatnonzero(within(left, one[None], eps)[:, 0]).tolist()
        scaled = np.flatnonzero((np.abs(left / eps - one / eps) <= 1.0).all(axis=1)).tolist()
        n_moved += len(set(expected) ^ set(scaled))
        best = epsjoin.bestmatch_join(left, one[None], eps)
        assert best.left[best.right == 0].tolist() == expected
        stream = epsjoin.BestmatchStream(eps)
        done = [stream.push_left(left), stream.push_right(one[None]), stream.finish()]
        assert sorted(row for part in done for row in part.left[part.right == 0].tolist()) == expected
    assert n_moved > 10, "a division would decide as well: the test would show nothing"


@pytest.mark.parametrize("how", ["left", "right", "outer"])
@pytest.mark.parametrize("eps", [ONE_EPS, EPS], ids=["one eps", "eps of each"])
def test_bestmatch_join__has_a_partner_for_each_row_within_the_border(eps, how):
    matrix, best = within(DECIMALS, TABLE, eps), epsjoin.bestmatch_join(DECIMALS, TABLE, eps, how)
    is_pair = (best.left >= 0) & (best.right >= 0)
    assert matrix[best.left[is_pair], best.right[is_pair]].all()
    if how != "right":
        assert set(best.left[is_pair].tolist()) == set(np.flatnonzero(matrix.any(axis=1)).tolist())
    if how != "left":
        assert set(best.right[is_pair].tolist()) == set(np.flatnonzero(matrix.any(axis=0)).tolist())


def test_boxes_and_balls__decide_on_values_as_given():
    eps, expected = ONE_EPS, pairs_of(within(DECIMALS, TABLE, ONE_EPS))
    assert found_pairs(epsjoin.box_join((DECIMALS, DECIMALS), (TABLE, TABLE), eps, "chebyshev")) == expected
    of_each = np.full(90, eps)
    assert found_pairs(epsjoin.ball_join(DECIMALS, of_each, TABLE, of_each, "chebyshev")) == expected


@pytest.mark.parametrize("metric", METRICS)
def test_update_join__decides_on_values_as_given(metric):
    ids, moved = np.arange(90), DECIMALS.copy()
    moved[:9] = DECIMALS[40:49] + 0.1
    before = epsjoin.self_join(DECIMALS, ONE_EPS, metric)
    now = epsjoin.update_join(before, DECIMALS, moved, ids, ids, ONE_EPS, metric)
    assert found_pairs(now) == sorted(slow.brute_force(moved, ONE_EPS, metric))


@pytest.mark.parametrize("eps", [ONE_EPS, EPS], ids=["one eps", "eps of each"])
def test_dbscan__counts_values_as_given(eps):
    degree = within(DECIMALS, DECIMALS, eps).sum(axis=1)
    assert epsjoin.dbscan(DECIMALS, eps, 3, "chebyshev").degree.tolist() == degree.tolist()


def test_db_outliers__counts_values_as_given():
    n, degree = len(DECIMALS), within(DECIMALS, DECIMALS, ONE_EPS).sum(axis=1)
    for least in np.unique(degree).tolist():
        outliers = epsjoin.db_outliers(DECIMALS, ONE_EPS, 1 - (least + 0.5) / n, "chebyshev")
        assert outliers.tolist() == (degree <= least).tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_nearest__rank_values_as_given(metric):
    near = slow_outliers.knn(TABLE.tolist(), DECIMALS.tolist(), 4, lambda x, y: slow.distance(x, y, metric))
    nearest = epsjoin.knn_join(TABLE, DECIMALS, 4, metric)
    assert nearest.distance.tolist() == [[distance for distance, _ in of] for of in near]
    own = slow_outliers.knn(None, DECIMALS.tolist(), 4, lambda x, y: slow.distance(x, y, metric))
    assert epsjoin.k_distance(DECIMALS, 4, metric).tolist() == [of[-1][0] for of in own]


@pytest.mark.parametrize("metric", METRICS)
def test_verify__decides_on_values_as_given(metric):
    ids = np.arange(90)
    pairs = neighbours_by_brute_force(ids, DECIMALS, ids, DECIMALS, ONE_EPS, metric)
    both = zip(pairs.query.tolist(), pairs.other.tolist(), strict=True)
    assert sorted(pair for pair in both if pair[0] < pair[1]) == sorted(
        slow.brute_force(DECIMALS, ONE_EPS, metric)
    )


def test_division_of_a_difference__keeps_the_border():
    """|x - y| / eps is at most 1 where |x - y| is at most eps, and only there, so joins may divide."""
    random = np.random.default_rng(12)
    eps = np.ldexp(1.0 + random.random(100_000), random.integers(-900, 900, 100_000))
    eps[:60] = 2.0 - 2.0 ** -np.arange(1.0, 61.0)
    assert (np.nextafter(eps, np.inf) / eps > 1.0).all()
    assert (np.nextafter(eps, 0.0) / eps <= 1.0).all()
