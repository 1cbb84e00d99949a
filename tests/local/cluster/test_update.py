"""Clusters from those before: always those of all pairs, and few pairs are looked at."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.cluster.dbscan import dbscan
from epsjoin.local.cluster.update import update_clusters
from epsjoin.local.compare.match import match_clusters
from epsjoin.local.join.arrays import self_join
from epsjoin.local.join.update import update_join
from epsjoin.local.sweep.pairs import Pairs
from oracles import INTERPRETED
from oracles import cluster as cluster_twin
from oracles import increment as twin
from tests.local.join.histories import METRICS, make_history

N_HISTORIES = 14 if INTERPRETED else 70
N_LATTICES = 4 if INTERPRETED else 40


def columns_of(state):
    """The points and ids of a state, in the order of the ids."""
    ids = np.array(sorted(state), np.int64)
    return np.array([state[id_] for id_ in ids.tolist()], np.float64).reshape(len(ids), -1), ids


def lattice_history(seed):
    """Points on a lattice, where most distances are ties; a fifth of them moves, comes and goes at once."""
    random = np.random.default_rng(seed)
    side = int(random.integers(9, 14))
    state = {int(id_): tuple(random.integers(0, side, 2) * 1.0) for id_ in random.choice(500, 70, False)}
    for _ in range(6):
        yield state
        ids = random.permutation(sorted(state)).tolist()
        share = int(random.choice([1, 2, 14]))
        state = {id_: place for id_, place in state.items() if id_ not in ids[:share]}
        state |= {id_: tuple(random.integers(0, side, 2) * 1.0) for id_ in ids[share : 2 * share]}
        state |= {
            int(id_): tuple(random.integers(0, side, 2) * 1.0) for id_ in random.choice(500, share, False)
        }


def assert_follows(states, eps, metric, p, min_pts):
    """Update from state to state, against the definition; return how often what happened in one step."""
    by_definition = [twin.pairs_of(state, eps, getattr(metric, "name", metric), p) for state in states]
    points, ids = columns_of(states[0])
    pairs, clusters = self_join(points, eps, metric, ids=ids), dbscan(points, eps, min_pts, metric)
    happened = []
    for (before, now), by_pairs in zip(pairwise(states), pairwise(by_definition), strict=True):
        points_now, ids_now = columns_of(now)
        pairs_now = update_join(pairs, points, points_now, ids, ids_now, eps, metric)
        counters = {}
        found = update_clusters(clusters, pairs, pairs_now, ids, ids_now, min_pts, counters=counters)
        whole = dbscan(points_now, eps, min_pts, metric)
        assert [column.tobytes() for column in found] == [column.tobytes() for column in whole]
        expected = cluster_twin.dbscan(
            ids_now.tolist(), [(*ends, apart) for ends, apart in by_pairs[1].items()], min_pts
        )
        assert found.labels.tolist() == cluster_twin.numbered([expected[id_][0] for id_ in ids_now.tolist()])
        assert counters == twin.cluster_work(*by_pairs, set(before), set(now), min_pts)
        matched = match_clusters(
            (ids, clusters.labels, clusters.is_core), (ids_now, found.labels, found.is_core)
        )
        happened.append(Counter(matched.events.event.tolist()))
        points, ids, pairs, clusters = points_now, ids_now, pairs_now, found
    return happened


@pytest.mark.parametrize("first", range(len(METRICS)), ids=[name for name, _ in METRICS])
def test_update_clusters__are_those_of_all_pairs_over_histories(first):
    for seed in range(first, N_HISTORIES, len(METRICS)):
        states, eps, metric, p = make_history(seed)
        assert_follows(states, eps, metric, p, 1 + seed % 4)


def test_update_clusters__are_those_of_all_pairs_where_several_are_born_merge_and_split_at_once():
    happened = []
    for seed in range(N_LATTICES):
        happened += assert_follows([*lattice_history(seed)], 1.0 + seed % 2, "chebyshev", 0.0, 3 + seed % 4)
    for event in ("born", "merged", "split"):
        assert any(step[event] > 1 for step in happened), event
    assert any(min(step[event] for event in ("born", "merged", "split")) > 0 for step in happened)


def clump(x, y=0.0):
    """Four points in a square, each within 1 of the others."""
    return [(x, y), (x + 0.5, y), (x, y + 0.5), (x + 0.5, y + 0.5)]


def updated(before, now, min_pts):
    """Update the clusters of states in the plane; return them by id, and the work."""
    (points, ids), (points_now, ids_now) = columns_of(before), columns_of(now)
    pairs = self_join(points, 1.0, ids=ids)
    pairs_now = self_join(points_now, 1.0, ids=ids_now)
    clusters, counters = dbscan(points, 1.0, min_pts), {}
    found = update_clusters(clusters, pairs, pairs_now, ids, ids_now, min_pts, counters=counters)
    assert found.labels.tolist() == dbscan(points_now, 1.0, min_pts).labels.tolist()
    return dict(zip(ids_now.tolist(), found.labels.tolist(), strict=True)), counters


def state_of(*parts):
    return dict(enumerate(place for part in parts for place in part))


def test_update_clusters__of_a_deletion_split_what_it_held_together():
    before = state_of(clump(0.0), [(1.25, 0.0)], clump(2.0))
    now = {id_: place for id_, place in before.items() if id_ != 4}
    found, work = updated(before, now, 3)
    assert [found[id_] for id_ in now] == [0] * 4 + [1] * 4
    assert (work["hurt_clusters"], work["united_pairs"]) == (1, 12)


def test_update_clusters__split_though_no_point_is_core_no_more():
    before = state_of(clump(0.0), [(1.4, 0.0), (1.9, 0.0), (1.9, 0.5), (1.4, 0.5)])
    now = before | {4: (1.6, 0.0), 7: (1.6, 0.5)}  # still core, but out of reach of the others
    found, work = updated(before, now, 3)
    assert [found[id_] for id_ in now] == [0] * 4 + [1] * 4
    assert work["hurt_clusters"] == 1


def test_update_clusters__of_an_insertion_merge_all_that_it_reaches():
    before = state_of(clump(0.0), clump(2.0), clump(1.0, 1.5), clump(9.0))
    assert len({*updated(before, before, 4)[0].values()}) == 4
    found, work = updated(before, before | {16: (1.25, 0.75)}, 4)
    assert [found[id_] for id_ in range(17)] == [0] * 12 + [1] * 4 + [0]
    assert work["hurt_clusters"] == 0
    assert work["united_pairs"] == work["new_pairs"] < 12, "all other pairs of clusters stay unread"


def test_update_clusters__let_a_border_point_change_clusters():
    left, right = clump(0.0), clump(2.5)
    before = state_of(left, [(1.375, 0.9)], right)
    assert updated(before, before, 4)[0][4] == 0, "the cluster at the left"
    for now in (before | {4: (1.75, 0.9)}, before | {9: (2.125, 0.5)}):
        found, work = updated(before, now, 4)
        assert (found[4], work["hurt_clusters"], work["borders"]) == (found[5], 0, 1)


def test_update_clusters__of_nothing_new_look_at_no_pair():
    state = state_of(clump(0.0), clump(1.0), [(5.0, 5.0)], clump(8.0))
    _, work = updated(state, state, 3)
    assert not any(work.values())


@pytest.mark.parametrize(("n_before", "n_now"), [(0, 9), (9, 0), (0, 0)])
def test_update_clusters__begin_and_end_with_no_points(n_before, n_now):
    points, ids = np.array([*clump(0.0), (5.0, 5.0), *clump(1.25)]), np.arange(9)
    old, new = (self_join(points[:n], 1.0, ids=ids[:n]) for n in (n_before, n_now))
    clusters = dbscan(points[:n_before], 1.0, 3)
    found = update_clusters(clusters, old, new, ids[:n_before], ids[:n_now], 3)
    assert found.labels.tolist() == dbscan(points[:n_now], 1.0, 3).labels.tolist()


POINTS, IDS = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([5, 6, 7, 8])
PAIRS, CLUSTERS = self_join(POINTS, 1.0, ids=IDS), dbscan(POINTS, 1.0, 2)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"ids_now": [5, 7, 6, 8]}, "ids_now must ascend, each once; 7 is followed by 6"),
        ({"ids_before": [5, 6, 7]}, "clusters must have a row for each of ids_before, 3, not 4"),
        ({"min_pts": 3}, "clusters must be of the same min_pts, 3"),
        (
            {"pairs_before": Pairs(*(column[:1] for column in PAIRS))},
            "pairs_before, 1; their degrees are of 2",
        ),
        ({"pairs_now": Pairs(*(column[::-1] for column in PAIRS))}, "pairs_now must be sorted"),
        ({"pairs_now": Pairs(PAIRS.right, PAIRS.left, PAIRS.distance)}, "its smaller id at the left"),
        ({"pairs_now": Pairs(*(np.repeat(column, 2) for column in PAIRS))}, "each pair once"),
        ({"ids_now": [5, 6, 8, 9]}, "pairs_now have id 7, which ids_now lack"),
        ({"ids_before": [4, 5, 6, 8]}, r"pairs_before have \(6, 7\), of which ids_before lack one"),
        ({"pairs_now": PAIRS._replace(right=PAIRS.right[:1])}, "must be equally long"),
        ({"clusters": dbscan(POINTS, 1.0, 2, sample_weight=[1.0] * 4)}, "without sample weights"),
        ({"counters": []}, r"counters must be a dictionary, to which counts are added, not \[\]"),
    ],
)
def test_update_clusters__refuse_with_a_sentence(changed, says):
    given = {"clusters": CLUSTERS, "pairs_before": PAIRS, "pairs_now": PAIRS, "min_pts": 2}
    with pytest.raises(ArgumentError, match=says):
        update_clusters(**{**given, "ids_before": IDS, "ids_now": IDS, **changed})


def test_update_clusters__refuse_a_pair_that_is_gone_and_whose_id_was_never_there():
    with pytest.raises(ArgumentError, match="pairs_before have id 5, which ids_before lack"):
        update_clusters(CLUSTERS, PAIRS, Pairs(*(column[1:] for column in PAIRS)), [4, 6, 7, 8], [6, 7, 8], 2)
