"""Joins by products of blocks equal the definition bit for bit, whatever the filter rows are."""

from __future__ import annotations

import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.arrays import iter_join, iter_self_join, join, self_join
from epsjoin.local.join.by_product import join_of_one, join_of_two
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.product_join import ProductJoin
from epsjoin.local.join.semi import mark_partners
from epsjoin.local.metric import get_metric
from epsjoin.local.plan import projection, ways
from epsjoin.local.product import partners
from epsjoin.local.product import sweep as product_sweep
from epsjoin.local.product.rows import FilterSpace
from epsjoin.local.sweep.pairs import collect
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS
from tests.local.join.many_dimensions import KINDS, any_space, awkward_rows, features, in_groups, uniform


def expected_pairs(left, right, eps, metric):
    """The pairs by the definition, sorted, and their distances."""
    distances = twin.all_distances(left.astype(np.float64), right.astype(np.float64), metric)
    is_pair = distances <= eps
    if left is right:
        is_pair &= np.arange(len(left))[:, None] < np.arange(len(left))
    rows = np.nonzero(is_pair)
    return *rows, distances[rows]


def assert_equal(pairs, expected):
    for found, wanted in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@examples(120)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["euclidean", "cosine"]),
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(2, 140), st.integers(0, 140)),
    st.sampled_from([12, 32, 37, 80]),
    st.sampled_from([0, 1, 5, 12]),
    st.sampled_from([1, 2]),
    SEEDS,
)
def test_product_join__is_the_definition_bit_for_bit(kind, metric, dtype, sizes, d, m, n_jobs, seed):
    n_left, n_right = sizes
    rows = awkward_rows(kind, n_left + n_right, d, seed).astype(dtype)
    if metric == "cosine":
        rows[~rows.any(axis=1)] = 1.0
    left, right = rows[:n_left], rows[n_left:] if n_right else None
    other = left if right is None else right
    some = np.unique(twin.all_distances(left.astype(np.float64), other.astype(np.float64), metric))
    some = some[some > (0.0 if metric == "cosine" else 1e-150)]
    if not len(some):
        return
    eps = float(some[seed % len(some)])  # a distance that comes: at eps is within
    options = JoinOptions.of(metric, n_jobs, None, False, {}, 32 + seed % 70)
    space = any_space(rows, metric, m, seed)
    with patch.object(product_sweep, "BLOCK_ROWS", 64):
        made = ProductJoin(left, right, np.arange(n_left), get_metric(metric), eps, options, space)
        pairs = collect(made.batches("join"), (n_left, len(other)))
    assert_equal(pairs, expected_pairs(left, other, eps, metric))
    assert options.counters["candidates"] == (n_left * n_right or n_left * (n_left - 1) // 2)


@examples(100)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["euclidean", "cosine"]),
    st.tuples(st.integers(2, 140), st.integers(0, 140)),
    st.sampled_from([0, 1, 30]),
    SEEDS,
)
def test_mark_partners__by_products_has_the_ends_of_the_pairs(kind, metric, sizes, m, seed):
    n_left, n_right = sizes
    rows = awkward_rows(kind, n_left + n_right, 37, seed).astype(np.float32)
    if metric == "cosine":
        rows[~rows.any(axis=1)] = 1.0
    left, right = rows[:n_left], rows[n_left:] if n_right else None
    other = left if right is None else right
    distances = twin.all_distances(left.astype(np.float64), other.astype(np.float64), metric)
    if right is None:
        np.fill_diagonal(distances, np.inf)
    some = np.unique(distances.min(axis=1))  # at eps is within
    some = some[(some > (0.0 if metric == "cosine" else 1e-150)) & (some < np.inf)]
    if not len(some):
        return
    eps, space = float(some[seed % len(some)]), any_space(rows, metric, m, seed)
    options = JoinOptions.of(metric, 1 + seed % 2, None, False, {})
    made = ProductJoin(left, right, np.arange(n_left), get_metric(metric), eps, options, space)
    with patch.object(partners, "BLOCK_ROWS", 64):
        marked = mark_partners(made)
    np.testing.assert_array_equal(marked, distances.min(axis=1) <= eps)
    assert options.counters["pairs"] == np.count_nonzero(marked)
    assert options.counters["candidates"] <= n_left * len(other)


def test_join__semi_by_products_multiplies_no_row_that_has_its_partner():
    rows, options = features(3000), JoinOptions.of("cosine", 1, None, False, {})
    left, right = rows[:1500], rows[1500:].copy()
    assert isinstance(join_of_two(left, right, 0.3, None, None, options), ProductJoin)
    counters, shown = {}, []
    semi = join(left, right, 0.3, "cosine", how="semi", n_jobs=2, counters=counters, progress=shown.append)
    assert semi.left.tolist() == np.unique(join(left, right, 0.3, "cosine").left).tolist()
    assert len(semi.left) > 1400
    assert counters["candidates"] < 0.6 * 1500 * 1500, "after a block of 512 few rows are left"
    assert shown[-1] == 1.0
    own = self_join(left, 0.05, "cosine")
    anti = join(left, None, 0.05, "cosine", how="anti")
    assert anti.left.tolist() == np.setdiff1d(np.arange(1500), [own.left, own.right]).tolist()
    assert 0 < len(anti.left) < 1500


def test_all_distances__of_the_oracle_are_those_of_its_scalar_formula():
    x, y = awkward_rows("far", 6, 40, 1), awkward_rows("noise", 5, 40, 2)
    for metric in twin.BY_COLUMNS:
        expected = [[twin.distance(a, b, metric) for b in y.tolist()] for a in x.tolist()]
        np.testing.assert_array_equal(twin.all_distances(x, y, metric), expected)


@pytest.fixture
def rows_at_eps():
    """Rows x and y, and a distance that is that of each x and its y: small beside their lengths."""
    random = np.random.default_rng(5)
    x = random.integers(-(2**10), 2**10, (300, 384)).astype(np.float32)
    steps = np.zeros((300, 384), np.float32)
    steps[:, :40] = random.integers(-3, 4, 40)
    return x, x + random.permuted(steps, axis=1), float(np.linalg.norm(steps[0].astype(np.float64)))


@pytest.mark.parametrize("m", [0, 24])
def test_product_rows__lose_no_pair_at_eps(rows_at_eps, m):
    # without slack, some of these pairs are lost by rounding
    x, y, eps = rows_at_eps
    random = np.random.default_rng(6)
    axes = np.linalg.qr(random.standard_normal((384, m)))[0].T if m else np.empty((0, 384))
    space = FilterSpace(np.zeros(384), 2.0**14, np.ascontiguousarray(axes))
    options = JoinOptions.of("euclidean", 1, None, False, {})
    made = ProductJoin(x, y, np.arange(300), options.metric, eps, options, space)
    pairs = collect(made.batches("join"), (300, 300))
    assert_equal(pairs, (np.arange(300), np.arange(300), np.full(300, eps)))


@pytest.mark.parametrize(("metric", "eps"), [("euclidean", 25.0), ("cosine", 0.05)])
def test_self_join__by_products_is_the_sweep(metric, eps):
    rows, ids = features(1500), np.random.default_rng(1).permutation(1500)
    options = JoinOptions.of(metric, 1, None, False, {})
    assert isinstance(join_of_one(rows, ids, eps, None, None, options), ProductJoin)
    swept = ArrayJoin.of_one(rows, ids, eps, None, None, options)
    counters = {}
    pairs = self_join(rows, eps, metric, ids=ids, n_jobs=2, counters=counters)
    assert_equal(pairs, collect(swept.batches("join")))
    assert counters["pairs"] == len(pairs.left) <= counters["distance_computations"] < 1500 * 1499 // 16
    assert counters["rows"] == 1500
    assert sum(len(batch.left) for batch in iter_self_join(rows, eps, metric, batch_rows=50)) == len(
        pairs.left
    )
    with pytest.raises(BudgetError, match="more than max_pairs = 10 pairs within"):
        self_join(rows, eps, metric, max_pairs=10)


def test_join__by_products_is_the_sweep():
    left, right = features(700), features(900, seed=0)[::-1].astype(np.float64)
    options = JoinOptions.of("cosine", 1, None, False, {})
    assert isinstance(join_of_two(left, right, 0.05, None, None, options), ProductJoin)
    swept = ArrayJoin.of_two(left, right, 0.05, None, None, options)
    pairs = join(left, right, 0.05, "cosine")
    assert_equal(pairs, collect(swept.batches("join")))
    shown = []
    outer = list(iter_join(left, right, 0.05, "cosine", how="outer", progress=shown.append))
    assert sum(len(batch.left) for batch in outer) >= len(pairs.left)
    assert shown[-1] == 1.0


def test_join_of_one__sweeps_where_few_rows_are_candidates():
    options = JoinOptions.of("euclidean", 1, None, False, {})
    line = np.arange(40_000.0)[:, None] * np.ones(40)
    made = join_of_one(line, None, 3.0, None, None, options)
    assert isinstance(made, ArrayJoin)
    assert made.projection is not None
    assert len(collect(made.batches("join")).left) == 0


def test_join_of_one__plans_no_sweep_of_few_rows_or_of_rows_that_few_axes_cannot_tell_apart(monkeypatch):
    def refuse(*_):
        raise AssertionError("a sweep was planned")

    monkeypatch.setattr(ways, "_plan_sweep", refuse)
    options = JoinOptions.of("euclidean", 1, None, False, {})
    assert isinstance(join_of_one(features(2000, 384), None, 25.0, None, None, options), ProductJoin)
    rows = awkward_rows("noise", 16_000, 384, 1)
    assert isinstance(join_of_one(rows, None, 20.0, None, None, options), ProductJoin)
    with pytest.raises(AssertionError, match="a sweep was planned"):
        join_of_one(rows, None, 8.0, None, None, options)


@pytest.mark.parametrize(("d_of_plane", "eps", "way"), [(3, 0.1, ArrayJoin), (40, 2.0, ProductJoin)])
def test_join_of_one__looks_at_the_simplest_sweeps_of_some_thousand_rows(monkeypatch, d_of_plane, eps, way):
    monkeypatch.setattr(projection, "order_axes", None)  # no others
    random = np.random.default_rng(5)
    turn = np.linalg.qr(random.normal(size=(40, 40)))[0][:d_of_plane]
    points = random.random((5000, d_of_plane)) @ turn + random.normal(size=(5000, 40)) * 1e-3
    options = JoinOptions.of("euclidean", 1, None, False, {})
    assert isinstance(join_of_one(points, None, eps, None, None, options), way)


@pytest.mark.parametrize(
    ("make", "n", "d", "eps", "way"),
    [
        (uniform, 3000, 16, 1.0, ProductJoin),  # the grid leaves hardly a pair out
        (uniform, 20_000, 24, 1.3, ProductJoin),
        (uniform, 3000, 11, 0.9, ArrayJoin),
        (uniform, 20_000, 12, 0.4, ArrayJoin),
        (uniform, 2000, 12, 0.6, ArrayJoin),  # a product may cost less, but does not
        (in_groups, 3000, 16, 0.2, ArrayJoin),
        (in_groups, 20_000, 24, 0.3, ArrayJoin),
    ],
)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_join_of_one__of_a_dozen_dimensions_multiplies_what_no_few_coordinates_tell_apart(
    make, n, d, eps, way, metric
):
    rows = make(n, d)
    if metric == "cosine":
        rows, eps = rows - 0.5, eps**2 / d * 6.0 if make is uniform else 0.01
    options = JoinOptions.of(metric, 1, None, False, {})
    made = join_of_one(rows, None, eps, None, None, options)
    assert isinstance(made, way)
    assert isinstance(join_of_two(rows[: n // 2], rows[n // 2 :], eps, None, None, options), way)
    if n < 10_000:
        swept = ArrayJoin.of_one(rows, None, eps, None, None, options)
        assert_equal(made.pairs("join"), collect(swept.batches("join"), (n, n)))
        anti = join(rows, None, eps, metric, how="anti").left
        assert anti.tolist() == np.flatnonzero(~mark_partners(swept)).tolist()


@pytest.mark.parametrize(("scale", "far"), [(1e-130, 1e300), (1e120, 1e120)])
def test_self_join__finds_pairs_of_rows_whose_squares_overflow(scale, far):
    options = JoinOptions.of("euclidean", 1, None, False, {})
    rows = scale * awkward_rows("noise", 900, 64, 3)
    rows[:2] = far  # beside the others, these are infinitely far from the centre
    rows[2] = -far
    rows[3], rows[3, 0] = -far, -np.nextafter(far, np.inf)
    eps = 9.0 * scale
    assert isinstance(join_of_one(rows, None, eps, None, None, options), ProductJoin)
    with np.errstate(over="ignore"):
        expected = expected_pairs(rows, rows, eps, "euclidean")
    pairs = self_join(rows, eps)
    assert (0, 1) in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    assert_equal(pairs, expected)


def test_join__of_many_dimensions_refuses_what_all_joins_refuse():
    rows = np.ones((3, 40), np.float32)
    rows[1, 2] = np.nan
    with pytest.raises(ArgumentError, match="points must be finite; row 1, column 2 is nan"):
        self_join(rows, 1.0)
    rows[1] = 0.0
    with pytest.raises(ArgumentError, match="right: cosine needs vectors with a length .* row 1 breaks this"):
        join(np.ones((3, 40), np.float32), rows, 1.0, "cosine")
    with pytest.raises(ArgumentError, match="same dimensions, not 40 and 41"):
        join(rows, np.ones((3, 41)), 1.0)
    with pytest.raises(ArgumentError, match="ids must be one per point, 3, not 2"):
        self_join(rows, 1.0, ids=[1, 2])
    assert len(self_join(rows, 7.0).left) == 3
    assert len(join(rows, rows[:0], 7.0).left) == 0


def test_product_join__does_not_copy_float32_as_float64():
    rows = awkward_rows("noise", 16_000, 128, 1).astype(np.float32)
    options = JoinOptions.of("euclidean", 1, None, False, {}, 64)
    space = FilterSpace(np.zeros(128), 64.0, np.eye(128)[:8])
    made = ProductJoin(rows, rows[:10], np.arange(16_000), options.metric, 1e-3, options, space)
    tracemalloc.start()
    collect(made.batches("join"), (16_000, 10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows.nbytes  # a copy would take twice as much
