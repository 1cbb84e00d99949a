"""spark-submit jobs/verify.py: check a run's stored pairs and clusters by brute force on random points."""

import argparse
import sys
from functools import partial

from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.job import run_job


def main() -> int:
    """Parse the arguments that only this job has, then run it like any other job."""
    own = argparse.ArgumentParser(add_help=False, prog="verify")
    own.add_argument("--points", type=int, default=1000, help="random points to check")
    own.add_argument("--cells", type=int, default=20, help="random cells of a grid to check as well")
    own.add_argument("--seed", type=int, default=0, help="seed of the random points and cells")
    given, _ = own.parse_known_args()
    step = partial(verify_tables, request=Request(given.points, given.cells, given.seed))
    return run_job("verify", step, sys.argv[1:], [own])


if __name__ == "__main__":
    raise SystemExit(main())
