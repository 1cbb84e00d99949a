"""Pairs as a sparse matrix, against the dense matrix of all distances; pairs by their rows alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin import KNearest, Pairs, RowPairs
from epsjoin.errors import ArgumentError
from oracles import examples
from oracles.join import between, brute_force

POINTS = st.integers(0, 10**6).map(
    lambda seed: np.random.default_rng(seed).integers(0, 9, (seed % 40, 2)).astype(float)
)


def entries_of(graph):
    """The entries of a matrix as a dictionary, checked as SciPy checks them."""
    matrix = scipy.sparse.csr_array(graph[:3], shape=graph.shape)
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format or matrix.nnz == 0
    assert graph.indices.dtype == graph.indptr.dtype == np.int32
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    return dict(
        zip(zip(rows.tolist(), graph.indices.tolist(), strict=True), graph.data.tolist(), strict=True)
    )


@examples(60)
@given(POINTS, st.booleans(), st.sampled_from(["distance", "ones"]))
def test_graph__of_one_table_has_each_pair_at_both_ends(points, is_shuffled, values):
    expected = {}
    for (i, j), distance in brute_force(points, 2.0).items():
        expected[i, j] = expected[j, i] = distance if values == "distance" else 1.0
    pairs = epsjoin.self_join(points, 2.0)
    if is_shuffled:
        order = np.random.default_rng(0).permutation(len(pairs.left))
        pairs = Pairs(*(column[order] for column in pairs))
    graph = epsjoin.as_graph(pairs, len(points), values=values)
    assert entries_of(graph) == expected
    assert graph.shape == (len(points), len(points))
    of_rows = epsjoin.as_graph(epsjoin.row_pairs(points, 2.0), len(points))
    assert entries_of(of_rows) == dict.fromkeys(expected, 1.0)


@examples(40)
@given(POINTS, POINTS)
def test_graph__of_two_tables_has_the_left_rows(points, others):
    pairs = epsjoin.join(points, others, 2.0)
    shape = len(points), len(others)
    assert entries_of(epsjoin.as_graph(pairs, shape)) == between(points, others, 2.0)
    rows = epsjoin.row_pairs(points, 2.0, right=others)
    assert (rows.left.dtype, rows.right.dtype) == (np.int32, np.int32)
    assert (rows.left.tolist(), rows.right.tolist()) == (pairs.left.tolist(), pairs.right.tolist())


def test_graph__of_nearest_neighbours_has_a_row_per_query():
    nearest = epsjoin.knn_join([[0.4], [9.0]], [[1.0], [0.0], [3.0]], k=2)
    expected = {(0, 0): 0.6, (0, 1): 0.4, (1, 0): 8.0, (1, 2): 6.0}
    assert entries_of(epsjoin.as_graph(nearest, 3)) == expected
    assert entries_of(epsjoin.as_graph(nearest, 3, values="ones")) == dict.fromkeys(expected, 1.0)
    as_lists = KNearest(*(column.tolist() for column in nearest))
    assert entries_of(epsjoin.as_graph(as_lists, 3)) == expected


@pytest.mark.parametrize(
    ("pairs", "n", "values", "says"),
    [
        (((0,), (5,)), 5, "ones", "right must be row numbers from 0 to 4; entry 0 is 5"),
        (((0, -1), (1, 0)), (2, 2), "ones", "left must be row numbers from 0 to 1; entry 1 is -1"),
        (((1,), (0,)), 5, "ones", "left < right; for two tables n is"),
        (((0,), (1,)), (5,), "ones", "or those of both tables"),
        (((0,), (1,)), -1, "ones", "n must be a whole number, at least 0"),
        (((0,), (1,)), 5, "twos", "values must be one of distance, ones, not 'twos'"),
    ],
)
def test_graph__refuses_what_is_none(pairs, n, values, says):
    left, right = (np.array(rows) for rows in pairs)
    with pytest.raises(ArgumentError, match=says):
        epsjoin.as_graph(Pairs(left, right, np.ones(len(left))), n, values=values)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            Pairs(np.zeros(2, int), np.array([1, 2]), np.ones(1)),
            "equally long, not left 2, right 2, distance 1",
        ),
        (Pairs(np.zeros(1), np.ones(1), np.ones(1)), "left must be a one-dimensional array of int64"),
        (RowPairs(np.zeros(2, np.int32), np.ones(1, np.int32)), "equally long, not left 2, right 1"),
        ((np.zeros(1, int), np.ones(1, int), np.ones(1)), "must be Pairs, RowPairs or KNearest, not tuple"),
        (KNearest([0, 1], [1.0, 1.0]), r"a column for each neighbour, not the shapes \(2,\) and \(2,\)"),
        (KNearest([[0], [1]], [[1.0]]), r"not the shapes \(2, 1\) and \(1, 1\)"),
        (KNearest([[0.0]], [[1.0]]), "each row of neighbour must be a one-dimensional array of int64"),
        (KNearest([[0]], [["far"]]), "each row of distance must be a one-dimensional array of numbers"),
    ],
)
def test_graph__refuses_columns_that_no_join_has_made(found, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.as_graph(found, 3)
