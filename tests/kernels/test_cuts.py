"""The planned tree: rows of each part, and the one part that reports a pair."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.codes import cube_lower, cube_upper
from epsjoin.kernels.cuts import HASH_AXIS, MAX_AXES, assign, grow_tree, hash_ids, make_tree
from epsjoin.kernels.projection import SQUARES
from oracles import examples
from oracles import join as twin

COSTS = {
    **{"norm": SQUARES, "rows_per_row": 1.0, "row_cost": 250.0, "candidate_cost": 2.5},
    **{"decision_cost": 25.0, "move_cost": 1000.0},
}


def grow(points, eps, n_parts, max_rows=math.inf, decided=None, **costs):
    hashes = hash_ids(np.arange(len(points)))
    decided = np.zeros(len(points)) if decided is None else decided
    return grow_tree(points, hashes, eps, n_parts, decided=decided, max_rows=max_rows, **{**COSTS, **costs})


def random_tree(random, d, n_cuts, low, high):
    """A tree of any cuts: nothing but exactness of the assignment may depend on them."""
    axis, position, left, right = [HASH_AXIS], [0.0], [-1], [-1]
    for _ in range(n_cuts):
        node = int(random.choice([i for i, child in enumerate(left) if child < 0]))
        axis[node] = int(random.integers(-1, d))
        position[node] = float(random.random() if axis[node] < 0 else random.uniform(low, high))
        left[node], right[node] = len(axis), len(axis) + 1
        for column, empty in ((axis, HASH_AXIS), (position, 0.0), (left, -1), (right, -1)):
            column += [empty, empty]
    return make_tree(axis, position, left, right)


@examples(100)
@given(
    st.sampled_from(twin.KINDS), st.integers(1, 4), st.integers(0, 20), st.integers(0, 10**6), st.booleans()
)
def test_assign__sends_rows_as_the_twin_and_each_pair_has_one_part(kind, d, n_cuts, seed, on_values):
    points, eps = twin.awkward_points(kind, 25, d, seed)
    random = np.random.default_rng(seed)
    tree = random_tree(random, d, n_cuts, points.min(), points.max())
    if on_values and d:  # cuts through the corners of cubes themselves
        corners = [cube_lower(v, eps / 2) for v in points[:, 0].tolist()]
        on_axis = tree.axis >= 0
        tree.position[on_axis] = random.choice(corners, np.count_nonzero(on_axis))
    hashes = hash_ids(np.arange(25) * 7 - 50)
    rows = assign(points, hashes, eps, tree)
    columns = {name: column.tolist() for name, column in tree._asdict().items()}
    axis_of_bit = {b: a for a, b in zip(tree.axis.tolist(), tree.bit.tolist(), strict=True) if b}
    axis_of_bit[0] = HASH_AXIS
    for number, point in enumerate(points.tolist()):
        expected = twin.touched_parts(
            [cube_lower(v, eps / 2) for v in point],
            [cube_upper(v, eps / 2) for v in point],
            float(hashes[number]),
            0,
            columns,
        )
        here = rows.row == number
        below = [
            frozenset(axis for bit, axis in axis_of_bit.items() if mask >> bit & 1)
            for mask in rows.mask[here].tolist()
        ]
        assert list(zip(rows.part[here].tolist(), below, strict=True)) == expected
    by_row = [
        dict(zip(rows.part[rows.row == i].tolist(), rows.mask[rows.row == i].tolist(), strict=True))
        for i in range(25)
    ]
    for i, j in itertools.combinations(range(25), 2):
        common = by_row[i].keys() & by_row[j].keys()
        reporting = [part for part in common if not by_row[i][part] & by_row[j][part]]
        near = np.abs(points[i] - points[j]).max() <= eps
        assert len(reporting) == 1 if near else len(reporting) <= 1


def test_assign__gives_every_row_one_home():
    points = np.random.default_rng(0).random((200, 3))
    tree = random_tree(np.random.default_rng(1), 3, 15, 0.0, 1.0)
    rows = assign(points, hash_ids(np.arange(200)), 0.1, tree)
    assert rows.row[rows.mask == 0].tolist() == list(range(200))
    assert len(rows.row) > 200


def test_hash_ids__is_splitmix64():
    # first outputs of the published generator, seeded with 0 and 1234567: its state after one step
    assert hash_ids(np.array([0]))[0] == (0xE220A8397B1DCDAF >> 11) * 2.0**-53
    assert hash_ids(np.array([1234567]))[0] == (6457827717110365317 >> 11) * 2.0**-53


def test_hash_ids__spreads_consecutive_ids():
    spread = np.histogram(hash_ids(np.arange(10_000)), bins=10, range=(0, 1))[0]
    assert spread.min() > 850
    assert spread.max() < 1150


def test_grow_tree__balances_without_crossing_where_it_can():
    random = np.random.default_rng(0)
    points = random.random((4000, 2))
    grown = grow(points, 0.05, 8)
    rows = assign(points, hash_ids(np.arange(4000)), 0.05, grown.tree)
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


def test_grow_tree__counts_the_pairs_that_are_decided():
    # all pairs are in the first tenth of the axis: without them a cut in the middle would do
    points = np.linspace(0.0, 1.0, 2000)[:, None]
    decided = np.zeros(2000)
    decided[:200] = 1e4
    cut = grow(points, 1e-6, 2, decided=decided)
    assert 0.04 < cut.tree.position[0] < 0.06
    assert cut.work.max() < 1.05 * cut.work.mean()
    assert cut.work.sum() == pytest.approx(2000 * 250 + 25 * decided.sum(), rel=0.01)
    assert 0.45 < grow(points, 1e-6, 2).tree.position[0] < 0.55


@pytest.mark.parametrize("n_parts", [3, 5, 7, 13])
def test_grow_tree__gives_equal_work_to_any_number_of_parts(n_parts):
    points = np.random.default_rng(0).random((6000, 1)) ** 3
    grown = grow(points, 1e-5, n_parts)
    assert grown.n_parts == len(grown.work) == n_parts
    assert grown.work.max() < 1.15 * grown.work.mean()


@pytest.mark.parametrize("n_parts", [2, 3, 6])
def test_grow_tree__gives_equal_work_to_parts_cut_by_hash(n_parts):
    points = np.full((3000, 2), 0.5)
    grown = grow(points, 0.1, n_parts, decided=np.full(3000, 1499.5))
    assert grown.n_parts == n_parts
    assert grown.work.max() < 1.15 * grown.work.mean()
    # every pair is decided once
    rows = COSTS["row_cost"] * grown.rows
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
    assert len(assign(points, hash_ids(np.arange(300)), 0.2, grown.tree).row) == grown.rows


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_grow_tree__takes_few_rows(n):
    points = np.random.default_rng(0).random((n, 2))
    grown = grow(points, 0.001, 64)
    assert 1 <= grown.n_parts <= max(1, n)


def test_make_tree__refuses_more_axes_than_bits():
    n = MAX_AXES + 1
    axis = list(range(n)) + [HASH_AXIS] * (n + 1)
    left = [i + 1 if i < n - 1 else n for i in range(n)] + [-1] * (n + 1)
    right = [n + 1 + i for i in range(n)] + [-1] * (n + 1)
    with pytest.raises(ValueError, match="62 axes"):
        make_tree(axis, [0.5] * len(axis), left, right)
