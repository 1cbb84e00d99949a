"""spark-submit jobs/merge_join.py: join each part by itself, so that every pair is found once."""

from epsjoin.spark.job.job import run_job
from epsjoin.spark.join import merge_join

if __name__ == "__main__":
    raise SystemExit(run_job("merge_join", merge_join.run, starts_session=False, doc=__doc__))
