"""spark-submit jobs/compare.py: find what differs from the run before, and name the clusters."""

from epsjoin.spark.compare import compare
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("compare", compare.run, starts_session=False, doc=__doc__))
