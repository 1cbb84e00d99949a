"""spark-submit jobs/rehearse.py: run the steps once on points that it makes itself (bin/class-archive)."""

import argparse

from epsjoin.spark.startup.rehearse import rehearse

if __name__ == "__main__":
    argparse.ArgumentParser(prog="rehearse", description=__doc__).parse_args()
    raise SystemExit(rehearse())
