"""spark-submit jobs/replicate.py: plan the join, and spread the points over its parts."""

from epsjoin.spark.job.job import run_job
from epsjoin.spark.join import replicate

if __name__ == "__main__":
    raise SystemExit(run_job("replicate", replicate.run, starts_session=False, doc=__doc__))
