"""An index gives what the joins give, bit for bit: whatever was appended, from memory or from a folder."""

from __future__ import annotations

import sys
import tempfile
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin import Index
from epsjoin.errors import ArgumentError
from epsjoin.local.index import index as module
from oracles import examples

METRICS = [
    epsjoin.get_metric(name) for name in ("euclidean", "manhattan", "chebyshev", "cosine", "haversine")
]
METRICS += [epsjoin.get_metric("minkowski", p) for p in (1.5, 3)]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


@examples(50)
@given(
    st.sampled_from(METRICS),
    st.lists(st.integers(0, 60), min_size=1, max_size=5),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_index__gives_what_the_joins_give(metric, sizes, q, is_saved, by_leaves, data):
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    d = 2 if metric.name == "haversine" else data.draw(st.integers(1, 5))
    rows = random.integers(1, 7, (sum(sizes), d)) / 4  # ties, and equal points
    queries = random.integers(1, 7, (q, d)) / 4
    index = Index(rows[: sizes[0]], metric)
    for begin, size in zip(np.cumsum(sizes), sizes[1:], strict=False):
        index.append(rows[begin : begin + size])
    if is_saved:
        with tempfile.TemporaryDirectory() as folder:
            index.save(folder)
            index = Index.read(folder, verify=True)
    eps = {"cosine": 0.01, "haversine": 60.0}.get(metric.name, 0.5)
    assert len(index) == len(rows)
    same(index.join(queries, eps), epsjoin.join(queries, rows, eps, metric))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_COLUMNS_BY_LEAVES", 5 if by_leaves else 0)
        same(index.self_join(eps), epsjoin.self_join(rows, eps, metric))
    for asked in (queries, None):
        n_others = len(rows) - (asked is None)
        if n_others > 0:
            k = min(3, n_others)
            same(index.knn(asked, k), epsjoin.knn_join(asked, rows, k, metric))


WEIGHTED = [metric for metric in METRICS if metric.name not in ("cosine", "haversine")]


def mapped(pairs, rows, of_one=False):
    """The pairs of the rows that are there, by their numbers."""
    return pairs._replace(left=rows[pairs.left] if of_one else pairs.left, right=rows[pairs.right])


@examples(100)
@given(
    st.sampled_from(METRICS),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_index__of_removed_rows_and_weights_gives_what_the_joins_give(
    metric, is_weighted, changes, is_saved, by_leaves, data
):
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    d = 2 if metric.name == "haversine" else data.draw(st.integers(1, 4))
    weights = None
    if is_weighted and metric in WEIGHTED:
        weights = data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0]), min_size=d, max_size=d))
    everything = random.integers(1, 7, (sum(size for size, _ in changes), d)) / 4  # ties, and equal points
    is_there = np.zeros(len(everything), np.bool_)
    index, end = Index(everything[:0], metric, weights=weights), 0
    for size, fraction in changes:
        index.append(everything[end : end + size])
        is_there[end : end + size] = True
        end += size
        if is_saved:
            with tempfile.TemporaryDirectory() as folder:
                index.save(folder)
                index = Index.read(folder, verify=True)
        gone = np.flatnonzero(is_there & (random.random(len(is_there)) < fraction))
        index.remove(random.permutation(gone))
        is_there[gone] = False
    rows, queries = np.flatnonzero(is_there), random.integers(1, 7, (5, d)) / 4
    points, of = everything[rows], {"metric": metric, "weights": weights}
    assert (len(index), index.rows.tolist()) == (len(rows), rows.tolist())
    eps = {"cosine": 0.01, "haversine": 60.0}.get(metric.name, 0.5)
    same(index.join(queries, eps), mapped(epsjoin.join(queries, points, eps, **of), rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_COLUMNS_BY_LEAVES", 5 if by_leaves else 0)
        same(index.self_join(eps), mapped(epsjoin.self_join(points, eps, **of), rows, of_one=True))
    for asked in (queries, None):
        n_others = len(rows) - (asked is None)
        if n_others > 0:
            k = min(3, n_others)
            expected = epsjoin.knn_join(asked, points, k, **of)
            same(index.knn(asked, k), expected._replace(neighbour=rows[expected.neighbour]))


@pytest.mark.parametrize("metric", WEIGHTED)
def test_index__with_weights_sees_the_smallest_steps_far_from_the_others(metric):
    """Multiplied, neighbouring numbers of 1.7e9 seem to lie up to twice as far apart as they do."""
    points = np.concatenate((np.zeros(400), 1.7e9 + np.arange(300) * 2.0**-22))[:, None]
    index = Index(points, metric, weights=[0.1])
    same(index.knn(points[400:], 3), epsjoin.knn_join(points[400:], points, 3, metric, weights=[0.1]))
    eps = float(index.knn(None, 2).distance[500, 1])
    found = index.join(points[400:], eps)
    same(found, epsjoin.join(points[400:], points, eps, metric, weights=[0.1]))
    assert len(found.left) > 600
    same(index.self_join(eps), epsjoin.self_join(points, eps, metric, weights=[0.1]))


def test_remove__grows_the_trees_of_its_rows_alone_and_keeps_few():
    index, rows = Index(np.arange(1000.0)[:, None]), np.arange(1000, 1300)
    for row in rows:
        index.append([[float(row)]])
    grown = []
    with pytest.MonkeyPatch.context() as patch:
        grow = module.Part.grow
        patch.setattr(module.Part, "grow", lambda *given: grown.append(len(given[0].points)) or grow(*given))
        index.remove([1299])
        assert sum(grown) < 300
        grown.clear()
        index.remove([7, 500])
        assert sum(grown) == 998
        index.remove(np.delete(np.arange(1000), [7, 500, 999]))
    assert len(index._parts) <= 10  # log2(300) + 1
    assert index.knn([[0.0]], 2).neighbour.tolist() == [[999, 1000]]
    with pytest.raises(ArgumentError, match="rows must be rows of the index, which 500 is not"):
        index.remove([500])


def test_self_join__needs_no_memory_for_rows_that_were_removed():
    index = Index([[0.0], [1.0]])
    index._end = 2**60  # as if so many rows had come and gone
    index.append([[1.5], [0.25]])
    found = index.self_join(0.5)
    assert (found.left.tolist(), found.right.tolist()) == ([0, 1], [2**60 + 1, 2**60])


def test_remove__gives_no_number_twice(tmp_path):
    index = Index([[0.0], [1.0], [2.0]])
    index.remove([2, 0])
    index.save(tmp_path)
    index = Index.read(tmp_path)
    index.append([[3.0]])
    assert index.rows.tolist() == [1, 3]
    index.remove(index.rows)
    assert (len(index), index.rows.tolist(), index.join([[1.0]], 9.0).right.tolist()) == (0, [], [])
    index.save(tmp_path)
    index = Index.read(tmp_path)
    index.append([[5.0]])
    assert index.knn([[0.0]], 1).neighbour.tolist() == [[4]]


def test_join__has_room_for_many_pairs_of_one_query_and_of_one_leaf():
    points = np.random.default_rng(0).random((5000, 2))
    same(Index(points).join(points[:9], 2.0), epsjoin.join(points[:9], points, 2.0))
    same(Index(points[:900]).self_join(2.0), epsjoin.self_join(points[:900], 2.0))


def test_append__keeps_few_trees_and_grows_each_row_into_few():
    grown = []
    index = Index([[0.0]])
    with pytest.MonkeyPatch.context() as patch:
        grow = module.Part.grow
        patch.setattr(module.Part, "grow", lambda *given: grown.append(len(given[0].points)) or grow(*given))
        for row in range(1, 300):
            index.append([[row]])
    assert len(index._parts) <= 9  # log2(300) + 1
    assert sum(grown) <= 300 * 9
    assert index.join([[299.0]], 0.5).right.tolist() == [299]


def test_index__takes_its_own_copy_of_the_points():
    points = np.zeros((3, 1))
    index = Index(points)
    index.append(points)
    points[:] = 9.0
    assert index.join([[0.0]], 1.0).right.tolist() == [0, 1, 2, 3, 4, 5]


def test_index__refuses_what_the_joins_refuse_and_stays_as_it_is():
    index = Index([[0.0, 1.0], [2.0, 3.0]])
    for call, says in (
        (lambda: index.join([[0.0]], 1.0), "queries must have as many columns as the index, 2, not 1"),
        (lambda: index.append([[0.0, np.nan]]), "points must be finite; row 0, column 1 is nan"),
        (lambda: index.join([[0.0, 0.0]], 0.0), "eps must be a finite number above 0"),
        (lambda: index.self_join([0.1, 0.2]), "eps must be a finite number above 0"),
        (lambda: index.knn(None, 2), "k must be at most the number of other points, 1, not 2"),
        (lambda: Index([[0.0, 0.0]], "cosine"), "points: cosine needs vectors with a length"),
        (lambda: Index([[1.0, 0.0]], "cosine").knn([[0.0, 0.0]], 1), "queries: cosine needs vectors"),
        (lambda: Index([[1.0, 0.0]], "cosine", weights=[1, 1]), "cosine has .* no weights"),
        (lambda: Index([[1.0]], weights=[1, 1]), r"weights must be one per dimension \(1\)"),
        (lambda: Index([[1.0]], weights=[1e200]).join([[1.0]], 1e-60), "dimension 0 has eps = 1e-60"),
        (lambda: index.remove([1, 2]), "rows must be rows of the index, which 2 is not"),
        (lambda: index.remove([-1]), "rows must be rows of the index, which -1 is not"),
        (lambda: index.remove([1, 0, 1]), "rows must have each row once, but 1 comes twice"),
        (lambda: index.remove([0.5]), "rows must be a one-dimensional array of int64"),
        (lambda: index.remove([True, False]), "rows must be a one-dimensional array of int64"),
    ):
        with pytest.raises(ArgumentError, match=says):
            call()
    assert repr(index) == "Index(2 rows x 2, euclidean)"
    assert repr(Index([[1.0]], "l1", weights=[2])) == "Index(1 rows x 1, manhattan, weighted)"
    assert index.rows.tolist() == [0, 1]


def test_append__of_several_threads_loses_no_row_and_answers_are_of_one_moment():
    random = np.random.default_rng(3)
    index, rows = Index(random.random((50, 2))), random.random((3, 60, 2))
    odd = []

    def append(mine):
        for row in mine:
            index.append(row[None])

    def ask():
        while any(thread.is_alive() for thread in threads):
            found = index.knn(None, 3)
            if found.neighbour.max() >= len(found.neighbour):
                odd.append(found.neighbour.max())

    threads = [threading.Thread(target=append, args=(mine,)) for mine in rows]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        ask()
    finally:
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert len(index) == 50 + 180
    assert not odd
