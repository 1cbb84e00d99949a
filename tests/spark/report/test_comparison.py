"""What the report says of the tables of the job compare; no session is needed for small slices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.findings import ABSENT, OTHERS, TELLING, Comparison
from epsjoin.lake.cluster_names import count_names
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.params import RunParams
from epsjoin.spark.job.job import Job
from epsjoin.spark.report import comparison
from epsjoin.spark.report.comparison import find_comparison, read_names
from epsjoin.vocabulary import EVENTS, NOISE
from tests.histories import RUNS, State, write_states
from tests.stored_runs import write

FIRST, SECOND, THIRD = RUNS[:3]
AXES = ("x", "y")


def no_session() -> Any:
    raise AssertionError("the driver can read so little itself")


def new_job(folder: Path, run: str) -> Job:
    """Three runs of two clusters, 1 and 5; in the second 5 ends and 7 is born."""
    text = {1: "one", 5: "five", 7: None}
    rows = {i: (float(i), 0.5, None, text.get(i, "n"), b"") for i in range(1, 10)}
    lake = write_states(folder, {run: State(rows, {}, {}) for run in RUNS[:3]}, RUNS[:3])
    names = {FIRST: [(1, 1, 4), (5, 5, 3)], SECOND: [(2, 1, 6), (7, 7, 3)], THIRD: [(2, 1, 6), (7, 7, 3)]}
    since = {1: FIRST, 5: FIRST, 7: SECOND}
    write(lake, "cluster_flows", FIRST, [flow(None, None, 1, 4), flow(None, None, 5, 3)])
    write(
        lake,
        "cluster_flows",
        SECOND,
        [
            *(flow(FIRST, 1, 2, 4), flow(FIRST, 5, 2, 2), flow(FIRST, 5, NOISE, 1), flow(FIRST, None, 7, 3)),
            *(flow(FIRST, NOISE, NOISE, 8), flow(FIRST, NOISE, None, 2)),
        ],
    )
    for each, clusters in names.items():
        counts = ("from_clusters", "from_noise", "inserted", "to_clusters", "to_noise", "deleted")
        write(
            lake,
            "cluster_names",
            each,
            [
                {
                    **{"cluster_id": cluster_id, "name": name, "first_run": since[name], "runs": 1},
                    **{"size": size, "core": 1, "stayed": size, **dict.fromkeys(counts, 0)},
                }
                for cluster_id, name, size in clusters
            ],
        )
    write(lake, "cluster_events", FIRST, [])
    events = [("grown", 1, None, 2), ("born", 7, None, 3), ("merged", 5, 1, 2)]
    write(
        lake,
        "cluster_events",
        SECOND,
        [
            {"against": FIRST, "event": e, "name": n, "other": o, "members": m, "ends": e == "merged"}
            for e, n, o, m in events
        ],
    )
    write(lake, "changes", FIRST, [])
    write(
        lake,
        "changes",
        SECOND,
        [
            change(3, "inserted", None, (3.0, 1.0)),
            change(4, "deleted", (4.0, 2.0), None),
            change(5, "updated", (5.0, 3.0), (5.5, 3.5)),
            change(6, "updated", (6.0, 4.0), (6.0, 4.0)),
        ],
    )
    return Job(no_session, lake, run, RunParams(), folder)


def flow(against: str | None, before: int | None, now: int | None, members: int) -> dict[str, Any]:
    return {"against": against, "cluster_before": before, "cluster_id": now, "members": members, "cores": 0}


def change(id_: int, what: str, before: Any, now: Any) -> dict[str, Any]:
    records = [
        None if place is None else json.dumps({"id": id_, "x": place[0], "y": place[1]})
        for place in (before, now)
    ]
    return {
        **{"against": FIRST, "id": id_, "what": what, "moved": what == "updated" and before != now},
        **{"columns": "[]" if what == "updated" else None, "before": records[0], "now": records[1]},
    }


def find(job: Job) -> Comparison:
    found = find_comparison(job, AXES, "text")
    assert found is not None
    return found


def test_find_comparison__counts_places_and_names_what_changed(tmp_path: Path) -> None:
    found = find(new_job(tmp_path, SECOND))
    assert found.against == FIRST
    assert (found.inserted, found.updated, found.deleted, found.moved) == (1, 2, 1, 1)
    assert [found.came.tolist(), found.went.tolist(), found.moves.tolist()] == [
        *([[3.0, 1.0]], [[4.0, 2.0]], [[5.0, 3.0, 5.5, 3.5]])
    ]
    assert [(row["what"], row["id"], row["key"]) for row in found.examples] == [
        *(("inserted", 3, [3]), ("updated", 5, [5]), ("updated", 6, [6]), ("deleted", 4, [4]))
    ]
    assert {(row["before"], row["now"], row["members"]) for row in found.flows} == {
        *((1, 1, 4), (5, 1, 2), (5, NOISE, 1), (ABSENT, 7, 3))
    }
    assert found.runs == (FIRST, SECOND)
    assert [(row["run"], row["name"], row["size"]) for row in found.lives] == [
        *((FIRST, 1, 4), (FIRST, 5, 3), (SECOND, 1, 6), (SECOND, 7, 3))
    ]
    assert [(row["event"], row["name"]) for row in found.marks] == [("grown", 1), ("merged", 5), ("born", 7)]
    assert [row["event"] for row in found.events] == ["merged", "born", "grown"]
    assert found.n_events == {"merged": 1, "born": 1, "grown": 1}
    assert found.labels == {1: "one", 5: "five"}, "5 is read from the run where it began"
    assert found.cluster_ids == {1: 2, 7: 7}


def test_find_comparison__of_the_first_run_has_names_alone(tmp_path: Path) -> None:
    found = find(new_job(tmp_path, FIRST))
    assert (found.against, found.flows, found.events, found.n_marks) == ("", [], [], 0)
    assert [(row["name"], row["size"]) for row in found.lives] == [(1, 4), (5, 3)]


def test_find_comparison__is_none_where_compare_has_not_run(tmp_path: Path) -> None:
    assert find_comparison(new_job(tmp_path, THIRD), AXES, "text") is None


def test_find_comparison__draws_as_many_marks_as_allowed_the_same_ones_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(tmp_path, SECOND)
    write(job.lake, "changes", SECOND, [change(i, "inserted", None, (float(i), 0.0)) for i in range(1, 500)])
    monkeypatch.setattr(comparison, "MAX_MARKS", 20)
    first, second = find(job), find(job)
    assert (first.inserted, len(first.came)) == (499, 20)
    np.testing.assert_array_equal(first.came, second.came)
    assert len(set(first.came[:, 0].tolist()) - set(range(1, 21))) > 5, "not the first ones"
    other = find(replace(job, params=replace(job.params, seed=1)))
    assert first.came.tolist() != other.came.tolist()


def test_find_comparison__shows_only_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job(tmp_path, SECOND)
    monkeypatch.setattr(comparison, "MAX_NAMES", 1)
    monkeypatch.setattr(comparison, "MAX_EVENTS", 1)
    found = find(job)
    assert {row["name"] for row in found.lives} == {1}
    assert [row["event"] for row in found.events] == ["merged"]
    assert {(row["before"], row["now"], row["members"]) for row in found.flows} == {
        *((1, 1, 4), (OTHERS, 1, 2))
    }


def test_find_comparison__shows_what_happened_before_what_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two names one is that of the birth, though 5 is as large and older; the other is the largest."""
    job = new_job(tmp_path, SECOND)
    monkeypatch.setattr(comparison, "MAX_NAMES", 2)
    born = {"against": FIRST, "event": "born", "name": 7, "other": None, "members": 3, "ends": False}
    write(job.lake, "cluster_events", SECOND, [born])
    found = find(job)
    assert {row["name"] for row in found.lives} == {1, 7}
    assert {(row["before"], row["now"], row["members"]) for row in found.flows} == {
        *((1, 1, 4), (OTHERS, 1, 2), (ABSENT, 7, 3))
    }
    assert found.marks == [{"run": SECOND, "event": "born", "name": 7}]


def test_count_names__counts_births_and_ends_of_a_run(tmp_path: Path) -> None:
    lake = new_job(tmp_path, SECOND).lake
    assert count_names(Fingerprints(lake, SECOND)) == (1, 1)
    assert count_names(Fingerprints(lake, FIRST)) == (None, None), "there was nothing before"
    assert count_names(Fingerprints(lake, THIRD)) == (None, None), "compare has not run"


def test_read_names__are_of_the_last_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_job(tmp_path, THIRD).lake
    monkeypatch.setattr(comparison, "MAX_RUNS", 2)
    assert {each.run for each in read_names(lake, THIRD)} == {SECOND, THIRD}
    assert {each.run for each in read_names(lake, FIRST)} == {FIRST}


def test_events__of_every_kind_have_their_place() -> None:
    assert sorted(TELLING) == sorted(EVENTS)
