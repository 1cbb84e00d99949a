"""The Spark session of a job; all of its settings stand in ``conf/``."""

from __future__ import annotations

from pyspark.sql import SparkSession


def get_session(name: str) -> SparkSession:
    """Get the session that spark-submit configured, or the one that already runs."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
