"""spark-submit jobs/outliers.py: how far out every point is."""

from epsjoin.spark.job import run_job
from epsjoin.spark.neighbours import outliers

if __name__ == "__main__":
    raise SystemExit(run_job("outliers", outliers.run))
