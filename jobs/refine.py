"""spark-submit jobs/refine.py: compare candidate pairs of documents as trees, and keep those within eps."""

from epsjoin.spark.job.job import run_job
from epsjoin.spark.join import refine

if __name__ == "__main__":
    raise SystemExit(run_job("refine", refine.run, starts_session=False, doc=__doc__))
