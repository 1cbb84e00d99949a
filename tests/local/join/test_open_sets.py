"""Joins of the real sets give the numbers that scikit-learn and SciPy counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.local.join.arrays import iter_join, iter_self_join, join, self_join
from epsjoin.local.metric import METRICS
from tests import open_sets

FEASIBLE = 10**8  # pairs: the ten billion of skin at 1.5 take minutes
JOINS = [
    (name, join_of["metric"], join_of["eps"], join_of["self_pairs_i_lt_j"])
    for name, expected in open_sets.EXPECTED.items()
    for join_of in expected["joins"]
    if join_of["self_pairs_i_lt_j"] < FEASIBLE
]
EUCLIDEAN = [
    (name, expected["two_set_even_odd"], expected["bestmatch_even_to_odd"])
    for name, expected in open_sets.EXPECTED.items()
]
TWO_SETS = [one for one in EUCLIDEAN if one[1]["pairs"] < FEASIBLE]  # without skin's five billion


def n_pairs(batches):
    return sum(len(batch.left) for batch in batches)


def even_and_odd(name):
    points = open_sets.read(name)
    return points[::2], points[1::2]


def nearest_distances(left, right, eps):
    """Distance of each left row to its nearest right row: a larger eps for those that have none within it."""
    nearest = np.full(len(left), math.inf)
    rows = np.arange(len(left))
    while len(rows):
        for batch in iter_join(left[rows], right, eps, n_jobs=2):
            np.minimum.at(nearest, rows[batch.left], batch.distance)
        rows = rows[join(left[rows], right, eps, how="anti", n_jobs=2).left]
        assert (nearest[rows] == math.inf).all()
        eps *= 2.0
    return nearest


def test_expected__has_the_rows_of_the_files():
    assert len(JOINS) == 26
    for name, expected in open_sets.EXPECTED.items():
        points = open_sets.read(name)
        assert points.shape == (expected["n"], expected["dims"])
        assert len(np.unique(points, axis=0)) == expected["distinct_rows"]


@pytest.mark.parametrize(
    ("name", "metric", "eps", "pairs"),
    [
        pytest.param(*each, marks=[pytest.mark.long] * (each[:2] == ("optdigits", "chebyshev")))
        for each in JOINS
    ],
)
def test_self_join__of_a_real_set_has_the_expected_pairs(name, metric, eps, pairs):
    assert metric in METRICS
    assert n_pairs(iter_self_join(open_sets.read(name), eps, metric, n_jobs=2)) == pairs


@pytest.mark.parametrize("name", ["landmarks", "pendigits", "digits", "zcta510"])
def test_self_join__of_a_real_set_is_that_of_a_tree(name):
    points = open_sets.read(name)
    eps = open_sets.EXPECTED[name]["joins"][0]["eps"]
    expected = cKDTree(points).query_pairs(eps, output_type="ndarray")
    expected = expected[np.lexsort((expected[:, 1], expected[:, 0]))]
    found = self_join(points, eps, n_jobs=2)
    assert (np.column_stack((found.left, found.right)) == expected).all()


@pytest.mark.parametrize(("name", "two_sets", "best"), TWO_SETS)
def test_join__of_even_and_odd_rows_has_the_expected_pairs_and_partners(name, two_sets, best):
    left, right = even_and_odd(name)
    eps = two_sets["eps"]
    assert n_pairs(iter_join(left, right, eps, n_jobs=2)) == two_sets["pairs"]
    assert len(join(left, right, eps, how="semi", n_jobs=2).left) == best["within_eps"]
    assert len(join(left, right, eps, how="anti", n_jobs=2).left) == len(left) - best["within_eps"]
    outer = iter_join(left, right, eps, how="left", n_jobs=2)
    assert n_pairs(outer) == two_sets["pairs"] + len(left) - best["within_eps"]


@pytest.mark.parametrize(("name", "two_sets", "best"), EUCLIDEAN)
def test_join__of_even_and_odd_rows_has_the_expected_nearest(name, two_sets, best):
    left, right = even_and_odd(name)
    eps = 0.005 if name == "skin" else two_sets["eps"]
    nearest = nearest_distances(left, right, eps)
    assert nearest.sum() == pytest.approx(best["sum_nearest_distance"], rel=1e-12)
    assert nearest.max() == pytest.approx(best["max"], rel=1e-15)
    assert np.count_nonzero(nearest <= two_sets["eps"]) == best["within_eps"]


def test_self_join__of_equal_rows_only_has_the_expected_pairs():
    skin = open_sets.EXPECTED["skin"]
    counters: dict[str, int] = {}
    degree = np.zeros(skin["n"], np.int64)
    for batch in iter_self_join(open_sets.read("skin"), 1e-9, n_jobs=2, counters=counters):
        assert not batch.distance.any()
        degree += np.bincount(batch.left, minlength=skin["n"]) + np.bincount(batch.right, minlength=skin["n"])
    assert counters["pairs"] == skin["equal_row_pairs"]
    assert degree.max() + 1 == skin["max_multiplicity"]


@pytest.mark.parametrize("eps", [1.0, 25.0, pytest.param(400.0, marks=pytest.mark.long)])
def test_self_join__of_navaids_is_that_of_a_tree_of_chords(eps):
    places = open_sets.numbers("navaids")
    lat, lon = np.radians(places).T
    on_sphere = np.stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)), axis=1)
    chord = 2.0 * math.sin(eps / (2.0 * 6371.0088))
    tree = cKDTree(on_sphere)
    surely, perhaps = (tree.query_pairs(chord * (1.0 + t), output_type="set") for t in (-1e-9, 1e-9))
    found = self_join(places, eps, "haversine", n_jobs=2)
    pairs = set(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert len(pairs) == len(found.left) > 300
    assert surely <= pairs <= perhaps
    in_radians = self_join(np.radians(places), eps / 6371.0088, "haversine_radians", n_jobs=2)
    assert len(surely ^ perhaps) <= 1
    assert abs(len(in_radians.left) - len(pairs)) <= len(surely ^ perhaps)
