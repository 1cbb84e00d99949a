"""DBSCAN's kernels on batches of pairs, each against its definition in a few lines of Python."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from epsjoin.kernels.cluster.density import (
    EndPairs,
    add_sizes,
    add_weights,
    count_ends,
    find_homes,
    find_nearest_cores,
    number_clusters,
    sum_weights,
    unite_cores,
)
from epsjoin.kernels.cluster.union_find import unite
from oracles import cluster as twin
from oracles import examples
from tests.kernels.columns import pair_columns

N = 12
PAIRS = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.sampled_from([0.0, 0.5, 1.0])).filter(
        lambda pair: pair[0] != pair[1]
    ),
    max_size=40,
)
CORES = st.lists(st.booleans(), min_size=N, max_size=N).map(lambda flags: np.array(flags, np.bool_))


def columns(pairs):
    return EndPairs(*pair_columns(pairs))


@examples(200)
@given(PAIRS, st.integers(1, 6), st.integers(0, 40))
def test_count_ends__counts_both_ends_in_batches(pairs, core_at, cut):
    degree, is_core = np.zeros(N, np.int64), np.zeros(N, np.bool_)
    for batch in (pairs[:cut], pairs[cut:]):
        left, right, _ = columns(batch)
        count_ends(left, right, core_at, degree, is_core)
    expected = [sum(row in pair[:2] for pair in pairs) for row in range(N)]
    assert degree.tolist() == expected
    assert is_core.tolist() == [count >= core_at for count in expected]


@examples(200)
@given(
    PAIRS,
    st.lists(st.sampled_from([1e16, 1.0, 0.1, 1e-3]), min_size=N, max_size=N),
    st.sampled_from([0.5, 3.0, 1e16]),
)
def test_add_weights__sums_as_if_rounded_once(pairs, weights, core_at):
    degree, rest, is_core = np.zeros(N), np.zeros(N), np.zeros(N, np.bool_)
    left, right, _ = columns(pairs)
    add_weights(left, right, np.array(weights), np.zeros(N), core_at, degree, rest, is_core)
    terms = [[weights[b if a == row else a] for a, b, _ in pairs if row in (a, b)] for row in range(N)]
    sums = [math.fsum(each) for each in terms]
    assert (degree + rest).tolist() == sums
    assert is_core.tolist() == [total >= core_at for total in sums]


@examples(100)
@given(PAIRS, st.lists(st.integers(1, 5), min_size=N, max_size=N), st.integers(1, 20))
def test_add_sizes__counts_the_points_that_the_other_ends_stand_for(pairs, sizes, core_at):
    degree, is_core = np.array(sizes), np.zeros(N, np.bool_)
    left, right, _ = columns(pairs)
    add_sizes(left, right, np.array(sizes), core_at, degree, is_core)
    others = [[b if a == row else a for a, b, _ in pairs if row in (a, b)] for row in range(N)]
    assert degree.tolist() == [sizes[row] + sum(sizes[other] for other in others[row]) for row in range(N)]
    assert is_core.tolist() == [bool(others[row]) and bool(degree[row] >= core_at) for row in range(N)]


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1e16, -1e16, 1.0, 0.1, 1e-3])), max_size=30))
def test_sum_weights__sums_each_group_as_if_rounded_once(rows):
    total, rest = np.zeros(3), np.zeros(3)
    sum_weights(
        np.array([group for group, _ in rows], np.int64), np.array([w for _, w in rows], float), total, rest
    )
    expected = [math.fsum(weight for group, weight in rows if group == each) for each in range(3)]
    assert (total + rest).tolist() == expected


@examples(200)
@given(PAIRS, CORES)
def test_unite_cores__unites_core_pairs_and_hands_on_the_others_in_order(pairs, is_core):
    parent = np.arange(N)
    others = EndPairs(np.full(len(pairs), -1), np.full(len(pairs), -1), np.full(len(pairs), -1.0))
    handed_on = unite_cores(columns(pairs), is_core, parent, others)
    both = [(a, b) for a, b, _ in pairs if is_core[a] and is_core[b]]
    smallest = twin.components(both)
    for row in range(N):
        root = row
        while parent[root] != root:
            root = parent[root]
        assert root == smallest.get(row, row)
    rest = [pair for pair in pairs if not (is_core[pair[0]] and is_core[pair[1]])]
    assert list(zip(*(column[:handed_on].tolist() for column in others), strict=True)) == rest


@examples(200)
@given(PAIRS, CORES)
@example([(0, 5, 1.0), (3, 0, 1.0), (0, 4, 1.0)], np.arange(N) > 2)  # three core rows equally far
def test_find_nearest_cores__takes_the_smallest_distance_then_row(pairs, is_core):
    home, home_distance = np.full(N, -1), np.full(N, np.inf)
    find_nearest_cores(columns(pairs), is_core, home, home_distance)
    for row in range(N):
        near = [(d, b if a == row else a) for a, b, d in pairs if row in (a, b)]
        near = [(d, other) for d, other in near if is_core[other] and not is_core[row]]
        assert (home_distance[row], home[row]) == min(near, default=(np.inf, -1))


@examples(200)
@given(PAIRS, CORES)
def test_number_clusters__counts_clusters_by_their_smallest_core_row(pairs, is_core):
    ends = columns(pairs)
    parent, home, home_distance = np.arange(N), np.full(N, -1), np.full(N, np.inf)
    unite_cores(ends, is_core, parent, columns(pairs))
    find_nearest_cores(ends, is_core, home, home_distance)
    smallest = twin.components((a, b) for a, b, _ in pairs if is_core[a] and is_core[b])
    named = [smallest.get(row, row) if is_core[row] else -1 for row in range(N)]
    named = [named[home[row]] if home[row] >= 0 else name for row, name in enumerate(named)]
    assert number_clusters(parent, is_core, home).tolist() == twin.numbered(named)


@examples(200)
@given(PAIRS, CORES)
def test_find_homes__names_every_cluster_by_its_smallest_core_row(pairs, is_core):
    home = np.arange(N, dtype=np.int32)
    both = [(a, b) for a, b, _ in pairs if is_core[a] and is_core[b]]
    for a, b in both:
        unite(home, np.int32(a), np.int32(b))
    near = {}
    for a, b, _ in pairs:
        for row, core in ((a, b), (b, a)):
            if is_core[core] and not is_core[row]:
                near[row] = home[row] = core
    find_homes(home, is_core)
    smallest = twin.components(both)
    for row in range(N):
        core = row if is_core[row] else near.get(row, -1)
        assert home[row] == (smallest.get(core, core) if core >= 0 else -1)
