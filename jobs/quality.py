"""spark-submit jobs/quality.py: whether a run's tables are as their contracts say."""

import argparse
import sys
from functools import partial

from epsjoin.spark.job import run_job
from epsjoin.spark.quality import STAGES, check_quality


def main() -> int:
    """Parse what this job alone knows, then run it as any other."""
    own = argparse.ArgumentParser(add_help=False, prog="quality")
    own.add_argument("--stage", choices=STAGES, default="results", help="the tables to look at")
    given, _ = own.parse_known_args()
    return run_job(f"quality_{given.stage}", partial(check_quality, stage=given.stage), sys.argv[1:], [own])


if __name__ == "__main__":
    raise SystemExit(main())
