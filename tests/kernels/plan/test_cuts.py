"""The planned tree: rows of each part, and the one part that reports a pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.codes import cube_lower, cube_upper
from epsjoin.kernels.plan.cuts import HASH_AXIS, MAX_AXES, assign, hash_to_unit, turned_sides
from epsjoin.local.plan.tree.cut_tree import make_tree
from oracles import examples, papers
from oracles import join as twin
from tests.kernels.helpers import assigned_parts, axes_of_bits, random_tree, reporting_parts


def tree_between(random, d, n_cuts, low, high):
    """A tree of any cuts: nothing but exactness of the assignment may depend on them."""

    def draw_cut():
        axis = int(random.integers(-1, d))
        return axis, float(random.random() if axis < 0 else random.uniform(low, high))

    return random_tree(random, n_cuts, HASH_AXIS, draw_cut)


@examples(100)
@given(
    *(st.sampled_from(twin.KINDS), st.integers(1, 4), st.integers(0, 20), st.integers(0, 10**6)),
    *(st.booleans(), st.integers(0, 2)),
)
def test_assign__sends_rows_as_the_twin_and_each_pair_has_one_part(
    kind, d, n_cuts, seed, on_values, n_turned
):
    points, eps = twin.awkward_points(kind, 25, d, seed)
    random = np.random.default_rng(seed)
    basis = random.normal(size=(n_turned, d))
    basis /= np.linalg.norm(basis, axis=1, keepdims=True) * (1.0 + 1e-12)
    tree = tree_between(random, d + n_turned, n_cuts, points.min(), points.max())
    if on_values and d:  # cuts through the corners of cubes themselves
        corners = [cube_lower(v, eps / 2) for v in points[:, 0].tolist()]
        on_axis = tree.axis >= 0
        tree.position[on_axis] = random.choice(corners, np.count_nonzero(on_axis))
    hashes = hash_to_unit(np.arange(25) * 7 - 50)
    rows = assign(points, hashes, eps, tree._replace(basis=basis))
    columns = {name: column.tolist() for name, column in tree._asdict().items()}
    axis_of_bit = axes_of_bits(tree)
    axis_of_bit[0] = HASH_AXIS
    for number, point in enumerate(points.tolist()):
        turned = [turned_sides(points, number, direction, eps / 2) for direction in basis]
        expected = papers.touched_parts(
            [cube_lower(v, eps / 2) for v in point] + [lower for lower, _ in turned],
            [cube_upper(v, eps / 2) for v in point] + [upper for _, upper in turned],
            float(hashes[number]),
            0,
            columns,
        )
        assert assigned_parts(rows, number, axis_of_bit) == expected
    for i, j, reporting in reporting_parts(rows, 25):
        apart = points[i] - points[j]
        near = np.abs(apart).max() <= eps if n_turned == 0 else (apart * apart).sum() <= eps * eps
        assert len(reporting) == 1 if near else len(reporting) <= 1


@examples(200)
@given(st.integers(1, 6), st.integers(0, 10**6), st.integers(-30, 30))
def test_turned_sides__hold_what_lies_within_half_of_eps(d, seed, exponent):
    random = np.random.default_rng(seed)
    points = random.normal(size=(1, d)) * 10.0**exponent
    direction = random.normal(size=d)
    direction /= np.linalg.norm(direction)
    half = float(random.random())
    exact = sum(
        Fraction(a) * Fraction(b) for a, b in zip(direction.tolist(), points[0].tolist(), strict=True)
    )
    lower, upper = turned_sides(points, 0, direction, half)
    assert Fraction(lower) <= exact - Fraction(half)
    assert Fraction(upper) >= exact + Fraction(half)
    assert upper - lower <= 2.0 * half * (1.0 + 1e-9) + 1e-12 * float(np.abs(points).sum())


def test_turned_sides__are_everywhere_where_the_sum_is_no_number():
    points = np.array([[1.7e308, -1.7e308]])
    assert turned_sides(points, 0, np.array([0.8, 0.6]), 1.0) == (-np.inf, np.inf)
    tree = make_tree([2, HASH_AXIS, HASH_AXIS], [0.0] * 3, [1, -1, -1], [2, -1, -1])
    rows = assign(points, np.zeros(1), 2.0, tree._replace(basis=np.array([[0.8, 0.6]])))
    assert rows.part.tolist() == [0, 1]


def test_assign__gives_every_row_one_home():
    points = np.random.default_rng(0).random((200, 3))
    tree = tree_between(np.random.default_rng(1), 3, 15, 0.0, 1.0)
    rows = assign(points, hash_to_unit(np.arange(200)), 0.1, tree)
    assert rows.row[rows.mask == 0].tolist() == list(range(200))
    assert len(rows.row) > 200


def test_hash_to_unit__is_splitmix64():
    # first outputs of the published generator, seeded with 0 and 1234567: its state after one step
    assert hash_to_unit(np.array([0]))[0] == (0xE220A8397B1DCDAF >> 11) * 2.0**-53
    assert hash_to_unit(np.array([1234567]))[0] == (6457827717110365317 >> 11) * 2.0**-53


def test_hash_to_unit__spreads_consecutive_ids():
    spread = np.histogram(hash_to_unit(np.arange(10_000)), bins=10, range=(0, 1))[0]
    assert spread.min() > 850
    assert spread.max() < 1150


def test_make_tree__refuses_more_axes_than_bits():
    n = MAX_AXES + 1
    axis = list(range(n)) + [HASH_AXIS] * (n + 1)
    left = [i + 1 if i < n - 1 else n for i in range(n)] + [-1] * (n + 1)
    right = [n + 1 + i for i in range(n)] + [-1] * (n + 1)
    with pytest.raises(ValueError, match="62 axes"):
        make_tree(axis, [0.5] * len(axis), left, right)
