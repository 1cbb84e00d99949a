"""spark-submit jobs/quality.py: validate a run's tables against their contracts."""

import argparse
import sys
import traceback
from collections.abc import Mapping
from functools import partial

from epsjoin.console import say
from epsjoin.errors import DataRefusedError
from epsjoin.pipeline import STAGES
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import EXIT_CODES, Job, run_job


def check(job: Job, stage: str) -> Mapping[str, float]:
    """Validate the tables of a stage; if the results do not pass, publish the report before the run stops.

    The job ``report`` will not run in this case, and the page of an earlier pass would still say that all is
    well.
    """
    try:
        return check_quality(job, stage)
    except DataRefusedError:
        if stage != "input":
            try:
                from epsjoin.report.publish import publish  # with Matplotlib, which only a page needs

                publish(job)
            except Exception:  # noqa: BLE001  # broken tables may break the report; the refusal matters more
                traceback.print_exc()
                say("quality: there is no report of what was found; the table quality has it")
        raise


def main() -> int:
    """Parse the arguments that only this job has, then run it like any other job."""
    what = "Validate a run's tables against their contracts."
    own = argparse.ArgumentParser(add_help=False, prog="quality", description=what, epilog=EXIT_CODES)
    stages = "the tables to validate: input after ingest, results before the report, matches after match"
    own.add_argument("--stage", choices=STAGES, default="results", help=f"{stages} (default: %(default)s)")
    given, _ = own.parse_known_args()
    step = partial(check, stage=given.stage)
    return run_job(f"quality_{given.stage}", step, sys.argv[1:], own, starts_session=False)


if __name__ == "__main__":
    raise SystemExit(main())
