"""Joins of few rows in one call: the pairs of the definition, the arrays of a sweep, and few comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import BudgetError
from epsjoin.local.join import by_product, few_rows
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.arrays import iter_join, iter_self_join, join, self_join
from epsjoin.local.join.by_product import join_of_one
from epsjoin.local.join.few_rows import FewRows
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.row_pairs import row_pairs
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.within import degree
from epsjoin.local.sweep.sweeping import UNREAD
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS, assert_is_brute_force
from tests.local.join.many_dimensions import in_groups

MAX_WORK = few_rows._MAX_WORK  # before the tests of sweeps change it
MINKOWSKI = get_metric("minkowski", p=3.0)


@pytest.fixture(autouse=True, scope="module")
def few_rows_are_joined_at_once(few_rows_are_swept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "_MAX_WORK", MAX_WORK)
        yield


def swept(find, *arguments, **options):
    """The pairs by a sweep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "_MAX_WORK", -1)
        return find(*arguments, **options)


def same(pairs, others):
    for column, other in zip(pairs, others, strict=True):
        assert column.dtype == other.dtype
        np.testing.assert_array_equal(column, other)


@examples(250)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 9),
    st.sampled_from([("euclidean", 0.0), ("manhattan", 0.0), ("chebyshev", 0.0), ("minkowski", 3.0)]),
    st.sampled_from([-1, 20_000]),  # all are put in order, or none
    SEEDS,
)
def test_self_join__of_few_rows_is_brute_force(kind, n, d, metric, n_compared, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "_COMPARED_PAIRS", n_compared)
        patch.setattr(few_rows, "_COMPARED_PER_ROW", 0)
        assert_is_brute_force(points, eps, *metric)


@examples(250)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from(["euclidean", "manhattan", "chebyshev", MINKOWSKI]),
    st.sampled_from([-1, 20_000]),  # all are put in order, or none
    SEEDS,
)
def test_join__of_few_rows_is_brute_force(kind, n_left, n_right, d, metric, n_compared, seed):
    points, eps = twin.awkward_points(kind, n_left + n_right, d, seed)
    left, right = points[:n_left], points[n_left:]
    name, p = ("minkowski", 3.0) if metric is MINKOWSKI else (metric, 0.0)
    distances = twin.all_distances(left, right, name, p)
    rows, columns = np.nonzero(distances <= eps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "_COMPARED_PAIRS", n_compared)
        patch.setattr(few_rows, "_COMPARED_PER_ROW", 0)
        pairs = join(left, right, eps, metric)
        counts = degree(left, eps, metric, right=right)
        marked = join(left, right, eps, metric, how="semi")
    assert pairs.left.tolist() == rows.tolist()
    assert pairs.right.tolist() == columns.tolist()
    np.testing.assert_allclose(pairs.distance, distances[rows, columns], rtol=1e-12, atol=0.0)
    assert counts.tolist() == np.bincount(rows, minlength=n_left).tolist()
    assert marked.left.tolist() == np.unique(rows).tolist()


def as_read_only(points):
    points = points.copy()
    points.setflags(write=False)
    return points


KINDS_OF_ARRAYS = {
    "float32": lambda points: points.astype(np.float32),
    "int16": lambda points: points.astype(np.int16),
    "objects": lambda points: points.astype(object),
    "big-endian": lambda points: points.astype(">f8"),
    "by columns": np.asfortranarray,
    "with steps": lambda points: points.repeat(2, axis=0)[::2],
    "read-only": as_read_only,
    "list": np.ndarray.tolist,
}


def all_joins(one, two, eps, metric):
    return (
        self_join(one, eps, metric),
        join(one, two, eps, metric),
        join(one, None, eps, metric, how="semi"),
        [degree(one, eps, metric)],
        knn_join(one, two, 3, metric),
        knn_join(None, two, 3, metric),
    )


@pytest.mark.parametrize("kind", KINDS_OF_ARRAYS)
@pytest.mark.parametrize("d", [2, 14])
@pytest.mark.parametrize("n", [1, 2, 60])
def test_joins__of_few_rows_of_any_kind_are_those_of_float64(kind, d, n):
    random, convert = np.random.default_rng(n), KINDS_OF_ARRAYS[kind]
    points, others = random.integers(1, 5, (n, d)) * 1.0, random.integers(1, 5, (9, d)) * 1.0
    eps = 1.5 * d**0.5
    for metric in ("euclidean", "cosine" if d > 2 else "haversine"):
        reach = {"euclidean": eps, "cosine": 0.05, "haversine": 200.0}[metric]
        wanted = all_joins(points, others, reach, metric)
        for found, expected in zip(
            all_joins(convert(points), convert(others), reach, metric), wanted, strict=True
        ):
            same(found, expected)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_joins__of_hardly_any_rows(n):
    points, others = np.zeros((n, 3)), np.ones((2, 3))
    assert np.transpose(self_join(points, 1.0)[:2]).tolist() == [[0, 1]][: n - 1 if n else 0]
    for tables in ((points, others), (others, points)):
        assert len(join(*tables, 1.7).left) == 0
        assert len(join(*tables, 1.8).left) == 2 * n
    assert degree(points, 1.0).tolist() == [n] * n
    assert join(points, None, 1.0, how="semi").left.tolist() == [[], [], [0, 1]][n]
    assert knn_join(points, others, 2).neighbour.tolist() == [[0, 1]] * n


def test_joins__of_few_rows_count_nothing_where_nobody_reads_it():
    points = np.random.default_rng(0).random((40, 2))
    self_join(points, 0.1)
    join(points, None, 0.1, how="semi")
    degree(points, 0.1)
    list(iter_join(points, points, 0.1))
    assert UNREAD == {}


def test_join_of_two__of_few_pairs_in_a_dozen_dimensions_plans_nothing(monkeypatch):
    """Nor are float32 rows kept as they are, which products need, and the sweep of few rows does not."""
    rows = np.random.default_rng(0).random((90, 14)).astype(np.float32)
    expected = self_join(rows.tolist(), 0.9), join(rows.tolist(), rows[:5].tolist(), 0.9)
    monkeypatch.setattr(by_product, "_choose", None)
    for found, wanted in zip((self_join(rows, 0.9), join(rows, rows[:5], 0.9)), expected, strict=True):
        same(found, wanted)
    assert len(join(rows, None, 0.9, how="semi").left) > 0


@pytest.mark.parametrize("n", [1, 150, 700])
@pytest.mark.parametrize(
    ("metric", "d", "eps"),
    [
        ("euclidean", 2, 0.05),
        ("euclidean", 3, np.array([0.1, 0.2, 0.4])),
        ("manhattan", 5, 0.4),
        ("chebyshev", 4, 0.2),
        (MINKOWSKI, 3, 0.1),
        ("cosine", 6, 0.02),
        ("haversine", 2, 900.0),
        ("haversine_radians", 2, 0.2),
    ],
    ids=str,
)
def test_joins__of_few_rows_return_the_arrays_of_a_sweep(metric, d, eps, n):
    random = np.random.default_rng(n + d)
    points, others = random.random((n, d)), random.random((n // 3 + 1, d))
    points[n // 2 : n // 2 + 3] = points[0]
    if metric == "haversine":
        points, others = points * 90, others * 90
    same(self_join(points, eps, metric), swept(self_join, points, eps, metric))
    for how in ("inner", "outer"):
        same(join(points, others, eps, metric, how=how), swept(join, points, others, eps, metric, how=how))


@pytest.mark.parametrize("metric", [MINKOWSKI, "cosine", "haversine", "haversine_radians"], ids=str)
def test_self_join__of_few_rows_takes_a_pair_at_exactly_eps(metric):
    points = np.random.default_rng(1).random((40, 2))
    for row, distance in enumerate(knn_join(None, points, 1, metric).distance[:, 0].tolist()):
        assert row in np.concatenate(self_join(points, distance, metric)[:2]), "rounding loses no pair"


def test_self_join__of_few_rows_compares_those_within_eps_on_the_axis_that_tells_them_apart():
    random = np.random.default_rng(0)
    points = np.column_stack((np.ones(2000), random.random(2000)))
    counters = {}
    pairs = self_join(points, 0.001, counters=counters)
    assert counters["rows"] == 2000
    assert counters["pairs"] == len(pairs.left) > 1000
    assert counters["candidates"] == counters["distance_computations"] == counters["pairs"]
    points[:, 0], points[:64, 1] = random.integers(0, 10, 2000), 0.5  # the first rows tell the other axis
    counters.clear()
    self_join(points, 0.001, counters=counters)
    assert counters["candidates"] < 10_000


def test_other_joins__of_few_rows_find_the_same_as_by_a_sweep():
    random = np.random.default_rng(0)
    points, others, ids = random.random((400, 2)), random.random((300, 2)), random.permutation(400)
    for right in (None, others):
        for how in ("semi", "anti"):
            counters, by_sweep = {}, {}
            same(
                join(points, right, 0.02, how=how, counters=counters),
                swept(join, points, right, 0.02, how=how, counters=by_sweep),
            )
            assert counters["pairs"] == by_sweep["pairs"] > 0
        same(row_pairs(points, 0.05, right=right), swept(row_pairs, points, 0.05, right=right))
        counts = degree(points, 0.05, right=right)
        np.testing.assert_array_equal(counts, swept(degree, points, 0.05, right=right))
    same(self_join(points, 0.05, ids=ids), swept(self_join, points, 0.05, ids=ids))
    for find, tables in ((iter_self_join, (points,)), (iter_join, (points, others))):
        batches = list(find(*tables, 0.05, batch_rows=32))
        assert {len(batch.left) for batch in batches[:-1]} == {32}
        whole = self_join(points, 0.05) if find is iter_self_join else join(points, others, 0.05)
        same([np.concatenate(column) for column in zip(*batches, strict=True)], whole)
    assert list(iter_self_join(points[:3], 1e-9)) == []


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_degree__of_few_rows_decides_where_the_square_of_eps_is_infinite(p):
    points, metric = [[0.0, 0.0], [1e199, 0.0], [1e200, 1e200]], get_metric("minkowski", p=p)
    assert degree(points, 2e199, metric).tolist() == [2, 2, 1]
    assert degree(points[:1], 2e199, metric, right=points[1:]).tolist() == [1]


def test_self_join__of_few_rows_has_room_for_all_pairs():
    points = np.random.default_rng(0).random((300, 2))
    points[:, 0] *= 10
    same(self_join(points, 8.0), swept(self_join, points, 8.0))


@pytest.mark.parametrize(
    ("n", "d", "eps"), [(4097, 1, 1e-9), (3000, 2, 0.5), (1500, 40, 1.5), (400, 768, 1.0)]
)
def test_few_rows__leave_what_a_sweep_finds_sooner(n, d, eps):
    points = np.random.default_rng(0).random((n, d))
    assert FewRows.of(points, n, True, eps, get_metric("euclidean")) is None


@pytest.mark.parametrize("period", [2, 64, 100])
def test_few_rows__of_one_kind_at_a_regular_distance_are_not_taken_for_all(period):
    points = np.zeros((4096, 2))
    points[::period] = np.random.default_rng(0).random((len(points[::period]), 2)) * 1e3
    assert FewRows.of(points, len(points), True, 0.1, get_metric("euclidean")) is None


@pytest.mark.parametrize("metric", ["euclidean", MINKOWSKI, "haversine"], ids=str)
@pytest.mark.parametrize("sizes", [(700, 0), (300, 500), (500, 300)])
@pytest.mark.parametrize(("eps", "are_most"), [(0.6, True), (0.05, False)])
def test_few_rows__are_compared_in_their_order_where_an_axis_leaves_out_less_than_half(
    metric, sizes, eps, are_most
):
    points, counters = np.random.default_rng(0).random((sum(sizes), 2)), {}
    tables = (points[: sizes[0]], points[sizes[0] :]) if sizes[1] else (points,)
    find = join if sizes[1] else self_join
    eps *= 100.0 if metric == "haversine" else 1.0  # some hundredths of a degree
    found = find(*tables, eps, metric, counters=counters)
    same(found, swept(find, *tables, eps, metric))
    n_pairs = sizes[0] * sizes[1] or sizes[0] * (sizes[0] - 1) // 2
    assert (counters["candidates"] == n_pairs) == are_most
    assert are_most or counters["candidates"] < n_pairs / 2


def test_join__of_few_rows_that_lie_in_their_order_with_others_that_do_not():
    queries, points = np.arange(100.0)[:, None], np.random.default_rng(0).random((2000, 1)) * 100.0
    same(join(queries, points, 0.4), swept(join, queries, points, 0.4))


@pytest.mark.parametrize("metric", ["euclidean", MINKOWSKI, "haversine"], ids=str)
def test_semi_join__of_few_rows_ends_with_the_first_partner(metric):
    points, counters = np.random.default_rng(0).random((500, 2)), {}
    for right in (None, points[:250] + 1e-9):
        assert len(join(points, right, 1e4, metric, how="semi", counters=counters).left) == 500
    assert counters["distance_computations"] <= 2 * 500 * 64


def test_join__of_few_rows_asks_the_smaller_table():
    random = np.random.default_rng(0)
    few, many = random.random((3, 2)), random.random((50_000, 2))
    for tables in ((few, many), (many, few), (many, few[:0]), (few[:0], many)):
        assert FewRows.of(np.concatenate(tables), len(tables[0]), False, 0.1, get_metric("euclidean"))
        same(join(*tables, 0.1), swept(join, *tables, 0.1))


def test_self_join__of_few_rows_keeps_max_pairs_and_tells_progress():
    points, told = np.zeros((4, 1)), []
    assert len(self_join(points, 1.0, max_pairs=6, progress=told.append).left) == 6
    assert told == [1.0]
    counters = {}
    with pytest.raises(BudgetError, match="more than max_pairs = 5 pairs within eps = 1; about 6 are"):
        self_join(points, 1.0, max_pairs=5, counters=counters)
    assert counters == {}


def test_join_of_one__of_a_dozen_dimensions_plans_nothing_for_few_candidates(monkeypatch):
    monkeypatch.setattr(by_product, "choose_way", None)
    options = JoinOptions.of("euclidean", 1, None, False, {})
    made = join_of_one(in_groups(2000, 12), None, 0.05, None, None, options)
    assert isinstance(made, ArrayJoin)
    assert made.few_rows is not None
