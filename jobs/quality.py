"""spark-submit jobs/quality.py: whether a run's tables are as their contracts say."""

import argparse
import sys
import traceback
from collections.abc import Mapping
from functools import partial

from epsjoin.console import say
from epsjoin.errors import DataRefusedError
from epsjoin.pipeline import STAGES
from epsjoin.report.publish import publish
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job import Job, run_job


def look(job: Job, stage: str) -> Mapping[str, float]:
    """Look at the tables; a run that its results stop gets its report at once, which says what does not hold.

    The job ``report`` will not run, and without it the page of an earlier pass would go on saying that all is
    well.
    """
    try:
        return check_quality(job, stage)
    except DataRefusedError:
        if stage == "results":
            try:
                publish(job)
            except Exception:  # noqa: BLE001 - of broken tables anything may come; that they are broken matters
                traceback.print_exc()
                say("quality: there is no report of what was found; the table quality has it")
        raise


def main() -> int:
    """Parse what this job alone knows, then run it as any other."""
    own = argparse.ArgumentParser(add_help=False, prog="quality")
    own.add_argument("--stage", choices=STAGES, default="results", help="the tables to look at")
    given, _ = own.parse_known_args()
    return run_job(f"quality_{given.stage}", partial(look, stage=given.stage), sys.argv[1:], [own])


if __name__ == "__main__":
    raise SystemExit(main())
