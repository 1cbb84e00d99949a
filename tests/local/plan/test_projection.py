"""The choice of a sweep's coordinates: exact whatever is chosen, less work, expectations that come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES
from epsjoin.kernels.projection import MAXIMUM, SQUARES, SUM
from epsjoin.local.plan.projection import (
    choose_projection,
    row_candidates,
    simple_projection,
)
from epsjoin.local.plan.two_tables import count_between
from oracles import examples
from oracles import join as twin
from tests.kernels.sweeps import NORMS, is_narrowed, sweep_all


def one_by_one(n, work):
    return [work(number, number, number + 1) for number in range(n)]


@pytest.mark.parametrize(("eps", "are_dense"), [(0.1, False), (0.5, True)])
def test_row_candidates__are_those_that_a_sweep_counts(eps, are_dense):
    points = np.random.default_rng(2).random((500, 3))
    carried = np.arange(500) % 5 == 0
    projection = simple_projection(points, SQUARES, 2)
    _, counters = sweep_all(points, eps, projection, mask=carried.astype(np.int64))
    of_rows = row_candidates(points, carried, eps * (1 + 1e-12), projection)
    assert is_narrowed(points, eps, projection) == are_dense
    assert counters[CANDIDATES] == of_rows.sum()
    assert (of_rows > 0).sum() > 300


def test_choose_projection__takes_the_axes_that_tell_rows_apart():
    random = np.random.default_rng(0)
    points = random.random((30_000, 12))
    points[:, 3] *= 50  # widest by far, but half of the rows have one value there
    points[::2, 3] = 0.0
    points[:, [5, 7]] *= 20
    points[:, 7] = points[:, 5] + random.normal(size=30_000) * 1e-3  # says what 5 says
    choice = choose_projection(points[:5000], 30_000, 0.3, MAXIMUM)
    assert choice.projection.axes[:2].tolist() in ([5, 3], [7, 3])
    assert not choice.projection.is_rotated


@pytest.mark.parametrize("eps", [0.7, 1.2])
def test_choose_projection__expects_the_survivors_of_a_simple_filter_from_few_rows(eps):
    points = np.random.default_rng(1).random((6000, 20))
    quick = choose_projection(points, 6000, eps, SQUARES, is_quick=True)
    assert quick.candidates > 0.25 * 6000**2
    _, counters = sweep_all(points, eps, quick.projection)
    # principal axes tell the rows that they were made of apart a little better than others
    assert 0.5 * counters[DISTANCES] < quick.survivors < 1.2 * counters[DISTANCES]
    assert counters[DISTANCES] < 0.7 * quick.candidates


def test_choose_projection__turns_the_points_where_that_saves_work():
    random = np.random.default_rng(0)
    position = random.random((30_000, 2)) * 10
    basis = np.linalg.qr(random.normal(size=(24, 24)))[0][:2]
    points = position @ basis + random.normal(size=(30_000, 24)) * 1e-3
    sample = points[:6000]
    chosen = choose_projection(sample, 3_000_000, 0.1, SQUARES, ranges=one_by_one).projection
    assert chosen.is_rotated
    assert np.allclose(chosen.basis @ chosen.basis.T, np.eye(8), atol=1e-12)
    found, counters = sweep_all(points[:600], 0.1, chosen)
    _, raw = sweep_all(points[:600], 0.1, simple_projection(points, SQUARES, chosen.n_grid))
    assert sorted(found) == sorted(twin.brute_force(points[:600], 0.1))
    assert counters[CANDIDATES] < 0.5 * raw[CANDIDATES]
    assert not choose_projection(sample, 3_000_000, 0.1, SUM).projection.is_rotated
    assert not choose_projection(sample, 30_000, 0.1, SQUARES).projection.is_rotated  # turning costs more


@pytest.mark.parametrize(("eps", "is_tried"), [(0.004, False), (0.03, False), (0.1, True), (0.3, True)])
def test_choose_projection__of_few_rows_tries_where_their_simple_sweep_is_costly(eps, is_tried):
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.normal(size=(24, 24)))[0][:2]
    points = random.random((6000, 2)) @ basis + random.normal(size=(6000, 24)) * 1e-3
    chosen = choose_projection(points, 6000, eps, SQUARES).projection
    assert chosen.is_rotated == is_tried
    assert not choose_projection(points[:1900], 1900, eps, SQUARES).projection.is_rotated


@examples(200)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(sorted(NORMS)),
    st.integers(0, 60),
    st.integers(1, 12),
    st.integers(0, 10**6),
)
def test_choose_projection__whatever_it_takes_is_exact(kind, metric, n, d, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    # these rows as a sample of so many that every choice is worth its price
    projection = choose_projection(points, 10**7, eps * (1 + 1e-12), NORMS[metric][0]).projection
    found, _ = sweep_all(points, eps, projection, metric)
    assert sorted(found) == sorted(twin.brute_force(points, eps, metric))


@pytest.mark.parametrize("d", [1, 2, 3, 8, 40])
def test_choose_projection__expects_the_candidates_that_come(d):
    random = np.random.default_rng(d)
    points = random.normal(size=(30_000, d)) * np.exp(-np.arange(d) / 4)
    eps = 0.02 if d < 3 else 0.3
    choice = choose_projection(points[:6000], 30_000, eps, SQUARES)
    found = row_candidates(points, np.zeros(30_000, np.bool_), eps * (1 + 1e-12), choice.projection)
    assert choice.candidates == pytest.approx(found.sum(), rel=0.2)
    again = choose_projection(points[:6000], 30_000, eps, SQUARES, ranges=one_by_one)
    assert again.candidates == choice.candidates
    assert (again.projection.axes == choice.projection.axes).all()


@pytest.mark.parametrize("far", [1e3, 1e8, 1e17, 9.97e36, 1e300])
@pytest.mark.parametrize("d", [2, 8])
def test_choose_projection__is_not_spoilt_by_an_outlier(d, far):
    n, eps = 2000, 0.002 if d == 2 else 0.15
    points = np.random.default_rng(d).random((n, d))
    # as a sample of so many rows that coordinates are chosen, not simply taken
    _, without = sweep_all(points, eps, choose_projection(points, 20 * n, eps, SQUARES).projection)
    points[77] = far
    points[78, 0] = -far
    found, counters = sweep_all(points, eps, choose_projection(points, 20 * n, eps, SQUARES).projection)
    assert counters[CANDIDATES] <= 2 * without[CANDIDATES] + 100
    tree = cKDTree(np.delete(points, [77, 78], axis=0))
    assert len(found) == len(tree.query_pairs(eps))


def test_choose_projection__of_two_tables_counts_what_is_between_them():
    random = np.random.default_rng(4)
    left, right = random.random((800, 4)), random.random((200, 4))
    right[:, 0] += 0.9
    both = np.concatenate((left, right))
    is_right = np.arange(1000) >= 800
    choice = choose_projection(both, 1000, 0.1, SQUARES, is_right=is_right)
    assert choice.candidates == count_between(both, is_right, 0.1, choice.projection) > 0
    alone = choose_projection(both, 1000, 0.1, SQUARES)
    assert choice.candidates < alone.candidates / 10
    assert choice.nanoseconds < alone.nanoseconds
