"""spark-submit jobs/rehearse.py: run the steps once on points of its own (bin/class-archive)."""

from epsjoin.spark.startup.rehearse import rehearse

if __name__ == "__main__":
    raise SystemExit(rehearse())
