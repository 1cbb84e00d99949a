"""What jobs count, and what a page says of it."""

from __future__ import annotations

import re
from pathlib import Path

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from tests.spark.conftest import STAGES, JobMaker
from tests.spark.two_runs import BEFORE, changed, job_on, run_steps, snapshot, some_rows
from tests.tiny import RUN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "understand-the-result.md"


def test_counters__of_a_run_and_an_increment_are_all_explained(make_job: JobMaker, tmp_path: Path) -> None:
    rows = some_rows()
    snapshot(tmp_path, BEFORE, rows)
    snapshot(tmp_path, RUN, changed(rows))
    run_steps(job_on(make_job, BEFORE))
    job = run_steps(job_on(make_job, RUN))
    found = {counter for stage in STAGES.values() for counter in stage(job)}
    for run in (BEFORE, RUN):
        found |= set(slices.read_slice(job.lake, Slice("job_metrics", run))["counter"].to_pylist())
    assert {"distance_computations", "kept_pairs", "grown", "expectations"} <= found
    found = {re.sub(r"^(pairs_expected_at)_\d+_percent.*", r"\1_10_percent", counter) for counter in found}
    _, _, text = PAGE.read_text(encoding="utf-8").partition("The counters in `job_metrics`")
    assert found <= set(re.findall(r"`(\w+)`", text.partition("\n## ")[0]))
