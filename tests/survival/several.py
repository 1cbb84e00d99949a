"""Several jobs in one Spark session: ``spark-submit several.py <jobs as JSON> <arguments of each>``."""

from __future__ import annotations

import json
import sys
from functools import partial

from epsjoin.report.publish import publish
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import run_job
from epsjoin.spark.startup import rehearse

STEPS = {
    **rehearse.STEPS,
    "quality_input": partial(check_quality, stage="input"),
    "quality_results": partial(check_quality, stage="results"),
    "report": publish,
}


def main(jobs: str, *arguments: str) -> int:
    for job in json.loads(jobs):
        code = run_job(job, STEPS[job], arguments)
        if code:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
