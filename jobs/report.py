"""spark-submit jobs/report.py: publish the page and the pictures of a run."""

from epsjoin.report.publish import publish
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("report", publish, starts_session=False, doc=__doc__))
