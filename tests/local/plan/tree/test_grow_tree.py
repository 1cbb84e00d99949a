"""The planned tree as it is grown on a sample: equal work, few rows, within the rows allowed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.kernels.plan.cuts import HASH_AXIS, assign, hash_to_unit
from epsjoin.kernels.projection import MAXIMUM, SQUARES
from epsjoin.local.plan.expectation.decided_pairs import DecidedPairs
from epsjoin.local.plan.tree import grow_tree as plan_grow_tree
from epsjoin.local.plan.tree.cut_leaf import Costs
from epsjoin.local.plan.tree.grow_tree import grow_tree

COSTS = Costs(row=250.0, candidate=2.5, decision=25.0, move=1000.0, turn=0.5)
"""Turning costs so much for each coordinate."""


def grow(
    points, eps, n_parts, max_rows=math.inf, decided=None, max_leaf_rows=math.inf, norm=SQUARES, costs=COSTS
):
    hashes = hash_to_unit(np.arange(len(points)))
    none = np.empty(0, np.int64)
    decided = DecidedPairs(none, none, 1.0) if decided is None else decided
    return grow_tree(
        points,
        hashes,
        eps,
        n_parts,
        norm=norm,
        decided=decided,
        rows_per_row=1.0,
        costs=costs._replace(turn=costs.turn * points.shape[1]),
        max_rows=max_rows,
        max_leaf_rows=max_leaf_rows,
    )


def test_grow_tree__balances_without_crossing_where_it_can():
    random = np.random.default_rng(0)
    points = random.random((4000, 2))
    grown = grow(points, 0.05, 8)
    rows = assign(points, hash_to_unit(np.arange(4000)), 0.05, grown.tree)
    sizes = np.bincount(rows.part)
    assert len(sizes) == grown.n_parts == 8
    assert sizes.max() < 1.3 * sizes.mean()
    assert len(rows.row) == grown.rows < 1.4 * 4000
    assert set(grown.tree.axis[grown.tree.part < 0].tolist()) == {0, 1}


def test_grow_tree__cuts_a_hot_spot_by_hash():
    points = np.full((300, 2), 0.5)
    grown = grow(points, 0.1, 4)
    assert grown.n_parts == 4
    assert set(grown.tree.axis[grown.tree.part < 0].tolist()) == {HASH_AXIS}
    # every pair is a candidate once: no cut makes more of them
    assert grown.candidates == 300 * 299 // 2


@pytest.mark.parametrize("n_parts", [4, 64])
def test_grow_tree__of_a_thin_sample_cuts_leaves_of_many_rows_and_little_work(n_parts):
    # one pair of the sample stands for more work than all of its rows, and nothing divides its leaf's work
    points = np.random.default_rng(1).random((1000, 2))
    pair = DecidedPairs(np.array([3]), np.array([int(np.argsort(points[:, 0])[0])]), 1e10)
    grown = grow(points, 1e-5, n_parts, decided=pair, max_leaf_rows=100)
    rows = np.bincount(assign(points, hash_to_unit(np.arange(1000)), 1e-5, grown.tree).part)
    assert len(rows) == grown.n_parts >= 10
    assert rows.max() <= 100
    assert grown.rows == rows.sum() < 1100


def test_grow_tree__counts_the_pairs_that_are_decided():
    # all pairs are in the first tenth of the axis: without them a cut in the middle would do
    points = np.linspace(0.0, 1.0, 2000)[:, None]
    decided = DecidedPairs(np.arange(199), np.arange(1, 200), weight=10_000.0)
    cut = grow(points, 6e-4, 2, decided=decided)
    assert 0.045 < cut.tree.position[0] < 0.055
    assert cut.work.max() < 1.05 * cut.work.mean()
    assert cut.work.sum() == pytest.approx(2000 * 250 + 25 * 10_000 * 199, rel=0.01)
    assert 0.45 < grow(points, 6e-4, 2).tree.position[0] < 0.55


def test_grow_tree__forgets_pairs_of_rows_that_no_part_has_together():
    # rows that pass a filter of few coordinates, though they are far from each other on the axis that is cut
    points = np.concatenate((np.linspace(0.0, 1.0, 1000), np.linspace(9.0, 10.0, 1000)))[:, None]
    far = DecidedPairs(np.arange(1000), 1000 + np.arange(1000), weight=100.0)
    whole, halves = (grow(points, 1e-6, n_parts, decided=far) for n_parts in (1, 2))
    assert whole.work.sum() == pytest.approx(2000 * 250 + 25 * 1000 * 100, rel=1e-3)
    assert halves.work == pytest.approx([1000 * 250] * 2, rel=0.02)


@pytest.mark.parametrize("n_parts", [3, 5, 7, 13])
def test_grow_tree__gives_equal_work_to_any_number_of_parts(n_parts):
    points = np.random.default_rng(0).random((6000, 1)) ** 3
    grown = grow(points, 1e-5, n_parts)
    assert grown.n_parts == len(grown.work) == n_parts
    assert grown.work.max() < 1.15 * grown.work.mean()


@pytest.mark.parametrize("n_parts", [2, 3, 6])
def test_grow_tree__gives_equal_work_to_parts_cut_by_hash(n_parts):
    points = np.full((3000, 2), 0.5)
    grown = grow(points, 0.1, n_parts, decided=DecidedPairs(*np.triu_indices(3000, 1), weight=1.0))
    assert grown.n_parts == n_parts
    assert grown.work.max() < 1.15 * grown.work.mean()
    # every pair is decided once
    rows = COSTS.row * grown.rows
    assert grown.work.sum() - rows == pytest.approx((2.5 + 25.0) * 3000 * 2999 / 2, rel=0.02)


def test_grow_tree__leaves_the_rest_whole_where_the_largest_leaf_cannot_be_cut():
    # 900 equal rows, which only a hash cut divides, for which there is no room; 400 others
    points = np.concatenate((np.full((900, 1), 5.0), np.linspace(0.0, 1.0, 400)[:, None]))
    assert grow(points, 1e-9, 16, max_rows=1400).n_parts == 2
    assert grow(points, 1e-9, 16).n_parts == 16


@pytest.mark.parametrize("max_rows", [300, 400, 1000])
def test_grow_tree__stays_within_the_rows_allowed(max_rows):
    points = np.random.default_rng(0).random((300, 2))
    grown = grow(points, 0.2, 64, max_rows)
    assert grown.rows <= max_rows
    assert len(assign(points, hash_to_unit(np.arange(300)), 0.2, grown.tree).row) == grown.rows


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_grow_tree__takes_few_rows(n):
    points = np.random.default_rng(0).random((n, 2))
    grown = grow(points, 0.001, 64)
    assert 1 <= grown.n_parts <= max(1, n)


def diagonal_points():
    """A stripe along a diagonal: a cut across it crosses fewer cubes than one of an axis."""
    random = np.random.default_rng(0)
    return np.outer(random.random(4000), np.ones(4)) + random.normal(0.0, 0.1, (4000, 4))


def test_grow_tree__cuts_along_a_principal_axis_where_fewer_cubes_are_crossed():
    points = diagonal_points()
    hashes = hash_to_unit(np.arange(4000))
    turned, raw = (grow(points, 0.1, 8, norm=norm) for norm in (SQUARES, MAXIMUM))
    assert np.linalg.norm(turned.tree.basis, axis=1) == pytest.approx(1.0, abs=1e-4)
    assert (np.linalg.norm(turned.tree.basis, axis=1) <= 1.0).all()
    assert np.abs(turned.tree.basis @ np.full(4, 0.5)).max() > 0.99
    assert len(raw.tree.basis) == 0
    assert turned.rows - 4000 < 0.75 * (raw.rows - 4000)
    assert len(assign(points, hashes, 0.1, turned.tree).row) == turned.rows
    used = turned.tree.axis[turned.tree.axis >= 4]
    assert sorted(set(used.tolist())) == list(range(4, 4 + len(turned.tree.basis)))


def test_grow_tree__takes_axes_as_they_are_where_turning_costs_more_than_it_saves():
    points = diagonal_points()
    assert len(grow(points, 0.1, 8, costs=COSTS._replace(turn=1e6)).tree.basis) == 0


def test_grow_tree__divides_work_not_weights():
    random = np.random.default_rng(0)
    points = random.random((6000, 6))
    grown = grow(points, 0.25, 16)
    assert grown.n_parts == 16
    assert grown.work.max() < 1.15 * grown.work.mean()


@pytest.mark.parametrize("n_parts", [4, 8])
@pytest.mark.parametrize(("n", "dimensions", "eps"), [(600, 2, 0.2), (300, 12, 1.0), (200, 1, 2.0)])
def test_grow_tree__gives_a_pair_to_the_part_that_decides_it(n_parts, n, dimensions, eps):
    # cubes reach over many cuts: most pairs are decided where neither row is at home
    points = np.random.default_rng(3).random((n, dimensions))
    pairs = np.array(np.tril_indices(n, -1))
    pairs = pairs[:, np.linalg.norm(points[pairs[0]] - points[pairs[1]], axis=1) <= eps]
    grown = grow(
        points,
        eps,
        n_parts,
        decided=DecidedPairs(*pairs, weight=1.0),
        costs=Costs(row=0.0, candidate=0.0, decision=1.0, move=0.0, turn=0.0),
    )
    assert grown.n_parts > 1
    assigned = assign(points, hash_to_unit(np.arange(n)), eps, grown.tree)
    decided = np.zeros(grown.n_parts)
    for part in range(grown.n_parts):
        mask = dict(
            zip(*(a[assigned.part == part].tolist() for a in (assigned.row, assigned.mask)), strict=True)
        )
        decided[part] = sum(a in mask and b in mask and not mask[a] & mask[b] for a, b in pairs.T.tolist())
    assert decided.tolist() == grown.work.tolist()
    assert decided.sum() == pairs.shape[1]


def test_grow_tree__mends_what_is_uneven(monkeypatch):
    # cubes as large as the box in many dimensions, and few rows allowed
    points = np.random.default_rng(1).random((400, 16))
    decided = DecidedPairs(*np.triu_indices(400, 1), weight=1.0)

    def largest():
        return grow(points, 0.8, 16, max_rows=1600, decided=decided).work.max()

    with_all = largest()
    monkeypatch.setattr(plan_grow_tree, "_LARGEST_PART_WEIGHTS", plan_grow_tree._LARGEST_PART_WEIGHTS[:1])
    grown_once = largest()
    monkeypatch.setattr(plan_grow_tree, "_exchange", lambda *_: None)
    assert with_all < grown_once < largest()
