"""What changed since the run before."""

from __future__ import annotations

from pathlib import Path

from epsjoin.spark.ingest import ingest
from epsjoin.spark.report.difference import find_difference
from tests.spark.conftest import JobMaker
from tests.spark.two_runs import BEFORE, TEXT, Rows, job_on
from tests.tiny import RUN, coordinate, key


def test_difference__sees_a_value_that_moved_to_another_column(make_job: JobMaker, tmp_path: Path) -> None:
    """A hash that skips nulls would not."""
    columns = [key(), TEXT, {"name": "other", "logicalType": "string"}, coordinate("x")]
    for run, line in ((BEFORE, "1,a,,0\n2,b,b,0\n"), (RUN, "1,,a,0\n2,b,b,0\n")):
        (tmp_path / f"{run}.csv").write_text("id,name,other,x\n" + line, encoding="utf-8")
        job = make_job(columns, path="{date}.csv", run=run)
        ingest.run(job)
    found = find_difference(job, None)
    assert (found["changed"], found["same"]) == (1, 1)


def test_difference__without_a_key_counts_equal_rows(make_job: JobMaker, tmp_path: Path) -> None:
    rows: Rows = {i: ("a", 1.0, float(i // 2)) for i in range(10)}  # five rows, each twice
    for run, ids in ((BEFORE, [*range(10)]), (RUN, [9, 8, 7, 7, 7, 5, 5, 0, 11])):
        lines = [f"{id_ // 2},a,1.0,{float(id_ // 2)!r}\n" for id_ in ids]
        (tmp_path / f"{run}.csv").write_text("id_,name,x,y\n" + "".join(lines), encoding="utf-8")
        job = job_on(make_job, run, keyed=False)
        ingest.run(job)
    found = find_difference(job, "name")
    # now: 4 twice, 3 three times, 2 twice, 0 once, and a new one; before: 0 to 4 twice each
    assert (found["added"], found["removed"], found["same"]) == (2, 3, 7)
    assert (found["changed"], found["examples"]) == (None, [])
    assert len(rows) == found["removed"] + found["same"]
