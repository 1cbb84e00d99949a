"""spark-submit jobs/fit_epsilon.py: choose the distance threshold from a sample, if none is set."""

from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("fit_epsilon", fit_epsilon.run, starts_session=False, doc=__doc__))
