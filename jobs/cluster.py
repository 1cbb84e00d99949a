"""spark-submit jobs/cluster.py: find density clusters (DBSCAN) from the stored pairs."""

from epsjoin.spark.cluster import cluster
from epsjoin.spark.job.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("cluster", cluster.run, starts_session=False, doc=__doc__))
