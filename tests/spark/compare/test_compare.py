"""The step compare: a run beside the run before it, whatever the order in which the runs came."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import delta_log, slices, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.history import open_view, read_ranges
from epsjoin.lake.lake import Slice
from epsjoin.report.page import render
from epsjoin.report.sentences import list_events, what_changed
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.compare import compare
from epsjoin.spark.job.job import Job
from epsjoin.spark.points import buckets
from epsjoin.spark.report.gather import gather
from epsjoin.spark.startup.rehearse import STEPS
from tests import open_sets, planted
from tests.spark.compare.runs import (
    COLUMNS,
    GUARD,
    PARAMS,
    TABLES,
    content,
    contents,
    events,
    process,
    rows,
    write,
)
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.tiny import coordinate, key


def planted_job(make_job: JobMaker, folder: Path) -> Job:
    for run, places in zip(planted.RUNS, planted.history(), strict=True):
        write(folder, run, places)
    return make_job(COLUMNS, path="{date}.csv", interval="month", guard=GUARD, params=PARAMS)


@pytest.fixture
def job(make_job: JobMaker, tmp_path: Path) -> Job:
    """The planted history, of which no run has been processed."""
    return planted_job(make_job, tmp_path)


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """The planted history, of which three runs have clusters and none is compared. Not to be changed."""
    folder = tmp_path_factory.mktemp("clustered")
    job = planted_job(partial(new_job, spark, folder), folder)
    for run in planted.RUNS[:3]:
        process(job, run, [step for step in STEPS if step not in ("outliers", "compare")])
    return job


ORDERS = {
    "oldest first": list(range(12)),
    "backwards": list(range(11, -1, -1)),
    "shuffled": [7, 2, 11, 0, 5, 9, 1, 10, 4, 8, 3, 6],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.long
def test_compare__finds_the_planted_events_in_any_order_of_processing(job: Job, order: str) -> None:
    process_in_order(job, ORDERS[order])
    last = rows(job, planted.RUNS[-1], "cluster_names")
    assert {row["cluster_id"]: row["name"] for row in last} == planted.LAST_NAMES
    assert {
        row["name"]: (row["first_run"], row["runs"]) for row in last if row["name"] in (100, 501, 611)
    } == {
        100: (planted.RUNS[0], 12),
        501: (planted.RUNS[7], 5),
        611: (planted.RUNS[11], 1),
    }


def test_compare__finds_the_first_seven_planted_events_in_another_order(job: Job) -> None:
    process_in_order(job, [2, 0, 5, 1, 4, 3, 6])


def process_in_order(job: Job, order: list[int]) -> None:
    """Process the first runs in this order, one of them again: they have the planted events."""
    runs, steps = planted.RUNS[: len(order)], [step for step in STEPS if step != "outliers"]
    for number in order:
        process(job, runs[number], steps)
    assert [sorted(events(job, run), key=repr) for run in runs] == [
        sorted(each, key=repr) for each in planted.EVENTS[: len(runs)]
    ]
    for before, run in zip([None, *runs], runs, strict=False):
        for table in TABLES:
            against = {row["against"] for row in rows(job, run, table) if "against" in row}
            assert against <= {before}, "every slice is against the run before, whenever that came"
    whole = contents(job, runs)
    process(job, runs[4], steps)
    assert contents(job, runs) == whole, "a run made again changes nothing"
    process(job, runs[0], ["compare"])
    assert contents(job, runs) == whole


def test_chain__goes_on_where_a_column_becomes_required_and_optional_again(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Older files keep what was allowed then; guard, compare, report and history read them."""
    told = []
    for run, places, is_required in zip(
        planted.RUNS[:3], planted.history(), (False, True, False), strict=False
    ):
        write(tmp_path, run, places, {i: "a" for i in places if is_required or i % 2})
        columns = [*COLUMNS[:3], COLUMNS[3] | {"required": is_required}]
        job = make_job(
            columns, path="{date}.csv", interval="month", guard=GUARD | {"updated": 1}, params=PARAMS
        )
        process(job, run)
        kinds = [
            json.loads(row["now"])["kind"] for row in rows(job, run, "changes") if row["what"] == "updated"
        ]
        told.append(set(kinds))
    assert told == [set(), {"a"}, {None, "a"}], "some have moved"
    assert any(gather(replace(job, run=planted.RUNS[2])).comparison.labels.values())
    by_run = list(read_ranges(job.lake, open_view(job.lake, "points")))
    assert sum(table.num_rows for table in by_run) > len(rows(job, planted.RUNS[2], "points"))


@pytest.mark.long  # twelve whole runs of 122,000 points
@pytest.mark.timeout(2400)
def test_compare__finds_the_planted_events_among_landmarks_and_the_report_tells_them(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """The whole chain of each run, all but the first by increment; nothing happens to the landmarks."""
    eps = 0.0123457
    columns = [key(), coordinate("x", "longitude"), coordinate("y", "latitude")]
    job = make_job(columns, path="{date}.csv", interval="month", params={**PARAMS, "eps": eps})
    history = planted.history_among(open_sets.read("landmarks"), eps, planted.GULF)
    for number, (run, places, expected) in enumerate(zip(planted.RUNS, history, planted.EVENTS, strict=True)):
        write(tmp_path, run, places)
        process(job, run)
        assert sorted(events(job, run), key=repr) == sorted(expected, key=repr), run
        plan = slices.read_row(job.lake, Slice("join_plan", run))
        assert (plan["kind"] == "increment", plan["generation"]) == (number > 0, number)
        transactions.commit(job.lake, {Slice("job_metrics", run, also=(("job", "none"),)): []})
        found = gather(replace(job, run=run))
        told = html.unescape(re.sub("<[^>]+>", "", render(found)))
        happened = Counter(event for event, *_ in expected)
        assert found.comparison is not None
        assert found.comparison.n_events == happened
        assert len(list_events(found)) == len(expected)
        assert all(sentence in told for sentence in list_events(found))
        if number:
            assert f"Since run {planted.RUNS[number - 1]} " in what_changed(found)
            assert what_changed(found) in told
    last = rows(job, planted.RUNS[-1], "cluster_names")
    of_planted = {row["cluster_id"]: row["name"] for row in last if row["name"] < planted.AMONG}
    assert of_planted == planted.LAST_NAMES


@pytest.mark.parametrize("keyed", [True, False])
def test_compare__of_many_records_by_spark_and_in_buckets_gives_the_same(
    make_job: JobMaker, tmp_path: Path, keyed: bool
) -> None:
    """Without a key a record is what its columns hold; its place in the file may be another's later."""
    history = planted.history()
    for run, places in zip(planted.RUNS[:3], (history[0], history[3], history[3]), strict=True):
        records = [*places.items()]
        if run == planted.RUNS[2]:
            records.reverse()
        write(tmp_path, run, {i if keyed else n: place for n, (i, place) in enumerate(records)})
    columns = COLUMNS if keyed else [coordinate("x"), coordinate("y")]
    job = make_job(columns, path="{date}.csv", interval="month", params=PARAMS)
    for run in planted.RUNS[:3]:
        process(job, run, [step for step in STEPS if step != "outliers"])
    whole = contents(job, planted.RUNS[:3])
    with mock.patch.object(buckets, "MAX_ROWS", 20):
        for run in planted.RUNS[:3]:
            process(job, run, ["compare"])
    assert contents(job, planted.RUNS[:3]) == whole
    assert events(job, planted.RUNS[2]) == [], "the same records in another order"
    assert rows(job, planted.RUNS[2], "changes") == []
    happened = sorted((event, members) for event, _, _, members, _ in events(job, planted.RUNS[1]))
    kept = [("split", 6), ("split_off", 6), ("merged", 10)]
    others = [("born", 6), ("gone", 10)]  # who moves without a key goes, and another comes
    either = [("born", 10), ("grown", 10), ("shrunk", 6)]
    assert happened == sorted([*either, *(kept if keyed else others)])


def test_compare__of_a_run_filled_in_remakes_the_next_and_the_names_from_it_on(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [step for step in STEPS if step != "outliers"]
    first, second, third = planted.RUNS[:3]
    for run, said in ((first, "there is no earlier run to compare with; "), (third, f"against {first}: ")):
        process(job, run, steps)
        assert f"compare: {said}" in capsys.readouterr().out
    assert {row["against"] for row in rows(job, third, "changes")} == {first}
    process(job, second, [step for step in steps if step != "compare"])
    with pytest.raises(
        UnfitTableError, match="changes of run 2023-03-01 was made from other .* run compare again"
    ):
        slices.files_of(job.lake, Fingerprints(job.lake, third).slice("changes"))
    capsys.readouterr()
    process(job, second, ["compare"])
    others = f"compare: names or events of 1 later run are others now: {third}; what their pages say of"
    assert others in capsys.readouterr().out
    process(job, second, ["cluster", "compare"])
    assert others not in capsys.readouterr().out, "made anew, but the same"
    of_third = Fingerprints(job.lake, third)
    for file in slices.files_of(job.lake, of_third.slice("cluster_names")):
        (tmp_path / "lake" / "tiny" / "cluster_names" / file.path).write_bytes(b"damaged")
    process(job, second, ["cluster", "compare"])
    assert others in capsys.readouterr().out, "what nobody can read is replaced"
    assert {row["against"] for row in rows(job, third, "changes")} == {second}
    assert events(job, third) == planted.EVENTS[2]
    for run in (first, second, third):
        here = replace(job, run=run)
        process(job, run, ["outliers"])
        assert check_quality(here, "results")["errors"] == 0


def test_compare__of_two_runs_at_once_refuses_the_second_and_then_has_seen_both(
    clustered: Job, tmp_path: Path
) -> None:
    job = copy_of(clustered, tmp_path / "copy")
    first, second, third = planted.RUNS[:3]
    process(job, first, ["compare"])
    both = [
        replace(job, run=run, lake=delta_log.pin_versions(job.lake, "compare")) for run in (second, third)
    ]
    compare.run(both[0])
    with pytest.raises(
        TableError, match=r"another job changed changes of run .*2023-03-01.* run compare again"
    ):
        compare.run(both[1])
    process(job, third, ["compare"])
    assert [sorted(events(job, run), key=repr) for run in planted.RUNS[:3]] == [
        sorted(each, key=repr) for each in planted.EVENTS[:3]
    ]


def test_compare__while_a_later_run_comes_is_refused_and_then_has_seen_it(job: Job) -> None:
    """That run has been named by names that this one replaces, and this one did not know of it."""
    steps = [step for step in STEPS if step not in ("outliers", "compare")]
    first, second, third = planted.RUNS[:3]
    for run in (first, second):
        process(job, run, [*steps, "compare"])
    process(job, third, [step for step in steps if step != "cluster"])
    replace_changes = compare._replace_changes

    def meanwhile(*arguments: Any) -> dict[str, float]:
        with mock.patch.object(compare, "_replace_changes", replace_changes):
            process(job, third, ["cluster", "compare"])
        return replace_changes(*arguments)

    with (
        mock.patch.object(compare, "_replace_changes", meanwhile),
        pytest.raises(TableError, match="clusters of run 2023-03-01 came while .* run compare again"),
    ):
        process(job, second, ["compare"])
    with pytest.raises(UnfitTableError, match="cluster_names of run 2023-03-01 was made from other"):
        rows(job, third, "cluster_names")
    process(job, second, ["compare"])
    assert [sorted(events(job, run), key=repr) for run in (first, second, third)] == [
        sorted(each, key=repr) for each in planted.EVENTS[:3]
    ]


def test_compare__looks_at_the_log_of_a_table_a_few_times_however_many_runs_there_are(
    clustered: Job, tmp_path: Path
) -> None:
    n_looks = []
    for n_runs in (2, 3):
        job, runs = copy_of(clustered, tmp_path / f"{n_runs} runs"), planted.RUNS[:n_runs]
        for run in planted.RUNS[n_runs:3]:
            transactions.commit(job.lake, {Slice("clusters", run): []})
        for run in runs:
            with mock.patch.object(slices, "log_files", wraps=slices.log_files) as looked:
                process(job, run, ["compare"])
        assert slices.list_runs(job.lake, "cluster_names") == list(runs)
        n_looks.append(looked.call_count)
    assert n_looks[0] == n_looks[1] > 0


def test_compare__without_clusters_says_what_to_run_first(job: Job) -> None:
    process(job, planted.RUNS[0], ["ingest"])
    with pytest.raises(
        UnfitTableError, match="join_plan has no slice of run 2023-01-01; run replicate for it first"
    ):
        process(job, planted.RUNS[0], ["compare"])


def test_compare__of_a_lake_made_before_it_names_the_earlier_runs_too(clustered: Job, tmp_path: Path) -> None:
    job, other = (copy_of(clustered, tmp_path / name) for name in ("latest_first", "oldest_first"))
    process(job, planted.RUNS[2], ["compare"])
    for run in planted.RUNS[:3]:
        process(other, run, ["compare"])
    for table in TABLES[1:]:
        assert content(job, planted.RUNS[:3], table) == content(other, planted.RUNS[:3], table)
