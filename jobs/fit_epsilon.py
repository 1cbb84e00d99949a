"""spark-submit jobs/fit_epsilon.py: choose the distance threshold, if none is set, by a sample."""

from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("fit_epsilon", fit_epsilon.run, starts_session=False, doc=__doc__))
