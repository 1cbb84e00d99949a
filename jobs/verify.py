"""spark-submit jobs/verify.py: check the pairs, clusters and outliers of a run by brute force."""

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
    own.add_argument("--scores", type=int, default=100, help="random points whose LOF is computed anew")
    own.add_argument("--seed", type=int, default=0, help="seed of what is drawn at random")
    given, _ = own.parse_known_args()
    step = partial(verify_tables, request=Request(given.points, given.cells, given.seed, given.scores))
    return run_job("verify", step, sys.argv[1:], [own])


if __name__ == "__main__":
    raise SystemExit(main())
