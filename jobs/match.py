"""spark-submit jobs/match.py: find the best matches of a run's records among those of another data set."""

from epsjoin.spark.job import run_job
from epsjoin.spark.match import match

if __name__ == "__main__":
    raise SystemExit(run_job("match", match.run, starts_session=False))
