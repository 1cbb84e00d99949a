"""Trends over the last runs."""

from __future__ import annotations

from pathlib import Path

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.report.trends import add_seconds, make_trends_before, read_own_counters
from tests.spark.conftest import JobMaker
from tests.spark.two_runs import job_on, snapshot
from tests.tiny import RUN, coordinate, key


def test_trends__are_of_the_last_runs_and_have_gaps(make_job: JobMaker, tmp_path: Path) -> None:
    days = [f"2023-04-{day:02}" for day in range(1, 15)]
    for day in days:
        snapshot(tmp_path, day, {1: ("a", 0.0, 0.0), int(day[-2:]) + 1: ("b", 1.0, 0.0)})
        ingest.run(job_on(make_job, day))
    job = job_on(make_job, days[-1])
    broken = [
        {"table": "points", "expectation": "e", "severity": s, "success": False, "observed": ""}
        for s in ("error", "warning")
    ]
    slices.write_slice(
        job.lake,
        Slice("quality", days[5], also=(("table", "points"),)),
        slices.table_of(job.lake, "quality", broken),
    )
    for day, counters in ((days[6], {"seconds": 3.0}), (days[7], {"seconds": 9.0, "seconds_start": 5.0})):
        rows = [{"job": "ingest", "counter": name, "value": value} for name, value in counters.items()]
        slices.write_slice(
            job.lake,
            Slice("job_metrics", day, also=(("job", "ingest"),)),
            slices.table_of(job.lake, "job_metrics", rows),
        )
    found = make_trends_before(job.lake, job.run, {})
    assert [row["run"] for row in found] == days[2:13], "eleven before this one, the latest"
    assert {row["points"] for row in found} == {2}
    assert {row["clusters"] for row in found} == {None}
    assert [row["errors"] for row in found] == [None] * 3 + [1] + [None] * 7
    assert [row["seconds"] for row in found[4:6]] == [3.0, 9.0]
    for seconds, now in (
        ([3.0, None], {"seconds": 2.0}),
        ([None, 9.0], {"seconds": 8.0, "seconds_start": 5.0}),
    ):
        found = make_trends_before(job.lake, job.run, {"ingest": now})
        assert [row["seconds"] for row in found[4:6]] == seconds, "times with and without the start"
    slices.write_counters(job.lake, days[7], "fit_epsilon", {"seconds": 4.0})
    found = make_trends_before(job.lake, job.run, {"fit_epsilon": {"seconds": 2.0}})
    assert [row["seconds"] for row in found[4:6]] == [None, 13.0], "one was stopped before fit_epsilon"


def test_counters__of_a_run_are_without_those_of_verify_and_of_the_report(make_job: JobMaker) -> None:
    """The cost of a run would grow when somebody verifies it, and makes its report again."""
    job = make_job([key("id"), coordinate("x")])
    for name, seconds in (("ingest", 3.0), ("cluster", 4.0), ("verify", 50.0), ("report", 9.0)):
        slices.write_counters(job.lake, RUN, name, {"seconds": seconds, "cpu_seconds_jvm": seconds})
    found = read_own_counters(job.lake, RUN)
    assert found.keys() == {"ingest", "cluster"}
    assert add_seconds(found, found) == 7.0
