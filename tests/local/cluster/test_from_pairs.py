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

from epsjoin.errors import ArgumentError, TableError
from epsjoin.local.cluster.from_pairs import (
    Connected,
    Forest,
    NearestCore,
    connect,
    label,
    number_points,
    partial_degrees,
    spanning_forest,
    sum_degrees,
)
from epsjoin.local.cluster.positions import POINT_BYTES, AllPoints, positions_of
from epsjoin.vocabulary import NOISE, ROLES
from oracles import cluster as twin
from oracles import examples
from tests.kernels.columns import pair_columns

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
    """DBSCAN as a cluster of machines runs it: every step on chunks, results brought together."""
    random = np.random.default_rng(seed)
    points = AllPoints(np.sort(np.array(ids, np.int64)))
    counted = [partial_degrees(*pair_columns(chunk)[:2]) for chunk in chunks(pairs, n, random)]
    for degrees in (union(sum_degrees, counted[: n // 2]), *counted[n // 2 :]):
        points.count(*degrees)
    is_core = points.find_cores(min_pts)
    for chunk in chunks(pairs, n, random):
        left, right, distance = pair_columns(chunk)
        part = number_points(left, right)
        at = positions_of(points.ids, part.ids)
        points.connect(by_positions(connect(part, distance, is_core[at]), at.astype(np.int32)))
    home = points.find_homes()
    name = np.where(home == NOISE, NOISE, np.append(points.ids, NOISE)[home])
    some = random.random(len(ids)) < 0.5
    shares = [label(points.ids[share], points.degree[share], name[share], min_pts) for share in (some, ~some)]
    return by_id(shares[0]) | by_id(shares[1])


def by_positions(found, at):
    (node, root), (border, core, distance) = found
    return Connected(Forest(at[node], at[root]), NearestCore(at[border], at[core], distance))


def in_one_part(ids, pairs, min_pts):
    """DBSCAN by all steps in turn, each on all pairs."""
    return in_parts(ids, pairs, min_pts, 1, 0)


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
    rows = zip(
        *(column.tolist() for column in twin.dbscan_of_rows(n, *pair_columns(pairs), min_pts)), strict=True
    )
    assert dict(enumerate(rows)) == twin.dbscan(sorted(ids), pairs, min_pts)


@examples(100)
@given(st.integers(1, 60), st.integers(1, 8), SEEDS)
def test_cluster__labels_do_not_depend_on_row_order(n, min_pts, seed):
    _, ids, pairs = random_pairs(n, seed)
    random = np.random.default_rng(seed + 1)
    shuffled = [ids[i] for i in random.permutation(n)]
    mixed = [pairs[i] for i in random.permutation(len(pairs))]
    assert in_one_part(ids, mixed, min_pts) == in_one_part(shuffled, pairs, min_pts)


@examples(60)
@given(st.integers(1, 120), st.integers(1, 8), SEEDS)
def test_dbscan_in_one_part__agrees_with_scikit_learn(n, min_pts, seed):
    points, ids, pairs = random_pairs(n, seed)
    found = in_one_part(ids, pairs, min_pts)
    cluster_id, role = (np.array([found[each][i] for each in ids]) for i in (0, 1))
    theirs = DBSCAN(eps=2.0, min_samples=min_pts).fit(points)
    is_core = np.zeros(n, dtype=bool)
    is_core[theirs.core_sample_indices_] = True
    assert (role == "core").tolist() == is_core.tolist()
    assert (role == "noise").tolist() == (theirs.labels_ == -1).tolist()
    # The same groups of core points: one name of ours for one of theirs, and the other way round.
    names = set(zip(cluster_id[is_core].tolist(), theirs.labels_[is_core].tolist(), strict=True))
    assert len(names) == len({our for our, _ in names}) == len({their for _, their in names})
    # A border point is in one of the clusters that it could be in.
    near = {each: set() for each in ids}
    cluster = dict(zip(ids, cluster_id.tolist(), strict=True))
    core = {each for each, core in zip(ids, is_core, strict=True) if core}
    for one, other, _ in pairs:
        near[one] |= {cluster[other]} if other in core else set()
        near[other] |= {cluster[one]} if one in core else set()
    for each in np.array(ids)[role == "border"].tolist():
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
    found = in_one_part([70, 80, 60, 50, 40, 30, 20, 10], triangles + sorted(borders), 4)
    assert found == twin.dbscan([10, 20, 30, 40, 50, 60, 70, 80], triangles + borders, 4)
    # With min_pts 4 only 10, 20, 40 and 50 are core.
    assert found[70] == (40, "border", 3)
    assert found[80] == (10, "border", 3)


def test_min_pts__counts_the_point_itself_and_is_reached_exactly():
    # On a line: 0, 1 and 1.9, and one point far away; eps 1.
    pairs = [(0, 1, 1.0), (1, 2, 0.9)]
    two, three, four = (in_one_part([0, 1, 2, 3], pairs, min_pts) for min_pts in (2, 3, 4))
    assert [two[each][1] for each in range(4)] == ["core", "core", "core", "noise"]
    assert [three[each][1] for each in range(4)] == ["border", "core", "border", "noise"]
    assert [four[each][1] for each in range(4)] == ["noise"] * 4
    assert [three[each][0] for each in range(4)] == [1, 1, 1, NOISE]
    assert [two[each][2] for each in range(4)] == [2, 3, 2, 1]


def test_min_pts_of_one__makes_every_point_core():
    assert in_one_part([5, 3], [], 1) == {5: (5, "core", 1), 3: (3, "core", 1)}


def test_no_points__no_clusters():
    assert in_one_part([], [], 3) == {}
    assert all(column.size == 0 for column in partial_degrees([], []))
    assert all(column.size == 0 for column in spanning_forest([], []))
    trees, nearest = connect(number_points([], []), [], np.empty(0, np.bool_))
    assert all(column.size == 0 for column in (*trees, *nearest))


def test_partial_degrees__counts_both_ends():
    ids, counts = partial_degrees([1, 1, -4], [2, 9, 1])
    assert ids.tolist() == [-4, 1, 2, 9]
    assert counts.tolist() == [1, 3, 1, 1]


def test_connect__parts_pairs_by_their_core_ends():
    part = number_points([1, 1, 2, 2, 99], [4, 2, 3, 5, 10**9])
    assert part.ids.tolist() == [1, 2, 3, 4, 5, 99, 10**9]
    trees, nearest = connect(part, [0.1, 0.2, 0.3, 0.4, 0.5], np.isin(part.ids, [2, 3]))
    assert [part.ids[rows].tolist() for rows in trees] == [[3], [2]]
    assert [part.ids[rows].tolist() for rows in nearest[:2]] == [[1, 5], [2, 2]]
    assert nearest.distance.tolist() == [0.2, 0.4]


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-3, -1), st.sampled_from([0.0, 0.5, 1.0])), max_size=40)
)
def test_connect__nearest_is_the_smallest_distance_then_id(rows):
    part = number_points(*pair_columns(rows)[:2])
    _, found = connect(part, pair_columns(rows)[2], part.ids < 0)
    expected = {}
    for border, core, distance in rows:
        expected[border] = min(expected.get(border, (math.inf, 0)), (distance, core))
    assert part.ids[found.border_id].tolist() == sorted(expected)
    ours = zip(found.distance.tolist(), part.ids[found.core_id].tolist(), strict=True)
    assert list(ours) == [expected[border] for border in sorted(expected)]


@pytest.mark.parametrize(("distance", "says"), [(math.nan, "never NaN"), (-0.5, "the least is -0.5")])
def test_steps__refuse_what_is_no_distance(distance, says):
    with pytest.raises(ArgumentError, match=says):
        connect(number_points([1], [2]), [distance], np.array([True, True]))


def test_columns__of_different_length_are_refused():
    with pytest.raises(ArgumentError, match="equally long, not left 2, right 1"):
        partial_degrees([1, 2], [3])
    with pytest.raises(ArgumentError, match="equally long, not left 2, right 1"):
        number_points([1, 2], [3])
    part = number_points([1], [2])
    with pytest.raises(ArgumentError, match="equally long, not left 1, distance 2"):
        connect(part, [0.5, 0.5], np.array([True, True]))
    with pytest.raises(ArgumentError, match="equally long, not ids 2, is_core 1"):
        connect(part, [0.5], np.array([True]))


def test_columns__that_are_not_int64_are_refused():
    with pytest.raises(ArgumentError, match="left must be a one-dimensional array of int64"):
        number_points([1.5], [2])


def test_all_points__refuse_the_id_of_noise_and_an_id_that_comes_twice():
    with pytest.raises(ArgumentError, match="the id -1 is kept for noise"):
        AllPoints(np.array([-3, -1, 4]))
    with pytest.raises(ArgumentError, match="the id 4 comes twice"):
        AllPoints(np.array([-3, 4, 4]))


@pytest.mark.parametrize(("ids", "gone"), [([1, 3], 2), ([1, 3], 9), ([1, 3], -9), ([], 2)])
def test_all_points__refuse_pairs_of_points_that_are_not_there(ids, gone):
    points = AllPoints(np.array(ids, np.int64))
    with pytest.raises(TableError, match=f"the pairs name the point {gone}, which is not among the points"):
        points.count(np.array([gone]), np.array([1]))


def test_all_points__take_the_bytes_that_they_are_said_to():
    points = AllPoints(np.arange(1000))
    points.count(np.arange(500), np.ones(500, np.int64))
    most = points.nbytes
    points.find_cores(2)
    most = max(most, points.nbytes)
    points.find_homes()
    assert max(most, points.nbytes) == POINT_BYTES * 1000


def test_steps__take_read_only_columns_as_arrow_gives_them():
    left, right, distance = pair_columns([(1, 2, 0.5), (2, 3, 0.5)])
    for column in (left, right, distance):
        column.setflags(write=False)
    part = number_points(left, right)
    trees, nearest = connect(part, distance, np.ones(3, np.bool_))
    assert part.ids[trees.root].tolist() == [1, 1]
    assert nearest.core_id.size == 0
