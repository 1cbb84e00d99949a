"""spark-submit jobs/match.py: find the best matches of a run's records among those of another data set."""

from epsjoin.spark.bestmatch import match
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("match", match.run, starts_session=False, doc=__doc__))
