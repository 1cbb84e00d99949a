"""Names of clusters over runs: equal to their definition, and what follows from it."""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.ids import index_ids
from epsjoin.local.cluster.dbscan import dbscan
from epsjoin.local.compare.flows import count_flows
from epsjoin.local.compare.fold import name_run
from epsjoin.local.compare.match import Matched, match_clusters, name_clusters
from epsjoin.local.compare.names import NOBODY, Cores
from epsjoin.vocabulary import EVENTS, NOISE
from oracles import names as twin
from oracles import seeds
from tests import open_sets, planted

REPO = Path(__file__).resolve().parents[3]
Run = dict[int, tuple[int, bool]]


def random_runs(seed: int, least: int = -30) -> list[Run]:
    """Records that come, go and change clusters, which split and merge; labels are smallest core ids.

    Some ids are negative, as are names of clusters whose core points are all names already.
    """
    rng, n = np.random.default_rng(seed), 60
    places = rng.integers(0, rng.integers(2, 12), n)
    there = rng.random(n) < 0.8
    ids = rng.permutation(np.arange(least, 3 * n))[:n]
    ids[ids == NOISE] = 3 * n
    runs = []
    for _ in range(8):
        for _ in range(rng.integers(0, 4)):
            one, other = rng.integers(0, 12, 2)
            what = rng.random()
            if what < 0.3:
                places[places == one] = other
            elif what < 0.6:
                places[(places == one) & (rng.random(n) < rng.choice([0.1, 0.5, 0.6]))] = other
            elif what < 0.8:
                places[places == one] = NOISE
            else:
                places[rng.random(n) < 0.1] = other
        there ^= rng.random(n) < rng.choice([0, 0.05, 0.4], p=[0.5, 0.4, 0.1])
        is_core = rng.random(n) < 0.7
        run: Run = {}
        for place in np.unique(places):
            members = np.flatnonzero(there & (places == place))
            cores = members[is_core[members]]
            label = int(ids[cores].min()) if place != NOISE and cores.size else NOISE
            run |= {int(ids[row]): (label, bool(is_core[row]) and label != NOISE) for row in members}
        runs.append(run)
    return runs


def columns(run: Run, rng: np.random.Generator | None = None) -> tuple[Any, Any, Any]:
    """A run as arrays, in any order."""
    ids = list(run)
    if rng is not None:
        rng.shuffle(ids)
    labels, is_core = ([run[each][at] for each in ids] for at in (0, 1))
    return np.array(ids, np.int64), np.array(labels, np.int64), np.array(is_core, np.bool_)


def name_of(found: Matched) -> dict[int, int]:
    return dict(zip(found.names.label.tolist(), found.names.name.tolist(), strict=True))


def flows_of(found: Matched) -> dict[tuple[int | None, int | None], tuple[int, int]]:
    rows = zip(*(column.tolist() for column in found.flows), strict=True)
    return {
        (None if is_new else before, None if is_gone else now): (members, cores)
        for before, now, is_new, is_gone, members, cores in rows
    }


def events_of(found: Matched) -> list[tuple[str, int, int | None, int, bool]]:
    rows = zip(*(column.tolist() for column in found.events), strict=True)
    return [(what, name, None if other == NOISE else other, *rest) for what, name, other, *rest in rows]


def assert_is_the_definition(found: list[Matched], runs: list[Run]) -> None:
    for mine, theirs in zip(found, twin.fold(runs), strict=True):
        assert name_of(mine) == theirs.names
        assert flows_of(mine) == theirs.flows
        listed = events_of(mine)
        assert set(listed) == theirs.events
        assert listed == sorted(listed, key=lambda row: (EVENTS.index(row[0]), row[1], row[2] or 0))
        for at, name in enumerate(mine.names.name.tolist()):
            row = {
                column: int(values[at]) for column, values in mine.names._asdict().items() if column != "name"
            }
            assert row == theirs.rows[name]


@seeds(60, 300)
def test_names_flows_and_events__of_random_histories_are_their_definition(seeds: range) -> None:
    seen: set[str] = set()
    for seed in seeds:
        runs = random_runs(seed)
        rng = np.random.default_rng(seed)
        found = name_clusters([columns(run, rng) for run in runs])
        assert_is_the_definition(found, runs)
        seen |= {event for each in found for event in each.events.event.tolist()}
    assert seen == set(EVENTS), "the histories have everything that can happen"


@seeds(60, 300)
def test_names__are_once_in_a_run_and_never_come_back(seeds: range) -> None:
    came_again = 0
    for seed in seeds:
        ended: set[int] = set()
        for each in name_clusters([columns(run) for run in random_runs(seed)]):
            names = each.names.name.tolist()
            assert len(set(names)) == len(names)
            assert not ended & set(names)
            assert NOISE not in names
            now_ended = set(each.events.name[each.events.ends].tolist())
            came_again += bool(ended & set(each.names.label.tolist()))
            ended |= now_ended
    assert came_again, "a cluster_id did come back, and was no name again"


def test_flows_and_names__add_up_to_the_sizes_of_both_runs() -> None:
    for seed in range(50):
        runs = random_runs(seed)
        found = name_clusters(map(columns, runs))
        for before, now, old, new in zip(runs[:-1], runs[1:], found[:-1], found[1:], strict=True):
            flows = new.flows
            for run, label, is_there in (
                (before, flows.before, ~flows.is_new),
                (now, flows.now, ~flows.is_gone),
            ):
                sizes: dict[int, int] = {}
                for cluster, n in zip(
                    label[is_there].tolist(), flows.members[is_there].tolist(), strict=True
                ):
                    sizes[cluster] = sizes.get(cluster, 0) + n
                assert sizes == Counter(cluster for cluster, _ in run.values())
            of = new.names
            size_before = dict(zip(old.names.name.tolist(), old.names.size.tolist(), strict=True))
            left = of.stayed + of.to_clusters + of.to_noise + of.deleted
            assert left.tolist() == [size_before.get(name, 0) for name in of.name.tolist()]


@seeds(15, 40)
def test_names__a_run_repeated_in_between_changes_none_and_has_no_event(seeds: range) -> None:
    for seed in seeds:
        runs = random_runs(seed)
        plain = name_clusters(map(columns, runs))
        for at in range(len(runs)):
            again = name_clusters(map(columns, [*runs[: at + 1], *runs[at:]]))
            assert again[at + 1].events.event.size == 0
            del again[at + 1]
            assert [name_of(each) for each in again] == [name_of(each) for each in plain]
            assert [events_of(each) for each in again] == [events_of(each) for each in plain]


def test_names__follow_ids_that_are_renumbered_in_their_order() -> None:
    compared = 0
    for seed in range(100):
        runs = random_runs(seed, least=0)
        to = {record: 7 * record + 3 for run in runs for record in run} | {NOISE: NOISE}
        renumbered = [
            {to[record]: (to[cluster], core) for record, (cluster, core) in run.items()} for run in runs
        ]
        names, others = (name_clusters(map(columns, each)) for each in (runs, renumbered))
        if any(each.names.name.min(initial=0) < 0 for each in names):
            continue  # a name that is no id
        compared += 1
        for one, other in zip(names, others, strict=True):
            assert {to[label]: to[name] for label, name in name_of(one).items()} == name_of(other)
    assert compared > 50


def test_names__stay_whatever_the_labels_are() -> None:
    ids = np.arange(12)
    before, now = np.repeat([0, 1, 2], 4), np.repeat([2, 7, 0], 4)
    found = match_clusters((ids, before), (ids, now))
    assert name_of(found) == {0: 8, 2: 0, 7: 4}
    assert found.events.event.size == 0
    assert found.names.runs.tolist() == [2, 2, 2]
    assert found.names.first_run.tolist() == [0, 0, 0]


def test_names__of_a_cluster_of_former_names_only_are_below_noise() -> None:
    ids = [1, 2]
    runs = [(ids, labels) for labels in ([1, 1], [-1, -1], [1, 1], [-1, -1], [1, 1], [-1, -1], [1, 1])]
    assert [each.names.name.tolist() for each in name_clusters(runs)] == [[1], [], [2], [], [-2], [], [-3]]


def test_names__below_noise_are_not_given_twice_where_records_are_numbered_below_it_too() -> None:
    runs = [([1, 2], [1, 2]), ([1, 2], [-1, -1]), ([1, 2, -2, 7], [0, 0, 3, 3])]
    assert [each.names.name.tolist() for each in name_clusters(runs)] == [[1, 2], [], [-2, 7]]


def test_names__below_noise_are_each_tried_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def trying(start: int, step: int) -> Iterator[int]:
        for name in itertools.count(start, step):
            tried.append(name)
            yield name

    monkeypatch.setattr("epsjoin.local.compare.fold.count", trying)
    n = 100  # clusters of one record, which dissolve and are born again in turns
    ids = np.arange(n)
    found = name_clusters([(ids, ids if number % 2 == 0 else np.full(n, NOISE)) for number in range(8)])
    assert [each.names.name.tolist()[::99] for each in found[::2]] == [
        [0, 99],
        [-2, -101],
        [-102, -201],
        [-202, -301],
    ]
    assert tried == [*range(-2, -102, -1), *range(-2, -202, -1), *range(-2, -302, -1)]


def test_flows__of_what_was_not_there_come_last_and_likewise_of_what_is_not() -> None:
    flows = match_clusters(([1, 2, 3, 4], [5, 5, -1, -1]), ([2, 3, 6, 7], [-1, 8, -1, 8])).flows
    ends = [flows.before, flows.now, flows.is_new, flows.is_gone, flows.members]
    assert list(zip(*(column.tolist() for column in ends), strict=True)) == [
        (-1, 8, False, False, 1),
        (-1, -1, False, True, 1),
        (5, -1, False, False, 1),
        (5, -1, False, True, 1),
        (-1, -1, True, False, 1),
        (-1, 8, True, False, 1),
    ]


def test_heir__has_more_than_half_of_what_is_left() -> None:
    before = np.arange(8), np.zeros(8, np.int64)
    half = np.arange(8), np.repeat([0, 4], 4)
    assert events_of(match_clusters(before, half)) == [
        ("split", 0, 1, 4, True),
        ("split", 0, 4, 4, True),
        ("split_off", 1, 0, 4, False),
        ("split_off", 4, 0, 4, False),
    ]
    more = np.arange(1, 8), np.array([0, 0, 0, 4, 4, 4, 4])
    assert name_of(match_clusters(before, more)) == {4: 0, 0: 1}


@pytest.mark.parametrize(
    ("sizes", "event"),
    [((20, 22), "grown"), ((20, 21), ""), ((21, 23), ""), ((9, 10), ""), ((20, 18), "shrunk")],
)
def test_grown_and_shrunk__is_a_tenth_and_two_records(sizes: tuple[int, int], event: str) -> None:
    found = match_clusters(*((np.arange(n), np.zeros(n, np.int64)) for n in sizes))
    assert found.events.event.tolist() == [event] * bool(event)
    assert found.events.members.tolist() == [2] * bool(event)


def test_cores__name_a_cluster_not_its_border() -> None:
    found = name_clusters([([1, 2, 3], [0, 0, 0], [False, True, True])])
    assert found[0].names.name.tolist() == [2]
    assert found[0].names.core.tolist() == [2]


def test_fold__looks_for_other_core_points_only_where_the_smallest_was_a_name() -> None:
    """26 runs of 10,000 clusters, of which a few dissolve and come again in each run."""
    n = 10_000
    ids, home = np.arange(3 * n), np.repeat(np.arange(n) * 3, 3)
    asked: list[int] = []
    named, before = NOBODY, np.empty(0, np.int64)
    sizes = []
    for number in range(26):
        labels = home.copy()
        labels[: 15 * (number % 2)] = NOISE
        cores = Cores.of(ids, labels, labels != NOISE)

        def find_cores(clusters: Ints, whole: Cores = cores) -> Cores:
            asked.append(clusters.size)
            return whole

        flows = count_flows(index_ids(ids[: before.size]), before, ids, labels, labels != NOISE)
        named, _ = name_run(named, flows, number, cores.smallest, find_cores)
        assert flows.members.size <= n + 6
        sizes.append(named.names.name.size)
        before = labels
    assert asked == [5] * 12, "each time that the five came again"
    assert sizes == [n, n - 5] * 13
    assert len(named.ever) == n + 12 * 5 + 1


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (np.zeros((2, 3), np.int64), r"run 0 must be \(ids, labels\)"),
        (([1, 2],), r"run 0 must be \(ids, labels\)"),
        (5, r"run 0 must be \(ids, labels\)"),
        (None, r"run 0 must be \(ids, labels\)"),
        (([1, 2], [0]), "equally long, not ids of run 0 2, labels 1$"),
        (([1, 2], [0, 0], [True]), "equally long, not ids of run 0 2, labels 2, is_core 1$"),
        (([1, 1], [0, 0]), "ids of run 0 must be distinct: id 1 comes twice"),
        ((["a", "b"], [0, 0]), "ids of run 0 must be a one-dimensional array of int64"),
        (([1, 2], [0, 0], [1, 0]), "is_core of run 0 must be a one-dimensional array of bool"),
        (([1, 2], [4, 4], [False, False]), "cluster 4 of run 0 has no core point"),
    ],
)
def test_name_clusters__says_what_is_wrong_with_a_run(run: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        name_clusters([run])
    with pytest.raises(ArgumentError, match=sentence.replace("run 0", "before")):
        match_clusters(run, ([1, 2], [0, 0]))
    with pytest.raises(ArgumentError, match=sentence.replace("run 0", "now")):
        match_clusters(([1, 2], [0, 0]), run)


@pytest.mark.parametrize("runs", [5, None])
def test_name_clusters__says_that_runs_are_several(runs: Any) -> None:
    with pytest.raises(ArgumentError, match="runs must be clusterings, one after another"):
        name_clusters(runs)


@pytest.mark.parametrize("among", ["nothing", "landmarks"])
def test_events__of_the_planted_history_are_those_that_were_planted(among: str) -> None:
    """Also in the Gulf of Mexico, beside all landmarks of the United States, whose names stay."""
    history, eps = planted.history(), planted.EPS
    if among == "landmarks":
        eps = 0.0123457
        history = planted.history_among(open_sets.read("landmarks"), eps, planted.GULF)
    runs = []
    for places in history:
        ids = np.array(list(places))
        found = dbscan(np.array(list(places.values())), eps, planted.MIN_PTS)
        runs.append((ids, found.labels, found.is_core))
    named = name_clusters(runs)
    assert [events_of(each) for each in named] == planted.EVENTS
    is_planted = [each.names.name < planted.AMONG for each in named]
    assert sorted(named[-1].names.name[is_planted[-1]].tolist()) == sorted(planted.LAST_NAMES.values())
    others = [each.names.name[~is_] for each, is_ in zip(named, is_planted, strict=True)]
    assert len(others[0]) == (0 if among == "nothing" else 6032)
    assert all((names == others[0]).all() for names in others)


def test_names__of_twelve_months_of_navaids_stay() -> None:
    """Real snapshots, 11,000 records each, of which few come, go and move: the same 332 clusters."""
    runs = []
    for file in sorted((REPO / "tests" / "data" / "navaids").glob("*.csv.gz")):
        with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
            rows = [(row["id"], row["latitude_deg"], row["longitude_deg"]) for row in csv.DictReader(text)]
        kept = np.array([row for row in rows if all(row)], np.float64)
        _, first = np.unique(kept[:, 0], return_index=True)
        ids, places = kept[first, 0].astype(np.int64), kept[first, 1:]
        found = dbscan(places, 52.5, 5, "haversine")
        runs.append((ids, found.labels, found.is_core))
    assert len(runs) == 12
    named = name_clusters(runs)
    assert {each.names.name.size for each in named} == {332}
    assert all(set(each.names.name.tolist()) == set(named[0].names.name.tolist()) for each in named)
    happened = [(number, *row) for number, each in enumerate(named) for row in events_of(each)]
    assert happened == [(8, "grown", 85679, None, 2, False)]
    assert any(each.flows.is_new.any() for each in named[1:]), "records did come"
