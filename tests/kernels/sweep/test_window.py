"""The window sweep: every pair once, whatever the coordinates, norms, masks, tables, batches and chunks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, PAIRS, PairBatch
from epsjoin.kernels.projection import MAXIMUM, SQUARES, project
from epsjoin.kernels.sweep import window, window_keys
from epsjoin.kernels.sweep.directory import make_directory
from epsjoin.kernels.sweep.window_keys import SELF_MEETINGS, TWO_TABLE_MEETINGS, sort_keys
from epsjoin.local.plan.projection import simple_projection
from oracles import examples
from oracles import join as twin
from tests.kernels.sweeps import NORMS, is_narrowed, sweep_all

SEEDS = st.integers(0, 10**6)


def turned(points, norm, n_grid, seed):
    """A projection on random orthonormal axes."""
    e = points.shape[1]
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(e, e)))[0][: min(e, 8)]
    simple = simple_projection(points, norm, n_grid)
    return simple._replace(axes=simple.axes[:0], basis=np.ascontiguousarray(basis))


@examples(300)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(sorted(NORMS)),
    st.integers(0, 60),
    st.integers(1, 12),
    st.integers(0, 6),
    st.sampled_from(["none", "masks"]),
    st.booleans(),
    SEEDS,
)
def test_window_sweep__finds_the_pairs_with_disjoint_masks(kind, metric, n, d, n_grid, masks, rotate, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    random = np.random.default_rng(seed)
    mask = random.integers(0, 8, n) if masks == "masks" else np.zeros(n, np.int64)
    norm = NORMS[metric][0]
    if rotate and norm == SQUARES and kind != "far":
        projection = turned(points, norm, n_grid if d > n_grid else 0, seed)
    else:
        projection = simple_projection(points, norm, n_grid)
    found, counters = sweep_all(
        points, eps, projection, metric, mask, room=32 + seed % 50, chunk=1 + seed % 40
    )
    expected = [(i, j) for i, j in twin.brute_force(points, eps, metric) if not int(mask[i]) & int(mask[j])]
    assert sorted(found) == sorted(expected)
    assert counters[CANDIDATES] >= counters[DISTANCES] >= counters[PAIRS] == len(expected)


@examples(150)
@given(
    st.sampled_from(twin.KINDS), st.integers(0, 60), st.integers(1, 5), st.booleans(), st.booleans(), SEEDS
)
def test_window_sweep__of_two_tables_compares_left_with_right_only(kind, n, d, carried, rotate, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    random = np.random.default_rng(seed)
    is_right = random.random(n) < random.random()
    mask = (random.random(n) < 0.4).astype(np.int64) * carried
    projection = simple_projection(points, SQUARES, 2)
    if rotate and d > 2 and kind != "far":
        projection = turned(points, SQUARES, 2, seed)
    found, _ = sweep_all(points, eps, projection, mask=mask, is_right=is_right, chunk=17)
    expected = [
        (i, j) if is_right[j] else (j, i)
        for i, j in twin.brute_force(points, eps)
        if is_right[i] != is_right[j] and not mask[i] & mask[j]
    ]
    assert sorted(found) == sorted(expected)


@examples(200)
@given(st.sampled_from(twin.KINDS), st.integers(0, 50), st.integers(1, 6), st.integers(0, 5), SEEDS)
def test_sort_keys__bring_each_near_pair_together_once(kind, n, d, n_grid, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    projection = simple_projection(points, MAXIMUM, n_grid)
    coordinates, _ = project(points, projection, projection.n_grid + 1, eps)
    group = np.random.default_rng(seed).integers(0, 4, n).astype(np.int8)
    for meetings in (SELF_MEETINGS, TWO_TABLE_MEETINGS):
        of_group = group % (1 + max(max(pair) for pair in meetings))
        keys = sort_keys(coordinates, projection.n_grid, of_group, meetings)
        assert sorted(keys.row.tolist()) == list(range(n))
        met = []
        for begin, end, target, target_end, difference in keys.passes[:, :5].tolist():
            for a, b in itertools.product(range(begin, end), range(target, target_end)):
                if difference == 0 and b <= a:
                    continue
                if abs(keys.place[a] + difference - keys.place[b]) <= keys.window:
                    met.append(tuple(sorted((int(keys.row[a]), int(keys.row[b])))))
        assert len(met) == len(set(met))
        assert len(met) == window_keys.window_candidates(keys)[0].sum()
        near = {
            (i, j)
            for i, j in itertools.combinations(range(n), 2)
            if np.abs(points[i] - points[j]).max() <= eps
            and tuple(sorted((int(of_group[i]), int(of_group[j])))) in meetings
        }
        assert near <= set(met)


@pytest.mark.parametrize("chunk", [1, 7, 64, 10**9])
@pytest.mark.parametrize("room", [32, 33, 100, 10_000])
def test_window_sweep__finds_and_counts_the_same_whatever_the_batch_and_chunk(room, chunk):
    points = np.random.default_rng(3).random((300, 3))
    projection = simple_projection(points, SQUARES, 2)
    mask = np.arange(300) % 4
    whole = sweep_all(points, 0.2, projection, mask=mask, room=10**6)
    found, counters = sweep_all(points, 0.2, projection, mask=mask, room=room, chunk=chunk)
    assert len(whole[0]) > 300
    assert (sorted(found), counters) == (sorted(whole[0]), whole[1])


@pytest.mark.parametrize("n_grid", [0, 1, 2])
def test_window_sweep__looks_at_near_rows_only(n_grid):
    points = np.random.default_rng(1).random((3000, 3))
    eps = 0.02
    found, counters = sweep_all(points, eps, simple_projection(points, SQUARES, n_grid))
    assert counters[PAIRS] == len(found)
    # the filter is as good as the decision, but for the rounding to float32
    near = ((points[:, None] - points) ** 2).sum(axis=2) <= (eps * 1.001) ** 2
    assert len(found) <= counters[DISTANCES] <= (near.sum() - 3000) / 2
    # a window of 66 / 64 eps ahead; with each grid axis strips of three cells of which one and a half count
    share = counters[CANDIDATES] / (3000 * 2999 / 2)
    assert share < 2 * eps * 66 / 64 * (3 * eps) ** n_grid * 1.15


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["lattice", "uniform", "far"])
def test_window_sweep__narrows_windows_of_dense_rows_and_finds_all(kind, seed, monkeypatch):
    monkeypatch.setattr(window_keys, "_MAX_SHIFT", 7)  # few rows are not dense enough
    random = np.random.default_rng(seed)
    n_grid, eps = 2 + seed % 2, 0.5
    points = random.random((300, 2 + n_grid))
    if kind == "lattice":  # on the borders of cells, and at exactly eps
        points, eps = random.integers(0, 5, points.shape) / 4.0, 0.75
    if kind == "far":  # products would need too much slack
        points[:, -1] = random.integers(0, 2, 300) * 1e4
    simple = simple_projection(points, SQUARES, n_grid)
    projection = simple._replace(axes=np.arange(points.shape[1]))
    assert is_narrowed(points, eps, projection)
    is_right = None if seed < 2 else random.random(300) < 0.4
    mask = random.integers(0, 4, 300)
    found, _ = sweep_all(points, eps, projection, mask=mask, is_right=is_right, room=50, chunk=90)
    expected = [(i, j) for i, j in twin.brute_force(points, eps) if not int(mask[i]) & int(mask[j])]
    if is_right is not None:
        expected = [(i, j) if is_right[j] else (j, i) for i, j in expected if is_right[i] != is_right[j]]
    assert sorted(found) == sorted(expected)
    assert len(found) > 20


def test_window_sweep__of_dense_rows_compares_little_more_than_half_of_what_lies_in_neighbouring_cells():
    points, eps = np.random.default_rng(0).random((8000, 5)), 0.25
    projection = simple_projection(points, SQUARES, 3)
    _, counters = sweep_all(points, eps, projection)
    coordinates, _ = project(points, projection, 4, eps)
    keys = sort_keys(coordinates, 3, np.empty(0, np.int8), ((0, 0),))
    in_cells = window_keys.window_candidates(keys)[0].sum()
    assert 0.4 * in_cells < counters[CANDIDATES] < 0.7 * in_cells


def test_window_sweep__never_compares_carried_rows_with_each_other():
    points = np.random.default_rng(1).random((200, 2))
    projection = simple_projection(points, SQUARES)
    assert sweep_all(points, 5.0, projection, mask=np.ones(200, np.int64)) == ([], [0, 0, 0, 0])


def test_window_sweep__comes_back_before_long_and_goes_on():
    # one cell holds all rows, and no two are within eps
    n, eps = 4000, 1e-9
    points = np.random.default_rng(0).random((n, 2))
    rows = window.window_rows(
        points, points, np.arange(n), np.full(n, 2), 5.0, simple_projection(points, SQUARES, 0)
    )
    calls, counters = 0, np.zeros(4, np.int64)
    batch = PairBatch(np.empty(32, np.int64), np.empty(32, np.int64), np.empty(32))
    state = window.new_state()
    while not window.is_done(state):
        decision = make_decision(EUCLIDEAN, 0.0, eps)
        assert window.window_sweep(state, rows, 0, n, decision, batch, counters) == 0
        calls += 1
    assert counters[CANDIDATES] == n * (n - 1) // 2
    assert 1 < calls <= 1 + 2 * counters[CANDIDATES] // window.WORK_PER_CALL


def in_three_ranges(n, work):
    return [work(number, n * number // 3, n * (number + 1) // 3) for number in range(3)]


@pytest.mark.parametrize("n_groups", [0, 2])
def test_sort_keys__in_ranges_are_those_of_one_range(n_groups):
    random = np.random.default_rng(3)
    coordinates = random.integers(0, 40, (3, 500)) / 8.0  # many equal places
    coordinates[1, 499] = 9.0  # only the last range has the highest cell
    group = random.integers(0, n_groups, 500 if n_groups else 0).astype(np.int8)
    meetings = SELF_MEETINGS if n_groups else ((0, 0),)
    how = coordinates, 2, group, meetings, SQUARES, 10**6  # of so many rows, windows are narrowed
    expected, found = sort_keys(*how), sort_keys(*how, ranges=in_three_ranges)
    assert found.gaps.are_known
    np.testing.assert_array_equal(found.gaps.offset, expected.gaps.offset)
    for column, one in zip(found[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(column, one)


@pytest.mark.parametrize("n", [0, 1, 200])
def test_make_directory__tells_range_by_range_the_first_row_of_each_bin(n):
    place = np.sort(np.random.default_rng(n).integers(0, 900, n))
    starts = make_directory(place, 1000, 3, in_three_ranges)
    assert starts.tolist() == np.searchsorted(place, np.arange(1000 // 8 + 2) * 8).tolist()


def test_window_rows__without_ids_keep_the_numbers_of_the_rows_once():
    points = np.random.default_rng(2).random((90, 9))
    of = 0.3, simple_projection(points, SQUARES)
    rows = window.window_rows(points, points, None, np.empty(0, np.int64), *of)
    named = window.window_rows(points, points, np.arange(90), np.zeros(90, np.int64), *of)
    assert rows.ids.tolist() == named.ids.tolist()
    assert rows.ids is rows.row
    assert len(rows.mask) == len(named.mask) == 0


@pytest.mark.parametrize("d", [1, 8, 9, 17])
def test_window_sweep__copies_short_rows_only_and_decides_all_alike(d):
    random = np.random.default_rng(d)
    points = random.integers(0, 3, (150, d)) / 4.0  # many ties
    eps = float(np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)[np.triu_indices(150, 1)].min() + 0.25))
    projection = simple_projection(points, SQUARES, 1)
    nothing = np.zeros(150, np.int64)
    rows = window.window_rows(points, points, np.arange(150), nothing, eps, projection)
    assert (rows.points is points) == (d > 8)
    assert (rows.points[rows.row] == points[rows.ids]).all()
    found, _ = sweep_all(points, eps, projection)
    assert len(found) > 20
    assert sorted(found) == sorted(twin.brute_force(points, eps))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_window_sweep__takes_few_rows(n):
    points = np.zeros((n, 2))
    assert len(sweep_all(points, 1.0, simple_projection(points, SQUARES))[0]) == n // 2


@pytest.mark.parametrize("scale", [1e-140, 1e-20, 1.0, 1e20, 1e140])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_window_sweep__is_exact_at_any_magnitude(scale, offset):
    random = np.random.default_rng(5)
    points = (random.integers(0, 12, (120, 3)) + offset) * scale
    eps = float(abs(points[0, 0] - points[points[:, 0] != points[0, 0]][0, 0]))
    for projection in (simple_projection(points, SQUARES, 2), turned(points, SQUARES, 2, 1)):
        found, _ = sweep_all(points, eps, projection)
        assert sorted(found) == sorted(twin.brute_force(points, eps))
    assert found


def test_window_sweep__does_without_cells_or_ticks_where_a_key_has_no_room():
    # two heaps, ten million million eps apart on every axis: one axis alone fills the key
    random = np.random.default_rng(0)
    points = random.random((60, 5)) * 4e-6 + random.integers(0, 2, (60, 1)) * 1e7
    found, counters = sweep_all(points, 1e-6, simple_projection(points, SQUARES, 4))
    assert sorted(found) == sorted(twin.brute_force(points, 1e-6))
    assert counters[CANDIDATES] < 60 * 59 / 2


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_window_sweep__finds_a_pair_at_the_end_of_the_floats(metric):
    # counted from the mean, one of the pair is beyond float64 and the other is not
    points = np.zeros((5, 3))
    points[:, 0] = points[:, 1] = [1e305, 0, -1e305, 0, 2e305]
    for first in np.linspace(1.3e308, 1.6e308, 40):
        points[:, 2] = [-1.52e308, first, -1.52e308, first + 8e299, -1.52e308]
        projection = simple_projection(points, NORMS[metric][0], 1)
        assert sweep_all(points, 1e300, projection, metric)[0] == [(1, 3)]
