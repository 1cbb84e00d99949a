"""spark-submit jobs/ingest.py: read the files of one snapshot into points and quarantine."""

from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("ingest", ingest.run, doc=__doc__))
