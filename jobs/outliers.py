"""spark-submit jobs/outliers.py: how far out every point is."""

from epsjoin.spark.job import run_job
from epsjoin.spark.outliers import score_outliers

if __name__ == "__main__":
    raise SystemExit(run_job("outliers", score_outliers))
