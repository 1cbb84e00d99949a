"""DBSCAN from pairs: the definition, in parts and as a whole, whatever the order and the chunks."""

from __future__ import annotations

import itertools
import math

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN

from epsjoin.errors import ArgumentError
from epsjoin.kernels.ids import index_ids
from epsjoin.local.cluster.from_pairs import (
    NOISE,
    ROLES,
    Forest,
    NearestCore,
    core_pairs,
    extend_labels,
    label,
    nearest_core,
    partial_degrees,
    spanning_forest,
    sum_degrees,
)
from oracles import cluster as twin
from oracles import examples

SEEDS = st.integers(0, 10**6)
BIG_IDS = st.sampled_from([0, -5, 2**62, -(2**63)])


def random_pairs(n, seed, first=0, step=1):
    """Points on a small integer grid, so that ties and equal points abound; eps 2."""
    random = np.random.default_rng(seed)
    points = random.integers(0, max(2, int(2 * n**0.5)), (n, 2)).astype(float)
    ids = [first + step * int(i) + 7 for i in random.permutation(n)]
    pairs = []
    for (i, x), (j, y) in itertools.combinations(enumerate(points), 2):
        distance = math.dist(x, y)
        if distance <= 2.0:
            pairs.append((min(ids[i], ids[j]), max(ids[i], ids[j]), distance))
    return points, ids, pairs


def columns(pairs):
    left, right, distance = ([row[i] for row in pairs] for i in range(3))
    return np.array(left, np.int64), np.array(right, np.int64), np.array(distance, np.float64)


def by_id(clusters):
    rows = zip(*(column.tolist() for column in clusters), strict=True)
    return {each: (cluster, ROLES[role], degree) for each, cluster, role, degree in rows}


def chunks(pairs, n, random):
    """Pairs dealt to n chunks at random, some of them empty."""
    dealt = [[] for _ in range(n)]
    for pair in pairs:
        dealt[random.integers(n)].append(pair)
    return dealt


def in_parts(ids, pairs, min_pts, n, seed):
    """DBSCAN as a cluster of machines runs it: every step on chunks, results brought together in rounds."""
    random = np.random.default_rng(seed)
    counted = [partial_degrees(*columns(chunk)[:2]) for chunk in chunks(pairs, n, random)]
    degrees = union(sum_degrees, counted)
    degree = dict.fromkeys(ids, 1)
    degree |= dict(zip(degrees.ids.tolist(), (degrees.counts + 1).tolist(), strict=True))
    cores = np.array(sorted(point for point in ids if degree[point] >= min_pts), np.int64)
    forests, nearest = [], []
    for chunk in chunks(pairs, n, random):
        found = core_pairs(*columns(chunk), cores)
        forests.append(spanning_forest(found.core_left, found.core_right))
        nearest.append(nearest_core(found.border_id, found.core_id, found.distance))
    half = n // 2
    forests = [union(spanning_forest, forests[:half]), union(spanning_forest, forests[half:])]
    trees, homes = union(spanning_forest, forests), union(nearest_core, nearest)
    known = label(degrees.ids, degrees.counts + 1, trees, homes, min_pts)
    index = index_ids(known.ids)
    some = random.random(len(ids)) < 0.5
    found, again = {}, {}
    for share in (np.array(ids, np.int64)[some], np.array(ids, np.int64)[~some]):
        found |= by_id(label(share, [degree[point] for point in share.tolist()], trees, homes, min_pts))
        again |= by_id(extend_labels(share, known, index, min_pts))
    assert again == found
    return found


def in_one_part(ids, pairs, min_pts):
    """DBSCAN by all steps in turn, each on all pairs."""
    left, right, distance = columns(pairs)
    degrees = partial_degrees(left, right)
    found = core_pairs(left, right, distance, degrees.ids[degrees.counts + 1 >= min_pts])
    trees = spanning_forest(found.core_left, found.core_right)
    homes = nearest_core(found.border_id, found.core_id, found.distance)
    known = label(degrees.ids, degrees.counts + 1, trees, homes, min_pts)
    return extend_labels(ids, known, index_ids(known.ids), min_pts)


def union(step, parts):
    return step(*(np.concatenate(column) for column in zip(*parts, strict=True))) if parts else step([], [])


@examples(200)
@given(st.integers(0, 60), st.integers(1, 8), st.integers(1, 9), BIG_IDS, st.sampled_from([1, 1000]), SEEDS)
def test_dbscan_in_parts__is_the_definition(n, min_pts, n_chunks, first, step, seed):
    _, ids, pairs = random_pairs(n, seed, first, step)
    assert in_parts(ids, pairs, min_pts, n_chunks, seed) == twin.dbscan(ids, pairs, min_pts)


@examples(100)
@given(st.integers(1, 60), st.integers(1, 8), SEEDS)
def test_oracle__of_rows_is_the_definition(n, min_pts, seed):
    _, ids, pairs = random_pairs(n, seed, -7)
    rows = zip(*(column.tolist() for column in twin.dbscan_of_rows(n, *columns(pairs), min_pts)), strict=True)
    assert dict(enumerate(rows)) == twin.dbscan(sorted(ids), pairs, min_pts)


@examples(100)
@given(st.integers(1, 60), st.integers(1, 8), SEEDS)
def test_cluster__labels_do_not_depend_on_row_order(n, min_pts, seed):
    _, ids, pairs = random_pairs(n, seed)
    random = np.random.default_rng(seed + 1)
    shuffled = [ids[i] for i in random.permutation(n)]
    mixed = [pairs[i] for i in random.permutation(len(pairs))]
    first = in_one_part(ids, mixed, min_pts)
    second = in_one_part(shuffled, pairs, min_pts)
    assert first.ids.tolist() == ids
    assert second.ids.tolist() == shuffled
    assert by_id(first) == by_id(second)


@examples(60)
@given(st.integers(1, 120), st.integers(1, 8), SEEDS)
def test_dbscan_in_one_part__agrees_with_scikit_learn(n, min_pts, seed):
    points, ids, pairs = random_pairs(n, seed)
    ours = in_one_part(ids, pairs, min_pts)
    theirs = DBSCAN(eps=2.0, min_samples=min_pts).fit(points)
    is_core = np.zeros(n, dtype=bool)
    is_core[theirs.core_sample_indices_] = True
    assert (ours.role == ROLES.index("core")).tolist() == is_core.tolist()
    assert (ours.role == ROLES.index("noise")).tolist() == (theirs.labels_ == -1).tolist()
    # The same groups of core points: one name of ours for one of theirs, and the other way round.
    names = set(zip(ours.cluster_id[is_core].tolist(), theirs.labels_[is_core].tolist(), strict=True))
    assert len(names) == len({our for our, _ in names}) == len({their for _, their in names})
    # A border point is in one of the clusters that it could be in.
    near = {each: set() for each in ids}
    cluster = dict(zip(ids, ours.cluster_id.tolist(), strict=True))
    core = {each for each, core in zip(ids, is_core, strict=True) if core}
    for one, other, _ in pairs:
        near[one] |= {cluster[other]} if other in core else set()
        near[other] |= {cluster[one]} if one in core else set()
    for each in np.array(ids)[ours.role == ROLES.index("border")].tolist():
        assert cluster[each] in near[each]


@examples(100)
@given(st.integers(2, 80), st.integers(0, 160), st.integers(1, 8), SEEDS)
def test_spanning_forest__composes_over_chunks(n, n_edges, n_chunks, seed):
    random = np.random.default_rng(seed)
    edges = random.integers(0, n, (n_edges, 2)) * 1_000_003 - 2**40
    dealt = random.integers(0, n_chunks, n_edges)
    parts = [spanning_forest(*edges[dealt == chunk].T) for chunk in random.permutation(n_chunks)]
    whole = spanning_forest(*edges.T)
    again = union(spanning_forest, parts)
    assert [column.tolist() for column in whole] == [column.tolist() for column in again]
    expected = {node: root for node, root in twin.components(edges.tolist()).items() if node != root}
    assert dict(zip(*(column.tolist() for column in whole), strict=True)) == expected
    assert (np.diff(whole.node) > 0).all()
    assert (whole.root < whole.node).all()
    graph = networkx.Graph(edges.tolist())
    assert len(whole.node) == graph.number_of_nodes() - networkx.number_connected_components(graph)


def test_border__goes_to_its_nearest_core_point_then_to_the_smallest_id():
    # Two triangles of core points, 10 20 30 and 40 50 60; 70 is nearer to 40, 80 as near to 20 as to 50.
    triangles = [(10, 20, 0.5), (10, 30, 0.5), (20, 30, 0.5), (40, 50, 0.5), (40, 60, 0.5), (50, 60, 0.5)]
    borders = [(10, 70, 0.9), (40, 70, 0.8), (50, 80, 0.9), (20, 80, 0.9)]
    found = by_id(in_one_part([70, 80, 60, 50, 40, 30, 20, 10], triangles + sorted(borders), 4))
    assert found == twin.dbscan([10, 20, 30, 40, 50, 60, 70, 80], triangles + borders, 4)
    # With min_pts 4 only 10, 20, 40 and 50 are core.
    assert found[70] == (40, "border", 3)
    assert found[80] == (10, "border", 3)


def test_min_pts__counts_the_point_itself_and_is_reached_exactly():
    # On a line: 0, 1 and 1.9, and one point far away; eps 1.
    pairs = [(0, 1, 1.0), (1, 2, 0.9)]
    two, three, four = (in_one_part([0, 1, 2, 3], pairs, min_pts) for min_pts in (2, 3, 4))
    assert [ROLES[role] for role in two.role] == ["core", "core", "core", "noise"]
    assert [ROLES[role] for role in three.role] == ["border", "core", "border", "noise"]
    assert [ROLES[role] for role in four.role] == ["noise"] * 4
    assert three.cluster_id.tolist() == [1, 1, 1, NOISE]
    assert two.degree.tolist() == [2, 3, 2, 1]


def test_min_pts_of_one__makes_every_point_core():
    found = in_one_part([5, 3], [], 1)
    assert found.cluster_id.tolist() == [5, 3]
    assert found.role.tolist() == [0, 0]


def test_no_points__no_clusters():
    assert all(column.size == 0 for column in in_one_part([], [], 3))
    assert all(column.size == 0 for column in partial_degrees([], []))
    assert all(column.size == 0 for column in spanning_forest([], []))
    assert all(column.size == 0 for column in core_pairs([], [], [], []))
    assert all(column.size == 0 for column in nearest_core([], [], []))


def test_partial_degrees__counts_both_ends():
    ids, counts = partial_degrees([1, 1, -4], [2, 9, 1])
    assert ids.tolist() == [-4, 1, 2, 9]
    assert counts.tolist() == [1, 3, 1, 1]


@pytest.mark.parametrize("others", [0, 1000])  # looked up by hashing, and by binary search
def test_core_pairs__parts_pairs_by_their_core_ends(others):
    cores = np.array([2, 3, *range(100, 100 + others)])
    found = core_pairs([1, 1, 2, 2, 99], [4, 2, 3, 5, 10**9], [0.1, 0.2, 0.3, 0.4, 0.5], cores)
    assert [column.tolist() for column in found] == [[2], [3], [1, 5], [2, 2], [0.2, 0.4]]


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3), st.sampled_from([0.0, 0.5, 1.0])), max_size=40)
)
def test_nearest_core__is_the_smallest_distance_then_id(rows):
    found = nearest_core(*columns(rows))
    expected = {}
    for border, core, distance in rows:
        expected[border] = min(expected.get(border, (math.inf, 0)), (distance, core))
    assert found.border_id.tolist() == sorted(expected)
    ours = zip(found.distance.tolist(), found.core_id.tolist(), strict=True)
    assert list(ours) == [expected[border] for border in sorted(expected)]


@pytest.mark.parametrize(("distance", "says"), [(math.nan, "never NaN"), (-0.5, "the least is -0.5")])
def test_steps__refuse_what_is_no_distance(distance, says):
    with pytest.raises(ArgumentError, match=says):
        core_pairs([1], [2], [distance], [1, 2])
    with pytest.raises(ArgumentError, match=says):
        nearest_core([1], [2], [distance])


@pytest.mark.parametrize("min_pts", [0, 2.5])
def test_label__refuses_a_wrong_min_pts(min_pts):
    says = f"min_pts must be a whole number, at least 1, not {min_pts}"
    with pytest.raises(ArgumentError, match=says):
        in_one_part([1, 2], [(1, 2, 0.5)], min_pts)
    known = in_one_part([1, 2], [(1, 2, 0.5)], 1)
    with pytest.raises(ArgumentError, match=says):
        extend_labels([1], known, index_ids(known.ids), min_pts)


def test_label__refuses_ids_that_are_not_int64():
    with pytest.raises(ArgumentError, match="ids must be a one-dimensional array of int64"):
        in_one_part([1.5, 2], [], 2)


def test_columns__of_different_length_are_refused():
    with pytest.raises(ArgumentError, match="equally long, not left 2, right 1"):
        partial_degrees([1, 2], [3])
    with pytest.raises(ArgumentError, match="equally long, not left 1, distance 2"):
        core_pairs([1], [2], [0.5, 0.5], [])


def test_core_pairs__refuses_core_ids_that_do_not_rise():
    with pytest.raises(ArgumentError, match="core_ids_sorted must be ascending"):
        core_pairs([1], [2], [0.5], [3, 2])


def test_label__refuses_the_id_of_noise():
    nothing = np.empty(0, np.int64)
    with pytest.raises(ArgumentError, match="kept for noise"):
        label([-1], [1], Forest(nothing, nothing), NearestCore(nothing, nothing, np.empty(0)), 2)
    known = label(nothing, nothing, Forest(nothing, nothing), NearestCore(nothing, nothing, np.empty(0)), 2)
    with pytest.raises(ArgumentError, match="kept for noise"):
        extend_labels([-1], known, index_ids(known.ids), 2)


def test_steps__take_read_only_columns_as_arrow_gives_them():
    left, right, distance = columns([(1, 2, 0.5), (2, 3, 0.5)])
    for column in (left, right, distance):
        column.setflags(write=False)
    found = core_pairs(left, right, distance, partial_degrees(left, right).ids)
    assert spanning_forest(found.core_left, found.core_right).root.tolist() == [1, 1]
    assert nearest_core(found.border_id, found.core_id, found.distance).core_id.size == 0
