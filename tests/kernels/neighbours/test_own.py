"""The k nearest of a tree's own points are those of the definition, also of a few of its points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.neighbours.own import search_own
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.tree import PointTree, make_lists
from oracles import INTERPRETED, examples

MAX_POINTS = 80 if INTERPRETED else 400


def check(points, k, positions):
    """Hold what is found of the points at some positions of the tree against all distances."""
    n = len(points)
    tree = PointTree.grow(points, np.arange(n), n, get_metric("euclidean"))
    lists = make_lists(n, k)
    compared = search_own(tree.boxes, tree.names, read_only(positions), lists)
    assert compared <= n * len(positions)
    squares = np.zeros((n, n))
    for column in points.T:
        squares += (column[:, None] - column[None]) ** 2
    distances = np.sqrt(squares)
    np.fill_diagonal(distances, np.inf)
    for row in range(n):
        wanted = np.argsort(distances[row], kind="stable")[: min(k, n - 1)]
        if row not in tree.names[positions]:
            wanted = wanted[:0]
        size = lists.sizes[row]
        assert lists.ids[row, :size][::-1].tolist() == wanted.tolist()
        assert lists.distances[row, :size][::-1].tolist() == distances[row, wanted].tolist()


@examples(150)
@given(
    st.integers(1, MAX_POINTS),
    st.sampled_from([1, 2, 3, 4, 5, 8, 17]),
    st.integers(1, 9),
    st.sampled_from([1.0, 0.3, 0.02]),
    st.sampled_from(["grid", "normal", "far"]),
    st.integers(0, 10**6),
)
def test_search_own__is_the_definition(n, d, k, share, kind, seed):
    """On a grid many points are equal or as far; far from the origin, squares of gaps have few digits."""
    random = np.random.default_rng(seed)
    points = random.integers(0, 4, (n, d)) / 8.0 if kind == "grid" else random.normal(size=(n, d))
    if kind == "far":
        points = points * random.random((n, 1)) ** 9 + 1e6
    check(points, k, np.flatnonzero(random.random(n) < share))


@pytest.mark.parametrize("k", [1, 3, 4, 32])
def test_search_own__of_few_points_lists_all_others(k):
    """A leaf that has no more than k other points bounds no distance."""
    for n in (1, 2, 4, 5, 33):
        check(np.random.default_rng(n).random((n, 3)), k, np.arange(n))
