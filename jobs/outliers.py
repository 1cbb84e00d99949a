"""spark-submit jobs/outliers.py: rank all points by how far out they lie."""

from epsjoin.spark.job.job import run_job
from epsjoin.spark.neighbours import outliers

if __name__ == "__main__":
    raise SystemExit(run_job("outliers", outliers.run, starts_session=False, doc=__doc__))
