"""The sweep row by row: the pairs of brute force, bit for bit, sorted or counted, on any coordinates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import BudgetError
from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.sweep.row_windows import MAX_DIMENSIONS, row_windows
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import axis_difference
from epsjoin.local.plan.projection import simple_projection
from epsjoin.local.sweep import by_row
from epsjoin.local.sweep.by_row import RowSweep
from epsjoin.local.sweep.pages import make_array
from epsjoin.local.sweep.sweeping import SweepOptions
from oracles import examples
from oracles import join as twin
from tests import open_sets

SEEDS = st.integers(0, 10**6)
MODES = {"sorted": 10**9, "counted": -1}


def nothing(_):
    pass


def sweep(points, eps, projection, is_right=None, n_left=None, n_jobs=1, counters=None):
    """All pairs of a sweep row by row."""
    rows = row_windows(points, points, float(axis_difference(eps)), projection, is_right)
    bound = make_decision(EUCLIDEAN, 0.0, eps).bound
    options = SweepOptions(1, {} if counters is None else counters, n_jobs)
    n_left = len(points) if n_left is None else n_left
    return RowSweep(rows, points, n_left, bound, options, nothing, nothing).pairs()


def make_projection(points, n_grid, is_turned, seed):
    simple = simple_projection(points, SQUARES, n_grid)
    if not is_turned:
        return simple
    d = points.shape[1]
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    return simple._replace(axes=simple.axes[:0], basis=np.ascontiguousarray(basis))


def as_expected(expected):
    """(left, right, distance) of the twin's pairs, sorted."""
    return [(*pair, expected[pair]) for pair in sorted(expected)]


def as_rows(pairs):
    return list(zip(*(column.tolist() for column in pairs), strict=True))


@examples(200)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(sorted(MODES)),
    st.integers(0, 60),
    st.integers(1, MAX_DIMENSIONS),
    st.integers(0, 3),
    st.booleans(),
    st.integers(1, 3),
    SEEDS,
)
def test_row_sweep__is_brute_force(kind, mode, n, d, n_grid, is_turned, n_jobs, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    projection = make_projection(points, n_grid, is_turned and kind != "far", seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_row, "_SORTED_PER_ROW", MODES[mode])
        patch.setattr(by_row, "_CHUNK_ROWS", 1 + seed % 40)
        patch.setattr(by_row, "MIN_CHUNK_ROWS", 1)
        patch.setattr(by_row, "_CHUNK_CANDIDATES", 1 + seed % 200)
        pairs = sweep(points, eps, projection, n_jobs=n_jobs)
    assert as_rows(pairs) == as_expected(twin.brute_force(points, eps))


@examples(100)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(sorted(MODES)),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(1, MAX_DIMENSIONS),
    SEEDS,
)
def test_row_sweep__of_two_tables_is_brute_force(kind, mode, n_left, n_right, d, seed):
    points, eps = twin.awkward_points(kind, n_left + n_right, d, seed)
    is_right = np.arange(n_left + n_right) >= n_left
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_row, "_SORTED_PER_ROW", MODES[mode])
        pairs = sweep(points, eps, make_projection(points, 1, False, seed), is_right, n_left)
    assert as_rows(pairs) == as_expected(twin.between(points[:n_left], points[n_left:], eps))


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_row_sweep__finds_points_on_the_sides_of_cells(shift):
    # 0.1 and its multiples are no binary fractions: many differences are eps but for their rounding
    side = np.arange(12) * 0.1 + shift
    points = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    eps = 0.1
    pairs = self_join(points, eps)
    gaps = points[:, None] - points[None]
    square = gaps[..., 0] ** 2 + gaps[..., 1] ** 2 + gaps[..., 2] ** 2
    left, right = np.nonzero(np.triu(np.sqrt(square) <= eps, 1))
    assert 0 < len(left) < 12 * 12 * 11 * 3 + 1
    assert (pairs.left == left).all()
    assert (pairs.right == right).all()
    assert (pairs.distance == np.sqrt(square[left, right])).all()


def test_row_sweep__of_many_equal_rows_and_dense_places_is_the_sweep_with_windows():
    # windows of more rows than the directory resolves, and partners that do not come in order
    random = np.random.default_rng(1)
    points = np.concatenate(
        (random.random((3000, 3)) * 50.0, random.random((1500, 3)), np.full((200, 3), 0.5))
    )
    points = points[random.permutation(len(points))]
    pairs = self_join(points, 0.3)
    by_windows = self_join(points, 0.3, ids=np.arange(len(points)))
    assert len(pairs.left) > 20 * len(points)
    for column, expected in zip(pairs, by_windows, strict=True):
        assert (column == expected).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_row_sweep__compares_neighbours_only(n_jobs):
    points = np.random.default_rng(2).random((20_000, 2))
    counters: dict[str, int] = {}
    pairs = self_join(points, 0.01, n_jobs=n_jobs, counters=counters)
    # three rows of cells of eps, a window of two eps: 6 / pi, and 2.5 / 2 where bins are half an eps
    assert counters["pairs"] == len(pairs.left) > 50_000
    assert counters["candidates"] < 2.5 * len(pairs.left)


def test_row_sweep__of_skewed_points_in_two_dimensions_has_a_grid():
    counters: dict[str, int] = {}
    self_join(open_sets.read("landmarks"), 0.0123457, counters=counters)
    assert counters["candidates"] < 10 * counters["pairs"], "without a grid they are 20 times the pairs"


def test_row_sweep__refuses_too_many_pairs_before_it_looks_at_all_rows(monkeypatch):
    looked_at = []
    count = by_row.count_partners
    monkeypatch.setattr(by_row, "_CHUNK_ROWS", 500)
    monkeypatch.setattr(
        by_row, "count_partners", lambda *given: looked_at.append(given[2:4]) or count(*given)
    )
    with pytest.raises(BudgetError, match="max_pairs = 1000"):
        self_join(np.zeros((5000, 2)), 1.0, max_pairs=1000)
    assert looked_at == [(0, 500)]


@pytest.mark.parametrize("n_bytes", [0, 8, (1 << 22) - 8, 1 << 22])
def test_make_array__is_an_array_like_any_other(n_bytes):
    array = make_array(n_bytes // 8, np.float64)
    array[:] = 2.5
    assert array.dtype == np.float64
    assert array.shape == (n_bytes // 8,)
    assert array.sum() == 2.5 * len(array)


SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(
    not SETTING.exists() or "[madvise]" not in SETTING.read_text(),
    reason="huge pages are not made on request",
)
def test_make_array__asks_for_no_huge_pages():
    def huge_kilobytes():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages"))

    before = huge_kilobytes()
    array = make_array(1 << 22, np.float64)
    array[:] = 1.0
    assert huge_kilobytes() - before < 1 << 11
