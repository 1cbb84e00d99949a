"""Cubes of any extent under a tree of cuts, and the plane sweep in its leaves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, MINKOWSKI, decide, make_decision
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS, PairBatch
from epsjoin.kernels.plan import cubes as join_cubes
from epsjoin.kernels.plan.cubes import Cubes, assign_cubes, count_rows, make_cubes, overlaps, separating_axes
from epsjoin.kernels.sweep.box_sweep import Objects, box_sweep, decide_objects, gather_rows, sweep_order
from epsjoin.kernels.sweep.stack_sweep import is_done, new_state
from epsjoin.local.plan.tree.box_tree import grow_box_tree
from epsjoin.local.plan.tree.cut_tree import make_tree, prune_tree
from oracles import boxes as twin
from oracles import examples
from oracles.papers import touched_parts
from tests.kernels.helpers import assigned_parts, axes_of_bits, random_tree, reporting_parts

SEEDS = st.integers(0, 10**6)
N_CUTS = st.integers(0, 20)
ROOMS = st.sampled_from([1, 3, 1000])
COSTS = {"rows_per_row": 1.0, "row_cost": 25.0, "candidate_cost": 3.0}  # cheap rows: many cuts on few rows


def cubes_of(lower, upper, eps=0.0):
    reach = np.full(len(lower), eps / 2.0 * (1.0 + 1e-12))
    return Cubes(*make_cubes(lower, upper, reach))


def no_right(n):
    return np.zeros(n, np.bool_)


def tree_on_sides(random, cubes, n_cuts):
    """A tree of any cuts, many of them exactly on a side of a cube: only work may depend on them."""

    def draw_cut():
        axis = int(random.integers(cubes.lower.shape[1]))
        return axis, float(random.choice(random.choice([cubes.lower, cubes.upper])[:, axis]))

    return random_tree(random, n_cuts, 0, draw_cut)


def swept(objects, cubes, tree, n_left=None, room=1000, metric=EUCLIDEAN):
    """Pairs with distance, and counters, of all leaves together."""
    n = len(objects.eps)
    is_self = n_left is None
    is_right = np.arange(n) >= (n if is_self else n_left)
    n_parts = 1 + int(tree.part.max())
    order = sweep_order(assign_cubes(cubes, tree), n_parts, cubes, is_right, is_self)
    rows = gather_rows(order, cubes, 0, n_parts, is_self)
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    state, counters, pairs = new_state(0), np.zeros(4, np.int64), []
    while not is_done(state):
        found = box_sweep(state, rows, objects, make_decision(metric, 0.0, np.inf), batch, counters)
        assert found == room or is_done(state)
        pairs += zip(*(column[:found].tolist() for column in batch), strict=True)
    return pairs, counters, order


def assert_are(pairs, expected):
    assert sorted((i, j) for i, j, _ in pairs) == sorted(expected)
    found = [distance for _, _, distance in pairs]
    np.testing.assert_allclose(found, [expected[i, j] for i, j, _ in pairs], rtol=1e-15, atol=0.0)


@examples(60)
@given(st.sampled_from(twin.KINDS), st.integers(1, 4), SEEDS)
def test_make_cubes__of_boxes_within_eps_meet(kind, d, seed):
    lower, upper, eps = twin.awkward_boxes(kind, 25, d, seed)
    cubes = cubes_of(lower, upper, eps)
    reach = Fraction(eps / 2.0 * (1.0 + 1e-12))
    for i in np.flatnonzero(np.isfinite(cubes.lower[:, 0]) & np.isfinite(cubes.upper[:, 0])):
        assert Fraction(cubes.lower[i, 0]) <= Fraction(lower[i, 0]) - reach
        assert Fraction(cubes.upper[i, 0]) >= Fraction(upper[i, 0]) + reach
    for i, j in twin.box_pairs((lower, upper), eps=eps, metric="chebyshev"):
        assert (cubes.lower[i] <= cubes.upper[j]).all()
        assert (cubes.lower[j] <= cubes.upper[i]).all()


@examples(60)
@given(st.sampled_from(twin.KINDS), st.integers(1, 4), st.integers(0, 20), SEEDS)
def test_assign_cubes__sends_rows_as_the_twin_and_each_pair_has_one_part(kind, d, n_cuts, seed):
    lower, upper, eps = twin.awkward_boxes(kind, 25, d, seed)
    cubes = cubes_of(lower, upper, eps)
    tree = tree_on_sides(np.random.default_rng(seed), cubes, n_cuts)
    rows = assign_cubes(cubes, tree)
    assert count_rows(cubes, tree) == len(rows.row)
    columns = {name: column.tolist() for name, column in tree._asdict().items()}
    axis_of_bit = axes_of_bits(tree)
    for cube in range(25):
        expected = touched_parts(cubes.lower[cube].tolist(), cubes.upper[cube].tolist(), 0.0, 0, columns)
        assert assigned_parts(rows, cube, axis_of_bit) == expected
    for i, j, reporting in reporting_parts(rows, 25):
        meet = (cubes.lower[i] <= cubes.upper[j]).all() and (cubes.lower[j] <= cubes.upper[i]).all()
        assert len(reporting) == 1 if meet else len(reporting) <= 1


@examples(60)
@given(st.sampled_from(twin.KINDS), st.integers(0, 25), st.integers(0, 25), SEEDS)
def test_overlaps__counts_the_pairs_that_meet_on_an_axis(kind, m, n_left, seed):
    lower, upper, _ = twin.awkward_boxes(kind, 30, 3, seed)
    rows = np.random.default_rng(seed).permutation(30)[:m]
    is_right = np.arange(30) >= n_left
    for is_self in (True, False):
        expected = [
            sum(
                lower[i, axis] <= upper[j, axis] and lower[j, axis] <= upper[i, axis]
                for i, j in itertools.combinations(rows.tolist(), 2)
                if is_self or is_right[i] != is_right[j]
            )
            for axis in range(2)
        ]
        assert overlaps(lower, upper, is_right, is_self, rows, 2).tolist() == expected


def test_separating_axes__puts_the_axis_with_the_fewest_meetings_first():
    lower, upper, _ = twin.awkward_boxes("uniform", 50, 4, 0)
    extents = np.array([1.0, 1e-3, 0.1, 1e-3])
    upper = lower + extents
    lower[:, 3], upper[:, 3] = lower[:, 1], upper[:, 1]  # a tie: by number
    assert separating_axes(Cubes(lower, upper), no_right(50), True).tolist() == [1, 3, 2, 0]


@examples(120)
@given(st.sampled_from(twin.KINDS), st.integers(0, 40), st.integers(1, 6), N_CUTS, ROOMS, SEEDS)
def test_box_sweep__over_any_cuts_is_brute_force(kind, n, d, n_cuts, room, seed):
    lower, upper, eps = twin.awkward_boxes(kind, n, d, seed)
    cubes = cubes_of(lower, upper, eps)
    tree = tree_on_sides(np.random.default_rng(seed), cubes, n_cuts if n else 0)
    objects = Objects(lower, upper, np.full(n, eps))
    pairs, counters, order = swept(objects, cubes, tree, room=room)
    expected = twin.box_pairs((lower, upper), eps=eps)
    assert_are(pairs, expected)
    # every pair that meets on the leaf's axis is looked at once, whatever the batch
    axes = min(d, join_cubes.CUT_AXES)
    leaves = [order.row[a:b] for a, b in itertools.pairwise(order.begin.tolist())]
    met = [overlaps(cubes.lower, cubes.upper, no_right(n), True, leaf, axes) for leaf in leaves]
    assert counters[CANDIDATES] == sum(int(counts.min()) for counts in met)
    assert order.axis.tolist() == [int(np.argmin(counts)) for counts in met]
    assert counters[PAIRS] == len(pairs) <= counters[DISTANCES] <= counters[CANDIDATES]
    assert counters[LARGEST_STACK] <= max([len(leaf) for leaf in leaves if len(leaf)], default=0)


@examples(120)
@given(
    *(st.sampled_from(twin.KINDS), st.integers(0, 40), st.integers(0, 40), st.integers(1, 4)),
    *(N_CUTS, ROOMS, SEEDS),
)
def test_box_sweep__of_two_tables_is_brute_force(kind, n_left, n, d, n_cuts, room, seed):
    lower, upper, eps = twin.awkward_boxes(kind, n, d, seed)
    n_left = min(n_left, n)
    cubes = cubes_of(lower, upper, eps)
    tree = tree_on_sides(np.random.default_rng(seed), cubes, n_cuts if n else 0)
    objects = Objects(lower, upper, np.full(n, eps))
    pairs, counters, order = swept(objects, cubes, tree, n_left, room, MANHATTAN)
    left, right = (lower[:n_left], upper[:n_left]), (lower[n_left:], upper[n_left:])
    expected = {(i, j + n_left): v for (i, j), v in twin.box_pairs(left, right, eps, "manhattan").items()}
    assert_are(pairs, expected)
    is_right = np.arange(n) >= n_left
    leaves = [order.row[a:b] for a, b in itertools.pairwise(order.begin.tolist())]
    met = [overlaps(cubes.lower, cubes.upper, is_right, False, leaf, d) for leaf in leaves]
    assert counters[CANDIDATES] == sum(int(counts.min()) for counts in met)


@pytest.mark.parametrize(
    ("n_left", "expected"),
    [(None, [(0, 1), (0, 2), (1, 2)]), (1, [(0, 1), (0, 2)]), (2, [(0, 2), (1, 2)])],
)
def test_box_sweep__finds_cubes_that_touch_or_begin_alike_once(n_left, expected):
    lower, upper = np.array([[-1.0], [0.0], [0.0]]), np.array([[0.0], [1.0], [0.0]])
    cubes = cubes_of(lower, upper)
    assert cubes.upper[0, 0] == cubes.lower[1, 0] == cubes.lower[2, 0] == 0.0  # no slack at 0
    tree = make_tree([0], [0.0], [-1], [-1])
    pairs, _, _ = swept(Objects(lower, upper, np.zeros(3)), cubes, tree, n_left)
    assert [pair[:2] for pair in sorted(pairs)] == expected


@pytest.mark.parametrize(
    ("metric", "p"), [(EUCLIDEAN, 0.0), (MANHATTAN, 0.0), (CHEBYSHEV, 0.0), (MINKOWSKI, 2.5)]
)
def test_decide_objects__decides_points_as_the_point_join(metric, p):
    random = np.random.default_rng(1)
    points = random.normal(size=(40, 5))
    gap = np.zeros((2, 5))
    eps = 3.0
    decision = make_decision(metric, p, eps)
    objects = Objects(points, points, np.full(40, eps))
    found = []
    for x, y in itertools.product(range(40), repeat=2):
        expected = decide(decision, points, x, points, y)
        assert decide_objects(make_decision(metric, p, np.inf), objects, x, y, gap) == expected
        found.append(expected >= 0.0)
    assert 40 < sum(found) < 1600


def test_decide_objects__takes_half_the_sum_of_both_eps():
    points = np.array([[0.0], [2.0]])
    gap = np.zeros((2, 1))
    for eps, distance in (([1.0, 3.0], 2.0), ([4.0, 0.0], 2.0), ([1.0, 2.9], -1.0)):
        objects = Objects(points, points, np.array(eps))
        assert decide_objects(make_decision(EUCLIDEAN, 0.0, np.inf), objects, 0, 1, gap) == distance
        assert decide_objects(make_decision(EUCLIDEAN, 0.0, np.inf), objects, 1, 0, gap) == distance


def test_decide_objects__at_eps_0_sees_a_gap_whose_square_is_0():
    points = np.array([[0.0], [1e-200], [0.0]])
    objects = Objects(points, points, np.zeros(3))
    gap = np.zeros((2, 1))
    assert decide_objects(make_decision(EUCLIDEAN, 0.0, np.inf), objects, 0, 1, gap) == -1.0
    assert decide_objects(make_decision(EUCLIDEAN, 0.0, np.inf), objects, 0, 2, gap) == 0.0


def grown_on(lower, upper, max_rows=math.inf):
    cubes = Cubes(lower, upper)
    return cubes, grow_box_tree(cubes, no_right(len(lower)), True, max_rows=max_rows, **COSTS)


def test_grow_box_tree__saves_most_candidates_of_small_boxes():
    random = np.random.default_rng(0)
    lower = random.random((4000, 2))
    cubes, grown = grown_on(lower, lower + 0.01)
    rows = assign_cubes(cubes, grown.tree)
    order = sweep_order(rows, grown.n_parts, cubes, no_right(4000), True)
    assert len(rows.row) == grown.rows < 1.3 * 4000
    whole = int(overlaps(*cubes, no_right(4000), True, np.arange(4000), 2).min())
    assert grown.candidates < whole / 5
    found, counters, _ = swept(Objects(lower, lower + 0.01, np.zeros(4000)), cubes, grown.tree, room=10**5)
    assert counters[CANDIDATES] == grown.candidates
    assert len(order.axis) == grown.n_parts
    assert len(found) == counters[DISTANCES]  # what meets on every axis, meets


@pytest.mark.parametrize("max_rows", [1000, 1030, 1100])
def test_grow_box_tree__stays_within_the_rows_allowed(max_rows):
    lower = np.random.default_rng(0).random((1000, 2))
    cubes, grown = grown_on(lower, lower + 0.01, max_rows)
    assert count_rows(cubes, grown.tree) == grown.rows <= max_rows
    assert grown.n_parts > 1 or max_rows == 1000


def test_grow_box_tree__does_not_cut_what_crosses_everything():
    lower = np.random.default_rng(0).random((500, 2)) * 1e-3
    _, grown = grown_on(lower, lower + 1.0)
    assert grown.n_parts == 1
    _, grown = grown_on(np.full((500, 2), 0.5), np.full((500, 2), 0.5))
    assert grown.n_parts == 1


def test_grow_box_tree__finds_clusters_behind_a_giant():
    lower = np.random.default_rng(0).random((2000, 2))
    upper = lower + 0.01
    lower[:5], upper[:5] = -1.0, 3.0
    cubes, grown = grown_on(lower, upper)
    assert grown.n_parts > 4
    assert np.bincount(assign_cubes(cubes, grown.tree).part).max() < 1000


@pytest.mark.parametrize("n", [0, 1, 2])
def test_grow_box_tree__takes_few_rows(n):
    _, grown = grown_on(np.zeros((n, 3)), np.ones((n, 3)))
    assert (grown.n_parts, grown.rows, grown.candidates) == (1, n, n // 2)


def test_grow_box_tree__cuts_the_first_axes_only():
    random = np.random.default_rng(0)
    lower = np.zeros((500, join_cubes.CUT_AXES + 1))
    lower[:, -1] = random.random(500)
    _, grown = grown_on(lower, lower + 1e-3)
    assert grown.n_parts == 1


def test_prune_tree__gives_the_tree_of_the_first_cuts():
    lower = np.random.default_rng(3).random((2000, 2))
    cubes, grown = grown_on(lower, lower + 0.01)
    n_cuts = grown.n_parts - 1
    assert n_cuts > 8
    sizes = []
    for first in range(n_cuts + 1):
        tree = prune_tree(grown.tree, first)
        assert len(tree.axis) == 2 * first + 1
        assert sorted(tree.part[tree.part >= 0].tolist()) == list(range(first + 1))
        sizes.append(count_rows(cubes, tree))
    assert sizes[0] == 2000
    assert sizes == sorted(sizes)
    assert sizes[-1] == grown.rows
    objects = Objects(lower, lower + 0.01, np.zeros(2000))
    whole, _, _ = swept(objects, cubes, grown.tree)
    some, _, _ = swept(objects, cubes, prune_tree(grown.tree, n_cuts // 2))
    assert sorted(whole) == sorted(some)
    assert len(whole) > 100
