"""DBSCAN of given pairs: that of the points where they are all pairs, the definition whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN

import epsjoin
from epsjoin import Pairs, dbscan_pairs
from epsjoin.errors import ArgumentError
from oracles import cluster as twin
from oracles import examples

SEEDS = st.integers(0, 10**6)


@examples(200)
@given(SEEDS, st.integers(0, 12), st.integers(1, 5), st.booleans(), st.integers(1, 9))
def test_dbscan_pairs__is_the_definition_of_any_pairs(seed, n, min_pts, is_weighted, batch_rows):
    random = np.random.default_rng(seed)
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = [pair for pair in every if random.random() < 0.3]
    random.shuffle(chosen)
    left, right = np.array(chosen, np.int64).reshape(-1, 2).T
    distance = random.integers(0, 3, len(chosen)).astype(float)
    weight = random.integers(-1, 3, n).astype(float) if is_weighted else None
    rows = list(zip(left.tolist(), right.tolist(), distance.tolist(), strict=True))
    weights = None if weight is None else dict(enumerate(weight.tolist()))
    expected = twin.dbscan(list(range(n)), rows, min_pts, weights)
    whole = Pairs(left, right, distance)
    batches = (
        Pairs(*(column[begin : begin + batch_rows] for column in whole))
        for begin in range(0, len(left), batch_rows)
    )
    for pairs in (whole, batches):
        found = dbscan_pairs(pairs, n, min_pts, sample_weight=weight)
        assert found.degree.tolist() == [expected[row][2] for row in range(n)]
        assert found.is_core.tolist() == [expected[row][1] == "core" for row in range(n)]
        assert found.labels.tolist() == twin.numbered([expected[row][0] for row in range(n)])


def test_dbscan_pairs__of_all_pairs_of_points_is_their_dbscan():
    points = np.random.default_rng(3).random((3000, 2))
    expected = epsjoin.dbscan(points, 0.02, 4)
    assert 10 < expected.labels.max() < 1000
    for pairs in (epsjoin.self_join(points, 0.02), epsjoin.iter_self_join(points, 0.02)):
        for one, other in zip(dbscan_pairs(pairs, 3000, 4), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    rows = dbscan_pairs(epsjoin.row_pairs(points, 0.02), 3000, 4)
    np.testing.assert_array_equal(rows.is_core, expected.is_core)
    np.testing.assert_array_equal(rows.labels[rows.is_core], expected.labels[rows.is_core])


def test_dbscan_pairs__of_space_and_time_is_that_of_scikit_learn():
    random = np.random.default_rng(5)
    place, hour = random.random((600, 2)), random.uniform(0, 100, 600)
    near = epsjoin.self_join(place, 0.1)
    is_soon = np.abs(hour[near.left] - hour[near.right]) <= 10.0
    found = dbscan_pairs(Pairs(*(column[is_soon] for column in near)), 600, 4)
    far = np.linalg.norm(place[:, None] - place, axis=2) / 0.1
    both = np.maximum(far, np.abs(hour[:, None] - hour) / 10.0)
    expected = DBSCAN(eps=1.0, min_samples=4, metric="precomputed").fit(both)
    core = np.zeros(600, bool)
    core[expected.core_sample_indices_] = True
    np.testing.assert_array_equal(found.is_core, core)
    np.testing.assert_array_equal(found.labels[core], expected.labels_[core])
    np.testing.assert_array_equal(found.labels == -1, expected.labels_ == -1)
    assert found.labels.max() > 3


def test_dbscan_pairs__takes_those_of_strings():
    words = ["cat", "cut", "cot", "dog", "fog", "zebra"]
    assert dbscan_pairs(epsjoin.string_join(words, 1), 6, 2).labels.tolist() == [0, 0, 0, 1, 1, -1]


NOTHING = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@pytest.mark.parametrize(
    ("pairs", "n", "sentence"),
    [
        (Pairs([0], [2], [1.0]), 2, r"right must be row numbers from 0 to 1; entry 0 is 2"),
        (Pairs([-1], [1], [1.0]), 2, "left must be row numbers"),
        (Pairs([1], [0], [1.0]), 2, r"pairs have left < right; entry 0 is \(1, 0\)"),
        (Pairs([1], [1], [0.0]), 2, r"entry 0 is \(1, 1\)"),
        (Pairs([0, 1, 0], [1, 2, 1], [1.0] * 3), 3, r"the pair \(0, 1\) comes twice"),
        (Pairs([0], [1, 2], [1.0]), 3, "equally long, not left 1, right 2"),
        ([(0, 1)], 2, "batches of Pairs, not tuple"),
        (None, 2, "batches of Pairs, not NoneType"),
        (NOTHING, -1, "n must be"),
    ],
)
def test_dbscan_pairs__says_what_is_wrong(pairs, n, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        dbscan_pairs(pairs, n, 2)


def test_dbscan_pairs__of_nobody_and_of_nothing():
    assert dbscan_pairs(NOTHING, 0, 2).labels.tolist() == []
    assert dbscan_pairs([], 2, 1).labels.tolist() == [0, 1], "each alone is a cluster"
    assert dbscan_pairs(NOTHING, 2, 2).labels.tolist() == [-1, -1]
    with pytest.raises(ArgumentError, match="min_pts"):
        dbscan_pairs(NOTHING, 2, 0)
