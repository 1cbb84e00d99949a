"""What ``epsjoin show`` says of a run, from stored tables and without Spark."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from unittest.mock import Mock

import pytest

from epsjoin.commands import cli, clusters
from epsjoin.lake import refusals, slices, transactions
from epsjoin.lake.lake import Lake, Slice
from tests.stored_runs import new_lake, row, write, write_run

RUN = "2022-03-01"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Five points, two clusters, two ranked outliers; the snapshot had one bad row."""
    lake = new_lake(tmp_path)
    source = row(lake, "snapshots", source="navaids.csv", rows_read=6, rows_ok=5, rows_quarantined=1, run=RUN)
    source |= {"rows_left_out": 0, "taken_where": None}
    slices.write_slice(lake, Slice("snapshots", RUN), slices.table_of(lake, "snapshots", [source]))
    write_run(lake, RUN, points=5, pairs=3, clusters=2, eps=20.0)
    ranked = [
        row(lake, "outliers", id=4, rank=1, lof=2.5, k_distance=7.0, run=RUN),
        row(lake, "outliers", id=3, rank=2, lof=None, k_distance=None, degree=2, run=RUN),
    ]
    write(lake, "outliers", RUN, ranked)
    seconds = [{"job": "ingest", "counter": "seconds", "value": 3.2}]
    where = Slice("job_metrics", RUN, (("job", "ingest"),))
    slices.write_slice(lake, where, slices.table_of(lake, "job_metrics", seconds))
    return lake


def show(lake: Lake, run: str = RUN) -> int:
    return cli.main(["show", "--lake", lake.uri, "--dataset", "navaids", "--run", run])


def test_show__prints_what_the_tables_hold(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(lake) == 0
    title, *lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert title == "Navigation aids of the world, run 2022-03-01"
    said = {name.strip(): text.strip() for name, _, text in (line.partition("  ") for line in lines)}
    assert said["snapshot"] == "navaids.csv"
    assert said["points"] == "5 (1 row in quarantine)"
    assert said["eps"] == "20 km: set by the run or the contract"
    assert said["join"] == "of all points: there is no earlier run with pairs"
    assert said["pairs"] == "3"
    assert said["clusters"] == "2 (2 core, 0 border, 3 noise)"
    assert said["largest cluster"] == "1 point, id 0 x x x"
    assert said["top outliers"].startswith("1. 4 ")
    assert "(LOF 2.50, k-distance 7 km; what deviates: x)" in said["top outliers"]
    assert said["what deviates"] == "latitude_deg +0.0, longitude_deg +0.0"  # all points are equal
    assert said["seconds per step"] == "ingest 3"
    assert any(line.startswith("2. 3 ") and "1 neighbour within eps" in line for line in lines)


def test_show__has_no_seconds_of_a_gate_that_another_pass_went_through(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = itertools.count(1_700_000_000)
    monkeypatch.setattr(transactions.time, "time", lambda: next(now))

    def seconds_after(*jobs: str) -> str:
        for job in jobs:
            slices.write_counters(lake, RUN, job, {"seconds": 2.0})
        assert show(lake) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "seconds per step" in line)
        return line.partition("step")[2].strip()

    first = "ingest 2, quality_input 2, fit_epsilon 2, quality_results 2, report 2"
    assert seconds_after("ingest", "quality_input", "fit_epsilon", "quality_results", "report") == first
    assert seconds_after("fit_epsilon") == "ingest 2, quality_input 2, fit_epsilon 2"
    assert seconds_after("ingest") == "ingest 2, fit_epsilon 2"
    assert seconds_after("quality_input", "quality_results", "report") == first


def test_show__of_an_increment_names_the_run_that_it_is_computed_from(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = row(lake, "join_plan", kind="increment", base="2022-02-01", generation=3, placed=1, gone=1200)
    plan |= {"eps": 20.0, "plan": "{}", "run": RUN}
    write(lake, "join_plan", RUN, [plan])
    assert show(lake) == 0
    line = "increment on run 2022-02-01, number 3 in a row: 1 point new or moved, 1,200 deleted or moved"
    assert line in capsys.readouterr().out


def test_show__says_what_was_left_out_and_by_which_condition(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = {"rows_left_out": 12_345, "taken_where": "`latitude_deg` IS NOT NULL"}
    source = row(lake, "snapshots", source="a.csv", rows_quarantined=0, run=RUN) | left_out
    source |= {"rows_read": 12_350, "rows_ok": 5}
    slices.write_slice(lake, Slice("snapshots", RUN), slices.table_of(lake, "snapshots", [source]))
    assert show(lake) == 0
    said = "5 (0 rows in quarantine, 12,345 left out by the condition `latitude_deg` IS NOT NULL)"
    assert said in capsys.readouterr().out


def test_show__of_more_points_than_are_read_says_where_it_is_told_what_deviates(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "MAX_BYTES", 4 * 24)
    assert show(lake) == 0
    told = f"left out: run {RUN} has 5 points; of more than 4 only the report says it\n"
    assert f"  what deviates     {told}" in capsys.readouterr().out


def test_show__refuses_tables_that_do_not_belong_together(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    other = slices.table_of(lake, "points", [row(lake, "points", id=9, run=RUN)])
    slices.write_slice(lake, Slice("points", RUN), other)
    assert show(lake) == 3
    assert "epsjoin show: epsilon of run 2022-03-01 was made from other tables" in capsys.readouterr().err


def test_show__says_why_the_last_snapshot_was_refused(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "2022-03-01.csv: broken gzip"
    refusals.write(lake, RUN, sentence)
    assert show(lake) == 0
    told = "the run was made again, and its snapshot refused; this had come in before: "
    assert f"{told}{sentence}" in capsys.readouterr().out
    refusals.write(lake, "2022-05-01", sentence)
    assert show(lake, "2022-05-01") == 3
    assert f"epsjoin show: the snapshot of run 2022-05-01 was refused: {sentence}" in capsys.readouterr().err


def test_show__of_a_lake_that_this_user_may_not_read_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden = Mock(get_file_info=Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    monkeypatch.setattr(refusals, "_place", lambda *_: (forbidden, "/lake/refused.txt"))
    assert show(lake) == 1
    told = "/lake/refused.txt cannot be read ([Errno 13] Permission denied); let this user read it"
    assert capsys.readouterr().err == f"epsjoin show: {told}\n"


def test_show__of_a_date_that_begins_no_interval_names_the_nearest_runs(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    """No job could make such a run."""
    write_run(lake, "2022-04-01", points=1, pairs=0, clusters=1, eps=20.0)
    for run, near in (
        ("2022-03-14", "are runs 2022-03-01 and 2022-04-01"),
        ("2022-05-02", "is run 2022-04-01"),
    ):
        assert show(lake, run) == 3
        told = (
            f"points has no slice of run {run}, which is not the first day of a month; nearest to it {near}\n"
        )
        assert told in capsys.readouterr().err
    assert show(lake, "2022-02-01") == 3
    assert "has no slice of run 2022-02-01; run ingest for it first\n" in capsys.readouterr().err


def test_show__calls_the_largest_cluster_by_the_name_that_it_kept(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = row(lake, "cluster_names", run=RUN, cluster_id=0, name=3, first_run=RUN)
    kept |= {"stayed": 1, "from_clusters": 0, "from_noise": 0, "inserted": 0}
    for table in ("changes", "cluster_flows", "cluster_names", "cluster_events"):
        write(lake, table, RUN, [kept] if table == "cluster_names" else [])
    assert show(lake) == 0
    assert "1 point, named 3 x x x (cluster_id 0)\n" in capsys.readouterr().out


def test_show__says_what_is_new_since_the_run_before(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    before = "2022-02-01"
    write_run(lake, before, points=5, pairs=3, clusters=2, eps=20.0)
    for run in (before, RUN):
        for table in ("cluster_flows", "cluster_names"):
            write(lake, table, run, [])
    kinds = [("updated", True), ("updated", False), ("deleted", False)]
    changes = [
        row(lake, "changes", id=id_, what=what, moved=moved) for id_, (what, moved) in enumerate(kinds)
    ]
    of_kind = {"updated": {}, "deleted": {"columns": None, "now": None}}
    write(lake, "changes", RUN, [each | of_kind[each["what"]] for each in changes])
    happened = {"against": before, "other": None, "ends": False}
    events = [{**happened, "event": "grown", "name": name, "members": 2} for name in range(7)]
    events[6] |= {"event": "merged", "other": 9, "members": 12, "ends": True}
    events[5] |= {"members": 7}
    write(lake, "cluster_events", RUN, events)
    assert show(lake) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {name.strip(): text.strip() for name, _, text in (line.strip().partition("  ") for line in lines)}
    assert said["since 2022-02-01"] == "0 inserted, 2 updated, 1 deleted (1 moved)"
    told = said["clusters since"]
    assert told.startswith("6 merged into 9, 12 points; 5 grown by 7 points; 0 grown by 2 points; ")
    assert told.endswith("; and 2 events more")
    assert "is due to that" not in "".join(lines)
    for run, min_pts in ((before, 5.0), (RUN, 40.0)):
        slices.write_counters(lake, run, "cluster", {"min_pts": min_pts})
    assert show(lake) == 0
    said_now = capsys.readouterr().out
    assert "In that run min_pts was 5: some of what happened is due to that." in said_now
    write(lake, "cluster_events", RUN, [])
    assert show(lake) == 0
    assert "all kept their names, and nothing happened to them" in capsys.readouterr().out
