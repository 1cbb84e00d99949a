"""spark-submit jobs/replicate.py: the points, spread over the parts of the join."""

from epsjoin.spark.job import run_job
from epsjoin.spark.join import replicate

if __name__ == "__main__":
    raise SystemExit(run_job("replicate", replicate.run))
