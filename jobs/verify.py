"""spark-submit jobs/verify.py: check the pairs, clusters and outliers of a run by brute force."""

import argparse
import sys
from functools import partial

from epsjoin.spark.checks.verify import MAX_POINTS_PER_CELL, Request, verify_tables
from epsjoin.spark.job.job import run_job

WHAT = """
Check a run's stored pairs, clusters and outliers by brute force. Random points, and those of random cells,
are joined again with all points, and the scores of some are computed again; in all rows, distances, degrees,
labels and ranks are checked. It is a Spark job that reads these tables completely, and its time grows with
the number of random points times the number of all points. It writes nothing but its own counters.
"""
"""What ``--help`` says of the check."""

ANSWERS = """
Exit codes: 0 nothing is wrong; 1 something broke, and another try may help; 2 an argument is wrong, or the
run had other parameters, which --params must repeat; 3 something is wrong in the tables, or a table of the
run is missing. What is wrong is printed, up to 20 findings.
"""
"""What ``--help`` says of the exit codes."""


def main() -> int:
    """Parse the arguments that only this job has, then run it like any other job."""
    own = argparse.ArgumentParser(add_help=False, prog="epsjoin verify", description=WHAT, epilog=ANSWERS)
    of_own = "(default: %(default)s)"
    own.add_argument("--points", type=int, default=1000, help=f"random points that are joined again {of_own}")
    text = f"random cells of a grid, up to {MAX_POINTS_PER_CELL} points of each {of_own}"
    own.add_argument("--cells", type=int, default=20, help=text)
    text = f"random points whose k-distance and LOF are computed again {of_own}"
    own.add_argument("--scores", type=int, default=100, help=text)
    own.add_argument("--seed", type=int, default=0, help=f"seed of all random choices {of_own}")
    given, _ = own.parse_known_args()
    step = partial(verify_tables, request=Request(given.points, given.cells, given.seed, given.scores))
    return run_job("verify", step, sys.argv[1:], own)


if __name__ == "__main__":
    raise SystemExit(main())
